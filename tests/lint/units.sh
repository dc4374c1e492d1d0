#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The systemd units, the D-Bus policy and the polkit rule that are shipped: they parse, name things
# that exist, and leave little open to whoever breaks in.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tap.sh
. tests/tap.sh
export SYSTEMD_LOG_LEVEL=warning
threshold=20 # exposure 2.0 of 10
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

command -v systemd-analyze >/dev/null || {
	echo "not ok units-are-checked - systemd-analyze is missing: run make deps"
	exit 1
}
make -s all >"$work/make.log" 2>&1 || {
	cat "$work/make.log"
	echo "not ok units-are-checked - the programs don't build"
	exit 1
}

# Verified with the programs that were built, in place of those that would be installed.
for unit in conf/systemd/*.service; do
	name=$(basename "$unit")
	sed -E "s#/usr/s?bin/(ballast[a-z-]*)#$PWD/build/\1#" "$unit" >"$work/$name"
done
for unit in conf/systemd/*.service; do
	name=$(basename "$unit" .service)
	said=$(SYSTEMD_UNIT_PATH="$work:" systemd-analyze verify --man=no "$work/$name.service" 2>&1 |
		grep -F "$name.service")
	say "$name-unit-is-valid" "$said"
	if said=$(systemd-analyze security --offline=true --threshold=$threshold "$unit" 2>&1); then
		said=
	fi
	say "$name-unit-is-exposed-at-most-2.0" "$said"
	if grep -q '^Type=notify' "$unit"; then
		said=$(grep -q '^WatchdogSec=' "$unit" || echo "$unit has no WatchdogSec=")
		say "$name-unit-has-a-watchdog" "$said"
	fi
	said=
	while read -r other; do
		[ -e "conf/systemd/$other" ] || said="OnFailure=$other is none of ours"
	done < <(sed -n 's/^OnFailure=//p' "$unit")
	say "$name-unit-falls-back-on-a-unit-that-exists" "$said"
	said=
	while read -r page; do
		[ -e "daemon/man/$page.scd" ] || said="$unit names the manual page $page"
	done < <(grep -oE 'man:[a-z.-]+\([0-9]\)' "$unit" | sed -E 's/man:(.*)\((.)\)/\1.\2/')
	say "$name-unit-names-manual-pages-that-exist" "$said"
done

# The policy is for the interface that the daemon has: no member is misspelt, none forgotten.
declared=$(grep -oE 'SD_BUS_METHOD(_WITH_ARGS)?\("[A-Za-z]+"' daemon/ipc/*.c |
	sed -E 's/.*"(.*)"/\1/' | sort -u)
allowed=$(sed -n '/context="default"/,$p' conf/dbus/org.ballast1.conf | tr '\n' ' ' |
	grep -oE 'send_interface="org.ballast1.Manager"[^/]*send_member="[A-Za-z]+"' |
	sed -E 's/.*send_member="(.*)"/\1/' | sort -u)
said=$(comm -13 <(echo "$declared") <(echo "$allowed") | sed 's/^/no such method: /')
say dbus-policy-names-methods-that-exist "$said"
said=$(comm -23 <(echo "$declared") <(echo "$allowed") | grep -vx Reload |
	sed 's/^/neither open to all nor known to change something: /')
say dbus-policy-opens-what-only-reads "$said"
said=$(echo "$allowed" | grep -x Reload)
say dbus-policy-keeps-reload-to-root "$said"
said=$(xmllint --noout --nonet conf/libvirt/*.xml 2>&1)
say libvirt-snippets-are-xml "$said"
exit $fail
