# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Christoph Lameter's page fault test of 2004 (tests/workloads/pft.c) with vm.anon_prefault_max_order.
# To be sourced; see tests/bench/kernel.sh.
#
# The guests of tests/vm/guest.sh have no "erms" under TCG, which would carry out the clearing of a
# page byte by byte: two thirds of all that is measured, which no one can save. erms=on shows that.

cells_lameter()
{
	local order threads
	for threads in 1 2; do
		for order in 0 1 2 3 4; do
			echo "pft by=time order=$order threads=$threads"
		done
	done
	for threads in 1 2; do
		for order in 0 3; do
			echo "pft by=icount order=$order threads=$threads"
		done
	done
	for order in 0 3; do
		echo "pft order=$order threads=1 erms=on"
	done
	for threads in 1 2; do
		echo "pft-pairs threads=$threads"
	done
	for order in 0 1 2 3 4; do
		echo "pft-shapes order=$order"
	done
}

# order	vm.anon_prefault_max_order
# by	time, or icount: 1 ns of the wall is one instruction, of all processors together, and the times
#	of the processors mean nothing
cell_pft()
{
	local clock='' cpu='' times=6
	[ "${erms:-off}" = off ] || cpu="-cpu max"
	[ "${by:-time}" = time ] || {
		clock="-icount shift=0,sleep=off"
		times=1
	}
	VM_SWAP=0 VM_QEMU="$cpu $clock" vm_run 256 pft <<-END
		echo ${order:-0} >/proc/sys/vm/anon_prefault_max_order
		pft -t -b ${bytes:-64M} -r ${repeats:-$times} -f ${threads:-1}
	END
}

# The time of order 3 beside that of 0 in one boot: they take turns, ten times twice the region each,
# so that what the host does meanwhile meets both alike. Two boots, seconds apart, differ by more.
cell_pft_pairs()
{
	VM_SWAP=0 vm_run 256 pft <<-SCRIPT
		for turn in 1 2 3 4 5 6 7 8 9 10; do
			for order in 0 3; do
				echo \$order >/proc/sys/vm/anon_prefault_max_order
				pft -b ${bytes:-64M} -r 2 -f ${threads:-1} | sed -n "s/^pft /order\$order /p"
			done
		done | awk '{
			for (i = 2; i <= NF; i++) {
				split(\$i, word, "=")
				sum[\$1, word[1]] += word[2]
			}
		}
		END {
			for (order = 0; order <= 3; order += 3) {
				wall = sum["order" order, "wall_us"]
				touched = sum["order" order, "touched"]
				if (wall > 0)
					printf "order%d touched=%d minflt=%d wall_us=%d fault_wsec=%d\\n",
						order, touched, sum["order" order, "minflt"], wall,
						touched / wall * 1e6
			}
		}'
	SCRIPT
}

# Each shape of access on a line of its own: page after page, stride 2, MADV_RANDOM, two streams in
# one task, his own step of 16384 bytes, and runs of so many pages in every 64.
cell_pft_shapes()
{
	VM_SWAP=0 vm_run 256 pft <<-END
		echo ${order:-0} >/proc/sys/vm/anon_prefault_max_order
		shape()
		{
			name=\$1
			shift
			pft -b ${bytes:-64M} "\$@" | sed -n "s/^pft /\$name /p"
		}
		shape row
		shape stride2 -s 8192
		shape random -R
		shape streams2 -i 2
		shape step16384 -s 16384
		for n in 1 2 4 8 16 33; do
			shape run\$n -n \$n -G 64
		done
	END
}
