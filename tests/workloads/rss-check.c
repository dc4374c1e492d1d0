/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Are resident memory and swap counted exactly while many threads fault? Lameter's threads of 2004
 * moved these counters to the tasks, and Linus Torvalds worried how late they would be right. Here
 * the threads of a child write memory, swap it out, read it back, give it up, all at once, and stand
 * still after each phase. Then what /proc/PID/status says must be the sum of what smaps finds page
 * by page, in smaps_rollup too. While memory only grows, a walk through the page tables must lie
 * between what status said before and after it, but for the faults that are under way. And
 * /proc/PID/stat, which reads the counters without their per-CPU parts, must not be off by more than
 * those can hold.
 *
 *	rss-check [--threads N] [--mib N] [--seed N]
 *
 * Prints "ok" and "not ok" lines. With more memory than there is, the growth is not bounded: pages
 * move to swap between two looks. Start it from a disk, not from a tmpfs or the initramfs: smaps also
 * finds what was swapped out of the program's own file there, which is nobody's VmSwap.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "tests/workloads/gauges.h"

enum { THREADS, MIB, SEED, N_OPTIONS };

enum {
	CHUNK = 64, /* pages */
	MAX_THREADS = 32,
	IN_FLIGHT = 16, /* pages that one fault may map */
	BATCH = 32, /* of a per-CPU counter, for up to 16 processors */
	N_COUNTERS = 3, /* anonymous, file, shmem */
};

struct worker {
	unsigned char *part;
	uint64_t pages, random;
};

/* Shared by the child's threads and the parent. */
struct shared {
	pthread_barrier_t begin;
	atomic_int running;
	int phase; /* N_PHASES: end */
};

static struct shared *shared;
static struct worker workers[MAX_THREADS];

/* All in KiB. */
struct counts {
	uint64_t rss, anon, swap;
};

/* --- The child --------------------------------------------------------------------------------- */

static void write_pages(struct worker *w, uint64_t first, uint64_t n)
{
	for (uint64_t i = first; i < first + n && i < w->pages; i++)
		memset(w->part + i * WORK_PAGE, 0x5a, 64);
}

static void advise(struct worker *w, uint64_t first, int advice)
{
	uint64_t n = w->pages - first < CHUNK ? w->pages - first : CHUNK;

	if (madvise(w->part + first * WORK_PAGE, n * WORK_PAGE, advice) < 0)
		work_die("madvise(%d): %s", advice, strerror(errno));
}

static void every_nth_chunk(struct worker *w, uint64_t n, int advice)
{
	for (uint64_t at = 0; at < w->pages; at += n * CHUNK) {
		if (advice >= 0)
			advise(w, at, advice);
		else
			write_pages(w, at, CHUNK);
	}
}

static void grow(struct worker *w)
{
	write_pages(w, 0, w->pages);
}

static void swap_out(struct worker *w)
{
	every_nth_chunk(w, 2, MADV_PAGEOUT);
}

static void write_again(struct worker *w)
{
	every_nth_chunk(w, 4, -1);
}

static void give_up(struct worker *w)
{
	every_nth_chunk(w, 3, MADV_FREE);
}

static void drop(struct worker *w)
{
	every_nth_chunk(w, 5, MADV_DONTNEED);
}

static void mix(struct worker *w)
{
	static const int advices[] = { MADV_PAGEOUT, MADV_FREE, MADV_DONTNEED, MADV_COLD };

	for (uint64_t i = 0; i < 2 * w->pages / CHUNK; i++) {
		uint64_t at = work_random(&w->random) % w->pages, what = at % 7;

		if (what < 4)
			advise(w, at, advices[what]);
		else
			write_pages(w, at, CHUNK);
	}
}

static void unmap(struct worker *w)
{
	munmap(w->part, w->pages * WORK_PAGE);
}

static const struct phase {
	const char *name;
	void (*run)(struct worker *w);
} phases[] = {
	{ "growing", grow },	   { "swapping_out", swap_out }, { "writing_again", write_again },
	{ "giving_up", give_up },  { "dropping", drop },	 { "a_mixture", mix },
	{ "growing_again", grow }, { "unmapping", unmap },
};

enum { N_PHASES = sizeof(phases) / sizeof(phases[0]) };

static void *run_worker(void *data)
{
	for (;;) {
		pthread_barrier_wait(&shared->begin);
		if (shared->phase == N_PHASES)
			return NULL;
		phases[shared->phase].run(data);
		atomic_fetch_sub(&shared->running, 1);
	}
}

static void run_child(const struct work_option *options)
{
	uint64_t n = options[THREADS].value, size = options[MIB].value * WORK_MIB / n;
	pthread_t threads[MAX_THREADS];

	for (uint64_t i = 0; i < n; i++) {
		workers[i].pages = size / WORK_PAGE;
		workers[i].part = work_map(size);
		workers[i].random = options[SEED].value * MAX_THREADS + i + 1;
		if (pthread_create(&threads[i], NULL, run_worker, &workers[i]) != 0)
			work_die("no thread");
	}
	for (uint64_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

/* --- The parent -------------------------------------------------------------------------------- */

/* The sums of three kinds of lines in a file of the child. */
static void sum_lines(pid_t pid, const char *file, const char *const *names, struct counts *ret)
{
	char path[64], line[256];
	uint64_t *sums[] = { &ret->rss, &ret->anon, &ret->swap };
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	f = fopen(path, "re");
	if (!f)
		work_die("%s: %s", path, strerror(errno));
	memset(ret, 0, sizeof(*ret));
	while (fgets(line, sizeof(line), f)) {
		for (size_t i = 0; i < 3; i++)
			if (strncmp(line, names[i], strlen(names[i])) == 0)
				*sums[i] += strtoull(line + strlen(names[i]), NULL, 10);
	}
	(void)fclose(f);
}

static void read_status(pid_t pid, struct counts *ret)
{
	static const char *const names[] = { "VmRSS:", "RssAnon:", "VmSwap:" };

	sum_lines(pid, "status", names, ret);
}

static void read_smaps(pid_t pid, const char *file, struct counts *ret)
{
	static const char *const names[] = { "Rss:", "Anonymous:", "Swap:" };

	sum_lines(pid, file, names, ret);
}

/* Resident memory as /proc/PID/stat has it, field 24, in KiB. */
static uint64_t read_stat(pid_t pid)
{
	char path[64], text[1024] = "", *at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f || !fgets(text, sizeof(text), f))
		work_die("%s: %s", path, strerror(errno));
	(void)fclose(f);
	at = strrchr(text, ')');
	for (int field = 2; at && field < 24; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) * (WORK_PAGE / 1024) : 0;
}

static bool equal(const struct counts *a, const struct counts *b)
{
	return a->rss == b->rss && a->anon == b->anon && a->swap == b->swap;
}

struct findings {
	uint64_t looks, outside, stat_looks, stat_off; /* KiB at most */
	uint64_t slack, stat_slack; /* KiB */
};

static void compare_stat(pid_t pid, struct findings *findings)
{
	struct counts status;
	uint64_t stat, off;

	read_status(pid, &status);
	stat = read_stat(pid);
	off = stat > status.rss ? stat - status.rss : status.rss - stat;
	findings->stat_looks++;
	if (off > findings->stat_off)
		findings->stat_off = off;
}

/* When nobody changes anything; reclaim may still be at work for a while. */
static void check_still(pid_t pid, const char *name, struct findings *findings)
{
	struct counts before, smaps, rollup, after;
	int tries = 0;
	char full[64];

	do {
		read_status(pid, &before);
		read_smaps(pid, "smaps", &smaps);
		read_smaps(pid, "smaps_rollup", &rollup);
		read_status(pid, &after);
	} while (!equal(&before, &after) && ++tries < 1000);
	compare_stat(pid, findings);
	snprintf(full, sizeof(full), "rss_is_exact_after_%s", name);
	gauges_check(
		equal(&before, &smaps) && equal(&before, &rollup), full,
		"status %llu anon %llu swap %llu, smaps %llu %llu %llu, rollup %llu %llu %llu KiB",
		(unsigned long long)before.rss, (unsigned long long)before.anon,
		(unsigned long long)before.swap, (unsigned long long)smaps.rss,
		(unsigned long long)smaps.anon, (unsigned long long)smaps.swap,
		(unsigned long long)rollup.rss, (unsigned long long)rollup.anon,
		(unsigned long long)rollup.swap);
}

static void look_while_growing(pid_t pid, struct findings *findings)
{
	struct counts before, rollup, after;

	read_status(pid, &before);
	read_smaps(pid, "smaps_rollup", &rollup);
	read_status(pid, &after);
	findings->looks++;
	if (rollup.anon + findings->slack < before.anon ||
	    rollup.anon > after.anon + findings->slack)
		findings->outside++;
}

static void run_phase(pid_t pid, int phase, int threads, struct findings *findings)
{
	shared->phase = phase;
	atomic_store(&shared->running, threads);
	pthread_barrier_wait(&shared->begin);
	while (atomic_load(&shared->running) > 0) {
		if (phases[phase].run == grow)
			look_while_growing(pid, findings);
		else
			usleep(1000);
	}
	check_still(pid, phases[phase].name, findings);
}

static void end_child(pid_t pid)
{
	int status = -1;

	shared->phase = N_PHASES;
	pthread_barrier_wait(&shared->begin);
	waitpid(pid, &status, 0);
	gauges_check(status == 0, "the_child_has_ended_well", "status %d", status);
}

static void make_shared(unsigned int n)
{
	pthread_barrierattr_t attr;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED || mlock(shared, sizeof(*shared)) < 0)
		work_die("no memory: %s", strerror(errno));
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->begin, &attr, n);
}

int main(int argc, char **argv)
{
	struct work_option options[N_OPTIONS] = {
		[THREADS] = { "--threads", 8 },
		[MIB] = { "--mib", 64 },
		[SEED] = { "--seed", 1 },
	};
	uint64_t cpus = (uint64_t)sysconf(_SC_NPROCESSORS_CONF);
	struct findings findings = { 0 };
	bool fits;
	int threads;
	pid_t pid;

	work_options(argc, argv, options, N_OPTIONS, NULL);
	threads = (int)options[THREADS].value;
	if (threads < 1 || threads > MAX_THREADS)
		work_die("rss-check: 1 to %d threads", MAX_THREADS);
	fits = options[MIB].value * WORK_MIB * 2 <
	       (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)WORK_PAGE;
	findings.slack = (uint64_t)threads * IN_FLIGHT * WORK_PAGE / 1024;
	findings.stat_slack = N_COUNTERS * BATCH * cpus * WORK_PAGE / 1024;
	make_shared((unsigned int)threads + 1);
	alarm(3600); /* when the child dies, nobody else comes to the barrier */
	pid = fork();
	if (pid < 0)
		work_die("fork: %s", strerror(errno));
	if (pid == 0)
		run_child(options);
	for (int phase = 0; phase < N_PHASES; phase++)
		run_phase(pid, phase, threads, &findings);
	end_child(pid);
	if (fits)
		gauges_check(findings.looks > 0 && findings.outside == 0,
			     "rss_is_bounded_while_threads_fault",
			     "%llu looks, %llu off by more than the %llu KiB under way",
			     (unsigned long long)findings.looks,
			     (unsigned long long)findings.outside,
			     (unsigned long long)findings.slack);
	gauges_check(findings.stat_off <= findings.stat_slack, "stat_is_off_by_its_batches_at_most",
		     "%llu looks, %llu KiB at most, its counters may hold back %llu KiB",
		     (unsigned long long)findings.stat_looks, (unsigned long long)findings.stat_off,
		     (unsigned long long)findings.stat_slack);
	return 0;
}
