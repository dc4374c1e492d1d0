#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every C file passes the other compiler's warnings.
cd "$(dirname "$0")/../.." || exit 1
mapfile -t flags < <(make -s VARIANT=clang print-flags)
if git ls-files '*.c' | xargs -P "$(nproc)" -n 8 clang -fsyntax-only "${flags[@]}"; then
	echo "ok c-files-pass-clang"
else
	echo "not ok c-files-pass-clang - see above"
	exit 1
fi
