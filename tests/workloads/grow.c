/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Anonymous memory that grows in steps up to a limit. It starts to grow when the file /tmp/grow
 * appears, so that the host chooses the time. A part of what it has already, chosen at random, is
 * read and checked each round: memory that was swapped out is missed.
 *
 *	grow [--start MIB] [--limit MIB] [--step KIB] [--check KIB] [--cache MIB] [--period MS]
 *	     [--seed N]
 */
#include "tests/workloads/work.h"

enum { START, LIMIT, STEP, CHECK, CACHE, PERIOD, SEED, N_OPTIONS };

static const char cold_file[] = "/data/cold";
static const char go_file[] = "/tmp/grow";

struct grow {
	unsigned char *region;
	uint64_t pages, wrong, random;
};

static void grow_to(struct grow *grow, uint64_t pages)
{
	for (; grow->pages < pages; grow->pages++)
		work_fill_page(grow->region + grow->pages * WORK_PAGE, grow->pages);
}

static void check_some(struct grow *grow, uint64_t n)
{
	for (uint64_t i = 0; i < n && grow->pages > 0; i++) {
		uint64_t page = work_random(&grow->random) % grow->pages;

		if (!work_check_page(grow->region + page * WORK_PAGE, page))
			grow->wrong++;
	}
}

static uint64_t grow_target(const struct grow *grow, const struct work_option *options)
{
	uint64_t limit = options[LIMIT].value * WORK_MIB / WORK_PAGE;
	uint64_t next = grow->pages + options[STEP].value * 1024 / WORK_PAGE;

	if (access(go_file, F_OK) < 0)
		return grow->pages;
	return next < limit ? next : limit;
}

int main(int argc, char **argv)
{
	struct work_option options[N_OPTIONS] = {
		[START] = { "--start", 64 }, [LIMIT] = { "--limit", 256 },
		[STEP] = { "--step", 1024 }, [CHECK] = { "--check", 1024 },
		[CACHE] = { "--cache", 0 },  [PERIOD] = { "--period", 1000 },
		[SEED] = { "--seed", 1 },
	};
	struct grow grow = { 0 };
	uint64_t next;

	work_options(argc, argv, options, N_OPTIONS, NULL);
	grow.random = options[SEED].value + 1;
	work_read_file(cold_file, 0, options[CACHE].value * WORK_MIB);
	grow.region = work_map(options[LIMIT].value * WORK_MIB);
	grow_to(&grow, options[START].value * WORK_MIB / WORK_PAGE);
	work_say("ready grow");
	next = work_now_usec();
	for (uint64_t round = 0;; round++) {
		uint64_t from = work_now_usec();
		struct rusage usage;

		grow_to(&grow, grow_target(&grow, options));
		check_some(&grow, options[CHECK].value * 1024 / WORK_PAGE);
		getrusage(RUSAGE_SELF, &usage);
		work_say("grow round=%llu kib=%llu took_us=%llu majflt=%ld wrong=%llu",
			 (unsigned long long)round, (unsigned long long)grow.pages * 4,
			 (unsigned long long)(work_now_usec() - from), usage.ru_majflt,
			 (unsigned long long)grow.wrong);
		next += options[PERIOD].value * 1000;
		work_sleep_until(next);
	}
}
