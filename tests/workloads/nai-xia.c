/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Nai Xia's objection of 2009 to the protection of text, re-made: a program that computes, with a
 * small text (gcc of SPEC cpu2006 has 3 MiB, libquantum 36 KiB) and more data than there is memory.
 * Its text is used so often that reclaim would hardly take it anyway: the protection should neither
 * gain much nor cost much. It does a fixed number of steps, each a page of text called, which
 * computes, and a page of data read and written; most of the data touched is of a part that moves on
 * through all of it, as in a computation that comes in phases.
 *
 *	nai-xia [--text KIB] [--data MIB] [--window MIB] [--steps THOUSANDS] [--seed N] [FILE]
 */
#include "tests/workloads/text.h"
#include "tests/workloads/tlb.h"
#include "tests/workloads/vmstat.h"

enum { TEXT, DATA, WINDOW, STEPS, SEED, N_OPTIONS };

/* Steps between two times that the translation buffer is emptied. */
#define FORGET_STEPS 1024
/* One step of so many touches data anywhere. */
#define FAR_STEPS 32
/* What samples of the text in memory say is lost, so many times. */
#define SAMPLES 50

struct computation {
	unsigned char *text, *data, *vector;
	uint32_t text_pages, data_pages, window_pages;
	uint64_t steps, random, wrong, lost;
};

/* The last word of each page of data says how often it was written, and a sum must agree. */
static void touch_data(struct computation *c, uint32_t page)
{
	unsigned char *end = c->data + ((size_t)page + 1) * WORK_PAGE;
	uint64_t words[2];

	memcpy(words, end - sizeof(words), sizeof(words));
	c->wrong += words[1] != ~words[0];
	words[0]++;
	words[1] = ~words[0];
	memcpy(end - sizeof(words), words, sizeof(words));
}

/* The window goes through all data twice. */
static uint32_t choose_data(struct computation *c, uint64_t step)
{
	uint64_t r = work_random(&c->random), at;

	if (r % FAR_STEPS == 0)
		return (uint32_t)(r / FAR_STEPS % c->data_pages);
	at = step * 2 * c->data_pages / c->steps + r / FAR_STEPS % c->window_pages;
	return (uint32_t)(at % c->data_pages);
}

static void compute(struct computation *c)
{
	struct tlb tlb;

	tlb_init(&tlb);
	for (uint64_t step = 0; step < c->steps; step++) {
		uint32_t page = (uint32_t)(work_random(&c->random) % c->text_pages);

		c->wrong += text_call(c->text, page) != text_answer(page);
		touch_data(c, choose_data(c, step));
		if (step % FORGET_STEPS == 0)
			tlb_forget(&tlb);
		if (step % (c->steps / SAMPLES) == 0)
			c->lost += text_lost(c->text, c->text_pages, c->vector);
	}
}

static void make_data(struct computation *c, uint64_t seed)
{
	const uint64_t words[2] = { 0, ~UINT64_C(0) };

	c->data = work_map((uint64_t)c->data_pages * WORK_PAGE);
	for (uint32_t i = 0; i < c->data_pages; i++) {
		unsigned char *page = c->data + (size_t)i * WORK_PAGE;

		work_fill_page(page, seed + i);
		memcpy(page + WORK_PAGE - sizeof(words), words, sizeof(words));
	}
}

int main(int argc, char **argv)
{
	struct work_option options[N_OPTIONS] = {
		[TEXT] = { "--text", 3072 },   [DATA] = { "--data", 110 },
		[WINDOW] = { "--window", 24 }, [STEPS] = { "--steps", 1000 },
		[SEED] = { "--seed", 1 },
	};
	static const char keys[] =
		"pgmajfault pswpin pswpout pgsteal_exec refault=workingset_refault_file "
		"oom_kill";
	static struct vmstat before, after;
	const char *path = "/data/text";
	struct computation c = { 0 };
	struct rusage from, to;
	char changes[200];
	uint64_t begin;

	work_options(argc, argv, options, N_OPTIONS, &path);
	c.text_pages = (uint32_t)(options[TEXT].value * 1024 / WORK_PAGE);
	c.data_pages = (uint32_t)(options[DATA].value * WORK_MIB / WORK_PAGE);
	c.window_pages = (uint32_t)(options[WINDOW].value * WORK_MIB / WORK_PAGE);
	c.steps = options[STEPS].value * 1000;
	c.random = options[SEED].value + 1;
	c.text = text_map(path, (size_t)c.text_pages * WORK_PAGE, PROT_READ | PROT_EXEC);
	c.vector = work_map(c.text_pages);
	make_data(&c, options[SEED].value);
	vmstat_read(&before);
	getrusage(RUSAGE_SELF, &from);
	begin = work_now_usec();
	compute(&c);
	begin = work_now_usec() - begin;
	getrusage(RUSAGE_SELF, &to);
	vmstat_read(&after);
	work_say("nai-xia steps=%llu ms=%llu cpu_ms=%llu majflt=%ld text_pages=%u samples=%d "
		 "lost=%llu "
		 "wrong=%llu%s",
		 (unsigned long long)c.steps, (unsigned long long)begin / 1000,
		 (unsigned long long)(work_cpu_usec(&to) - work_cpu_usec(&from)) / 1000,
		 to.ru_majflt - from.ru_majflt, c.text_pages, SAMPLES, (unsigned long long)c.lost,
		 (unsigned long long)c.wrong,
		 vmstat_text(&before, &after, keys, changes, sizeof(changes)));
	return 0;
}
