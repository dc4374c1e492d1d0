#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What ballastctl shows and answers, asked of a daemon with a made-up host.
# shellcheck disable=SC2317 # check calls the functions
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tap.sh
. tests/tap.sh
build=${BALLAST_BUILD:-build}
ctl=$PWD/$build/ballastctl
folder=$(mktemp -d "${TMPDIR:-/tmp}/test-ctl.XXXXXX") || exit 1
export LC_ALL=C.UTF-8 TZ=UTC
unset COLUMNS NO_COLOR
server=

cleanup()
{
	stop_server
	rm -rf "$folder"
}
trap cleanup EXIT

# start_server [ARGUMENT...]: see tests/integration/status-server.c; it ends with its stdin.
start_server()
{
	mkfifo "$folder/stdin"
	# The one before has left its "ready" there.
	: >"$folder/log"
	"$build/tests/integration/status-server" "$folder" "$@" <"$folder/stdin" >"$folder/log" &
	server=$!
	exec 3>"$folder/stdin"
	for _ in $(seq 100); do
		grep -q ready "$folder/log" && return
		sleep 0.05
	done
	echo "not ok the-server-starts"
	exit 1
}

stop_server()
{
	[ -n "$server" ] || return
	exec 3>&-
	wait "$server"
	server=
	rm -f "$folder/stdin"
}

# run COMMAND...: sets out, err and rc
run()
{
	"$@" >"$folder/out" 2>"$folder/err" </dev/null 3>&-
	rc=$?
	out=$(cat "$folder/out")
	err=$(cat "$folder/err")
}

ask() { run "$ctl" "$@" --runtime-dir "$folder"; }

on_failure() { echo "status $rc, stdout: ${out:0:2000}, stderr: $err"; }

is() { [ "$1" = "$2" ]; }
has() { grep -qF -- "$1" <<<"$out"; }
has_not() { ! has "$1"; }
json() { jq -e "$1" <<<"$out"; }
no_controls() { ! LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f]' <<<"$out"; }
fits() { [ "$(wc -L <<<"$out")" -le "$1" ]; }
has_all_guests() { [ "$(grep -cE '(idle|excluded|blind|giving) ' <<<"$out")" = 5 ]; }

start_server

ask status
check status-exits-with-0 is "$rc" 0
check status-shows-the-host has 'mode observe   level tight   5 guests'
check status-shows-the-sums has 'budget 6800 MiB   footprint 7200 MiB   headroom 112 MiB   need 512 MiB'
check status-shows-each-guest has_all_guests
check an-estimate-is-marked grep -qE 'evil.*  ~50 MiB +~300 MiB +12 MiB' <<<"$out"
check a-count-has-no-mark grep -qE 'web1.*  50 MiB +300 MiB +12 MiB' <<<"$out"
check the-mark-is-explained has "~ estimated: the guest's kernel doesn't count it"
check a-piped-status-is-not-cut has 'the-other-columns-out'
check a-stale-number-is-a-dash-with-its-age has 'statistics 42 s old'
check a-name-is-no-order-to-the-terminal no_controls
check a-name-cannot-turn-the-direction has_not "$(printf '\xe2\x80\xae')"

for width in 60 80 120 200; do
	COLUMNS=$width ask status
	check "status-fits-in-$width-columns" fits "$width"
	check "status-has-all-guests-in-$width-columns" has_all_guests
done
COLUMNS=80 ask status
check in-80-columns-the-statistics-are-there has '50M   300M  12M shed-lazyfree'
COLUMNS=60 ask status
check in-60-columns-they-are-left-out has_not LAZYFR
for verb in 'status web1' 'explain web1'; do
	# shellcheck disable=SC2086 # two words
	COLUMNS=80 ask $verb
	check "${verb// /-}-fits-in-80-columns" fits 80
done

LC_ALL=C ask status
check without-utf8-names-are-ascii has 'b\xc3\xbcro'
run script -qec "TERM=xterm $ctl status --runtime-dir $folder" "$folder/typescript"
check colours-on-a-terminal grep -q "$(printf '\033')\[33m" "$folder/typescript"
run script -qec "TERM=xterm NO_COLOR=1 $ctl status --runtime-dir $folder" "$folder/typescript"
check no-colours-where-they-are-not-wanted is "$(grep -c "$(printf '\033')" "$folder/typescript")" 0

ask status --json
check json-is-json json .
check json-has-the-host-at-its-top json '.need == 536870912 and .level == "tight"'
check json-has-the-guests-by-name json '[.guests[].name] == ([.guests[].name] | sort) and (.guests | length == 5)'
check json-has-exact-bytes json '.guests[] | select(.name == "web1") | .stats.exec_mapped == 52428800 and .actual == 2147483648'
check json-leaves-out-what-is-absent json '.guests[] | select(.reason == "no-balloon") | has("actual") or has("footprint") | not'
check json-says-what-is-stale json '.guests[] | select(.name == "stale-agent") | .stale == ["stats"] and .ages.stats_us == 42000000'
ask status web1 --json
check json-has-the-settings json '.settings.lazyfree_first == 2 and .own_settings.lazyfree_first == 0 and .asked_settings.lazyfree_first == 2'
check json-has-exact-settings json '.own_settings.reporting_order == 18446744073709551615 and (.settings | has("reporting_budget") | not)'
check json-says-what-can-be-set json '.settable | index("lazyfree_first") and (index("swappiness") | not)'
check json-says-what-is-estimated json '.approximate == []'
check one-guest-as-json json '.uuid == "00112233-4455-6677-8899-aabbccddee01" and .reason == "shed-lazyfree"'
ask status 00112233-4455-6677-8899-aabbccddee01
check a-guest-by-uuid has 'web1   giving (shed)'
check one-guest-with-its-statistics has 'page cache mapped executable'
check one-guest-with-what-its-agent-can has 'can sample, profile, shed, reclaim, reporting   profile tight'
matches() { grep -qE -- "$1" <<<"$out"; }
check a-setting-in-force-beside-the-guests-own-and-what-is-asked matches '^  lazyfree_first +2 +0 +2$'
check a-level-that-the-kernel-lacks-is-told matches '^  exec_protect +1 +1 +2  not as asked$'
check a-setting-that-the-kernel-lacks-is-told matches '^  reporting_budget +- +- +4  not there$'
check a-setting-that-the-owner-keeps-is-told matches '^  swappiness +60 +60 +10  kept by the guest$'
check a-setting-of-any-size-fits matches '^  reporting_order +>9999999 +>9999999 +-$'
ask status 00112233-4455-6677-8899-aabbccddee05
check an-estimate-is-marked-in-the-view-of-its-guest matches '^  lazyfree +~300 MiB  estimated: memory given up'
check a-count-is-not-marked matches '^  free +90 MiB  free memory'

ask explain web1
check explain-shows-inputs has '= footprint 7200 MiB   + headroom 112 MiB   - budget 6800 MiB'
check explain-shows-the-rule has 'shed-lazyfree: memory given up with MADV_FREE goes first (need 512.0 MiB'
check explain-shows-limits has 'minimum 512 MiB   maximum 2048 MiB   entitlement 1024 MiB'
check explain-shows-the-result has 'giving: shed   target 2048 MiB'
check explain-shows-decisions-with-times has '01-02 03:04:01  shed 150.0 MiB'
check explain-shows-what-came-of-them has '=> done   after 1.0 s   freed 148 MiB'
ask explain web1 --json
check explain-as-json json '.host.need and .guest.name == "web1" and (.decisions | length == 3)'

# documented JQ FILE: each name that JQ prints is in the manual page
documented()
{
	local name missing=
	for name in $(jq -r "$1" <<<"$out"); do
		grep -qF "_${name//_/\\_}_" daemon/man/ballastctl.1.scd || missing+=" $name"
	done
	[ -z "$missing" ] || { echo "undocumented:$missing"; return 1; }
}
check each-name-of-the-json-is-in-the-manual documented \
	'del(.guest.stats, .guest.operands, .guest.settings[], .guest.own_settings[], .guest.asked_settings[]) | del(.decisions[].operands) | [paths | .[] | strings] | unique[]'

run "$ctl" --runtime-dir "$folder" status --json
check options-may-stand-before-the-verb json .
ask status nobody
check an-unknown-guest-fails is "$rc" 1
check an-unknown-guest-is-named is "$err" 'ballastctl: no running guest has the name or UUID nobody'
ask reload
check a-failed-reload-says-why is "$err$rc" 'ballastctl: ballast.yaml:3:1: host.moed: unknown key1'
for words in '--json' '--runtime-dir /tmp' '--frob status' 'status a b' 'explain' 'status --frob' 'reload x' 'frob' 'release' 'release --direct x'; do
	# shellcheck disable=SC2086 # words
	run "$ctl" $words
	check "usage-error-${words// /-}" is "$rc$(wc -l <<<"$err")" 21
done
for words in 'help' '--help' 'version' '--version' 'status --help' 'release --help'; do
	# shellcheck disable=SC2086 # words
	run "$ctl" $words
	check "good-${words// /-}" is "$rc$err" 0
done
"$ctl" status --json --runtime-dir "$folder" >/dev/full 2>"$folder/err" 3>&-
rc=$?
check a-full-disk-is-told is "$rc$(cat "$folder/err")" "1ballastctl: can't write the output: No space left on device"
run "$ctl" status "$(printf '\xff')" --runtime-dir "$folder"
check a-name-that-is-not-utf8-is-refused is "$err" "ballastctl: the guest's name is not UTF-8: use its UUID"
stop_server

start_server short
ask status
check a-shortfall-is-shown has 'short of 200 MiB'
check a-shortfall-is-an-exit-status is "$rc" 4
ask status --json
check a-shortfall-is-an-exit-status-with-json is "$rc" 4
stop_server

start_server empty
ask status
check no-guests-is-no-error is "$rc$(grep -c '0 guests' <<<"$out")" 01
stop_server

start_server undecided
ask status
check before-the-first-round-it-says-so has 'no round decided yet'
ask status --json
check before-the-first-round-there-is-no-need json 'has("need") | not'
kill -STOP "$server"
ask status
check a-daemon-that-hangs-is-given-up is "$rc$err" "3ballastctl: ballastd at $folder/bus doesn't answer (systemctl status ballastd)"
kill -CONT "$server"
stop_server

ask status
check no-daemon is "$err" "ballastctl: no ballastd at $folder/bus: is the service running? (systemctl status ballastd)"
check no-daemon-exits-with-3 is "$rc" 3
run "$ctl" status --runtime-dir "$(printf 'x%.0s' $(seq 150))"
check a-path-that-is-too-long grep -q 'too long' <<<"$err"

run "$ctl" release --direct --uri test:///default
check release-sets-the-maximum has 'test: balloon set to 8192 MiB'
check release-exits-with-0 is "$rc" 0
run "$ctl" release --direct --uri "qemu+unix:///system?socket=$folder/none"
check release-without-libvirt-says-so is "$rc$(wc -l <<<"$err")" 11

exit $fail
