#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# With all levers at their defaults the series costs nothing: page faults on anonymous memory and on
# files, fork and exec take at most 0.5 % more instructions than with the unpatched kernel, and where
# the gauge of executable memory counts, in a loop that maps text, touches it and unmaps it, 10 %. A
# loop that gives memory up with MADV_FREE pays for nr_lazyfree, 6 % at most.
#
# Instructions are QEMU's -icount: a boot gives the same numbers as the next one to 0.1 %, on any
# machine. The unpatched kernel is a build of its own, so what it takes is on record
# (tests/vm/fault-cost.unpatched); tests/bench/cells/cost.sh measures both. Where the kernel's source,
# the compiler or QEMU are not those of the record, 5 % more are allowed: that much they may change.

set -uo pipefail
# shellcheck source=tests/vm/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=tests/tap.sh
. "$VM_TREE/tests/tap.sh"
# shellcheck source=tests/bench/cells/cost.sh
. "$VM_TREE/tests/bench/cells/cost.sh"

record=$VM_TREE/tests/vm/fault-cost.unpatched

recorded()
{
	sed -n "s/^$1\t//p" "$record"
}

# What here isn't as on record, in words; nothing when all is.
other_versions()
{
	local kernel
	kernel=$(grep '^Linux version' <<<"$said")
	[[ $kernel = "Linux version $(recorded source) "* ]] || echo "not $(recorded source)"
	[[ $kernel = *"(gcc "*") $(recorded gcc),"* ]] || echo "not gcc $(recorded gcc)"
	[[ $(qemu-system-x86_64 --version) = *" version $(recorded qemu)."* ]] ||
		echo "not QEMU $(recorded qemu)"
}

vm_kernel || exit 1
said=$(by=icount loops=2 cell_fault_cost) || {
	echo "$said"
	echo "not ok the-loops-run-to-their-end"
	exit 1
}
more=0
others=$(other_versions)
if [ -n "$others" ]; then
	more=5
	echo "# $others, as on record: 5 % more are allowed"
fi

percent_of()
{
	awk -v cost="$1" -v base="$2" 'BEGIN { printf "%.2f", cost / base * 100 }'
}

# shellcheck disable=SC2317 # check calls it
# Far below the record it would be the record that is wrong.
is_near()
{
	awk -v x="$1" -v limit="$2" -v more="$more" \
		'BEGIN { exit !(x >= 95 - more && x <= limit + more) }'
}

while read -r kind baseline limit; do
	cost=$(sed -n "s/^fault-cost .*\\<$kind=\\([0-9.]*\\).*/\\1/p" <<<"$said")
	percent=$(percent_of "${cost:-0}" "$baseline")
	echo "# $kind: ${cost:-no result} instructions, unpatched $baseline: $percent %, at most $limit"
	check "defaults-cost-the-same-$kind" is_near "$percent" "$limit"
done < <(grep -P '^[a-z]+\t[0-9.]+\t[0-9.]+$' "$record")
exit $fail
