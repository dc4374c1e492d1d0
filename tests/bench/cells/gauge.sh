# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What the gauges cost where they cost most: a loop that maps 16 MiB of a file, touches every page
# and unmaps it (tests/workloads/exec-map-loop.c), with the series and without it, in the same
# configuration. `by=icount` counts instructions: QEMU's -icount shift=0 makes the guest's clock
# their number; one processor, hardly any noise, comparable between machines. `by=time` is plain
# TCG, or KVM with BALLAST_ACCEL=kvm, and as good as the machine is quiet.

cells_gauge()
{
	local kernel
	for kernel in unpatched patched; do
		echo "gauge-cost kernel=$kernel exec=1 by=icount"
		echo "gauge-cost kernel=$kernel exec=0 by=icount"
		echo "gauge-cost kernel=$kernel exec=1 by=time"
	done
}

cell_gauge_cost()
{
	local qemu='' accel=${BALLAST_ACCEL:-tcg}
	if [ "${by:-icount}" = icount ]; then
		qemu='-icount shift=0,sleep=off'
		accel=tcg
	fi
	BALLAST_ACCEL=$accel VM_CPUS=1 VM_SWAP=0 VM_QEMU=$qemu vm_run 256 exec-map-loop <<-END |
		yes 'not zero' | head -c 16777216 >/data/text
		exec-map-loop --exec ${exec:-1} --loops 8 --rounds ${rounds:-3} /data/text
	END
		awk '/ns_per_page=/ { sub(/.*=/, ""); v[n++] = $1 + 0 }
			!/ns_per_page=/ { print }
			END {
				for (i = 1; i < n; i++)
					for (j = i; j > 0 && v[j - 1] > v[j]; j--) {
						t = v[j]; v[j] = v[j - 1]; v[j - 1] = t
					}
				if (n > 0)
					print "gauge-cost per_page=" v[int(n / 2)] " rounds=" n
			}'
}
