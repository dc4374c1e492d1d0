# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What the series costs and changes while none of its levers is used: the loops of
# tests/workloads/fault-cost.c, and the behaviour tests at default settings, with the series and
# without it, in the same configuration. To be sourced; see tests/bench/kernel.sh.
#
# by=icount counts instructions: QEMU's -icount shift=0 makes the guest's clock their number. There is
# one processor and no swap, addresses are not randomised, and the workload reads the clock around its
# loops only. by=time is plain TCG, or KVM with BALLAST_ACCEL=kvm, and as good as the machine is quiet.

cells_cost()
{
	local kernel test
	for kernel in unpatched patched; do
		echo "fault-cost kernel=$kernel by=icount"
		echo "fault-cost kernel=$kernel by=time"
		for test in streaming hog kim pft; do
			echo "default-$test kernel=$kernel"
		done
	done
}

cell_fault_cost()
{
	local qemu='' accel=${BALLAST_ACCEL:-tcg}
	if [ "${by:-icount}" = icount ]; then
		qemu='-icount shift=0,sleep=off'
		accel=tcg
	fi
	BALLAST_ACCEL=$accel VM_CPUS=1 VM_SWAP=0 VM_QEMU=$qemu vm_run 256 fault-cost <<-END
		echo 0 >/proc/sys/kernel/randomize_va_space
		yes 'not zero' | head -c 16777216 >/data/text
		cat /proc/version
		fault-cost --loops ${loops:-3} --rounds ${rounds:-3} /data/text
	END
}

# As in the other groups. The unpatched kernel hasn't got the settings: they are left alone, or the
# shell says so and goes on.
cell_default_streaming()
{
	lru=0 level=keep cell_wu_streaming
}

cell_default_hog()
{
	lru=7 level=keep period=4 cell_hog
}

cell_default_kim()
{
	lru=7 advice=free first=0 free_swap=1 cell_kim
}

cell_default_pft()
{
	by=icount order=0 threads=2 cell_pft
}
