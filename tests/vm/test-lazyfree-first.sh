#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# vm.lazyfree_first: what reclaim takes first when page cache is older than the memory that was
# given up with MADV_FREE, for both LRUs; see tests/workloads/shed-order.c. At 0, today's order, the
# cache goes first; at 2 at least 99 % of what a bounded reclaim takes must have been given up, also
# when the switch comes after the giving up, in a cgroup, and under plain memory pressure.

set -uo pipefail
# shellcheck source=tests/vm/guest.sh
. "$(dirname "$0")/guest.sh"

value()
{
	sed -n "s/.* $2=\([0-9]*\).*/\1/p" <<<"$1"
}

# check NAME CONDITION LINE
check()
{
	# shellcheck disable=SC2086 # an expression
	if [ -n "$3" ] && [ $2 ]; then
		echo "ok $1 - $3"
	else
		echo "not ok $1 - ${3:-no result}"
		rc=1
	fi
}

vm_kernel || exit 1
out=$(vm_run 256 shed-order <<-'END'
	cg=/sys/fs/cgroup
	echo +memory >$cg/cgroup.subtree_control
	mkdir $cg/child
	for lru in 0 7; do
		for run in "first=0 --first 0" "first=1 --first 1" "first=2 --first 2" \
			"late --first 2 --late 1" "pressure --first 2 --grow 175" \
			"pressure0 --first 0 --grow 175"; do
			set -- $run
			name=$1
			shift
			echo "run=$name.$lru $(shed-order --lru $lru "$@")"
		done
		(
			echo 0 >$cg/child/cgroup.procs
			echo "run=cgroup.$lru $(shed-order --lru $lru --late 1 $cg/child/memory.reclaim)"
		)
	done
END
)
rc=$?
grep -v '^run=' <<<"$out"

for lru in 0 7; do
	[ "$lru" = 0 ] && kind=classic || kind=mglru
	for run in first=2 late cgroup; do
		line=$(grep "^run=$run\.$lru " <<<"$out")
		name=reclaim_takes_lazyfree_first_${kind}_${run/=/_}
		check "$name" "$(value "$line" permille) -ge 990" "$line"
		check "${name}_all_that_was_asked" \
			"$(value "$line" lazyfree) -ge $((48 * 256 * 99 / 100))" "$line"
		check "${name}_keeps_what_was_written_again" "$(value "$line" wrong) -eq 0" "$line"
		check "${name}_swaps_nothing" "$(value "$line" swapped) -eq 0" "$line"
	done
	line=$(grep "^run=first=1\.$lru " <<<"$out")
	check "lazyfree_is_placed_first_$kind" "$(value "$line" permille) -ge 900" "$line"
	line=$(grep "^run=first=0\.$lru " <<<"$out")
	check "today_cache_goes_first_$kind" "$(value "$line" permille) -lt 600" "$line"
	line=$(grep "^run=pressure\.$lru " <<<"$out")
	today=$(grep "^run=pressure0\.$lru " <<<"$out")
	check "pressure_takes_lazyfree_first_$kind" \
		"$(value "$line" lazyfree) -ge $(($(value "$line" held) * 95 / 100))" "$line"
	check "pressure_keeps_what_was_written_again_$kind" "$(value "$line" wrong) -eq 0" "$line"
	echo "today: $today"
done
exit "$rc"
