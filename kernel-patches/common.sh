# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What build.sh and check.sh have in common: the source and the series.
# The caller sets $here to the kernel-patches folder.

# The package version that the series was made on.
pinned_version=6.12.117-1~deb12u1
source_tarball=
# shellcheck disable=SC2154  # the caller sets it
series_dir=$here/6.12

say() {
	echo "kernel: $*" >&2
}

die() {
	echo "kernel: $*" >&2
	exit 1
}

# Set source_tarball, or say how to get it.
find_source() {
	source_tarball=${LINUX_SOURCE:-/usr/src/linux-source-6.12.tar.xz}
	[ -r "$source_tarball" ] ||
		die "$source_tarball is missing: run 'make deps' (it installs Debian's linux-source-6.12)"
}

# The package's version; for a tarball that is not the package's, its checksum.
source_version() {
	local version=

	[ -n "${LINUX_SOURCE:-}" ] ||
		version=$(dpkg-query -W -f '${Version}' linux-source-6.12 2>/dev/null) || true
	[ -n "$version" ] || version=sha256-$(sha256sum <"$source_tarball" | cut -c1-16)
	echo "$version"
}

# The patches in order, one path a line.
series_patches() {
	sed 's/#.*//; /^[[:space:]]*$/d' "$series_dir/series" | sed "s|^|$series_dir/|"
}

# The names of the kselftests that the series adds, one a line.
series_selftests() {
	series_patches | xargs sed -n 's|^+++ b/tools/testing/selftests/mm/\(.*\)\.c$|\1|p' | sort -u
}

# unpack_source FOLDER: without the code of other architectures (but with their Kconfig).
unpack_source() {
	mkdir -p "$1"
	tar -xJf "$source_tarball" -C "$1" --strip-components=1 \
		--exclude='*/arch/[a-w]*/*.[chS]' --exclude='*/arch/[a-w]*/*.dts*' \
		--exclude='*/drivers/gpu/drm/amd/include/*' || die "cannot unpack $source_tarball"
}

# apply_patch FOLDER PATCH: offsets are taken, fuzz is not; says why it failed.
apply_patch() {
	local out

	[ -r "$2" ] || {
		echo "6.12/series names ${2##*/}, which is missing"
		return 1
	}
	out=$(patch -d "$1" -p1 --fuzz=0 --no-backup-if-mismatch --force <"$2" 2>&1) || {
		echo "${2##*/} does not apply to linux-source-6.12 $(source_version)" \
			"(it was made on $pinned_version): $(failed_file <<<"$out")"
		return 1
	}
}

# apply_series FOLDER
apply_series() {
	local patch why

	while read -r patch; do
		why=$(apply_patch "$1" "$patch") || die "$why"
	done < <(series_patches)
}

# From patch(1)'s output: which file, which hunks.
failed_file() {
	awk '/^(patching|checking) file/ { file = $3 }
		/^[|]--- a\// { file = substr($2, 3); print file " is not there"; exit }
		/FAILED/ { print file ": " $0; exit }'
}
