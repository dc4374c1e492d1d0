#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The layout is the map: who may include whom, and what from outside. HACKING.md has the picture.
cd "$(dirname "$0")/../.." || exit 1
fail=0

# shellcheck disable=SC2086 # folders are a list
# rule NAME FOLDER REGEX: nothing in FOLDER may include what REGEX matches
rule() {
	local found
	found=$(git ls-files $2 | grep -E '\.[ch]$' | xargs -r grep -nE "^#include [<\"]($3)")
	if [ -n "$found" ]; then
		echo "$found"
		echo "not ok $1"
		fail=1
	else
		echo "ok $1"
	fi
}

outside='libvirt|systemd|yaml|json-c|libsmartcols'
rule proto-includes-only-proto guest-agent/proto "daemon/|guest-agent/[^p]|$outside"
rule agent-includes-no-daemon guest-agent "daemon/|$outside"
rule util-includes-only-util daemon/util "daemon/[^u]|guest-agent/|libvirt|yaml|json-c"
rule core-is-pure daemon/core "daemon/(config|host|hyp|guest|ipc|app|ctl)/|guest-agent/[^p]|$outside"
for layer in config host hyp guest ipc; do
	others=$(printf '%s\n' config host hyp guest ipc app ctl | grep -vx "$layer" | paste -sd'|')
	rule "$layer-includes-no-other-adapter" "daemon/$layer" "daemon/($others)/|guest-agent/[^p]"
done
rule ctl-includes-no-daemon-part daemon/ctl "daemon/(host|hyp|guest|app)/"
rule only-hyp-knows-libvirt "daemon/core daemon/config daemon/host daemon/guest daemon/ipc daemon/app" "libvirt"
rule only-config-knows-yaml "daemon/core daemon/hyp daemon/host daemon/guest daemon/ipc daemon/app daemon/ctl" "yaml"

clock=$(git ls-files daemon/core | xargs -r grep -nE '\b(clock_gettime|gettimeofday|time\(NULL\)|printf\(|fprintf\(|open\()' | grep -vE 'vsnprintf|snprintf')
if [ -n "$clock" ]; then
	echo "$clock"
	echo "not ok core-has-no-clock-and-no-io"
	fail=1
else
	echo "ok core-has-no-clock-and-no-io"
fi
exit $fail
