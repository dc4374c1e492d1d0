#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Lameter's page fault test and what his threads were about, at a small size: how many faults there
# are with vm.anon_prefault_max_order (exact numbers, so tight bounds), that pages beside the fault
# keep what they hold (Mita), that MADV_RANDOM is heeded (Luck), and that resident memory and swap
# are counted exactly while threads fault. See tests/workloads/{pft,prefault-check,rss-check}.c.

set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tap.sh
. tests/tap.sh
# shellcheck source=tests/vm/guest.sh
. tests/vm/guest.sh
# shellcheck source=tests/bench/cells/lameter.sh
. tests/bench/cells/lameter.sh

vm_kernel || exit 1

# value TEXT NAME KEY
value()
{
	sed -n "s/^$2 .*\b$3=\([0-9]*\).*/\1/p" <<<"$1"
}

# at_most TEXT NAME KEY NUMBER
at_most()
{
	[ "$(value "$1" "$2" "$3")" -le "$4" ]
}

# as_off NAME: the faults of a shape are within two of those without mapping ahead
as_off()
{
	local more=$(($(value "$on" "$1" minflt) - $(value "$off" "$1" minflt)))
	[ -n "$(value "$on" "$1" minflt)" ] && [ "${more#-}" -le 2 ]
}

# shapes ORDER
# shellcheck disable=SC2034 # settings of the cell
shapes()
{
	local order=$1 bytes=16M
	cell_pft_shapes
}

# shellcheck disable=SC2034 # settings of the cell
threads()
{
	local order=$1 bytes=16M threads=2 repeats=2
	cell_pft
}

on_failure()
{
	printf '%s\n' off: "$off" on: "$on" threads: "$two"
}

off=$(shapes 0)
on=$(shapes 3)
two=$(threads 3)
pages=$((16 * 256))
for shape in row streams2; do
	check "without_it_each_page_is_a_fault_$shape" at_most "$off" $shape minflt $((pages + 2))
	check "order_3_divides_faults_by_7.5_$shape" at_most "$on" $shape minflt $((pages * 10 / 75))
done
check order_3_divides_faults_by_7.5_threads at_most "$two" pft minflt $((2 * pages * 10 / 75))
for shape in stride2 random step16384; do
	check "order_3_changes_nothing_for_$shape" as_off $shape
done
for n in 1 2 4 8 16 33; do
	check "resident_is_at_most_twice_what_was_touched_$n" \
		at_most "$on" run$n resident $((2 * $(value "$on" run$n touched)))
	check "resident_is_what_was_touched_without_it_$n" \
		at_most "$off" run$n resident "$(value "$off" run$n touched)"
done

# In its second run rss-check has more memory than there is. It is on the disk for that, see there.
out=$(
	vm_run 256 prefault-check rss-check <<-'END'
		for order in 0 3 4; do
			echo $order >/proc/sys/vm/anon_prefault_max_order
			prefault-check --rounds 60 --seed $order || exit 1
			/data/rss-check --mib 16 --seed $order || exit 1
		done
	END
	vm_run 96 rss-check <<-'END'
		echo 3 >/proc/sys/vm/anon_prefault_max_order
		/data/rss-check --mib 90 || exit 1
	END
) || fail=1
echo "$out"
! grep -q '^not ok' <<<"$out" || fail=1
exit $fail
