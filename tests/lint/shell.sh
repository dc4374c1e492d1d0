#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every shell script passes shellcheck. SC2317 is off: functions that are called by name look as if
# nobody called them.
cd "$(dirname "$0")/../.." || exit 1
mapfile -t files < <(git ls-files | while read -r file; do
	[ -f "$file" ] || continue
	head -n 1 "$file" | grep -q -E '^#! ?/bin/(ba)?sh' && echo "$file"
done)
if [ ${#files[@]} -gt 0 ] && shellcheck -x -e SC2317 "${files[@]}"; then
	echo "ok ${#files[@]}-scripts-pass-shellcheck"
else
	echo "not ok scripts-pass-shellcheck - see above"
	exit 1
fi
