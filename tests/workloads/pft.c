/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The page fault test of Christoph Lameter's threads of 2004: how many faults on fresh anonymous
 * memory does a machine get done? Threads touch a region, each its own part, and the region is given
 * back; that is repeated. His options and columns:
 *
 *	pft [-t] [-b BYTES | -g GIB] [-r REPEATS] [-f THREADS] [-c LINES] [-z]
 *	    [-s STEP] [-i STREAMS] [-n PAGES -G PAGES] [-R]
 *
 *	-t	print the title of the table, too
 *	-b, -g	size of the region for all threads together (64M)
 *	-r, -f	repetitions (1), threads (1)
 *	-c	cache lines written in each page (1); his own program went on into -f from here
 *	-z	clear each page instead
 *	-s	step in bytes; his was 16384, which is here every fourth page (4096, each page)
 *	-i	streams that a thread follows in turn, each through its own share of its part (1)
 *	-n, -G	only -n pages in a row out of every -G (all)
 *	-R	MADV_RANDOM
 *
 * "Wall" is in hundredths of a second, as his was, but printed as such: his 139.050s was 139.50 s.
 * His faults were computed from the size; here those that the rates are made of are the pages
 * touched, and MinFlt are the faults that the kernel has really taken for them. The line that begins
 * with "pft" has it all for programs; resident are the pages that were there after the touching, of
 * all repetitions.
 */
#include <pthread.h>

#include "tests/workloads/vmstat.h"
#include "tests/workloads/work.h"

enum { CACHE_LINE = 128, MAX_THREADS = 64 };

struct settings {
	uint64_t bytes, repeats, threads, lines, step, streams, run, gap;
	bool title, clear, random;
};

struct totals {
	uint64_t user, system, wall; /* µs */
	uint64_t touched, faults, resident;
};

struct worker {
	const struct settings *settings;
	pthread_barrier_t *start;
	unsigned char *part;
	uint64_t size, touched, faults;
	pthread_t thread;
};

static uint64_t size_of(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	switch (*end) {
	case 'g':
	case 'G':
		return n << 30;
	case 'm':
	case 'M':
		return n << 20;
	case 'k':
	case 'K':
		return n << 10;
	default:
		return n;
	}
}

static void touch(const struct settings *settings, unsigned char *page)
{
	if (settings->clear) {
		memset(page, 0, WORK_PAGE);
		return;
	}
	for (uint64_t i = 0; i < settings->lines; i++)
		((volatile unsigned char *)page)[i * CACHE_LINE] = 'r';
}

/* Is the page at this offset of a stream one of those that are touched? */
static bool in_a_run(const struct settings *settings, uint64_t at)
{
	return !settings->gap || at / WORK_PAGE % settings->gap < settings->run;
}

static void touch_all(struct worker *worker)
{
	const struct settings *settings = worker->settings;
	uint64_t share = worker->size / settings->streams / WORK_PAGE * WORK_PAGE;

	for (uint64_t at = 0; at < share; at += settings->step) {
		if (!in_a_run(settings, at))
			continue;
		for (uint64_t k = 0; k < settings->streams; k++)
			touch(settings, worker->part + k * share + at);
		worker->touched += settings->streams;
	}
}

static void *work(void *data)
{
	struct worker *worker = data;
	struct rusage before, after;

	getrusage(RUSAGE_THREAD, &after); /* the stack is there now */
	pthread_barrier_wait(worker->start);
	getrusage(RUSAGE_THREAD, &before);
	touch_all(worker);
	getrusage(RUSAGE_THREAD, &after);
	worker->faults = (uint64_t)(after.ru_minflt - before.ru_minflt);
	return NULL;
}

static uint64_t usec(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * 1000000 + (uint64_t)tv->tv_usec;
}

static uint64_t count_resident(unsigned char *region, uint64_t size)
{
	uint64_t pages = size / WORK_PAGE, n = 0;
	unsigned char *is_there = malloc(pages);

	if (!is_there || mincore(region, size, is_there) < 0)
		work_die("mincore: %s", strerror(errno));
	for (uint64_t i = 0; i < pages; i++)
		n += is_there[i] & 1;
	free(is_there);
	return n;
}

static void run_workers(const struct settings *settings, struct worker *workers,
			unsigned char *region)
{
	uint64_t part = settings->bytes / settings->threads / WORK_PAGE * WORK_PAGE;
	pthread_barrier_t start;

	pthread_barrier_init(&start, NULL, (unsigned int)settings->threads);
	for (uint64_t i = 0; i < settings->threads; i++) {
		workers[i] = (struct worker){ .settings = settings,
					      .start = &start,
					      .part = region + i * part,
					      .size = part };
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
			work_die("pft: no thread");
	}
	for (uint64_t i = 0; i < settings->threads; i++)
		pthread_join(workers[i].thread, NULL);
	pthread_barrier_destroy(&start);
}

static void repeat(const struct settings *settings, struct totals *totals)
{
	struct worker workers[MAX_THREADS];
	unsigned char *region = work_map(settings->bytes);
	struct rusage before, after;
	uint64_t begin;

	if (settings->random && madvise(region, settings->bytes, MADV_RANDOM) < 0)
		work_die("MADV_RANDOM: %s", strerror(errno));
	getrusage(RUSAGE_SELF, &before);
	begin = work_now_usec();
	run_workers(settings, workers, region);
	totals->wall += work_now_usec() - begin;
	getrusage(RUSAGE_SELF, &after);
	totals->user += usec(&after.ru_utime) - usec(&before.ru_utime);
	totals->system += usec(&after.ru_stime) - usec(&before.ru_stime);
	for (uint64_t i = 0; i < settings->threads; i++) {
		totals->touched += workers[i].touched;
		totals->faults += workers[i].faults;
	}
	totals->resident += count_resident(region, settings->bytes);
	munmap(region, settings->bytes);
}

/* As many as in a second of so many µs. */
static double rate(uint64_t n, uint64_t us)
{
	return us ? (double)n * 1e6 / (double)us : 0;
}

static void print(const struct settings *settings, const struct totals *totals,
		  const char *vmstat_changes)
{
	double per_cpu = rate(totals->touched, totals->user + totals->system);
	double per_wall = rate(totals->touched, totals->wall);

	if (settings->title)
		work_say("    Gb Rep Threads   User      System     Wall flt/cpu/s fault/wsec   "
			 "MinFlt");
	work_say("%6.3f %3llu %4llu %8.3fs %10.3fs %7.2fs %10.3f %10.3f %8llu",
		 (double)settings->bytes / (1 << 30), (unsigned long long)settings->repeats,
		 (unsigned long long)settings->threads, (double)totals->user / 1e6,
		 (double)totals->system / 1e6, (double)totals->wall / 1e6, per_cpu, per_wall,
		 (unsigned long long)totals->faults);
	work_say("pft gb=%.4f rep=%llu threads=%llu touched=%llu minflt=%llu resident=%llu "
		 "user_us=%llu system_us=%llu wall_us=%llu flt_cpu_s=%.0f fault_wsec=%.0f%s",
		 (double)settings->bytes / (1 << 30), (unsigned long long)settings->repeats,
		 (unsigned long long)settings->threads, (unsigned long long)totals->touched,
		 (unsigned long long)totals->faults, (unsigned long long)totals->resident,
		 (unsigned long long)totals->user, (unsigned long long)totals->system,
		 (unsigned long long)totals->wall, per_cpu, per_wall, vmstat_changes);
}

static void read_settings(int argc, char **argv, struct settings *ret)
{
	int c;

	while ((c = getopt(argc, argv, "tb:g:r:f:c:zs:i:n:G:R")) != -1) {
		switch (c) {
		case 't':
			ret->title = true;
			break;
		case 'b':
			ret->bytes = size_of(optarg);
			break;
		case 'g':
			ret->bytes = size_of(optarg) << 30;
			break;
		case 'r':
			ret->repeats = size_of(optarg);
			break;
		case 'f':
			ret->threads = size_of(optarg);
			break;
		case 'c':
			ret->lines = size_of(optarg);
			break;
		case 'z':
			ret->clear = true;
			break;
		case 's':
			ret->step = size_of(optarg);
			break;
		case 'i':
			ret->streams = size_of(optarg);
			break;
		case 'n':
			ret->run = size_of(optarg);
			break;
		case 'G':
			ret->gap = size_of(optarg);
			break;
		case 'R':
			ret->random = true;
			break;
		default:
			work_die("pft: see the top of pft.c for its options");
		}
	}
}

int main(int argc, char **argv)
{
	struct settings settings = { .bytes = 64 * WORK_MIB,
				     .repeats = 1,
				     .threads = 1,
				     .lines = 1,
				     .step = WORK_PAGE,
				     .streams = 1,
				     .run = 1 };
	struct vmstat before, after;
	struct totals totals = { 0 };
	char changes[200];

	read_settings(argc, argv, &settings);
	if (!settings.threads || settings.threads > MAX_THREADS || !settings.streams ||
	    !settings.step || settings.step % WORK_PAGE || settings.lines > WORK_PAGE / CACHE_LINE)
		work_die("pft: 1 to %d threads, steps of whole pages, lines within a page",
			 MAX_THREADS);
	vmstat_read(&before);
	for (uint64_t i = 0; i < settings.repeats; i++)
		repeat(&settings, &totals);
	vmstat_read(&after);
	print(&settings, &totals,
	      vmstat_text(&before, &after, "pgprefault_anon", changes, sizeof(changes)));
	return 0;
}
