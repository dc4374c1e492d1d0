#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# daemon/hyp without any QEMU: libvirt's test driver, and no libvirt at all.
# shellcheck disable=SC2317 # check calls the functions

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tap.sh
. tests/tap.sh
watcher=${BALLAST_BUILD:-build}/tests/integration/hyp-watch
dir=$(mktemp -d "${TMPDIR:-/tmp}/ballast-connect.XXXXXX") || exit 1
out=$dir/out
trap 'rm -rf "$dir"' EXIT
mkfifo "$dir/requests"

on_failure() { cat "$out"; }

# watch TIMES PATTERN ARGS...: what a watcher says until statistics, which are asked for when it has
# said PATTERN, have come or were refused, and PATTERN was said TIMES times.
watch()
{
	local times=$1 pattern=$2 watch_pid
	shift 2
	: >"$out"
	timeout 60 "$watcher" "$@" <"$dir/requests" >>"$out" 2>&1 &
	watch_pid=$!
	exec 7>"$dir/requests"
	until_true 10 said "$pattern"
	echo stats >&7
	until_true 10 said ' stats-done |^refused '
	until_true 15 times "$times" "$pattern"
	echo quit >&7
	exec 7>&-
	wait "$watch_pid"
}

said()
{
	grep -Eq -- "$1" "$out"
}

times()
{
	[ "$(grep -Ec -- "$2" "$out")" -ge "$1" ]
}

watch 1 ' synced ' test:///default
check it-connects said ' connected .*text=test:///default'
check it-lists-then-it-is-synced said ' guest test .*maximum=8589934592'
check what-is-missing-is-absent said ' stats test .*complete=0 actual=0 .*updated=0 code'
check the-round-is-through said ' stats-done code=0'

watch 1 ' synced ' test:///default read-only
check a-read-only-connection-does said ' synced '

watch 2 ' disconnected ' 'qemu+unix:///system?socket=/nonexistent/libvirt-sock'
check no-libvirt-is-said-with-its-reason said ' disconnected code=[1-9][0-9]* text=.*/nonexistent/libvirt-sock'
check it-is-tried-again times 2 ' disconnected '
check nothing-is-refused-silently said '^refused ENOTCONN'

watch 1 ' disconnected ' 'nonsense:///'
check a-wrong-uri-is-said said ' disconnected .*text=.+'
exit "$fail"
