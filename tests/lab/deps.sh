#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs those of the named Debian packages that are missing. Needs root or sudo only if any is.
set -u
missing=()
for package in "$@"; do
	status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)
	[ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
sudo=()
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || {
		echo "deps: these packages are missing, and installing them needs root or sudo: ${missing[*]}" >&2
		exit 1
	}
	sudo=(sudo)
fi
echo "deps: installing ${missing[*]}"
"${sudo[@]}" apt-get update -qq || echo "deps: apt-get update failed, trying with the lists as they are" >&2
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	"${missing[@]}" >/dev/null || {
	echo "deps: could not install ${missing[*]}: see the messages above" >&2
	exit 1
}
