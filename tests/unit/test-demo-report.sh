#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The demo's judge is judged: a made-up run in which all is well meets every claim, and for each
# thing that goes wrong in it exactly the claims that speak of it fail.

cd "$(dirname "$0")/../.." || exit 1
report=${BALLAST_BUILD:-build}/tests/lab/demo-report
work=$(mktemp -d "${TMPDIR:-/tmp}/ballast-test-report.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

# record KEY=VALUE...: print the record of a run, changed by the given values.
record()
{
	awk -v sett=4 -v lazy_at=2 -v cache_at=3 -v steal=0 -v oom=0 -v cpu=10000 -v faults=0 \
		-v wrong=0 -v seen=1 -v relief=0.25 -v back=1 -v rss=4 -v dcpu=0.003 -v turn=0 \
		-v killed=0 -v rise=0 -v low=0 -v act=1 -v inflate=0 -v gives=120 -v again=0 -v took=0 \
		-v lag=0.75 -v stuck=9 -v hidden=0 -v stays=0 -v lacks=0 -v mute=0 \
		"${@/#/-v}" '
	function mib(n) { return sprintf("%.0f", n * 1048576) }
	# The level of the host, and what a guest has that follows it by a time.
	function level(t) { return t <= 0 || t >= 75 || !act ? 0 : t < 5 ? 2 : 1 }
	function protect(t) { t = level(t - lag); return !act ? 1 : t == 2 ? (stuck < 3 ? stuck : 3) : 2 }
	function first(t) { return level(t - lag) > 0 ? 2 : 0 }
	function guest(name, ram, actual, target, lazy, cache, text, free)
	{
		printf "%s\"%s\":{\"pid\":9,\"cpu\":%.3f,\"maximum\":%s,\"actual_at\":%.3f," \
			"\"actual\":%s,\"ram\":%s",
			sep, name, 100 + t * cpu / 1e6, mib(512), t + 500 - took, mib(actual), mib(ram)
		sep = ","
		if (!down)
			printf ",\"ballast\":{\"name\":\"%s\",\"target\":%s,\"minimum\":%s," \
				"\"dead_time_us\":1500000,\"stats\":{\"free\":%s,\"active_file\":%s," \
				"\"inactive_file\":0,\"lazyfree\":%s,\"exec_mapped\":%s," \
				"\"active_anon\":0,\"inactive_anon\":0,\"swap_entries\":0," \
				"\"steal_file\":%d,\"swap_out\":0,\"steal_exec\":%d,\"oom_kill\":%d},\"tiers\":{\"backed_free\":0}," \
				"\"ages\":{\"stats_us\":100000}", name, mib(target), mib(96), mib(free),
				mib(cache + lazy + text), mib(lazy), mib(text),
				(t > 1 ? inflate * 256 : 0), (t > 0 ? steal : 0), (t > 30 ? oom : 0)
		if (!down)
			printf ",\"settings\":{\"exec_protect\":%d,\"lazyfree_first\":%d}," \
				"\"own_settings\":{\"exec_protect\":1,\"lazyfree_first\":0}}",
				protect(t) - hidden, first(t)
		printf "}"
	}
	BEGIN {
		rt = 1000000
		split("exec lazy cold grow", names, " ")
		for (i = -40; i <= 356; i++) {
			t = i / 4
			cut = t > 0 && t < 75 && act
			down = t > 37 && t < 39 || t > 85.5
			lazy = cut && t > lazy_at ? 2 : 140
			# Before it has settled nothing but lazyfree memory is gone.
			cache = t > cache_at && cut ? 80 : 200
			exec_ram = t > sett && t < 75 && act || t >= 75 && act ? 290 - gives : 290
			cold_ram = t > sett && act ? 150 : 340
			lazy_ram = act && t > 2 ? 120 : 260
			shed_ram = t > 10 && act ? 20 * seen : 0
			grow_ram = 160 + (t > 0 ? t / 5 : 0) + (again && t > 60 && t < 62 ? 300 : 0)
			held = 300
			if (t > 50 && t < 52) held += turn
			target = cut || t >= 75 && t < 75 + back && act ? 300 : 512
			real = cut || t >= 75 && t < 75 + back && act ? held - low : 512
			grow_real = act && t >= 20 + relief && t < 75 ? 320 : real
			grow_target = act && t >= 20 && t < 75 ? 320 : target
			printf "{\"t\":%.3f,\"rt\":%.3f,\"guests\":{", t + 500, t + rt
			sep = ""
			guest("exec", exec_ram, real, target + (t > 50 && t < 52 ? turn : 0), 0, cache,
				40, 450)
			guest("lazy", lazy_ram, real + (t > 55 ? rise : 0),
				target + (t > 50 && t < 52 ? turn : 0), lazy, 60, 2, 450)
			guest("cold", cold_ram - shed_ram, killed && t > 38 && cut ? real - killed : real,
				target + (t > 50 && t < 52 ? turn : 0), 0, cache, 2, 450)
			guest("grow", grow_ram, grow_real, grow_target, 0, 20, 2, 450)
			printf "},\"daemon\":{"
			if (!down)
				printf "\"pid\":%d,\"rss_anon\":%s,\"cpu\":%.4f", (t < 38 ? 5 : 6), mib(rss),
					(t + 100) * dcpu
			if (down)
				printf "}}\n"
			else
				printf "},\"host\":{\"budget\":%s,\"level\":\"%s\"}}\n", mib(cut ? 682 : 3072),
					substr("relaxed tight   critical", level(t) * 8 + 1, 8 - (level(t) < 2) - 2 * (level(t) == 1))
			for (k = 1; (i + 40) % 4 == 1 && k <= 4; k++)
				if (!(mute && k == 3))
					printf "{\"t\":%.3f,\"rt\":1,\"guest\":\"%s\",\"work\":{\"kind\":\"settings\"%s" \
						",\"lazyfree_first\":%d}}\n", t + 500, names[k],
						(lacks ? "" : ",\"exec_protect\":" (t > 85.5 && !stays ? 1 : protect(t))),
						(t > 85.5 && !stays ? 0 : first(t))
			if (i % 4 == 0) {
				printf "{\"t\":%.3f,\"rt\":%.3f,\"guest\":\"exec\",\"work\":{\"kind\":\"exec\"," \
					"\"round\":%d,\"minflt\":%d,\"majflt\":0,\"wrong\":0}}\n",
					t + 500, t + rt, i, faults
				printf "{\"t\":%.3f,\"rt\":%.3f,\"guest\":\"lazy\",\"work\":{\"kind\":" \
					"\"lazyfree\",\"round\":%d,\"kept\":256,\"wrong\":%d}}\n",
					t + 500, t + rt, i, wrong
			}
		}
		mark = "{\"t\":%.3f,\"rt\":1,\"mark\":\"%s\",\"before\":%s,\"budget\":%s}\n"
		printf mark, 500, "cut", mib(1050), mib(682)
		printf mark, 537, "kill", 0, 0
		printf mark, 539, "restart", 0, 0
		printf mark, 575, "restore", 0, 0
		printf mark, 585, "end", 0, 0
		printf mark, 585.5, "stop", 0, 0
		printf "{\"t\":574,\"rt\":%d,\"guest\":\"cold\",\"explain\":{\"decisions\":[{" \
			"\"time_us\":%.0f,\"action\":\"shed\",\"reason\":\"take-file\",\"freed\":%s}]}}\n",
			rt + 74, (rt + 9.5) * 1e6, mib(20)
		printf "{\"t\":574,\"rt\":%d,\"guest\":\"grow\",\"explain\":{\"decisions\":[{" \
			"\"time_us\":%.0f,\"action\":\"profile\",\"reason\":\"profile\"},{" \
			"\"time_us\":%.0f,\"action\":\"balloon\",\"reason\":\"relief\"," \
			"\"operands\":{\"latency_us\":100000}}]}}\n", rt + 74, (rt + 20) * 1e6,
			(rt + 20) * 1e6
	}' </dev/null
}

# expect NAME "CLAIM..." KEY=VALUE...: exactly these claims fail in the run so changed.
expect()
{
	local name=$1 want=$2 got
	shift 2
	record "$@" >"$work/act.jsonl"
	"$report" --tap --act "$work/act.jsonl" --control "$work/control.jsonl" \
		--svg "$work/plot.svg" >"$work/output"
	got=$(sed -n 's/^not ok \([^ ]*\).*/\1/p' "$work/output" | tr '\n' ' ')
	if [ "${got% }" = "$want" ] && [ "$(grep -c '^ok' "$work/output")" -gt 15 ]; then
		echo "ok $name"
	else
		echo "not ok $name - expected '$want', failed '${got% }'"
		sed 's/^/    /' "$work/output"
		failed=1
	fi
}

record act=0 >"$work/control.jsonl"
expect a-good-run-meets-every-claim ""
expect late-is-late under-budget-in-time sett=12
expect too-late-is-not-held "under-budget-in-time stays-under-budget no-reversals" sett=20
expect a-relapse-is-seen "under-budget-in-time stays-under-budget no-reversals" again=1
expect cache-before-lazyfree lazyfree-first cache_at=1
expect lazyfree-that-stays "lazyfree-first no-inflation-before" lazy_at=80
expect an-inflation-that-presses no-inflation-before inflate=5
expect a-page-that-lost-its-contents dirtied-is-kept wrong=1
expect a-shed-that-nobody-sees shed-is-seen seen=0.5
expect a-guest-that-keeps-all executable-gives gives=50
expect lost-text text-stays steal=150
expect slow-rounds cpu-like-control cpu=13000
expect faulting-rounds faults-like-control faults=20
expect an-oom-kill no-oom-kill oom=1
expect a-balloon-that-gives-by-itself "no-uncommanded-deflation no-reversals" rise=50
expect below-minimum none-below-min low=210
expect a-reversal no-reversals turn=10
expect a-slow-return back-at-maximum back=7
expect a-slow-relief relief-at-once relief=1.5
expect a-relief-seen-by-a-slow-sample "" relief=1 took=0.2
expect a-move-within-the-dead-band "" turn=2
expect a-fat-daemon daemon-memory rss=9
expect a-busy-daemon daemon-cpu dcpu=0.02
expect a-slow-profile settings-follow-level lag=4
expect a-level-without-its-profile settings-follow-level stuck=2
expect a-kernel-without-a-lever "" lacks=1
if grep -q 'this kernel has no exec_protect' "$work/output"; then
	echo "ok a-lever-that-the-kernel-lacks-is-said"
else
	echo "not ok a-lever-that-the-kernel-lacks-is-said - it isn't"
	failed=1
fi
expect a-guest-that-says-nothing settings-follow-level mute=1
expect a-status-that-shows-another settings-are-shown hidden=1
expect own-values-that-stay-away own-settings-come-back stays=1
expect a-kill-that-moves-a-balloon "no-reversals kill-moves-nothing" killed=5

if grep -q '</svg>' "$work/plot.svg" && grep -q 'budget cut' "$work/plot.svg"; then
	echo "ok the-plot-is-whole"
else
	echo "not ok the-plot-is-whole - it has no end or no mark"
	failed=1
fi
if "$report" --act "$work/act.jsonl" --svg /dev/full >"$work/output" 2>"$work/error" ||
	! grep -q 'No space left' "$work/error"; then
	echo "not ok a-full-disk-is-said - $(cat "$work/error")"
	failed=1
else
	echo "ok a-full-disk-is-said"
fi
: >"$work/empty.jsonl"
if "$report" --act "$work/empty.jsonl" 2>"$work/error" || ! grep -q 'no samples' "$work/error"; then
	echo "not ok an-empty-record-is-said - $(cat "$work/error")"
	failed=1
else
	echo "ok an-empty-record-is-said"
fi
exit $failed
