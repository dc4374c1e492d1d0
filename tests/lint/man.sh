#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The manual pages say what the programs' help says: every option and verb, and none that isn't.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tap.sh
. tests/tap.sh
make -s all >/dev/null 2>&1 || {
	echo "not ok manual-pages-are-checked - the programs don't build"
	exit 1
}

options()
{
	grep -oE -- '(^|[^a-z-])--[a-z][a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u
}

# compare NAME HELP MANUAL: two lists
compare()
{
	local said
	said=$(comm -23 <(echo "$2") <(echo "$3") | sed 's/^/the manual lacks /'
		comm -13 <(echo "$2") <(echo "$3") | sed 's/^/only the manual has /')
	say "$1" "$said"
}

for program in ballastd ballast-agent; do
	compare "$program-manual-has-its-options" "$(build/$program --help | options)" \
		"$(sed -n '/^# OPTIONS/,/^# [^O]/p' "daemon/man/$program.8.scd" | options)"
done
verbs()
{
	build/ballastctl help | sed -n '/^Verbs:/,/^$/s/^  \([a-z]*\) .*/\1/p' | grep -vxE 'help|version'
}
help()
{
	build/ballastctl help
	for verb in $(verbs); do build/ballastctl "$verb" --help; done
}
compare ballastctl-manual-has-its-options "$(help | options)" \
	"$(sed 's/ballast-agent --once//' daemon/man/ballastctl.1.scd | options)"
compare ballastctl-manual-has-its-verbs "$(verbs | sort)" \
	"$(sed -n 's/^\*ballastctl\* \*\([a-z]*\)\*.*/\1/p' daemon/man/ballastctl.1.scd | sort)"
exit $fail
