/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A big file that was read once, of which a small part stays in use: the part is mapped and every
 * page of it is touched each round in random order, by two processes in turn (exec-rounds.c says
 * why).
 *
 *	cold-cache [--cache MIB] [--hot MIB] [--anon MIB] [--period MS] [--seed N]
 */
#include <sys/wait.h>

#include "tests/workloads/work.h"

enum { CACHE, HOT, ANON, PERIOD, SEED, N_OPTIONS };

static const char cold_file[] = "/data/cold";

static void run_rounds(const unsigned char *hot, uint32_t n, uint64_t k, uint64_t start,
		       const struct work_option *options)
{
	uint32_t *order = (uint32_t *)(void *)work_map(n * sizeof(*order));
	uint64_t state = options[SEED].value * 2 + k + 1;
	volatile unsigned char sink = 0;

	(void)sink; /* written, so that the pages are read */
	for (uint64_t round = k;; round += 2) {
		struct rusage before, after;

		work_sleep_until(start + round * options[PERIOD].value * 1000);
		getrusage(RUSAGE_SELF, &before);
		work_shuffle(order, n, &state);
		for (uint32_t i = 0; i < n; i++)
			sink ^= hot[(size_t)order[i] * WORK_PAGE];
		getrusage(RUSAGE_SELF, &after);
		work_say("cold round=%llu pages=%u minflt=%ld majflt=%ld",
			 (unsigned long long)round, n, after.ru_minflt - before.ru_minflt,
			 after.ru_majflt - before.ru_majflt);
	}
}

int main(int argc, char **argv)
{
	struct work_option options[N_OPTIONS] = {
		[CACHE] = { "--cache", 240 },	 [HOT] = { "--hot", 16 },  [ANON] = { "--anon", 0 },
		[PERIOD] = { "--period", 1000 }, [SEED] = { "--seed", 1 },
	};
	const unsigned char *hot;
	uint64_t start;

	work_options(argc, argv, options, N_OPTIONS, NULL);
	if (options[HOT].value > options[CACHE].value)
		work_die("cold-cache: --hot is a part of --cache");
	work_read_file(cold_file, 0, options[CACHE].value * WORK_MIB);
	work_cold_anon(options[ANON].value * WORK_MIB, options[SEED].value);
	hot = work_map_file(cold_file, options[HOT].value * WORK_MIB, PROT_READ, MAP_SHARED);
	start = work_now_usec() + options[PERIOD].value * 1000;
	for (uint64_t k = 0; k < 2; k++)
		if (fork() == 0)
			run_rounds(hot, (uint32_t)(options[HOT].value * WORK_MIB / WORK_PAGE), k,
				   start, options);
	work_say("ready cold-cache");
	wait(NULL);
	work_die("a process of cold-cache was killed");
}
