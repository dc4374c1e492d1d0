#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A stop of the daemon with real QEMUs: on_stop says what becomes of each balloon, and what was given
# back isn't taken for somebody else's doing after the next start.
# shellcheck disable=SC2317 # check calls the functions

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab.sh
. tests/lab/lab.sh
# shellcheck source=tests/tap.sh
. tests/tap.sh
lab_enter "$@"

on_failure()
{
	lab_ctl status --json | jq -c '.guests[] | [.name, .state, .reason, .actual, .target]'
	tail -n 10 "$LAB_DIR/log/ballastd.log"
}

# shown NAME FILTER VALUE: what the status says of a guest
shown()
{
	[ "$(lab_ctl status --json | jq -r ".guests[] | select(.name == \"$1\") | $2")" = "$3" ]
}

actual_is()
{
	[ "$(virsh dommemstat "$1" | awk '$1 == "actual" { print $2 }')" = $(($2 * 1024)) ]
}

is_stored() { grep -q "$(virsh domuuid "$1")" /run/ballast/targets; }

lab_start
for guest in gives holds; do
	lab_guest "$guest" memory=192 swap=0
	lab_wait_line "$guest" '^init: ' 60 || exit 1
	virsh -q setmem "$guest" 128M --live
	lab_until 20 actual_is "$guest" 128 || exit 1
done
cat >"$LAB_DIR/stop.yaml" <<-YAML
	host: {mode: act, budget: 64GiB}
	guests:
	  - {name: gives, on_stop: release}
	  - {name: holds, on_stop: hold}
YAML
lab_daemon "$LAB_DIR/stop.yaml"
check both-are-seen lab_until 20 shown holds .actual $((128 << 20))
check both-are-seen-indeed lab_until 20 shown gives .actual $((128 << 20))
check both-have-targets lab_until 20 is_stored gives
kill -TERM "$LAB_DAEMON"
wait "$LAB_DAEMON"
check the-stop-is-clean test $? = 0
check who-is-to-be-released-gets-all-of-it lab_until 5 actual_is gives 192
check who-is-to-hold-holds actual_is holds 128
check what-is-held-is-a-target is_stored holds
check what-was-given-back-is-none-any-more test ! "$(is_stored gives && echo stored)"

lab_daemon "$LAB_DIR/stop.yaml"
check it-is-seen-again lab_until 20 shown gives .actual $((192 << 20))
sleep 5
check it-is-nobody-elses-doing test ! "$(shown gives .reason foreign && echo foreign)"
exit $fail
