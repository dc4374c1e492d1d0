#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The units as systemd runs them. A systemd of its own, in namespaces and on an overlay of this
# machine's root, gets Ballast by `make install`, starts dbus, polkit and libvirtd, and then the
# daemon under its user and in its sandbox: what the sandbox forbids, or polkit doesn't grant,
# shows here. Leaves nothing behind.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tree=$(cd "$here/../.." && pwd)

# --- Outside: make the namespaces, wait, show what was found --------------------------------------

outside()
{
	local child work
	[ "$(id -u)" = 0 ] || { echo "not ok systemd-is-started - needs root"; exit 1; }
	work=$(mktemp -d /tmp/ballast-systemd.XXXXXX) || exit 1
	mkdir "$work/cgroup" "$work/root" "$work/out"
	mount -t cgroup2 cgroup2 "$work/cgroup" || exit 1
	# shellcheck disable=SC2064 # as it is now
	trap "cleanup '$work'" EXIT
	trap 'exit 130' INT TERM HUP
	cgroup=$work/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/ballast-test.$$
	mkdir "$cgroup" || exit 1
	# Ends with unshare, and unshare with this script.
	(
		echo $BASHPID >"$cgroup/cgroup.procs"
		exec setpriv --pdeathsig KILL unshare --mount --pid --net --ipc --uts --cgroup \
			--fork --kill-child=KILL "$here/test-systemd.sh" boot "$work"
	) >"$work/out/boot.log" 2>&1 &
	child=$!
	for _ in $(seq 180); do
		[ ! -e "$work/out/done" ] || break
		kill -0 "$child" 2>/dev/null || break
		sleep 1
	done
	kill -KILL "$child" 2>/dev/null
	wait "$child" 2>/dev/null
	cat "$work/out/results" 2>/dev/null
	if [ ! -e "$work/out/done" ]; then
		tail -n 40 "$work/out/boot.log" "$work/out/inside.log" | grep -vE "^(not )?ok "
		echo "not ok systemd-runs-to-the-end - see above"
		exit 1
	fi
	! grep -q '^not ok' "$work/out/results" || {
		grep -vE '^(not )?ok ' "$work/out/inside.log"
		exit 1
	}
}

cleanup()
{
	local i
	for i in 1 2 3 4 5; do
		[ -n "${cgroup:-}" ] || break
		find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null
		[ -e "$cgroup" ] || break
		sleep "0.$i"
	done
	umount "$1/cgroup"
	rm -rf --one-file-system "$1"
}

# --- Boot: in the namespaces, make a root and become systemd --------------------------------------

boot()
{
	local root=$1/root/merged node
	set -e
	mount --make-rprivate /
	mount -t tmpfs tmpfs "$1/root"
	mkdir "$1/root/upper" "$1/root/work" "$root"
	mount -t overlay overlay \
		-o "lowerdir=/,upperdir=$1/root/upper,workdir=$1/root/work" "$root"
	make -s -C "$tree" install DESTDIR="$root"
	mount -t proc proc "$root/proc"
	mount -t sysfs -o ro sysfs "$root/sys"
	mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
	mount -t tmpfs tmpfs "$root/run"
	mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
	mount -t tmpfs -o mode=755 tmpfs "$root/dev"
	for node in null zero full random urandom tty; do
		touch "$root/dev/$node"
		mount --bind "/dev/$node" "$root/dev/$node"
	done
	mkdir "$root/dev/pts" "$root/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
	ln -s pts/ptmx "$root/dev/ptmx"
	mount -t tmpfs tmpfs "$root/dev/shm"
	mkdir -p "$root/run/test"
	mount --bind "$1/out" "$root/run/test"
	cp "$here/test-systemd.sh" "$root/usr/local/sbin/test-systemd.sh"
	prepare "$root"
	cd "$root"
	exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=test \
		chroot "$root" /lib/systemd/systemd --system --unit=test.target --log-level=err \
		--log-target=console --show-status=no
}

# Of this machine's own services, mounts, swap and guests nothing is to be started a second time:
# only what is named below.
forget_this_machine()
{
	: >"$1/etc/fstab"
	rm -rf "$1"/etc/systemd/system/*.wants "$1"/usr/lib/systemd/system/*.wants \
		"$1"/etc/systemd/system-generators "$1"/etc/libvirt/{qemu,storage,secrets,hooks}
	mount -t tmpfs tmpfs "$1/usr/lib/systemd/system-generators"
	mount -t tmpfs -o mode=755 tmpfs "$1/var/lib/libvirt"
	install -d -m 750 -o libvirt-qemu -g libvirt-qemu "$1/var/lib/libvirt/qemu"
	rm -rf "$1/etc/ballast/ballast.d"/*
	cp "$tree/conf/ballast.yaml" "$1/etc/ballast/ballast.yaml"
}

# What the test needs beside what is installed: libvirtd without its security drivers, and units
# that start the test and probe the agent's sandbox.
prepare()
{
	forget_this_machine "$1"
	printf '%s\n' 'security_driver = "none"' 'cgroup_controllers = []' 'namespaces = []' \
		'stdio_handler = "file"' 'remember_owner = 0' >"$1/etc/libvirt/qemu.conf"
	cat >"$1/etc/systemd/system/test.target" <<-END
		[Unit]
		Requires=basic.target dbus.socket
		Wants=systemd-journald.service inside.service
		After=basic.target
	END
	cat >"$1/etc/systemd/system/inside.service" <<-END
		[Unit]
		After=basic.target
		[Service]
		Type=oneshot
		ExecStart=/bin/bash /usr/local/sbin/test-systemd.sh inside
		StandardOutput=file:/run/test/inside.log
		StandardError=file:/run/test/inside.log
	END
	# There is no virtio port here that the agent could be bound to.
	sed '/virtio\\x2dports/d' "$1/usr/lib/systemd/system/ballast-agent.service" \
		>"$1/etc/systemd/system/ballast-agent.service"
	sed -e '/virtio\\x2dports/d' -e '/^Type=/d' -e '/^Watchdog/d' -e '/^Restart/d' \
		-e 's#^ExecStart=.*#Type=oneshot\nExecStart=/bin/bash /usr/local/sbin/test-systemd.sh probe#' \
		"$1/usr/lib/systemd/system/ballast-agent.service" \
		>"$1/etc/systemd/system/probe.service"
	echo StandardOutput=file:/run/test/probe >"$1/probe-output"
	sed -i "/^ExecStart=/r $1/probe-output" "$1/etc/systemd/system/probe.service"
}

# In the agent's sandbox: which of these can be written?
probe()
{
	local file
	for file in /proc/sys/vm/swappiness /proc/sys/vm/drop_caches /proc/sys/kernel/panic \
		/proc/sys/kernel/core_pattern /sys/fs/cgroup/cgroup.procs /sys/kernel/mm /etc /usr \
		/run/ballast-agent /run /dev/null; do
		[ -e "$file" ] || continue
		if [ -w "$file" ]; then echo "$file"; fi
	done
}

# --- Inside: systemd has started this -------------------------------------------------------------

# expect NAME COMMAND...
expect()
{
	local name=$1 verdict="ok $1"
	shift
	if ! "$@"; then
		echo "--- $name: $*"
		systemctl status --no-pager -l ballastd ballastd-release ballast-agent probe
		verdict="not ok $name"
	fi
	echo "$verdict" | tee -a /run/test/results
}

# within SECONDS COMMAND...: comes true in that time?
within()
{
	local i
	for ((i = $1 * 5; i > 0; i--)); do
		"${@:2}" && return
		sleep 0.2
	done
	return 1
}

of_guest()
{
	[ "$(ballastctl status g --json 2>/dev/null | grep -c -E "$1")" -gt 0 ]
}

has_no_rights()
{
	local pid
	pid=$(systemctl show -p MainPID --value ballastd)
	[ "$(stat -c %U "/proc/$pid")" = ballast ] &&
		[ "$(grep -cE '^Cap(Inh|Prm|Eff|Bnd|Amb):\s0+$' "/proc/$pid/status")" = 5 ] &&
		grep -qE '^NoNewPrivs:\s1' "/proc/$pid/status" &&
		grep -qE '^Seccomp:\s2' "/proc/$pid/status"
}

as_nobody()
{
	setpriv --reuid=nobody --regid=nogroup --clear-groups "$@" 2>&1
}

reload_is_denied()
{
	as_nobody busctl --system call org.ballast1 /org/ballast1 org.ballast1.Manager Reload |
		grep -q 'Access denied'
}

pid_changed()
{
	local pid
	pid=$(systemctl show -p MainPID --value ballastd)
	[ "$pid" != 0 ] && [ "$pid" != "$1" ] && systemctl -q is-active ballastd
}

guest_has()
{
	[ "$(virsh -c qemu:///system dommemstat g | sed -n 's/^actual //p')" = "$1" ]
}

probed()
{
	systemctl start probe && diff - /run/test/probe <<-END
		/proc/sys/vm/swappiness
		/proc/sys/vm/drop_caches
		/sys/fs/cgroup/cgroup.procs
		/run/ballast-agent
		/dev/null
	END
}

# Straight from the daemon with its priority, and not by way of its standard error.
journal_has()
{
	journalctl -q --no-pager -u ballastd _TRANSPORT=journal PRIORITY=6 | grep -q -F "$1"
}

start_guest()
{
	cat >/tmp/g.xml <<-END
		<domain type='qemu'><name>g</name><memory unit='MiB'>64</memory>
		<os><type machine='q35'>hvm</type></os>
		<devices><emulator>/usr/bin/qemu-system-x86_64</emulator>
		<channel type='unix'><target type='virtio' name='org.ballast.agent.0'/></channel>
		<memballoon model='virtio'/></devices></domain>
	END
	virsh -c qemu:///system create /tmp/g.xml
}

try_daemon()
{
	local pid
	expect daemon-starts-under-its-unit systemctl start ballastd
	expect daemon-runs-as-its-user-without-capabilities has_no_rights
	expect polkit-rule-lets-it-reach-libvirt within 10 of_guest '"name": *"g"'
	expect journal-has-its-lines within 5 journal_has 'g: found'
	expect guest-channel-is-open-to-it within 15 of_guest '"silent"'
	expect everybody-reads-the-status-on-the-system-bus as_nobody ballastctl --system status g
	expect nobody-else-reloads reload_is_denied
	expect reload-takes-a-good-configuration systemctl reload ballastd
	echo 'host: {mode: x}' >/etc/ballast/ballast.d/a.yaml
	expect reload-says-that-a-bad-one-is-bad not systemctl reload ballastd
	expect daemon-goes-on-with-the-old-one systemctl -q is-active ballastd
	rm /etc/ballast/ballast.d/a.yaml
	pid=$(systemctl show -p MainPID --value ballastd)
	kill -KILL "$pid"
	expect killed-daemon-is-started-again within 10 pid_changed "$pid"
	expect it-stops-cleanly systemctl stop ballastd
}

not()
{
	! "$@"
}

try_release()
{
	systemctl start ballastd
	mv /usr/sbin/ballastd /usr/sbin/ballastd.away
	systemctl kill -s KILL ballastd
	expect daemon-that-cannot-start-is-given-up within 30 systemctl -q is-failed ballastd
	expect then-guests-are-released within 20 released
}

released()
{
	systemctl show -p ExecMainExitTimestampMonotonic,Result ballastd-release | tr '\n' ' ' |
		grep -qE 'Monotonic=[1-9].*Result=success|Result=success.*Monotonic=[1-9]' &&
		guest_has 65536
}

inside()
{
	trap 'touch /run/test/done' EXIT
	systemd-sysusers
	systemctl start dbus polkit libvirtd
	expect libvirtd-runs-a-guest start_guest
	try_daemon
	try_release
	expect agent-starts-under-its-unit systemctl start ballast-agent
	expect agent-stops-cleanly systemctl stop ballast-agent
	expect agent-can-write-what-it-needs-and-nothing-else probed
}

case ${1:-} in
boot) boot "$2" ;;
inside) inside ;;
probe) probe ;;
*) outside ;;
esac
