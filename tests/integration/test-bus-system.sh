#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The status on a system bus: a private broker with the policy of conf/dbus, that comes, refuses,
# goes and comes back.
# shellcheck disable=SC2317 # check calls the functions
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tap.sh
. tests/tap.sh
build=${BALLAST_BUILD:-build}
ctl=$PWD/$build/ballastctl
folder=$(mktemp -d "${TMPDIR:-/tmp}/test-bus-system.XXXXXX") || exit 1
export LC_ALL=C.UTF-8 DBUS_SYSTEM_BUS_ADDRESS=unix:path=$folder/system
server=
broker=

cleanup()
{
	[ -z "$server" ] || { exec 3>&-; wait "$server"; }
	[ -z "$broker" ] || { kill "$broker" && wait "$broker"; }
	rm -rf "$folder"
} 2>/dev/null
trap cleanup EXIT

# The policy as it is installed, but the daemon's user may not exist here.
sed 's/user="ballast"/user="daemon"/' conf/dbus/org.ballast1.conf >"$folder/ballast.conf"

# start_broker [FILE]: with the policy of FILE
start_broker()
{
	cat >"$folder/bus.conf" <<-END
	<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
	 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
	<busconfig>
	  <type>system</type>
	  <listen>unix:path=$folder/system</listen>
	  <auth>EXTERNAL</auth>
	  <policy context="default">
	    <allow user="*"/>
	    <deny own="*"/>
	    <deny send_type="method_call"/>
	    <allow send_type="signal"/>
	    <allow send_requested_reply="true" send_type="method_return"/>
	    <allow send_requested_reply="true" send_type="error"/>
	    <allow receive_type="method_call"/>
	    <allow receive_type="method_return"/>
	    <allow receive_type="error"/>
	    <allow receive_type="signal"/>
	    <allow send_destination="org.freedesktop.DBus"/>
	  </policy>
	  ${1:+<include>$1</include>}
	</busconfig>
	END
	rm -f "$folder/system"
	dbus-daemon --config-file="$folder/bus.conf" --nofork --nopidfile \
		2>"$folder/broker.log" 3>&- &
	broker=$!
}

stop_broker()
{
	kill "$broker"
	wait "$broker" 2>/dev/null
	broker=
}

# told TEXT [TIMES]: the daemon says so, for so many times altogether, within 10 s
told()
{
	for _ in $(seq 100); do
		[ "$(grep -cF "$1" "$folder/log")" -ge "${2:-1}" ] && return
		sleep 0.1
	done
	return 1
}

on_failure() { cat "$folder/log" "$folder/broker.log"; }

nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
is_refused() { "$@" 2>&1 | grep -iE 'denied|rejected|privilege'; }
socket_is_refused() { nobody "$ctl" status --runtime-dir "$folder" 2>&1 | grep 'group ballast'; }
introspected()
{
	local text member
	text=$(busctl --system introspect org.ballast1 /org/ballast1) || return 1
	for member in '.GetStatus  *method  *- *a{sv}aa{sv}' '.ListGuests *method *- *aa{sv}' \
		'.GetGuest *method *s *a{sv}' '.Explain *method *s *a{sv}a{sv}aa{sv}' \
		'.History *method *s *aa{sv}' '.Reload *method *- *-' \
		'.Version *property *s *"' '.Need *property *t *536870912' \
		'.Level *property *s *"tight"' '.Frozen *property *b *false' \
		'.Decision *signal *a{sv}'; do
		grep -qE "^\\$member" <<<"$text" || { echo "no $member in $text"; return 1; }
	done
}

chmod 755 "$folder"
mkfifo "$folder/stdin"
: >"$folder/log"
: >"$folder/broker.log"
"$build/tests/integration/status-server" "$folder" system <"$folder/stdin" >"$folder/log" &
server=$!
exec 3>"$folder/stdin"

check without-a-system-bus-it-serves told ready
check without-a-system-bus-the-socket-answers "$ctl" status --runtime-dir "$folder"
start_broker
check a-broker-without-the-policy-refuses-the-name told 'is refused'
stop_broker
kill "$server"
wait "$server" 2>/dev/null

start_broker "$folder/ballast.conf"
for _ in $(seq 100); do [ -S "$folder/system" ] && break; sleep 0.05; done
"$build/tests/integration/status-server" "$folder" system <"$folder/stdin" >"$folder/log" 3>&- &
server=$!
check it-serves-on-the-system-bus told 'serving as org.ballast1'
check introspection-is-complete introspected
check busctl-calls-a-method busctl --system call org.ballast1 /org/ballast1 org.ballast1.Manager GetGuest s web1
check ballastctl-asks-over-the-system-bus "$ctl" status --system
check ballastctl-explains-over-the-system-bus "$ctl" explain web1 --system
if [ "$(id -u)" = 0 ]; then
	check others-may-read nobody "$ctl" status --system
	check others-may-read-properties nobody busctl --system get-property org.ballast1 /org/ballast1 org.ballast1.Manager Need
	check others-may-not-reload is_refused nobody "$ctl" reload --system
	check others-may-not-use-the-socket socket_is_refused
fi
stop_broker
check it-says-when-the-bus-is-lost told 'the connection is lost'
check it-goes-on-without-the-bus "$ctl" status --runtime-dir "$folder"
start_broker "$folder/ballast.conf"
check it-comes-back-with-the-bus told 'serving as org.ballast1' 2
check it-answers-there-again "$ctl" status --system
exit $fail
