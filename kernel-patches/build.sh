#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Build the guest kernel, or find it in the cache.
#
# usage: build.sh [--unpatched] [--debug KIND] [--path]
#
# The kernel is Debian's linux-source-6.12 with the series of kernel-patches/6.12
# and the configuration of kernel-patches/config. It is kept in
# ${BALLAST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ballast}/kernel/HASH/ under a
# hash of all that it is made from, so a second call costs nothing. The last line
# printed is the path of the bzImage. In selftests/ beside it are the series'
# kselftests.
#
# --unpatched  the same configuration without the series (for comparison)
# --debug KIND with config.debug and config.KIND on top of the configuration, to find
#              faults; KIND is lockdep or kasan
# --path       print the path, build nothing; exit 1 when it isn't built yet
#
# Environment: BALLAST_CACHE, LINUX_SOURCE (another source tarball), JOBS
# (default: as many as there are processors).

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=kernel-patches/common.sh
. "$here/common.sh"

# What a build consists of; these lines are part of the hash.
recipe=(KBUILD_BUILD_USER=ballast KBUILD_BUILD_HOST=ballast
	KBUILD_BUILD_TIMESTAMP=@1735689600 KBUILD_BUILD_VERSION=1)
compiler=gcc

# About how many objects a build has, for the progress line only.
expected_objects=1142

# The kind of debug kernel, or nothing.
debug=

main() {
	local patched=1 only_path=0 hash out

	while [ $# -gt 0 ]; do
		case $1 in
		--unpatched) patched=0 ;;
		--debug)
			debug=${2:-}
			case $debug in
			lockdep | kasan) shift ;;
			*) die "--debug is lockdep or kasan" ;;
			esac
			;;
		--path) only_path=1 ;;
		-h | --help)
			sed -n '3,/^$/s/^# \{0,1\}//p' "$0"
			return 0
			;;
		*) die "unknown argument '$1' (see build.sh --help)" ;;
		esac
		shift
	done

	find_source
	hash=$(input_hash "$patched")
	out=$(cache_folder)/$hash
	if [ -e "$out/bzImage" ]; then
		echo "$out/bzImage"
		return 0
	fi
	[ "$only_path" = 0 ] || return 1
	build "$patched" "$hash" "$out"
}

cache_folder() {
	echo "${BALLAST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ballast}/kernel"
}

# The hash of everything that decides what comes out.
input_hash() {
	{
		source_version
		"$compiler" --version | head -n 1
		ld --version | head -n 1
		printf '%s\n' "${recipe[@]}"
		fragment "$1" | grep -E '^(# )?CONFIG_'
		if [ "$1" = 1 ]; then
			series_patches | while read -r patch; do
				# Only what patch(1) applies, not the changelog.
				sed -n '/^diff --git/,$p' "$patch"
			done
		fi
	} | sha256sum | cut -c1-16
}

# The configuration; its last part is for the series' own options. What a debug kernel asks for
# takes the place of what the plain one says.
fragment() {
	{
		if [ "$1" = 1 ]; then
			cat "$here/config"
		else
			sed '/^# Only with the series/,$d' "$here/config"
		fi
		[ -z "$debug" ] || cat "$here/config.debug" "$here/config.$debug"
	} | awk '{ line[NR] = $0; option[NR] = "" }
		/^CONFIG_/ { option[NR] = $0; sub(/=.*/, "", option[NR]) }
		/^# CONFIG_.* is not set$/ { option[NR] = $2 }
		option[NR] { last[option[NR]] = NR }
		END { for (i = 1; i <= NR; i++)
			if (!option[i] || last[option[i]] == i)
				print line[i] }'
}

build() {
	local patched=$1 hash=$2 out=$3 cache tmp lock
	local what="with the series" start=$SECONDS

	[ "$patched" = 1 ] || what="without the series"
	[ -z "$debug" ] || what+=", to debug with $debug"
	cache=$(cache_folder)
	mkdir -p "$cache" || die "cannot make the cache folder $cache"
	need_space "$cache"

	# One build at a time; who waited may find it done.
	exec {lock}>"$cache/lock"
	if ! flock -n "$lock"; then
		echo "kernel: another build is running, waiting for it" >&2
		flock "$lock"
	fi
	if [ -e "$out/bzImage" ]; then
		echo "$out/bzImage"
		return 0
	fi

	# A killed build leaves its folder; the lock says that nobody is in it.
	rm -rf "$cache"/build.*
	tmp=$(mktemp -d "$cache/build.XXXXXX")
	# shellcheck disable=SC2064  # the path is known now, and only now
	trap "stop_compiling; rm -rf '$tmp'" EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP

	say "Linux $(source_version) $what, into $out"
	say "unpacking ${source_tarball##*/}"
	unpack_source "$tmp/linux"
	[ "$patched" = 0 ] || apply_series "$tmp/linux"
	mkdir -p "$tmp/linux/o" "$tmp/result"
	configure "$tmp/linux" "$patched"
	compile "$tmp/linux" "$tmp/result/build.log"

	cp "$tmp/linux/o/arch/x86/boot/bzImage" "$tmp/result/"
	cp "$tmp/linux/o/.config" "$tmp/result/config"
	cp "$tmp/linux/o/System.map" "$tmp/result/"
	[ "$patched" = 0 ] || build_selftests "$tmp/linux" "$tmp/result"
	write_manifest "$patched" "$hash" $((SECONDS - start)) >"$tmp/result/manifest"
	rm -rf "$out"
	mv "$tmp/result" "$out"
	say "done in $((SECONDS - start)) s"
	echo "$out/bzImage"
}

need_space() {
	local free_kib

	free_kib=$(df -Pk "$1" | awk 'NR == 2 { print $4 }')
	[ "$free_kib" -ge 2500000 ] ||
		die "$1 has $((free_kib / 1024)) MiB free, a build needs 2500 (set BALLAST_CACHE to another folder)"
}

kernel_make() {
	local src=$1 cc=$compiler

	shift
	! command -v ccache >/dev/null || cc="ccache $compiler"
	# An object folder inside of the source makes every path in the
	# commands relative, so ccache finds the objects of another folder's build.
	make -C "$src" O=o CC="$cc" "${recipe[@]}" "$@"
}

configure() {
	local src=$1 patched=$2 want

	fragment "$patched" >"$src/o/fragment"
	kernel_make "$src" -s KCONFIG_ALLCONFIG="$src/o/fragment" allnoconfig >"$src/o/config.log" 2>&1 || {
		cat "$src/o/config.log" >&2
		die "configuring failed"
	}
	while read -r want; do
		grep -qxF "$want" "$src/o/.config" && continue
		# An option whose dependencies are off isn't mentioned.
		case $want in
		"# "*) ! grep -q "^${want:2:-11}=" "$src/o/.config" && continue ;;
		esac
		die "kernel-patches/config asks for '$want', which this kernel does not give"
	done < <(grep -E '^(CONFIG_[A-Z0-9_]+=|# CONFIG_[A-Z0-9_]+ is not set)' "$src/o/fragment")
}

compile() {
	local src=$1 log=$2 start=$SECONDS pid r=0 keep

	kernel_make "$src" -j"${JOBS:-$(nproc)}" bzImage >"$log" 2>&1 &
	pid=$!
	compiling=$pid
	while kill -0 "$pid" 2>/dev/null; do
		sleep 5 &
		wait -n "$pid" "$!" 2>/dev/null || true
		progress "$log" $((SECONDS - start))
	done
	wait "$pid" || r=$?
	compiling=
	[ "$r" = 0 ] || {
		grep -nE 'error|Error' "$log" | head -n 20 >&2 || true
		keep=$(cache_folder)/failed.log
		cp "$log" "$keep"
		die "the build failed; its log is $keep"
	}
}

# The kselftests that the series adds, for a guest without libraries; with the
# warnings of the kernel's Makefile in the same log.
build_selftests() {
	local src=$1/tools/testing/selftests/mm out=$2/selftests name

	mkdir -p "$out"
	for name in $(series_selftests); do
		"$compiler" -Wall -O2 -U_FORTIFY_SOURCE -D_GNU_SOURCE= -static \
			-o "$out/$name" "$src/$name.c" >>"$2/build.log" 2>&1 ||
			die "the selftest $name does not build: $(grep -m 1 'error' "$2/build.log")"
	done
}

# Whoever is interrupted leaves no make behind.
compiling=
stop_compiling() {
	[ -z "$compiling" ] || {
		kill "$compiling" 2>/dev/null
		wait "$compiling" 2>/dev/null
	} || true
}

progress() {
	local done_objects

	done_objects=$(grep -cE '^  (CC|AS|HOSTCC) ' "$1" || true)
	[ "$done_objects" -le "$expected_objects" ] || done_objects=$expected_objects
	say "$(printf 'object %4d of about %d, %d:%02d' "$done_objects" "$expected_objects" \
		$(($2 / 60)) $(($2 % 60)))"
}

write_manifest() {
	cat <<-END
		hash=$2
		source=$(source_version)
		debug=${debug:-no}
		series=$([ "$1" = 1 ] && series_patches | wc -l || echo 0)
		compiler=$("$compiler" --version | head -n 1)
		seconds=$3
		built=$(date -u +%Y-%m-%dT%H:%M:%SZ)
	END
	[ "$1" = 0 ] || series_patches | while read -r patch; do
		echo "patch=${patch##*/} $(sha256sum <"$patch" | cut -d' ' -f1)"
	done
}

main "$@"
