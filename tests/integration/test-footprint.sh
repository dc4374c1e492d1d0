#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The footprint, which anyone may compute from /proc/PID/status, against the truth that smaps has of
# the guest's RAM: at boot, with work, after the balloon took memory away.
# shellcheck disable=SC2317 # check calls the functions

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab.sh
. tests/lab/lab.sh
# shellcheck source=tests/tap.sh
. tests/tap.sh
lab_enter "$@"

maximum=$((320 << 20))

# What smaps has of the mapping that is as large as the guest, and of all others: anonymous memory
# resident or swapped, in KiB.
truth()
{
	awk -v size=$((maximum >> 10)) '
		/^[0-9a-f]+-[0-9a-f]+ / { flags = $2 }
		/^Size:/ { ram = $2 == size && flags ~ /^rw-/ }
		/^Anonymous:/ || /^Swap:/ { sum[ram] += $2 }
		END { print sum[1] + 0, sum[0] + 0 }' "/proc/$(lab_qemu_pid one)/smaps"
}

ram_is_at_most()
{
	local ram
	read -r ram _ < <(truth)
	[ "$ram" -gt 0 ] && [ "$ram" -le "$1" ]
}

# Read the footprint between two readings of smaps: before, said, after.
read_between()
{
	read -r before own_before < <(truth)
	said=$("$LAB_BUILD/tests/integration/host-cost" "$(lab_qemu_pid one)" "$maximum") || return 1
	read -r after own_after < <(truth)
	echo "# $said smaps=$before..$after own=$own_before..$own_after"
}

# The footprint is what smaps says, within 2 MiB. A guest that loads takes more than that between
# two readings: then both are read again, and a footprint between the two is all that can be asked.
# QEMU's own memory grows as well then, by 2 MiB at a time (the translator's buffer is of huge
# pages): what came since the footprint's reader counted it is in the footprint.
footprint_holds()
{
	local before said after own_before own_after least most slack
	for _ in {1..20}; do
		read_between || return 1
		[[ $said = *measured=1* ]] || return 1
		least=$((before < after ? before : after))
		most=$((before < after ? after : before))
		[ $((most - least)) -gt 2048 ] || [ "$own_before" != "$own_after" ] || break
		sleep 0.1
	done
	slack=$((2048 + (own_after > own_before ? own_after - own_before : own_before - own_after)))
	said=${said#footprint=}
	said=${said%% *}
	[ "$least" -gt 0 ] && [ "$said" -ge $((least - slack)) ] && [ "$said" -le $((most + slack)) ]
}

actual_is()
{
	[ "$(virsh -q dommemstat one | awk '$1 == "actual" { print $2 }')" = "$1" ]
}

lab_start
lab_guest one memory=320 swap=0 -- exec-rounds --text 16 --cache 48 --anon 120
check the-footprint-holds-at-boot footprint_holds
lab_wait_work one || exit 1
check the-footprint-holds-with-work footprint_holds
virsh -q setmem one 240M --live >/dev/null
check the-balloon-takes lab_until 20 actual_is $((240 << 10))
sleep 1
check the-footprint-holds-with-a-balloon footprint_holds
check the-balloon-is-seen-in-the-footprint ram_is_at_most $((240 << 10))
exit "$fail"
