#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What the gauges cost where they cost most: a loop that maps 16 MiB of a file executable, touches
# every page and unmaps it (tests/workloads/exec-map-loop.c), with the patched and the unpatched
# kernel of the same configuration.
#
# Instructions per page come from QEMU's -icount shift=0, where the guest's clock is the number of
# instructions: one processor, hardly any noise, comparable between machines. Times come from plain
# TCG (or KVM with BALLAST_ACCEL=kvm), the kernels in turn, and are as good as the machine is quiet.
# Prints medians, ranges and the ratio; fails when the instructions are above the limit of 110 %.
#
#	REPEAT=N	boots of each kernel for the times (5)

set -uo pipefail
# shellcheck source=tests/vm/guest.sh
. "$(dirname "$0")/../vm/guest.sh"

repeat=${REPEAT:-5}
work=$(mktemp -d "${TMPDIR:-/tmp}/ballast-cost.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# measure KERNEL ROUNDS EXEC: one boot; prints ns per page of each round
measure()
{
	VM_KERNEL=$1 VM_SWAP=0 vm_run 256 exec-map-loop <<-END
		yes 'not zero' | head -c 16777216 >/data/text
		exec-map-loop --exec $3 --loops 8 --rounds $2 /data/text
	END
}

rounds_of()
{
	sed -n 's/.*ns_per_page=//p'
}

# median, least and most of the numbers on standard input
spread()
{
	sort -n | awk '{ v[NR] = $1 }
		END { m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
			printf "%g (%g to %g, %d rounds)\n", m, v[1], v[NR], NR }'
}

vm_kernel --unpatched || exit 1
unpatched=$VM_KERNEL
vm_kernel || exit 1
patched=$VM_KERNEL

for exec in 1 0; do
	for kernel in unpatched patched; do
		BALLAST_ACCEL=tcg VM_CPUS=1 VM_QEMU='-icount shift=0,sleep=off' \
			measure "${!kernel}" 5 "$exec" | rounds_of >"$work/instructions-$exec-$kernel"
	done
done
for ((i = 0; i < repeat; i++)); do
	for kernel in unpatched patched; do
		VM_CPUS=1 measure "${!kernel}" 4 1 | rounds_of >>"$work/time-1-$kernel"
	done
done

rc=0
for what in instructions-1 instructions-0 time-1; do
	for kernel in unpatched patched; do
		[ -s "$work/$what-$kernel" ] || {
			echo "not ok $what-$kernel - no result"
			exit 1
		}
		eval "$kernel=\$(spread <'$work/$what-$kernel')"
	done
	percent=$(awk -v p="${patched%% *}" -v u="${unpatched%% *}" \
		'BEGIN { printf "%.1f", p / u * 100 }')
	case $what in
	instructions-1) name="instructions per page, r-x" ;;
	instructions-0) name="instructions per page, r--" ;;
	*) name="ns per page, r-x" ;;
	esac
	echo "$name: unpatched $unpatched, patched $patched: $percent %"
	if [ "$what" = instructions-1 ]; then
		good=ok
		awk -v x="$percent" 'BEGIN { exit !(x <= 110) }' || {
			good="not ok"
			rc=1
		}
		echo "$good exec_gauge_costs_at_most_10_percent - $percent %"
	fi
done
exit "$rc"
