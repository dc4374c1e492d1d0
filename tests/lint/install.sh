#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# `make install` puts what it should where it should, and nothing else; what it puts there works.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tap.sh
. tests/tap.sh
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

expected()
{
	cat <<-END
		/etc/ballast/agent.conf 644
		/etc/ballast/ballast.d 755
		/etc/ballast/ballast.yaml 644
		/usr/bin/ballastctl 755
		/usr/lib/systemd/system/ballast-agent.service 644
		/usr/lib/systemd/system/ballastd-release.service 644
		/usr/lib/systemd/system/ballastd.service 644
		/usr/lib/sysusers.d/ballast.conf 644
		/usr/sbin/ballast-agent 755
		/usr/sbin/ballastd 755
		/usr/share/dbus-1/system.d/org.ballast1.conf 644
		/usr/share/doc/ballast/examples/build-host.yaml 644
		/usr/share/doc/ballast/examples/database-and-batch.yaml 644
		/usr/share/doc/ballast/examples/desktop.yaml 644
		/usr/share/doc/ballast/libvirt/agent-channel.xml 644
		/usr/share/doc/ballast/libvirt/enrol-guest.xml 644
		/usr/share/man/man1/ballastctl.1 644
		/usr/share/man/man5/ballast.yaml.5 644
		/usr/share/man/man8/ballast-agent.8 644
		/usr/share/man/man8/ballastd.8 644
		/usr/share/polkit-1/rules.d/50-ballast.rules 644
	END
}

# Files, and folders that stay empty.
installed()
{
	find "$1" \( -type f -o -type d -empty \) -printf '/%P %m\n' | LC_ALL=C sort
}

umask 022
root=$work/root
if ! make -s install DESTDIR="$root" >"$work/log" 2>&1; then
	cat "$work/log"
	echo "not ok install-ends-well - see above"
	exit 1
fi
echo "ok install-ends-well"
say install-puts-what-it-should "$(diff <(expected) <(installed "$root"))"

said=$("$root/usr/bin/ballastctl" check "$root/etc/ballast/ballast.yaml" 2>&1 | grep -v ': good, mode observe')
say installed-configuration-observes "$said"
said=$("$root/usr/sbin/ballast-agent" --config "$root/etc/ballast/agent.conf" --once 2>&1 >/dev/null)
say installed-agent-configuration-is-good "$said"

echo 'host: {mode: act}' >"$root/etc/ballast/ballast.yaml"
make -s install DESTDIR="$root" >/dev/null 2>&1
said=$(grep -q act "$root/etc/ballast/ballast.yaml" || echo "ballast.yaml was overwritten")
say install-keeps-a-configuration "$said"

make -s install DESTDIR="$work/local" PREFIX=/usr/local >/dev/null 2>&1
said=$(grep -h -E '^Exec' "$work"/local/usr/local/lib/systemd/system/*.service | grep -v '=/usr/local/s\?bin/')
say units-run-what-was-installed "$said"

said=$(for page in "$root"/usr/share/man/man?/*; do
	mandoc -T lint -W error "$page"
	mandoc -T utf8 "$page" 2>/dev/null | grep -q '^NAME' ||
		mandoc -T utf8 "$page" | col -b | grep -q NAME || echo "$page doesn't render"
done 2>&1)
say manual-pages-render "$said"
exit $fail
