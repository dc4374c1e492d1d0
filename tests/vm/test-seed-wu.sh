#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Wu Fengguang's tests of 2009 and Nai Xia's, each once at a small size: tests/bench/cells/wu.sh has
# how they are set up, `make bench-kernel` the figures. Here only what differs by many times the
# noise is asserted. Counts decide; how long something takes says nothing on a busy host.

set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tap.sh
. tests/tap.sh
# shellcheck source=tests/vm/guest.sh
. tests/vm/guest.sh
# shellcheck source=tests/bench/cells/wu.sh
. tests/bench/cells/wu.sh

# run NAME CELL SETTING=VALUE...: a cell's lines, kept as $out/NAME
run()
{
	local name=$1 cell=$2 setting
	shift 2
	(
		for setting in "$@"; do
			declare "$setting"
		done
		"cell_$cell"
	) >"$out/$name"
	check "guest_$name" test $? -eq 0
}

on_failure()
{
	head -n 100 "$out"/*
}

# value NAME LINE KEY: what a run printed; what is missing is no number, and no check holds
value()
{
	sed -n "s/^$2 .*\\b$3=\\([0-9]*\\).*/\\1/p" "$out/$1" | grep . || echo "no $3 of $1"
}

# permille NAME: of the pages of text that were touched, how many were lost
permille()
{
	awk -v lost="$(value "$1" exec-rounds lost)" -v n="$(value "$1" exec-rounds touched)" \
		'BEGIN { if (n + 0 > 0) print int(lost * 1000 / n); else print "nothing of it" }'
}

vm_kernel || exit 1
out=$(mktemp -d "${TMPDIR:-/tmp}/ballast-seed-wu.XXXXXX") || exit 1
trap 'rm -rf "$out"' EXIT

# As fast as it can be read: the stream and the text keep step.
run stream-0 wu_streaming lru=0 level=0 rate=0 every=120
run stream-1 wu_streaming lru=0 level=1 rate=0 every=120
check a_stream_takes_text_that_nothing_protects test "$(permille stream-0)" -ge 200
check a_stream_takes_less_text_that_is_protected \
	test "$(permille stream-1)" -le $(($(permille stream-0) / 2))

run hog-1 hog lru=7 level=1 rounds=3
run hog-3 hog lru=7 level=3 rounds=3
check anonymous_memory_takes_text test "$(permille hog-1)" -ge 60
# How little strict protection loses depends on how fast the host is: `make bench-kernel` judges it.
check anonymous_memory_takes_less_text_when_protection_is_strict \
	test "$(permille hog-3)" -le $(($(permille hog-1) / 2))
check strict_protection_leaves_the_hog_running test "$(value hog-3 hog touches)" -ge 1000
check strict_protection_has_nothing_killed test "$(value hog-3 exec-rounds oom_kill)" -eq 0

run near-oom near_oom lru=7 level=3 rounds=3
check near_oom_nothing_is_killed test "$(value near-oom exec-rounds oom_kill)" -eq 0
check near_oom_the_hog_goes_on test "$(value near-oom hog touches)" -ge 1000

for level in 0 3; do
	run nai-$level nai_xia lru=0 level=$level steps=100
done
off=$(value nai-0 nai-xia majflt)
on=$(value nai-3 nai-xia majflt)
check computing_loses_little test "$on" -le "$((${off//[!0-9]/} * 2))"
check computing_gains_little test "$((${on//[!0-9]/} * 2))" -ge "$off"

check pages_are_as_they_were_left test -z "$(grep -h ' wrong=[1-9]' "$out"/*)"
echo "# measured: text lost beside a stream $(permille stream-0)/1000 at level 0," \
	"$(permille stream-1)/1000 at 1; beside a hog $(permille hog-1)/1000 at 1," \
	"$(permille hog-3)/1000 at 3"
exit $fail
