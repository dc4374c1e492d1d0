#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What static analysis finds in the programs. Left out is what doesn't know the cleanup attribute
# (leaks, which the sanitizers find), and matters of taste. A finding that is wrong is silenced where
# it is, with its reason.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tap.sh
. tests/tap.sh
checks='-*,clang-analyzer-*,bugprone-*'
for off in clang-analyzer-{unix.Malloc,valist.Uninitialized,optin.performance.Padding} \
	clang-analyzer-security.insecureAPI.{strcpy,DeprecatedOrUnsafeBufferHandling} \
	bugprone-{easily-swappable-parameters,implicit-widening-of-multiplication-result} \
	bugprone-{narrowing-conversions,not-null-terminated-result,reserved-identifier}; do
	checks+=,-$off
done
mapfile -t flags < <(make -s VARIANT=clang print-flags)
mapfile -t files < <(git ls-files 'daemon/*.c' 'guest-agent/*.c')

said=$(printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -I '{}' \
	clang-tidy --quiet --checks="$checks" '{}' -- "${flags[@]}" \
	-Xclang -analyzer-config -Xclang max-nodes=75000 2>/dev/null)
say programs-pass-clang-tidy "$said"

# A cleanup function is called by an attribute, which cppcheck doesn't see.
said=$(cppcheck --enable=warning,portability,unusedFunction --quiet --inline-suppr \
	--suppress={memleak,resourceLeak,uninitvar,ctuuninitvar} \
	--suppress='unusedFunction:tests/fuzz/*' -I. -D_GNU_SOURCE -D__x86_64__ \
	--template='{file}:{line}: {message} [{id}]' daemon guest-agent tests 2>&1 |
	grep -v -E "The function '[a-z_A-Z]+p' is never used")
say programs-pass-cppcheck "$said"
exit $fail
