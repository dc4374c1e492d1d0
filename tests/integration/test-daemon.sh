#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The daemon as an administrator meets it, without guests of its own: libvirt's test driver stands
# in for a hypervisor. Bad input gets one clear line, and the daemon goes on.
# shellcheck disable=SC2016,SC2317 # awk has its own variables; functions are called by name
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tap.sh
. tests/tap.sh
build=$PWD/${BALLAST_BUILD:-build}
dir=$(mktemp -d "${TMPDIR:-/tmp}/ballast-daemon.XXXXXX") || exit 1
pids=()

cleanup()
{
	[ ${#pids[@]} -eq 0 ] || kill -KILL "${pids[@]}" 2>/dev/null
	rm -rf "$dir"
}
trap cleanup EXIT

on_failure() { tail -n 20 "$dir"/*.log; }

# start NAME OPTION...: a daemon with the runtime folder and the log of that name; its PID in $pid.
start()
{
	local name=$1
	shift
	"$build/ballastd" --config "$dir/ballast.yaml" --uri test:///default --no-system-bus \
		--runtime-dir "$dir/$name" "$@" >"$dir/$name.log" 2>&1 &
	pid=$!
	pids+=("$pid")
}

status()
{
	"$build/ballastctl" --runtime-dir "$dir/$1" status --json
}

field()
{
	[ "$(status "$1" | jq -r "$2")" = "$3" ]
}

ended_with()
{
	local rc
	wait "$1"
	rc=$?
	[ "$rc" = "$2" ]
}

lines()
{
	[ "$(grep -c -E "$1" "$2")" = "$3" ]
}

has()
{
	grep -q -E "$1" "$2"
}


echo 'host: {mode: observe}' >"$dir/ballast.yaml"
start first
first=$pid
check it-answers-within-five-seconds until_true 5 status first
check it-observes-until-told-otherwise field first .mode observe
check a-guest-is-found-by-listing until_true 5 field first '.guests[0].name' test

start second
"$build/ballastd" --config "$dir/ballast.yaml" --uri test:///default --no-system-bus \
	--runtime-dir "$dir/first" >"$dir/refused.log" 2>&1 &
check a-second-instance-is-refused ended_with $! 1
check the-refusal-says-why has 'another ballastd is running' "$dir/refused.log"
check the-first-goes-on status first
check another-runtime-folder-is-another-daemon until_true 5 status second
kill -TERM "$pid"
check a-stop-is-clean ended_with "$pid" 0

cat >"$dir/ballast.yaml" <<-YAML
	host: {mode: observe, budget: 12GiB}
YAML
kill -HUP "$first"
check a-reload-takes-the-new-configuration until_true 5 field first .budget $((12 << 30))
check a-budget-of-another-kind-needs-no-restart lines 'takes a restart' "$dir/first.log" 0
cat >"$dir/ballast.yaml" <<-YAML
	host: {mode: observe, budgte: 13GiB}
	defaults: {shares: 0}
YAML
kill -HUP "$first"
check a-bad-reload-names-file-line-and-column until_true 5 \
	has 'ballast.yaml:1:23: host.budgte: ' "$dir/first.log"
check a-bad-reload-names-every-mistake until_true 5 \
	has 'ballast.yaml:2:20: defaults.shares: ' "$dir/first.log"
check a-bad-reload-suggests-the-key has 'budget' <(grep budgte "$dir/first.log")
check a-bad-reload-keeps-the-old-configuration field first .budget $((12 << 30))
"$build/ballastd" --config "$dir/ballast.yaml" --runtime-dir "$dir/third" >"$dir/third.log" 2>&1 &
check a-bad-configuration-refuses-to-start ended_with $! 1
echo 'host: {mode: observe}' >"$dir/ballast.yaml"

rm -rf "$dir/first"
check a-removed-runtime-folder-is-made-anew until_true 8 status first
check it-is-said-once lines 'was removed' "$dir/first.log" 1
"$build/ballastd" --config "$dir/ballast.yaml" --uri test:///default --no-system-bus \
	--runtime-dir "$dir/first" >"$dir/refused.log" 2>&1 &
check a-second-instance-is-still-refused ended_with $! 1
start replaced
replaced=$pid
until_true 5 status replaced >/dev/null
kill -STOP "$replaced"
rm -rf "$dir/replaced"
start replaced
check a-daemon-takes-a-place-that-is-free until_true 5 status replaced
kill -CONT "$replaced"
check one-that-lost-its-place-ends ended_with "$replaced" 1
check and-leaves-the-other-its-socket status replaced
kill -TERM "$pid"
ended_with "$pid" 0

touch "$dir/first/freeze"
check the-freeze-file-is-shown until_true 5 field first .frozen true
rm "$dir/first/freeze"
check a-thaw-is-shown until_true 5 field first .frozen false

kill -KILL "$first"
wait "$first" 2>/dev/null
start first
check after-a-kill-it-starts-again until_true 5 status first
first=$pid
kill -TERM "$first"
check it-stops ended_with "$first" 0
check it-leaves-no-socket test ! -e "$dir/first/bus"

start nolibvirt --uri qemu+unix:///system?socket=/nonexistent/libvirt-sock
check no-libvirt-is-one-line until_true 5 has 'libvirt: ' "$dir/nolibvirt.log"
sleep 4
check no-libvirt-is-said-once lines 'libvirt: ' "$dir/nolibvirt.log" 1
check without-libvirt-it-goes-on status nolibvirt
kill -TERM "$pid"
check without-libvirt-it-stops ended_with "$pid" 0

echo 'host: {mode: act}' >"$dir/ballast.yaml"
start observer --observe
check told-to-observe-it-observes-whatever-is-configured until_true 5 field observer .mode observe
kill -HUP "$pid"
check a-reload-keeps-it-observing until_true 5 has 'reloaded' "$dir/observer.log"
check an-observer-says-that-it-observes field observer .mode observe
kill -TERM "$pid"
ended_with "$pid" 0
echo 'host: {mode: observe}' >"$dir/ballast.yaml"

ulimit -Sn 64
start manyfiles
ulimit -Sn "$(ulimit -Hn)"
until_true 5 status manyfiles >/dev/null
check all-descriptors-that-it-may-have-are-used awk \
	'/Max open files/ { exit $4 != $5 }' "/proc/$pid/limits"
kill -TERM "$pid"
ended_with "$pid" 0

mkdir -p "$dir/root/proc"
cp /proc/meminfo /proc/vmstat "$dir/root/proc/"
start noproc --root "$dir/root"
check without-psi-and-processes-it-serves until_true 5 status noproc
: >"$dir/root/proc/meminfo"
check unreadable-host-numbers-are-said until_true 5 has 'host: /proc/meminfo' "$dir/noproc.log"
sleep 1
check unreadable-host-numbers-are-said-once lines '/proc/meminfo' "$dir/noproc.log" 1
check and-it-goes-on status noproc
kill -TERM "$pid"
ended_with "$pid" 0

mkdir "$dir/damaged"
echo rubbish >"$dir/damaged/targets"
start damaged
check a-damaged-targets-file-is-one-line until_true 5 has 'targets: is damaged' "$dir/damaged.log"
check with-a-damaged-targets-file-it-goes-on until_true 5 status damaged
kill -TERM "$pid"
ended_with "$pid" 0

"$build/ballastctl" --runtime-dir "$dir/nobody" status >"$dir/nobody.log" 2>&1
rc=$?
check without-a-daemon-the-command-line-says-so has 'ballastd' "$dir/nobody.log"
check without-a-daemon-the-exit-code-is-not-zero test "$rc" -ne 0
check without-a-daemon-it-is-one-line lines . "$dir/nobody.log" 1

exit $fail
