#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every C file is as clang-format would write it; `make format` makes it so.
cd "$(dirname "$0")/../.." || exit 1
mapfile -t files < <(git ls-files '*.c' '*.h')
if clang-format --dry-run -Werror "${files[@]}"; then
	echo "ok c-files-are-formatted"
else
	echo "not ok c-files-are-formatted - run make format"
	exit 1
fi
