# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What build.sh and check.sh have in common: the source and the series.
# The caller sets $here to the kernel-patches folder.

# The package version that the series was made on.
pinned_version=6.12.117-1~deb12u1
source_tarball=
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

# unpack_source FOLDER: the source without the other architectures.
unpack_source() {
	mkdir -p "$1"
	tar -xJf "$source_tarball" -C "$1" --strip-components=1 \
		--exclude='*/arch/[a-w]*/*' --exclude='*/arch/xtensa/*' \
		--exclude='*/drivers/gpu/drm/amd/include/*' || die "cannot unpack $source_tarball"
}

# apply_series FOLDER: offsets are taken, fuzz is not.
apply_series() {
	local patch out

	while read -r patch; do
		[ -r "$patch" ] || die "6.12/series names ${patch##*/}, which is missing"
		out=$(patch -d "$1" -p1 --fuzz=0 --no-backup-if-mismatch --force <"$patch" 2>&1) ||
			die "${patch##*/} does not apply to linux-source-6.12 $(source_version)" \
				"(made on $pinned_version): $(failed_file <<<"$out")"
	done < <(series_patches)
}

# From patch(1)'s output: which file, which hunks.
failed_file() {
	awk '/^(patching|checking) file/ { file = $3 }
		/^can.t find file/ { print "a file is gone: " $0; exit }
		/FAILED/ { print file ": " $0; exit }'
}
