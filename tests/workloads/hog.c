/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Anonymous memory that is written over and over, in pages picked at random. Ends by SIGTERM and says
 * how many pages it has touched since all of it was there, in how many milliseconds, and whether each
 * page was as it had been left. (Page after page, memory that just doesn't fit would be swapped out
 * altogether, each page just before its turn: what a page costs that others keep could not be seen.)
 *
 *	hog [--mib N] [--think USEC] [--seed N]
 *
 * After each 128 pages it pauses for --think microseconds, so that it uses its memory at a pace that
 * is like that of others: with no pause a hog that fits is so much hotter than all else that nothing
 * stays beside it, and one that doesn't fit does nothing but wait for swap. Waiting comes on top of
 * the pauses. Its speed is touches by busy_ms, the time without the pauses, which would hide most of
 * what waiting costs it: they are measured, since they take longer than they should.
 */
#include <signal.h>

#include "tests/workloads/tlb.h"
#include "tests/workloads/work.h"

enum { MIB, THINK, SEED, N_OPTIONS };

/* Pages between two pauses, and between two times that the translation buffer is emptied. */
#define THINK_PAGES  128
#define FORGET_PAGES 1024

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

/* The last word of a page counts how often it was touched. */
static uint64_t *counter_of(unsigned char *memory, uint64_t page)
{
	return (uint64_t *)(void *)(memory + (page + 1) * WORK_PAGE - sizeof(uint64_t));
}

/* All in one pass: a second one would wait for swap. */
static unsigned char *fill(uint64_t pages, uint64_t seed)
{
	unsigned char *memory = work_map(pages * WORK_PAGE);

	for (uint64_t i = 0; i < pages; i++) {
		work_fill_page(memory + i * WORK_PAGE, seed + i);
		*counter_of(memory, i) = 0;
	}
	return memory;
}

/* Sleep; returns how long that took. */
static uint64_t pause_usec(uint64_t usec)
{
	uint64_t from = work_now_usec();

	usleep((useconds_t)usec);
	return work_now_usec() - from;
}

int main(int argc, char **argv)
{
	struct work_option options[N_OPTIONS] = {
		[MIB] = { "--mib", 95 },
		[THINK] = { "--think", 10000 },
		[SEED] = { "--seed", 1 },
	};
	const struct sigaction action = { .sa_handler = end };
	uint64_t pages, touches = 0, wrong = 0, slept = 0, begin, usec, random;
	struct rusage before, after;
	unsigned char *memory;
	uint64_t *touched;
	struct tlb tlb;

	work_options(argc, argv, options, N_OPTIONS, NULL);
	sigaction(SIGTERM, &action, NULL);
	pages = options[MIB].value * WORK_MIB / WORK_PAGE;
	random = options[SEED].value;
	touched = calloc(pages, sizeof(*touched));
	if (!touched)
		work_die("no memory");
	tlb_init(&tlb);
	memory = fill(pages, options[SEED].value);
	work_say("ready hog");
	getrusage(RUSAGE_SELF, &before);
	begin = work_now_usec();
	for (; !ended; touches++) {
		uint64_t page = work_random(&random) % pages;
		uint64_t *counter = counter_of(memory, page);

		wrong += *counter != touched[page];
		*counter = ++touched[page];
		if (touches % FORGET_PAGES == 0)
			tlb_forget(&tlb);
		if (options[THINK].value && touches % THINK_PAGES == 0)
			slept += pause_usec(options[THINK].value);
	}
	usec = work_now_usec() - begin;
	getrusage(RUSAGE_SELF, &after);
	free(touched);
	work_say("hog touches=%llu pages=%llu ms=%llu busy_ms=%llu majflt=%ld wrong=%llu",
		 (unsigned long long)touches, (unsigned long long)pages,
		 (unsigned long long)usec / 1000, (unsigned long long)(usec - slept) / 1000,
		 after.ru_majflt - before.ru_majflt, (unsigned long long)wrong);
	return 0;
}
