#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Minchan Kim's loop (tests/workloads/free-loop.c) at a small size: with vm.madvise_free_swap=0 what
# was swapped out and given up is read back, a page for nearly each that is written; with 1 it isn't.
# Whether lazyfree memory is taken first shows in the full benchmark only, above the noise of single
# runs.

set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tap.sh
. tests/tap.sh
# shellcheck source=tests/vm/guest.sh
. tests/vm/guest.sh
# shellcheck source=tests/bench/cells/kim.sh
. tests/bench/cells/kim.sh

vm_kernel || exit 1

# shellcheck disable=SC2034 # settings of the cell
loop()
{
	local lru=7 advice=$1 free_swap=${2:-1} memory=128 swap=300 processes=4 mib=52 loops=3
	cell_kim
}

value()
{
	sed -n "s/^free-loop .*\b$2=\([0-9]*\).*/\1/p" <<<"$1"
}

dontneed=$(loop dontneed)
free=$(loop free)
kept=$(loop free 0)
echo "MADV_DONTNEED: $dontneed"
echo "MADV_FREE: $free"
echo "MADV_FREE, swap entries kept: $kept"
on_failure()
{
	echo "see above"
}

for run in dontneed free kept; do
	check "loop_runs_to_its_end_$run" [ "$(value "${!run}" killed)" = 0 ]
	check "loop_needs_more_than_there_is_$run" [ "$(value "${!run}" pswpout)" -gt 2000 ]
done
check madv_dontneed_makes_nothing_lazyfree [ "$(value "$dontneed" pglazyfree)" = 0 ]
check madv_free_drops_swap_entries [ "$(value "$free" pglazyfree_swap)" -gt 1000 ]
check switch_keeps_swap_entries [ "$(value "$kept" pglazyfree_swap)" = 0 ]
check kept_swap_entries_are_read_back \
	[ "$(value "$kept" pswpin)" -ge $((10 * $(value "$free" pswpin))) ]
exit $fail
