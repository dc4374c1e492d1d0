#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The lab: a private libvirt daemon with real QEMU guests, for tests and for the demo. To be
# sourced by a bash script, which then reads
#
#	. tests/lab/lab.sh
#	lab_enter "$@"			# from here on inside the lab's own namespaces
#	lab_start			# libvirtd
#	lab_guest web memory=384 -- exec-rounds --seed 1
#	lab_wait_work web
#	lab_ask web cat /proc/meminfo
#
# Everything runs in its own mount, process and network namespace: /run, /etc/libvirt,
# /var/lib/libvirt, /var/cache/libvirt and /var/log/libvirt are the lab's own, so that neither this
# daemon nor its guests ever meet the host's libvirt, and `qemu:///system` inside is the private
# one. The script is the first process of the process namespace: when it ends, for whatever reason
# (also kill -9), the kernel ends all that it started and takes the mounts away. What is left then
# is at most a folder below $TMPDIR, which the next start removes.
#
# Settings from the environment:
#	BALLAST_ACCEL	tcg (default), kvm, or auto: kvm if it boots the guest's kernel
#	BALLAST_KERNEL	a bzImage instead of the bundled kernel
#	BALLAST_BUILD	the build folder, default build/ of this tree
#	BALLAST_KEEP	a folder that gets the guests' consoles and the logs at the end

set -uo pipefail

LAB_TREE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/until.sh
. "$LAB_TREE/tests/until.sh"
LAB_BUILD=$(realpath -m "${BALLAST_BUILD:-$LAB_TREE/build}")
LAB_PREFIX=${TMPDIR:-/tmp}/ballast-lab.
LAB_URI=qemu:///system
export LIBVIRT_DEFAULT_URI=$LAB_URI

lab_say()
{
	printf '%s\n' "$*" >&2
}

lab_fail()
{
	printf 'lab: %s\n' "$*" >&2
	exit 1
}

# lab_need FILE WHAT: say what to do when something that make builds is missing.
lab_need()
{
	[ -e "$1" ] || lab_fail "$1 is missing: run 'make $2' first"
}

# --- Entering -------------------------------------------------------------------------------------

# lab_enter "$@": run this script again inside the lab's namespaces; returns only there.
lab_enter()
{
	if [ -n "${LAB_INSIDE:-}" ]; then
		lab_inside
		return
	fi
	[ "$(id -u)" = 0 ] || lab_fail "needs root for its own namespaces and libvirtd (use sudo)"
	local tool
	for tool in unshare setpriv libvirtd virsh qemu-system-x86_64 flock; do
		command -v "$tool" >/dev/null || lab_fail "$tool is not installed: run 'make deps' first"
	done
	lab_sweep
	LAB_DIR=$(mktemp -d "${LAB_PREFIX}XXXXXX") || lab_fail "no folder below ${TMPDIR:-/tmp}"
	chmod 755 "$LAB_DIR"
	# Nobody sees a lock that isn't held yet: another's lab_sweep would take it for a dead lab's.
	exec {LAB_LOCK}>"$LAB_DIR/lock.new"
	flock -n "$LAB_LOCK" || lab_fail "$LAB_DIR is in use"
	mv "$LAB_DIR/lock.new" "$LAB_DIR/lock" || exit 1
	export LAB_DIR LAB_INSIDE=1

	# The child dies with this process; the namespace dies with the child.
	setpriv --pdeathsig KILL \
		unshare --mount --pid --net --ipc --fork --kill-child=KILL --mount-proc \
		bash "$0" "$@" <&0 &
	local child=$! rc=0
	trap 'lab_forward TERM '$child INT TERM HUP
	while :; do
		wait "$child"
		rc=$?
		kill -0 "$child" 2>/dev/null || break
	done
	trap - INT TERM HUP
	lab_collect
	rm -rf "$LAB_DIR"
	exit "$rc"
}

# unshare itself blocks the signals: pass them to the first process inside, and to what it has
# started, since bash runs its trap only when the command it waits for has ended.
lab_forward()
{
	local inner
	inner=$(cat "/proc/$2/task/$2/children" 2>/dev/null)
	[ -n "$inner" ] || return 0
	inner=${inner%% *}
	# shellcheck disable=SC2046 # a list of numbers
	kill "-$1" "$inner" $(cat "/proc/$inner/task/$inner/children" 2>/dev/null) 2>/dev/null
}

# Folders of labs that were killed; those whose lock is held are alive.
lab_sweep()
{
	local dir
	for dir in "$LAB_PREFIX"*; do
		[ -f "$dir/lock" ] || continue
		# For reading: another sweep may have removed it by now, and it must not come back.
		(flock -n 9 && rm -rf "$dir") 2>/dev/null 9<"$dir/lock"
	done
}

lab_collect()
{
	local keep=${BALLAST_KEEP:-}
	[ -n "$keep" ] || return 0
	mkdir -p "$keep"
	cp "$LAB_DIR"/log/* "$keep"/ 2>/dev/null
	return 0
}

lab_inside()
{
	local dir
	mkdir -p "$LAB_DIR"/{log,guest,etc,lib,cache}
	mount -t tmpfs -o mode=755 lab-run /run || lab_fail "cannot mount /run"
	mkdir -p /run/lock /run/ballast
	cp -r /etc/libvirt/. "$LAB_DIR/etc/" 2>/dev/null
	rm -rf "$LAB_DIR"/etc/qemu/networks "$LAB_DIR"/etc/qemu/*.xml "$LAB_DIR"/etc/qemu/autostart
	lab_bind "$LAB_DIR/etc" /etc/libvirt
	lab_bind "$LAB_DIR/lib" /var/lib/libvirt
	lab_bind "$LAB_DIR/cache" /var/cache/libvirt
	lab_bind "$LAB_DIR/log" /var/log/libvirt
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	trap lab_leave EXIT
	lab_pids=()
}

lab_bind()
{
	mkdir -p "$2"
	mount --bind "$1" "$2" || lab_fail "cannot bind $2"
}

# On exit of the script: end the guests and the daemons in order, as far as they go by themselves.
# The end of the namespace takes the rest.
lab_leave()
{
	local rc=$? pid
	trap - EXIT
	trap '' INT TERM HUP
	for pid in "${lab_pids[@]}"; do
		kill "$pid" 2>/dev/null
	done
	lab_stop
	lab_collect
	exit "$rc"
}

# lab_background CMD...: start a process that lab_leave ends; its number is in $lab_pid.
lab_background()
{
	"$@" &
	lab_pid=$!
	lab_pids+=("$lab_pid")
}

# virsh without a terminal to control: else it looks for polkit's agent and says that there is none.
virsh()
{
	setsid --wait virsh "$@"
}

# --- libvirtd -------------------------------------------------------------------------------------

lab_start()
{
	cat >"$LAB_DIR/etc/qemu.conf" <<-EOF
		user = "root"
		group = "root"
		security_driver = "none"
		cgroup_controllers = []
		namespaces = []
		remember_owner = 0
		stdio_handler = "file"
		max_core = 0
	EOF
	cat >"$LAB_DIR/etc/libvirtd.conf" <<-EOF
		listen_tls = 0
		listen_tcp = 0
		auth_unix_ro = "none"
		auth_unix_rw = "none"
		log_outputs = "3:file:$LAB_DIR/log/libvirtd.log"
	EOF
	lab_start_libvirtd
}

# A copy under another name, since an AppArmor profile for the host's own goes by its path.
lab_start_libvirtd()
{
	lab_need "$LAB_BUILD/tests/lab/nothp" lab
	cp --remove-destination "$(command -v libvirtd)" /run/lab-libvirtd
	"$LAB_BUILD/tests/lab/nothp" /run/lab-libvirtd --config "$LAB_DIR/etc/libvirtd.conf" \
		--pid-file /run/libvirtd.pid >>"$LAB_DIR/log/libvirtd.out" 2>&1 &
	LAB_LIBVIRTD=$!
	lab_until 20 virsh -q version >/dev/null ||
		lab_fail "libvirtd does not answer: $(tail -n 3 "$LAB_DIR"/log/libvirtd.{out,log} 2>&1)"
}

lab_stop()
{
	local name
	[ -n "${LAB_LIBVIRTD:-}" ] || return 0
	for name in $(timeout 10 setsid --wait virsh -q list --name 2>/dev/null); do
		timeout 10 setsid --wait virsh -q destroy "$name" >/dev/null 2>&1
	done
	kill "$LAB_LIBVIRTD" 2>/dev/null
	timeout 10 tail --pid="$LAB_LIBVIRTD" -f /dev/null 2>/dev/null
	LAB_LIBVIRTD=
}

# lab_until SECONDS CMD...: repeat CMD until it succeeds.
lab_until()
{
	until_true "$@"
}

# --- Accelerator ----------------------------------------------------------------------------------

# A /dev/kvm that opens is no proof: some machines have one that doesn't run a kernel.
lab_kvm_works()
{
	[ -w /dev/kvm ] || return 1
	timeout 15 qemu-system-x86_64 -machine q35,accel=kvm -cpu host -m 128 -display none \
		-no-reboot -serial "file:$LAB_DIR/log/kvm-probe.log" -kernel "$LAB_KERNEL" \
		-append "console=ttyS0 panic=-1" >/dev/null 2>&1 &&
		grep -q "Linux version" "$LAB_DIR/log/kvm-probe.log"
}

lab_accel()
{
	[ -z "${LAB_ACCEL:-}" ] || return 0
	case ${BALLAST_ACCEL:-tcg} in
	kvm) LAB_ACCEL=kvm ;;
	tcg) LAB_ACCEL=qemu ;;
	auto) if lab_kvm_works; then LAB_ACCEL=kvm; else LAB_ACCEL=qemu; fi ;;
	*) lab_fail "BALLAST_ACCEL is '$BALLAST_ACCEL': tcg, kvm or auto" ;;
	esac
}

# --- Guests ---------------------------------------------------------------------------------------

# lab_guest NAME [KEY=VALUE]... [-- WORK ARGS...]: start a guest that runs a workload.
#
#	memory=MiB	512
#	vcpus=N		1
#	swap=MiB	256, 0 for none
#	balloon=yes	yes, no
#	agent=yes	yes, no (the port stays, nothing answers), noport
#	reporting=on	on, off
#	kernel=FILE	the bundled kernel
#	append=TEXT	more for the kernel's command line
lab_guest()
{
	local name=$1 dir=$LAB_DIR/guest/$1 arg
	local memory=512 vcpus=1 swap=256 balloon=yes agent=yes reporting=on append=
	local kernel=${LAB_KERNEL:=$(lab_kernel)}
	shift
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		arg=$1
		case $arg in
		memory=* | vcpus=* | swap=* | balloon=* | agent=* | reporting=* | kernel=* | append=*)
			local "$arg"
			;;
		*) lab_fail "lab_guest: what is '$arg'?" ;;
		esac
		shift
	done
	[ $# -eq 0 ] || shift
	lab_need "$kernel" kernel
	lab_need "$LAB_BUILD/lab/guest.img" lab
	lab_need "$LAB_BUILD/workloads/tsc-khz" lab
	lab_accel
	mkdir -p "$dir"
	mkfifo "$dir/tell.in" "$dir/tell.out"
	truncate -s "$((swap > 0 ? swap : 1))M" "$dir/swap.img"
	lab_domain_xml "$name" "$dir" "$*" >"$dir/domain.xml"
	virsh -q create "$dir/domain.xml" >/dev/null || lab_fail "guest $name does not start"
}

# The bundled kernel, from the cache that `make kernel` fills.
lab_kernel()
{
	if [ -n "${BALLAST_KERNEL:-}" ]; then
		echo "$BALLAST_KERNEL"
	else
		"$LAB_TREE/kernel-patches/build.sh" --path || echo "the guest kernel"
	fi
}

# Uses the variables of lab_guest. The kernel's check of its timer counts a few interrupts, and panics
# when a busy host keeps them away; under KVM it leaves the check out by itself. The rate of its clock
# it would measure wrongly on such a host, as tests/workloads/tsc-khz.c says.
lab_domain_xml()
{
	local name=$1 dir=$2 work=$3 cpu='' tcg='' clock=''
	if [ "$LAB_ACCEL" = kvm ]; then
		cpu="<cpu mode='host-passthrough'/>"
	else
		# The translator's buffer is QEMU's own memory and would grow for minutes.
		tcg="<tcg><tb-cache unit='MiB'>32</tb-cache></tcg>"
		clock=tsc_early_khz=$("$LAB_BUILD/workloads/tsc-khz")
	fi
	cat <<-EOF
		<domain type='$LAB_ACCEL'>
		  <name>$name</name>
		  <memory unit='MiB'>$memory</memory>
		  <vcpu>$vcpus</vcpu>
		  $cpu
		  <os>
		    <type arch='x86_64' machine='q35'>hvm</type>
		    <kernel>$kernel</kernel>
		    <cmdline>console=ttyS0 quiet no_timer_check $clock panic=-1 root=/dev/vda ro init=/init ballast.swap=$swap ballast.agent=$agent $append -- $work</cmdline>
		  </os>
		  <features><acpi/>$tcg</features>
		  <clock offset='utc'/>
		  <on_poweroff>destroy</on_poweroff>
		  <on_reboot>destroy</on_reboot>
		  <on_crash>destroy</on_crash>
		  <devices>
		    <emulator>/usr/bin/qemu-system-x86_64</emulator>
		    <disk type='file' device='disk'>
		      <driver name='qemu' type='raw'/>
		      <source file='$LAB_BUILD/lab/guest.img'/>
		      <target dev='vda' bus='virtio'/>
		      <readonly/>
		      <shareable/>
		    </disk>
		    <disk type='file' device='disk'>
		      <driver name='qemu' type='raw' discard='unmap'/>
		      <source file='$dir/swap.img'/>
		      <target dev='vdb' bus='virtio'/>
		    </disk>
		    <controller type='usb' model='none'/>
		    <serial type='file'>
		      <source path='$LAB_DIR/log/$name.console'/>
		      <target port='0'/>
		    </serial>
		    $(lab_channels_xml)
		    $(lab_balloon_xml)
		  </devices>
		</domain>
	EOF
}

lab_channels_xml()
{
	if [ "$agent" != noport ]; then
		cat <<-EOF
			<channel type='unix'>
			  <source mode='bind' path='$dir/agent.sock'/>
			  <target type='virtio' name='org.ballast.agent.0'/>
			</channel>
		EOF
	fi
	cat <<-EOF
		<channel type='file'>
		  <source path='$LAB_DIR/log/$name.work'/>
		  <target type='virtio' name='org.ballast.test.0'/>
		</channel>
		<channel type='pipe'>
		  <source path='$dir/tell'/>
		  <target type='virtio' name='org.ballast.tell.0'/>
		</channel>
	EOF
}

lab_balloon_xml()
{
	if [ "$balloon" = yes ]; then
		cat <<-EOF
			<memballoon model='virtio' autodeflate='on' freePageReporting='$reporting'>
			  <stats period='1'/>
			</memballoon>
		EOF
	else
		echo "<memballoon model='none'/>"
	fi
}

# lab_pid NAME: the process of the guest's QEMU.
lab_qemu_pid()
{
	cat "/run/libvirt/qemu/$1.pid"
}

# lab_tell NAME COMMAND: have the guest's shell run a line; does not wait.
lab_tell()
{
	local name=$1
	shift
	printf '%s\n' "$*" >"$LAB_DIR/guest/$name/tell.in"
}

# lab_ask NAME COMMAND: run a line in the guest and print what it prints.
lab_ask()
{
	local name=$1 file=$LAB_DIR/guest/$1/answer tag=$RANDOM$RANDOM end=$((SECONDS + 30))
	local log=$LAB_DIR/log/$1.work
	shift
	lab_tell "$name" "{ $*; } 2>&1 | sed 's/^/@$tag /'; echo @$tag.end"
	until grep -qs "^@$tag.end" "$log"; do
		[ "$SECONDS" -lt "$end" ] || { lab_say "guest $name does not answer"; return 1; }
		sleep 0.05
	done
	sed -n "s/^@$tag //p" "$log" >"$file"
	cat "$file"
}

# lab_wait_line NAME PATTERN SECONDS: wait for a line of the workload.
lab_wait_line()
{
	lab_until "$3" grep -qs -- "$2" "$LAB_DIR/log/$1.work"
}

# lab_wait_work NAME [SECONDS]: until the workload has said that it is ready.
lab_wait_work()
{
	lab_wait_line "$1" '^ready' "${2:-120}" && return
	lab_say "guest $1 did not get its work going; the end of its console:"
	tail -n 15 "$LAB_DIR/log/$1.console" >&2
	return 1
}

# --- ballastd -------------------------------------------------------------------------------------

# lab_daemon CONFIG [OPTION]...: start ballastd in the lab; its number is in $LAB_DAEMON.
lab_daemon()
{
	local config=$1
	shift
	"$LAB_BUILD/ballastd" --config "$config" --uri "$LAB_URI" --runtime-dir /run/ballast \
		"$@" 2>>"$LAB_DIR/log/ballastd.log" &
	LAB_DAEMON=$!
	lab_pids+=("$LAB_DAEMON")
	echo "$LAB_DAEMON" >"$LAB_DIR/ballastd.pid"
}

lab_ctl()
{
	"$LAB_BUILD/ballastctl" --runtime-dir /run/ballast "$@"
}

# lab_agents N: have N agents answered?
lab_agents()
{
	[ "$(lab_ctl status --json | jq '[.guests[] | select(.agent == "up")] | length')" -ge "$1" ]
}

# lab_root_shed NAME MiB: reclaim in the guest without any daemon, for experiments.
lab_root_shed()
{
	lab_ask "$1" "echo '$2M swappiness=0' > /sys/fs/cgroup/memory.reclaim"
}
