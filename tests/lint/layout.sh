#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What is where, and that each file says what it is.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tap.sh
. tests/tap.sh

# Sources only: what a test reads is as it has to be.
sources()
{
	git ls-files '*.[ch]' '*.def' '*.sh' '*.scd' Makefile tests/run .ci/run | grep -v ^tests/data/
}

top=(.ci .clang-format .editorconfig .gitignore HACKING.md LICENSE Makefile README.md
	conf daemon guest-agent kernel-patches tests)
said=$(comm -23 <(git ls-files | cut -d/ -f1 | sort -u) <(printf '%s\n' "${top[@]}" | sort) |
	sed 's/$/: not a name for the top folder, see HACKING.md/')
say top-folder-has-only-what-is-agreed "$said"

said=$(sources | while read -r file; do
	head -n 3 "$file" | grep -q 'SPDX-License-Identifier: GPL-2.0' || echo "$file: no licence"
done)
say files-have-their-licence "$said"

said=$(git ls-files '*.[ch]' | xargs wc -l | awk '$2 != "total" && $1 >= 600 {
	print $2 ": " $1 " lines, part it" }')
say c-files-are-below-600-lines "$said"

said=$(git ls-files '*.h' | while read -r file; do
	sed -n 2p "$file" | grep -q '^/\*' || echo "$file: begins without what it is for"
	grep -q '^#ifndef BALLAST_' "$file" || echo "$file: no guard BALLAST_..."
done)
say headers-say-what-they-are-for "$said"
exit $fail
