# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Memory that a guest gives back, as the host sees it: lazyfree memory by memory.reclaim, as the agent
# does it, against a balloon of the same size. The guest has page cache that is older than its lazyfree
# memory, and a program whose text is in use. The host's view is the anonymous memory of QEMU, in
# pages of 4 KiB (tests/bench/shed-watch.c).
#
# shed-order is the order alone, seen from inside (tests/workloads/shed-order.c).

cells_shed()
{
	local delay budget first lru
	for delay in 2000 100; do
		for budget in 1 16; do
			echo "shed by=reclaim mib=100 first=2 delay=$delay budget=$budget"
		done
	done
	echo "shed by=reclaim mib=100 first=0 delay=2000 budget=1"
	echo "shed by=reclaim mib=100 first=2 delay=2000 budget=1 order=2 kept=256"
	echo "shed by=reclaim mib=100 first=2 delay=100 budget=1 order=2 kept=256"
	for first in 0 2; do
		echo "shed by=balloon mib=100 first=$first delay=2000 budget=1"
	done
	for delay in 2000 100; do
		for budget in 1 16; do
			echo "shed by=reclaim mib=2048 first=2 delay=$delay budget=$budget"
		done
	done
	for lru in 0 7; do
		for first in 0 1 2; do
			echo "shed-order lru=$lru first=$first"
		done
	done
}

# What the guest does: $mib to give back and 4 more, so that there is enough of it. $kept of its pages
# are written again, spread evenly: 256 leave no block of order 9 that is all free.
shed_script()
{
	cat <<-END
		report=/sys/module/page_reporting/parameters
		echo ${lru:-7} >/sys/kernel/mm/lru_gen/enabled
		echo ${first:-2} >/proc/sys/vm/lazyfree_first
		echo ${delay:-2000} >\$report/page_reporting_delay_ms
		echo ${order:-9} >\$report/page_reporting_order
		[ ${budget:-1} = 1 ] || echo ${budget:-1} >\$report/page_reporting_budget || exit 1
		# Freed pages that stay in the per-CPU lists are not reported.
		echo 1000 >/proc/sys/vm/percpu_pagelist_high_fraction
		yes 'cold cache' | head -c 62914560 >/data/cold
		exec-rounds --generate 16 /data/text
		sync
		echo 1 >/proc/sys/vm/drop_caches
		exec-rounds --text 16 --cache 0 --anon 0 /data/text >/tmp/text &
		lazyfree-hold --lazyfree $((mib + 4)) --cache 60 --kept ${kept:-1} >/tmp/hold &
		until grep -q ready /tmp/hold && grep -q ready /tmp/text; do sleep 0.2; done
		sleep 3
		numbers()
		{
			echo 1 >/proc/sys/vm/stat_refresh
			cat /proc/vmstat
		}
		numbers >/tmp/before
		free=\$(awk '\$1 == "nr_free_pages" { print \$2 }' /tmp/before)
		echo mark
		[ $by = balloon ] || echo '${mib}M swappiness=0' >/sys/fs/cgroup/memory.reclaim
		sleep $((watch + 1))
		numbers >/tmp/after
		awk -v free=\$free 'NR == FNR { before[\$1] = \$2; next } { now[\$1] = \$2 - before[\$1] }
			END {
				taken = now["pgsteal_file"] + now["pgsteal_anon"]
				print "guest free_before=" free " taken=" taken \\
					" lazyfreed=" now["pglazyfreed"] " pswpout=" now["pswpout"] \\
					" exec_lost=" now["pgsteal_exec"] \\
					" balloon=" now["balloon_inflate"] " oom_kill=" now["oom_kill"]
			}' /tmp/before /tmp/after
		tail -n 1 /tmp/hold | sed 's/.*wrong=/contents wrong=/'
	END
}

# The watcher ends by itself after the guest: it has marked or not.
cell_shed()
{
	local by=${by:-reclaim} mib=${mib:-100} memory=256 watch=${watch:-5} folder rc watcher
	local balloon=()
	if [ "$mib" -gt 200 ]; then
		memory=3072
		watch=20
	fi
	folder=$(mktemp -d "${TMPDIR:-/tmp}/ballast-vm.XXXXXX") || return 1
	[ "$by" = reclaim ] ||
		balloon=(--qmp "$folder/socket" --balloon $(((memory - mib) << 20)))
	"$VM_BUILD/tests/bench/shed-watch" --pid "$folder/pid" --out "$folder/out" \
		--seconds "$watch" "${balloon[@]}" >"$folder/host" &
	watcher=$!
	shed_script | VM_TB=32 VM_UNDER=$VM_BUILD/tests/lab/nothp VM_QEMU="-pidfile $folder/pid \
		-qmp unix:$folder/socket,server=on,wait=off \
		-device virtio-balloon-pci,free-page-reporting=on" \
		vm_boot "$memory" "$folder" exec-rounds lazyfree-hold
	rc=$?
	[ "$rc" = 0 ] || kill "$watcher" 2>/dev/null
	wait "$watcher" || rc=1
	cat "$folder/host"
	rm -rf "$folder"
	return "$rc"
}

cell_shed_order()
{
	vm_run 256 shed-order <<-END
		shed-order --lru ${lru:-7} --first ${first:-2}
	END
}
