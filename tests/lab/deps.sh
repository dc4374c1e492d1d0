#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# deps.sh PACKAGE...: install those packages that are missing; asks nothing.

set -euo pipefail

missing=()
for package in "$@"; do
	[ "$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null)" = "install ok installed" ] ||
		missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ ! -r /etc/debian_version ]; then
	echo "deps: not Debian; install what provides: ${missing[*]}" >&2
	exit 1
fi
as_root=()
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || { echo "deps: needs root or sudo" >&2; exit 1; }
	as_root=(sudo)
fi
echo "deps: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get -q update
# The maintainers' scripts would start services that the lab does not want and a container can't.
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
	apt-get -q -y install --no-install-recommends "${missing[@]}"
