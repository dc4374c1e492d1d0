# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# A guest without libvirt, for tests of the kernel: QEMU boots the kernel with an initramfs of
# busybox, a few workloads and a script, and ends when the script does. To be sourced.
#
#	. tests/vm/guest.sh
#	vm_kernel || exit 1			# sets VM_KERNEL to the patched kernel
#	vm_run 256 gauge-mixture shed-order <<-'END'
#		gauge-mixture --seed 1 /data
#	END
#
# The guest has a 160 MiB ext4 disk at /data with the programs in it, 512 MiB of swap, cgroup2 at
# /sys/fs/cgroup. What the script prints goes to standard output; when the guest does not reach the
# end of its script, the tail of its console goes to standard error, and the status is not zero.
#
# Settings from the environment:
#	BALLAST_ACCEL	tcg (default) or kvm; auto is tcg here, where pages are counted and no time
#	BALLAST_BUILD	the build folder, default build/ of this tree
#	VM_CPUS, VM_TIMEOUT, VM_QEMU	processors (2), seconds (400), more arguments for QEMU
#	VM_SWAP		MiB of swap, 0 for none (512)
#	VM_THREAD	multi: a host thread for each processor, for kernels without jump labels (single)
#	VM_QMP		a command whose output is given to QEMU as commands of QMP while the guest runs
#	VM_KEEP		a folder that gets what the guest and its console have said
#	VM_TB		MiB of TCG's buffer, where QEMU's own memory is measured (QEMU's default)
#	VM_UNDER	a command that QEMU runs under

VM_TREE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
VM_BUILD=$(realpath -m "${BALLAST_BUILD:-$VM_TREE/build}")
VM_KERNEL=

# What the kernel says when something is wrong. Without the APIC's timer one program of a processor
# may run until it is done, and tests of several side by side mean nothing.
VM_SPLAT='BUG:|WARNING:|Bad page|Oops|KASAN:|kernel BUG|corruption|INFO: task|INFO: rcu|rcu: INFO'
VM_SPLAT+='|general protection|Kernel panic|blocked for more than|APIC timer disabled'

# vm_kernel [--unpatched]: find the kernel in the cache. BALLAST_KERNEL and BALLAST_KERNEL_UNPATCHED
# name others.
# shellcheck disable=SC2120 # the benchmark has an argument
vm_kernel()
{
	VM_KERNEL=${BALLAST_KERNEL:-}
	[ "${1:-}" != --unpatched ] || VM_KERNEL=${BALLAST_KERNEL_UNPATCHED:-}
	[ -z "$VM_KERNEL" ] || return 0
	VM_KERNEL=$("$VM_TREE/kernel-patches/build.sh" --path "$@") && return 0
	echo "not ok guest-kernel - it is not built: run 'make kernel'${1:+ and build.sh $1}"
	return 1
}

# vm_initramfs FOLDER PROGRAM...: make FOLDER/initramfs; the script is on standard input.
vm_initramfs()
{
	local folder=$1 root=$1/root program
	shift
	mkdir -p "$root"/{bin,dev,proc,sys,tmp,data} "$folder/data"
	cp "$(command -v busybox)" "$root/bin/busybox"
	for program in "$@"; do
		[ -x "$VM_BUILD/workloads/$program" ] || {
			echo "not ok $program - it is not built: run 'make workloads'"
			return 1
		}
		install -s -m 755 "$VM_BUILD/workloads/$program" "$root/bin/"
		install -s -m 755 "$VM_BUILD/workloads/$program" "$folder/data/"
	done
	cat >"$root/init" <<-'END'
		#!/bin/busybox sh
		/bin/busybox --install -s /bin
		export PATH=/bin HOME=/tmp
		mount -t devtmpfs dev /dev
		exec </dev/null >/dev/ttyS1 2>&1
		mount -t proc proc /proc
		mount -t sysfs sys /sys
		mount -t tmpfs tmp /tmp
		mount -t cgroup2 cgroup /sys/fs/cgroup
		mount -t debugfs debug /sys/kernel/debug
		mount -t ext4 /dev/vda /data || echo "not ok guest - no /data"
		if [ -e /dev/vdb ]; then
			mkswap /dev/vdb >/dev/null && swapon /dev/vdb
		fi
		sh /script
		echo "guest: end $?"
		sync
		poweroff -f
	END
	cat >"$root/script"
	chmod 755 "$root/init"
	(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$folder/initramfs"
}

# vm_run MEMORY_MIB PROGRAM... <SCRIPT: returns what the script returned.
vm_run()
{
	local memory=$1 folder rc
	shift
	folder=$(mktemp -d "${TMPDIR:-/tmp}/ballast-vm.XXXXXX") || return 1
	vm_boot "$memory" "$folder" "$@"
	rc=$?
	rm -rf "$folder"
	return "$rc"
}

# The rate of the guest's time stamp counter under TCG, for its kernel, which would measure it while
# it boots: on a busy host that goes wrong now and then, and the guest's clock runs 20 times too fast.
# It is the host's, and with -icount shift=0 a tick is a nanosecond.
vm_clock()
{
	case ${VM_QEMU:-} in
	*-icount*) echo tsc_early_khz=1000000 ;;
	*) echo "tsc_early_khz=$("$VM_BUILD/workloads/tsc-khz")" ;;
	esac
}

vm_boot()
{
	local memory=$1 folder=$2 disks qmp=() accel=${BALLAST_ACCEL:-tcg} cpu=max clock=
	shift 2
	# The kernel patches its code while it runs (static keys, at boot and when the LRU is switched).
	# With a thread for each processor, QEMU 7.2's TCG now and then executes a breakpoint that is
	# no longer there, and the kernel panics.
	# With ERMS the kernel clears a page with "rep stosb", for which TCG goes round a loop 4096 times:
	# two thirds of what a page fault takes, and on a real processor next to nothing.
	[ "$accel" = kvm ] || {
		accel=tcg,thread=${VM_THREAD:-single}${VM_TB:+,tb-size=$VM_TB}
		cpu=max,-erms
		clock=$(vm_clock)
	}
	vm_initramfs "$folder" "$@" || return 1
	mke2fs -q -F -t ext4 -O ^has_journal -d "$folder/data" "$folder/disk" 160M >/dev/null ||
		return 1
	disks="-drive file=$folder/disk,if=virtio,format=raw,cache=unsafe"
	if [ "${VM_SWAP:-512}" -gt 0 ]; then
		truncate -s "${VM_SWAP:-512}M" "$folder/swap"
		disks="$disks -drive file=$folder/swap,if=virtio,format=raw,cache=unsafe"
	fi
	[ -z "${VM_QMP:-}" ] || qmp=(-qmp stdio)
	# The check of the timer counts a few interrupts, and panics when a busy host keeps them away.
	# shellcheck disable=SC2086 # lists of arguments
	timeout --kill-after=10 "${VM_TIMEOUT:-400}" ${VM_UNDER:-} qemu-system-x86_64 -M q35 \
		-nodefaults -display none -no-reboot -accel "$accel" -cpu "$cpu" -m "$memory" \
		-smp "${VM_CPUS:-2}" -kernel "$VM_KERNEL" -initrd "$folder/initramfs" \
		-append "console=ttyS0 rdinit=/init panic=-1 oops=panic loglevel=5 no_timer_check $clock" \
		-serial "file:$folder/console" -serial "file:$folder/out" \
		$disks ${VM_QEMU:-} "${qmp[@]}" >"$folder/qmp" 2>"$folder/qemu" \
		< <(${VM_QMP:-true} || true)
	vm_result "$folder" $?
}

vm_result()
{
	local folder=$1 rc=$2 end
	tr -d '\r' <"$folder/out" | grep -a -v '^guest: end '
	end=$(tr -d '\r' <"$folder/out" | sed -n 's/^guest: end //p')
	[ -z "${VM_KEEP:-}" ] || cp "$folder"/{console,out,qemu,qmp} "$VM_KEEP/"
	if grep -a -q -E "$VM_SPLAT" "$folder/console"; then
		echo "not ok guest-kernel - it complained"
		grep -a -m 1 -A 60 -B 2 -E "$VM_SPLAT" "$folder/console" >&2
		return 1
	fi
	if [ -z "$end" ]; then
		echo "not ok guest - it did not reach the end of its script (QEMU's status $rc)"
		tail -n 40 "$folder/console" "$folder/qemu" >&2
		return 1
	fi
	return "$end"
}
