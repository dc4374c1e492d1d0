#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Kernel settings of a real guest: every one that a profile may name is set by the agent, shown as it
# is by ballastctl, and comes back when the agent was killed, when the daemon stops, when it doesn't
# act on the guest any more, and when the daemon was killed.
# shellcheck disable=SC2016,SC2317 # single quotes are for the guest's shell; check() calls by name
# shellcheck source=tests/lab/lab.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lab/lab.sh"
lab_enter "$@"
# shellcheck source=tests/tap.sh
. "$LAB_TREE/tests/tap.sh"

talk=$LAB_BUILD/tests/integration/agent-talk
lease=30 # seconds, the daemon's own

port()
{
	echo "$LAB_DIR/guest/holder/agent.sock"
}

in_line()
{
	sort | paste -sd ' '
}

# settings: "NAME=VALUE" of each that the guest's kernel has, as the kernel itself has it
settings()
{
	lab_ask holder 'cd /proc/sys/vm; for f in exec_protect lazyfree_first anon_prefault_max_order swappiness percpu_pagelist_high_fraction; do [ ! -e $f ] || echo $f=$(cat $f); done; cd /sys/module/page_reporting/parameters; for f in delay_ms order budget; do [ ! -e page_reporting_$f ] || echo reporting_$f=$(cat page_reporting_$f); done' | in_line
}

# of_kernel NAME:VALUE...: "NAME=VALUE" of those that the guest's kernel has
of_kernel()
{
	local each
	for each in "$@"; do
		if grep -q " ${each%%:*}=" <<<" $own"; then echo "${each/:/=}"; fi
	done | in_line
}

settings_are() { [ "$(settings)" = "$1" ]; }

# told KIND LINE: the settings that a hello says, of KIND "own" or "now", as settings prints them
told()
{
	tr ' ' '\n' <<<"$2" | sed -n "s/^$1\.//p" | in_line
}

another_agent()
{
	local pid
	pid=$(lab_ask holder pidof ballast-agent)
	[ -n "$pid" ] && [ "$pid" != "$1" ]
}

on_failure()
{
	settings
}

# --- The agent ------------------------------------------------------------------------------------

all_are_set_and_told()
{
	local ask=(exec_protect:3 lazyfree_first:2 anon_prefault_max_order:4 swappiness:7
		reporting_delay_ms:77 reporting_order:3 reporting_budget:9
		percpu_pagelist_high_fraction:1000) line
	all=$(of_kernel "${ask[@]}")
	line=${all//=/:}
	line=$("$talk" "$(port)" hello welcome=120000 "set=${line// /,}" hello | tail -n 1)
	[ "$(settings)" = "$all" ] && [ "$(told now "$line")" = "$all" ] &&
		[ "$(told own "$line")" = "$own" ]
}

killed_agent_knows_the_own_values()
{
	local pid line
	pid=$(lab_ask holder 'p=$(pidof ballast-agent); kill -9 $p; echo $p')
	lab_until 30 another_agent "$pid" || return
	line=$("$talk" "$(port)" hello | tail -n 1)
	[ "$(settings)" = "$all" ] && [ "$(told own "$line")" = "$own" ] &&
		[ "$(told now "$line")" = "$all" ]
}

own_come_back_when_the_host_is_silent()
{
	"$talk" "$(port)" hello welcome=1000 ask >/dev/null
	lab_until 15 settings_are "$own"
}

# A setting with a level less takes the place of one, as in a kernel that lacks it.
lacking_level_becomes_the_next_lower()
{
	local line
	lab_ask holder 'mount --bind /proc/sys/vm/compact_unevictable_allowed /proc/sys/vm/lazyfree_first; echo 0 >/proc/sys/vm/lazyfree_first' >/dev/null
	line=$("$talk" "$(port)" hello set=lazyfree_first:2,swappiness:7 hello | tr '\n' ' ')
	[ "$(settings | grep -o -w -e lazyfree_first=1 -e swappiness=7 | wc -l)" = 2 ] &&
		[[ $line == *' status=0 '* && $line == *' now.lazyfree_first=1 '* ]]
}

lower_level_comes_back()
{
	"$talk" "$(port)" hello welcome=1000 ask >/dev/null
	lab_until 15 settings_are "$own" &&
		lab_ask holder 'umount /proc/sys/vm/lazyfree_first' >/dev/null && settings_are "$own"
}

# --- The daemon -----------------------------------------------------------------------------------

# configure [MODE [MANAGE]]: of the host, and of its guests
configure()
{
	cat >"$LAB_DIR/ballast.yaml" <<-END
		host:
		  mode: ${1:-act}
		  budget: 4GiB
		  profiles:
		    relaxed:
		      exec_protect: 2
		      lazyfree_first: 1
		      anon_prefault_max_order: 4
		      swappiness: 33
		      reporting_delay_ms: 300
		      reporting_order: 4
		      reporting_budget: 5
		      percpu_pagelist_high_fraction: 500
		defaults:
		  boot_grace: 1s
		  manage: ${2:-act}
	END
	# A small guest is asked for no more than four pages at a time.
	asked=(exec_protect:2 lazyfree_first:1 anon_prefault_max_order:2 swappiness:33
		reporting_delay_ms:300 reporting_order:4 reporting_budget:5
		percpu_pagelist_high_fraction:500)
	wanted=$(of_kernel "${asked[@]}")
}

start_daemon()
{
	lab_daemon "$LAB_DIR/ballast.yaml"
	lab_until 30 settings_are "$wanted"
}

# shown KIND: the settings that ballastctl says, as settings prints them
shown()
{
	lab_ctl status holder --json | jq -r ".$1 // {} | to_entries[] | \"\(.key)=\(.value)\"" | in_line
}

status_shows_what_is()
{
	[ "$(shown settings)" = "$wanted" ] && [ "$(shown own_settings)" = "$own" ] &&
		[ "$(shown asked_settings)" = "$(printf '%s\n' "${asked[@]/:/=}" | in_line)" ]
}

# What was set comes back by a reload, long before the lease would end, and is set again by another.
reload_gives_back()
{
	configure "$@"
	kill -HUP "$LAB_DAEMON"
	lab_until 10 settings_are "$own" || return
	# ... and nothing holds or renews it
	lab_until 10 asked_is_gone && [ "$(shown own_settings)" = "$own" ] || return
	configure
	kill -HUP "$LAB_DAEMON"
	lab_until 15 settings_are "$wanted" && lab_until 10 status_shows_what_is
}

asked_is_gone()
{
	lab_ctl status holder --json | jq -e 'has("asked_settings") or has("profile") | not' >/dev/null
}

nothing_is_in_force()
{
	asked_is_gone && lab_ctl status holder --json | jq -e 'has("settings") | not' >/dev/null
}

# An agent that doesn't answer: nobody knows what is in force.
silent_agent_shows_no_settings()
{
	lab_ask holder 'kill -STOP $(pidof ballast-agent)' >/dev/null
	lab_until 15 nothing_is_in_force || return
	lab_ask holder 'kill -CONT $(pidof ballast-agent)' >/dev/null
	lab_until 15 status_shows_what_is && settings_are "$wanted"
}

warnings()
{
	grep -c 'holder: .*set all of the profile: No space left on device' "$LAB_DIR/log/ballastd.log"
}

# The note of own values has no room: said once a session, asked for again, and set when there is.
start_daemon_without_room()
{
	lab_ask holder 'mount -t tmpfs -o size=4k none /run/ballast-agent; dd if=/dev/zero of=/run/ballast-agent/full bs=4k count=1' >/dev/null
	lab_daemon "$LAB_DIR/ballast.yaml"
	lab_until 20 is_warned && sleep 6 && [ "$(warnings)" = 1 ] && settings_are "$own" || return
	lab_ask holder 'umount /run/ballast-agent' >/dev/null
	lab_until 40 settings_are "$wanted"
}

is_warned() { [ "$(warnings)" -ge 1 ]; }

# Started in place of one that was killed: it mustn't renew the dead one's lease.
observer_holds_nothing()
{
	settings_are "$wanted" || return
	lab_daemon "$LAB_DIR/ballast.yaml" --observe
	lab_until 15 lab_agents 1 || return
	lab_until $((lease + 15)) settings_are "$own" && lab_agents 1
}

stop_daemon()
{
	kill "-$1" "$LAB_DAEMON"
	wait "$LAB_DAEMON" 2>/dev/null
}

lab_start
lab_guest holder memory=256 swap=64 -- lazyfree-hold --lazyfree 96 --cache 24
lab_wait_work holder || exit 1
own=$(settings)
echo "# $own"
check kernel-has-the-settings test "$(wc -w <<<"$own")" -ge 5

check every-setting-is-set-and-told all_are_set_and_told
check agent-that-was-killed-knows-the-own-values killed_agent_knows_the_own_values
check own-values-come-back-when-the-host-is-silent own_come_back_when_the_host_is_silent
check level-that-the-kernel-lacks-becomes-the-next-lower lacking_level_becomes_the_next_lower
check own-value-comes-back-from-a-lower-level lower_level_comes_back

configure
check daemon-sets-the-profile start_daemon
check status-shows-what-is-in-force lab_until 10 status_shows_what_is
check own-values-come-back-when-a-reload-observes-all reload_gives_back observe
check own-values-come-back-when-a-reload-observes-the-guest reload_gives_back act observe
check own-values-come-back-when-a-reload-leaves-the-guest-out reload_gives_back act no
check silent-agent-shows-no-settings silent_agent_shows_no_settings
COLUMNS=80 lab_ctl status holder | sed -n '/^kernel settings/,/^$/s/^/# /p'
stop_daemon TERM
check own-values-come-back-when-the-daemon-stops lab_until 5 settings_are "$own"
check no-room-for-the-note-is-said-once start_daemon_without_room
check daemon-sets-the-profile-again settings_are "$wanted"
stop_daemon KILL
check settings-outlast-a-short-absence settings_are "$wanted"
check own-values-come-back-when-the-daemon-is-away lab_until $((lease + 15)) settings_are "$own"
check daemon-that-is-back-sets-the-profile start_daemon
stop_daemon KILL
check observer-renews-no-lease observer_holds_nothing
exit $fail
