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
 *	exec-rounds --rounds N [--warm N] [--every MIB] [--control 1] [--call 0] ... [FILE]
 *
 * The second form never ends and prints a line a round. The third one ends after so many rounds and
 * prints one line: of how many pages touched how many were lost from memory before the round that
 * touched them, major faults, the time that touching took, and what changed in /proc/vmstat.
 * --warm rounds come before those that are counted. With --every a round comes not after a time, but
 * when wu-stream, which has the same option, has read so much.
 * --control is a second file, FILE.control, of the same size, which is mapped without PROT_EXEC and
 * read page by page after the text: what happens to pages that are only mapped. With --call 0 the
 * text is read, too, through its executable mapping: to reclaim it's the same, but TCG takes longer
 * to translate a page of code than the kernel to bring it back.
 */
#include <stdatomic.h>
#include <sys/wait.h>

#include "tests/workloads/steps.h"
#include "tests/workloads/text.h"
#include "tests/workloads/vmstat.h"

enum { GENERATE, TEXT, CACHE, ANON, PERIOD, ROUNDS, WARM, EVERY, CONTROL, CALL, SEED, N_OPTIONS };

static const char cold_file[] = "/data/cold";

/* What rounds have found, of both processes: in memory that they share. */
struct totals {
	atomic_ullong lost, majflt, usec, wrong;
};

/* A mapping whose pages are touched in rounds. */
struct mapping {
	unsigned char *start;
	unsigned char *vector; /* for mincore() */
	uint32_t pages;
	bool call; /* else read */
	struct totals *totals;
};

struct rounds {
	struct mapping text, control;
	struct vmstat *before; /* the first round that counts; shared by both processes */
	struct steps *steps;
	const struct work_option *options;
	uint64_t start; /* time of the first round */
	uint32_t *order;
	uint64_t random;
};

static uint32_t touch_all(const struct mapping *map, const uint32_t *order)
{
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < map->pages; i++) {
		uint32_t answer = map->call ? text_call(map->start, order[i])
					    : text_read(map->start, order[i]);

		wrong += answer != text_answer(order[i]);
	}
	return wrong;
}

static void run_round(struct rounds *rounds, struct mapping *map, uint64_t number)
{
	uint32_t lost = text_lost(map->start, map->pages, map->vector), wrong;
	struct rusage before, after;
	uint64_t from, usec;

	work_shuffle(rounds->order, map->pages, &rounds->random);
	getrusage(RUSAGE_SELF, &before);
	from = work_now_usec();
	wrong = touch_all(map, rounds->order);
	usec = work_now_usec() - from;
	getrusage(RUSAGE_SELF, &after);
	map->totals->wrong += wrong;
	if (number >= rounds->options[WARM].value) {
		map->totals->lost += lost;
		map->totals->majflt += (uint64_t)(after.ru_majflt - before.ru_majflt);
		map->totals->usec += usec;
	}
	if (rounds->options[ROUNDS].value)
		return;
	work_say("exec round=%llu pages=%u wall_us=%llu cpu_us=%llu minflt=%ld majflt=%ld lost=%u "
		 "wrong=%u",
		 (unsigned long long)number, map->pages, (unsigned long long)usec,
		 (unsigned long long)(work_cpu_usec(&after) - work_cpu_usec(&before)),
		 after.ru_minflt - before.ru_minflt, after.ru_majflt - before.ru_majflt, lost,
		 wrong);
}

static void wait_for_round(const struct rounds *rounds, uint64_t number)
{
	uint64_t every = rounds->options[EVERY].value;

	if (every == 0)
		work_sleep_until(rounds->start + number * rounds->options[PERIOD].value * 1000);
	while (every > 0 && rounds->steps->mib < (number + 1) * every)
		steps_rest();
}

/*
 * Process k of two runs the rounds k, k + 2, k + 4 … The clock is shared, so that they need nothing
 * else to take turns.
 */
static void run_rounds(struct rounds *rounds, uint64_t k)
{
	const struct work_option *options = rounds->options;
	uint64_t end = options[WARM].value + options[ROUNDS].value;

	rounds->order = (uint32_t *)(void *)work_map(rounds->text.pages * sizeof(uint32_t));
	rounds->random = options[SEED].value * 2 + k + 1;
	for (uint64_t number = k; !options[ROUNDS].value || number < end; number += 2) {
		wait_for_round(rounds, number);
		if (options[ROUNDS].value && number == options[WARM].value)
			vmstat_read(rounds->before);
		run_round(rounds, &rounds->text, number);
		if (rounds->control.pages)
			run_round(rounds, &rounds->control, number);
		rounds->steps->rounds++;
	}
}

static void *map_shared(size_t size)
{
	void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		work_die("no memory: %s", strerror(errno));
	return shared;
}

static void map_pages(struct mapping *ret, const char *path, uint64_t size, int prot, bool call)
{
	ret->totals = map_shared(sizeof(*ret->totals));
	ret->start = text_map(path, size, prot);
	ret->pages = (uint32_t)(size / WORK_PAGE);
	ret->vector = work_map(ret->pages);
	ret->call = call;
	for (uint32_t i = 0; i < ret->pages; i++)
		if ((call ? text_call(ret->start, i) : text_read(ret->start, i)) != text_answer(i))
			work_die("%s: page %u is not what it should be", path, i);
}

static int run_all(struct rounds *rounds)
{
	int status, killed = 0;

	for (uint64_t k = 0; k < 2; k++) {
		pid_t pid = fork();

		if (pid < 0)
			work_die("fork: %s", strerror(errno));
		if (pid == 0) {
			run_rounds(rounds, k);
			_exit(0);
		}
	}
	work_say("ready exec-rounds");
	while (wait(&status) > 0)
		killed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
	return killed;
}

static void say_mapping(const struct mapping *map, const char *prefix, char *ret, size_t size)
{
	snprintf(ret, size, " %slost=%llu %smajflt=%llu %sms=%llu", prefix, map->totals->lost,
		 prefix, map->totals->majflt, prefix, map->totals->usec / 1000);
}

static void say_result(const struct rounds *rounds, const struct vmstat *after, int killed)
{
	static const char keys[] = "pgsteal_file pgsteal_anon pgsteal_exec pgrotate_exec "
				   "refault=workingset_refault_file pgmajfault pswpin pswpout "
				   "pgdeactivate pgfree oom_kill";
	uint64_t n = rounds->options[ROUNDS].value;
	char text[100], control[100] = "", changes[300], gauges[100];

	say_mapping(&rounds->text, "", text, sizeof(text));
	if (rounds->control.pages)
		say_mapping(&rounds->control, "control_", control, sizeof(control));
	work_say("exec-rounds rounds=%llu touched=%llu%s%s wrong=%llu killed=%d%s%s",
		 (unsigned long long)n, (unsigned long long)(n * rounds->text.pages), text, control,
		 rounds->text.totals->wrong, killed,
		 vmstat_text(rounds->before, after, keys, changes, sizeof(changes)),
		 vmstat_text(NULL, after, "nr_mapped nr_active_file nr_inactive_file", gauges,
			     sizeof(gauges)));
}

int main(int argc, char **argv)
{
	struct work_option options[N_OPTIONS] = {
		[GENERATE] = { "--generate", 0 }, [TEXT] = { "--text", 40 },
		[CACHE] = { "--cache", 0 },	  [ANON] = { "--anon", 0 },
		[PERIOD] = { "--period", 1000 },  [ROUNDS] = { "--rounds", 0 },
		[WARM] = { "--warm", 0 },	  [EVERY] = { "--every", 0 },
		[CONTROL] = { "--control", 0 },	  [CALL] = { "--call", 1 },
		[SEED] = { "--seed", 1 },
	};
	static struct vmstat after;
	struct rounds rounds = { .options = options };
	const char *path = "/data/text";
	char control[300];
	uint64_t size;
	int killed;

	work_options(argc, argv, options, N_OPTIONS, &path);
	size = options[TEXT].value * WORK_MIB;
	if (options[GENERATE].value) {
		text_generate(path, options[GENERATE].value * WORK_MIB);
		return 0;
	}
	if (options[CACHE].value)
		work_read_file(cold_file, 0, options[CACHE].value * WORK_MIB);
	map_pages(&rounds.text, path, size, PROT_READ | PROT_EXEC, options[CALL].value);
	snprintf(control, sizeof(control), "%s.control", path);
	if (options[CONTROL].value)
		map_pages(&rounds.control, control, size, PROT_READ, false);
	work_cold_anon(options[ANON].value * WORK_MIB, options[SEED].value);
	rounds.before = map_shared(sizeof(*rounds.before));
	rounds.steps = steps_map();
	rounds.start = work_now_usec() + options[PERIOD].value * 1000;
	killed = run_all(&rounds);
	if (!options[ROUNDS].value)
		work_die("a process of exec-rounds was killed");
	vmstat_read(&after);
	say_result(&rounds, &after, killed);
	return 0;
}
