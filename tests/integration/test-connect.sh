#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# daemon/hyp without any QEMU: libvirt's test driver, and no libvirt at all.
# shellcheck disable=SC2317 # check calls the functions

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tap.sh
. tests/tap.sh
watcher=${BALLAST_BUILD:-build}/tests/integration/hyp-watch
out=$(mktemp "${TMPDIR:-/tmp}/ballast-connect.XXXXXX") || exit 1
trap 'rm -f "$out"' EXIT

on_failure() { cat "$out"; }

# watch SECONDS ARGS...: what a watcher says, with a request for statistics in the middle.
watch()
{
	local seconds=$1
	shift
	{
		sleep 0.5
		echo stats
		sleep "$seconds"
		echo quit
	} | timeout 20 "$watcher" "$@" >"$out" 2>&1
}

said()
{
	grep -Eq -- "$1" "$out"
}

times()
{
	[ "$(grep -Ec -- "$2" "$out")" -ge "$1" ]
}

watch 0.5 test:///default
check it-connects said ' connected .*text=test:///default'
check it-lists-then-it-is-synced said ' guest test .*maximum=8589934592'
check what-is-missing-is-absent said ' stats test .*complete=0 actual=0 .*updated=0 code'
check the-round-is-through said ' stats-done code=0'

watch 0.5 test:///default read-only
check a-read-only-connection-does said ' synced '

watch 3 'qemu+unix:///system?socket=/nonexistent/libvirt-sock'
check no-libvirt-is-said-with-its-reason said ' disconnected code=[1-9][0-9]* text=.*/nonexistent/libvirt-sock'
check it-is-tried-again times 2 ' disconnected '
check nothing-is-refused-silently said '^refused ENOTCONN'

watch 0.5 'nonsense:///'
check a-wrong-uri-is-said said ' disconnected .*text=.+'
exit "$fail"
