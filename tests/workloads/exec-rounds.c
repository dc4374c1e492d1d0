/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A large executable that is run over and over: every page of a file full of code is called once a
 * round, in a new random order each time. Two processes take turns, since under TCG a page that one
 * process alone uses all the time looks idle to the kernel (the translation buffer hides the
 * accessed bit until the address space changes).
 *
 * Beyond its text it holds page cache and anonymous memory that it does not use any more.
 *
 *	exec-rounds --generate MIB FILE		write the executable
 *	exec-rounds [--text MIB] [--cache MIB] [--anon MIB] [--period MS] [--seed N] [FILE]
 */
#include <sys/wait.h>

#include "tests/workloads/work.h"

#ifndef __x86_64__
#error "exec-rounds writes x86-64 code"
#endif

enum { GENERATE, TEXT, CACHE, ANON, PERIOD, SEED, N_OPTIONS };

#define LOOPS 1000

static const char cold_file[] = "/data/cold";

typedef uint32_t page_function(void);

static uint32_t page_answer(uint32_t page)
{
	return page * UINT32_C(2654435761) ^ UINT32_C(0xba11a57);
}

/*
 * mov $LOOPS, %ecx; 1: dec %ecx; jnz 1b; mov $answer, %eax; ret: some work, so that a round takes
 * longer than the noise of the clock. The rest of the page is noise that nothing can merge.
 */
static void make_page(unsigned char *page, uint32_t number)
{
	static const unsigned char code[] = { 0xb9, 0,	  0, 0, 0, 0xff, 0xc9, 0x75,
					      0xfc, 0xb8, 0, 0, 0, 0,	 0xc3 };
	const uint32_t answer = page_answer(number), loops = LOOPS;

	work_fill_page(page, number);
	memcpy(page, code, sizeof(code));
	memcpy(page + 1, &loops, sizeof(loops));
	memcpy(page + 10, &answer, sizeof(answer));
}

static int generate(const char *path, uint64_t size)
{
	unsigned char page[WORK_PAGE] __attribute__((aligned(8)));
	FILE *file = fopen(path, "we");

	if (!file)
		work_die("%s: %s", path, strerror(errno));
	for (uint32_t i = 0; i < size / WORK_PAGE; i++) {
		make_page(page, i);
		if (fwrite(page, sizeof(page), 1, file) != 1)
			work_die("%s: %s", path, strerror(errno));
	}
	if (fclose(file) != 0)
		work_die("%s: %s", path, strerror(errno));
	return 0;
}

/* Not MADV_RANDOM: the kernel ignores the accesses to such a mapping when it ages pages. */
static unsigned char *map_text(const char *path, uint64_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *text;

	if (fd < 0)
		work_die("%s: %s", path, strerror(errno));
	text = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED)
		work_die("%s: %s", path, strerror(errno));
	close(fd);
	return text;
}

static uint32_t call_page(unsigned char *text, uint32_t page)
{
	page_function *function;
	void *at = text + (size_t)page * WORK_PAGE;

	memcpy(&function, &at, sizeof(function));
	return function();
}

static void run_round(unsigned char *text, uint32_t *order, uint32_t n, uint64_t *state,
		      uint64_t number)
{
	struct rusage before, after;
	uint64_t from = work_now_usec();
	uint32_t wrong = 0;

	getrusage(RUSAGE_SELF, &before);
	work_shuffle(order, n, state);
	for (uint32_t i = 0; i < n; i++)
		if (call_page(text, order[i]) != page_answer(order[i]))
			wrong++;
	getrusage(RUSAGE_SELF, &after);
	work_say("exec round=%llu pages=%u wall_us=%llu cpu_us=%llu minflt=%ld majflt=%ld wrong=%u",
		 (unsigned long long)number, n, (unsigned long long)(work_now_usec() - from),
		 (unsigned long long)(work_cpu_usec(&after) - work_cpu_usec(&before)),
		 after.ru_minflt - before.ru_minflt, after.ru_majflt - before.ru_majflt, wrong);
}

/*
 * Process k of two runs the rounds k, k + 2, k + 4 … The clock is shared, so that they need nothing
 * else to take turns.
 */
static void run_rounds(unsigned char *text, uint32_t n, uint64_t k, uint64_t start,
		       const struct work_option *options)
{
	uint32_t *order = (uint32_t *)(void *)work_map(n * sizeof(*order));
	uint64_t state = options[SEED].value * 2 + k + 1, period = options[PERIOD].value * 1000;

	for (uint64_t number = k;; number += 2) {
		work_sleep_until(start + number * period);
		run_round(text, order, n, &state, number);
	}
}

int main(int argc, char **argv)
{
	struct work_option options[N_OPTIONS] = {
		[GENERATE] = { "--generate", 0 }, [TEXT] = { "--text", 40 },
		[CACHE] = { "--cache", 0 },	  [ANON] = { "--anon", 0 },
		[PERIOD] = { "--period", 1000 },  [SEED] = { "--seed", 1 },
	};
	const char *path = "/data/text";
	unsigned char *text;
	uint64_t size, start;
	uint32_t n;

	work_options(argc, argv, options, N_OPTIONS, &path);
	if (options[GENERATE].value)
		return generate(path, options[GENERATE].value * WORK_MIB);
	size = options[TEXT].value * WORK_MIB;
	n = (uint32_t)(size / WORK_PAGE);
	work_read_file(cold_file, 0, options[CACHE].value * WORK_MIB);
	text = map_text(path, size);
	for (uint32_t i = 0; i < n; i++)
		if (call_page(text, i) != page_answer(i))
			work_die("%s: page %u is not what it should be", path, i);
	work_cold_anon(options[ANON].value * WORK_MIB, options[SEED].value);
	start = work_now_usec() + options[PERIOD].value * 1000;
	for (uint64_t k = 0; k < 2; k++)
		if (fork() == 0)
			run_rounds(text, n, k, start, options);
	work_say("ready exec-rounds");
	wait(NULL);
	work_die("a process of exec-rounds was killed");
}
