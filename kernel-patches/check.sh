#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Is the series in order? Each patch applies to the installed source (offsets yes, fuzz no), the
# kernel's checkpatch.pl --strict finds nothing, and the cached kernel was built without a warning.
# Prints a line "ok NAME" or "not ok NAME - why" for each; takes about 15 s, as it unpacks only the
# files that the patches touch.

set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=kernel-patches/common.sh
. "$here/common.sh"

rc=0

ok()
{
	echo "ok $1"
}

bad()
{
	echo "not ok $1 - $2"
	rc=1
}

# The files that the series changes, and what checkpatch.pl needs.
unpack_touched()
{
	local touched=$1/touched

	series_patches | xargs sed -n 's|^--- a/||p' | sort -u >"$touched"
	printf '%s\n' scripts/checkpatch.pl scripts/spelling.txt \
		scripts/const_structs.checkpatch >>"$touched"
	sed -i 's|^|*/|' "$touched"
	mkdir "$1/linux"
	# What is not there is found out by the patch that wants it.
	tar -xJf "$source_tarball" -C "$1/linux" --strip-components=1 --wildcards \
		--files-from="$touched" 2>"$1/missing"
	[ -f "$1/linux/scripts/checkpatch.pl" ]
}

check_version()
{
	local version

	version=$(source_version)
	[ "$version" = "$pinned_version" ] ||
		echo "note: the series was made on linux-source-6.12 $pinned_version, this is $version"
}

check_applies()
{
	local patch name out

	while read -r patch; do
		name=${patch##*/}
		if out=$(apply_patch "$1" "$patch"); then
			ok "applies $name"
		else
			bad "applies $name" "$out"
			return
		fi
	done < <(series_patches)
}

# Not whether MAINTAINERS covers new files: what is new is in tools/testing/selftests/mm, which it does.
check_style()
{
	local patch name out

	while read -r patch; do
		name=${patch##*/}
		if out=$(cd "$1" && perl scripts/checkpatch.pl --no-tree --strict --terse --quiet \
			--no-summary --ignore FILE_PATH_CHANGES "$patch" 2>&1); then
			ok "checkpatch $name"
		else
			bad "checkpatch $name" "${out//$'\n'/; }"
		fi
	done < <(series_patches)
}

check_mail()
{
	local patch name header

	while read -r patch; do
		name=${patch##*/}
		for header in 'From [0-9a-f]\{40\} Mon Sep 17' 'From: .*@' 'Date: ' \
			'Subject: \[PATCH [0-9]*/[0-9]*\] ' 'Signed-off-by: .*@'; do
			grep -q "^$header" "$patch" || {
				bad "mail $name" "no line '$header'"
				continue 2
			}
		done
		ok "mail $name"
	done < <(series_patches)
}

check_warnings()
{
	local image log

	image=$("$here/build.sh" --path) || {
		bad "build" "the kernel is not built: run 'make kernel'"
		return
	}
	log=${image%/*}/build.log
	if grep -n -i 'warning' "$log" | head -n 5 | grep .; then
		bad "build without warnings" "see $log"
	else
		ok "build without warnings"
	fi
}

find_source
series_patches | while read -r patch; do
	[ -r "$patch" ] || die "6.12/series names ${patch##*/}, which is missing"
done || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/ballast-series.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
unpack_touched "$work" || die "cannot unpack $source_tarball: $(head -n 1 "$work/missing")"
check_version
check_applies "$work/linux"
check_style "$work/linux"
check_mail
check_warnings
exit "$rc"
