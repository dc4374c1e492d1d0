# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Minchan Kim's loop of 2015 (tests/workloads/free-loop.c), in the proportions of his machine: four
# processes that together need 1.7 times the memory, where his twelve needed twice it. To be
# sourced; see tests/bench/kernel.sh.

cells_kim()
{
	local lru
	for lru in 0 7; do
		echo "kim lru=$lru advice=dontneed"
		echo "kim lru=$lru advice=free first=0"
		echo "kim lru=$lru advice=free first=1"
		echo "kim lru=$lru advice=free first=2"
		echo "kim lru=$lru advice=free first=0 free_swap=0"
	done
}

# lru	0: classic, 7: MGLRU
# advice	dontneed or free
# first	vm.lazyfree_first
# free_swap	vm.madvise_free_swap
cell_kim()
{
	local free=1
	[ "${advice:-free}" = free ] || free=0
	VM_SWAP=${swap:-700} vm_run "${memory:-256}" free-loop <<-END
		echo ${lru:-7} >/sys/kernel/mm/lru_gen/enabled
		echo ${first:-0} >/proc/sys/vm/lazyfree_first
		echo ${free_swap:-1} >/proc/sys/vm/madvise_free_swap
		free-loop --free $free --processes ${processes:-4} --mib ${mib:-110} \
			--loops ${loops:-5}
	END
}
