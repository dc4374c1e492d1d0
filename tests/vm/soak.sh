#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The soak, `make soak-kernel`: all levers at their strongest, and switched, under a mixed load of
# all that memory is used for (tests/workloads/soak.c), while the balloon moves; with kernels that
# look for faults themselves: one that proves the order of locks, one with KASAN. It is passed when
# no kernel has complained, each page has kept what was written to it, and the gauges are exact. It
# takes long, and is no part of `make test`.
#
#	SOAK_SECONDS=N	how long (1200)
#	SOAK_SEED=N	another choice of what is done (1)
#	SOAK_KERNELS=K	one of them (lockdep kasan); BALLAST_KERNEL=FILE is another bzImage
#	SOAK_THREAD=T	of QEMU's processors: single takes turns (multi)
#	SOAK_KEEP=DIR	keep the consoles there

set -uo pipefail
# shellcheck source=tests/vm/guest.sh
. "$(dirname "$0")/guest.sh"

seconds=${SOAK_SECONDS:-1200}
seed=${SOAK_SEED:-1}
# MiB that the balloon takes at most
balloon=128

# QMP's commands that move the balloon of a guest with $memory MiB.
move_balloon()
{
	RANDOM=$seed
	echo '{ "execute": "qmp_capabilities" }'
	while sleep $((RANDOM % 4 + 1)); do
		printf '{ "execute": "balloon", "arguments": { "value": %d } }\n' \
			$(((memory - RANDOM % balloon) * 1048576)) 2>/dev/null || return
	done
}

# soak KIND
soak()
{
	local kind=$1 memory=320 keep=

	# KASAN has an eighth of it.
	[ "$kind" != kasan ] || memory=448
	VM_KERNEL=${BALLAST_KERNEL:-$("$VM_TREE/kernel-patches/build.sh" --debug "$kind" --path)} || {
		echo "not ok soak-kernel - it is not built: run 'build.sh --debug $kind'"
		return 1
	}
	if [ -n "${SOAK_KEEP:-}" ]; then
		keep=$SOAK_KEEP/$kind
		mkdir -p "$keep"
	fi
	VM_THREAD=${SOAK_THREAD:-multi} VM_TIMEOUT=$((seconds * 2 + 600)) VM_KEEP=$keep \
		VM_QMP=move_balloon \
		VM_QEMU='-device virtio-balloon-pci,free-page-reporting=on,deflate-on-oom=on' \
		vm_run "$memory" soak <<-END
			soak --seed $seed --seconds $seconds /data
			rc=\$?
			# Of 6.12 itself: a balloon that moves while the guest powers off finds its
			# device gone, and warns. So take it away before; all its pages come back.
			for device in /sys/bus/virtio/drivers/virtio_balloon/virtio*; do
				echo "\${device##*/}" >/sys/bus/virtio/drivers/virtio_balloon/unbind ||
					rc=1
			done
			# It stops after the first fault.
			if [ -e /proc/lockdep_stats ]; then
				grep -q 'debug_locks: *1' /proc/lockdep_stats ||
					echo 'not ok soak-lockdep - it has stopped'
			fi
			exit \$rc
		END
}

# Whether the load was one: all that the soak counts has happened.
load_of()
{
	[ "$seconds" -ge 300 ] || return 0
	awk '/^soak / { for (i = 2; i <= NF; i++)
		if ($i ~ /=0$/) { print "not ok soak-load - in 5 minutes " $i; bad = 1 } }
		END { exit bad }' "$1"
}

work=$(mktemp -d "${TMPDIR:-/tmp}/ballast-soak.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
running=()
for kind in ${SOAK_KERNELS:-lockdep kasan}; do
	(
		soak "$kind" >"$work/$kind" 2>&1
		rc=$?
		load_of "$work/$kind" || rc=1
		sed "s/^/$kind: /" "$work/$kind"
		exit "$rc"
	) &
	running+=("$!")
done
rc=0
for pid in "${running[@]}"; do
	wait "$pid" || rc=1
done
[ "$rc" = 0 ] && echo "ok soak-kernel - $seconds s" || echo "not ok soak-kernel"
exit "$rc"
