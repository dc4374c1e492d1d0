/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Are the kernel's gauges exact? A few processes do at random what there is to do with memory: map
 * files with and without execute permission, touch, mprotect, unmap, move, fork, exec, truncate,
 * lock, give up with MADV_FREE, collapse to huge pages; meanwhile memory is reclaimed, swapped and
 * migrated by compaction, the LRU is switched, and the levers are set at random, mostly to their
 * strongest. Every now and then all of them are stopped, and nr_exec_mapped and nr_lazyfree must be
 * what counting page by page gives. At last all are killed, and the gauges must be back where they
 * started. That all of it has happened is checked too. Prints "ok" and "not ok" lines.
 *
 *	gauge-mixture [--seed N] [--rounds N] [--workers N] [--mixed 0|1] FOLDER
 *	gauge-mixture --linger MS		(what is executed by the processes)
 *
 * With --mixed 0 no page is ever mapped both with and without execute permission, and the sum of
 * Pss_Exec must be the gauge too; and anonymous memory is neither shared nor written after it was
 * given up, and the sum of LazyFree in smaps must be the gauge of that. FOLDER is on a disk that can
 * be written.
 */
#include "tests/workloads/disturb.h"
#include "tests/workloads/vmstat.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { SEED, ROUNDS, WORKERS, MIXED, LINGER, N_OPTIONS };

enum {
	N_FILES = 4, /* only read: code */
	N_SCRATCH = 2, /* truncated and extended while mapped */
	FILE_PAGES = 1024,
	N_REGIONS = 12, /* of one process */
	REGION_PAGES = 700, /* at most */
	MAX_PROCESSES = 14,
	ROUND_USEC = 900000,
};

struct region {
	unsigned char *start;
	uint32_t pages;
	bool anon, scratch;
	bool freed; /* some of it, at some time */
};

struct worker {
	struct region regions[N_REGIONS];
	uint64_t random;
	uint32_t steps_left; /* 0: for ever */
	bool mixed;
};

/* Shared by all processes. */
struct shared {
	int n_processes;
	uint32_t forks, execs, truncates; /* truncates: of what the same process has mapped */
};

static struct shared *shared;
static int files[N_FILES], scratch[N_SCRATCH];
static char program[300], settle_file[300];
static sigjmp_buf on_fault;

static void fault(int signal)
{
	siglongjmp(on_fault, signal);
}

static uint32_t pick(struct worker *w, uint32_t n)
{
	return (uint32_t)(work_random(&w->random) >> 16) % n;
}

static int pick_prot(struct worker *w, const struct region *r)
{
	static const int mixed[] = { PROT_READ | PROT_EXEC,
				     PROT_READ | PROT_EXEC,
				     PROT_READ,
				     PROT_NONE,
				     PROT_READ | PROT_WRITE | PROT_EXEC,
				     PROT_READ | PROT_WRITE };
	static const int pure[] = { PROT_READ | PROT_EXEC, PROT_READ | PROT_WRITE | PROT_EXEC };

	if (r->anon)
		return PROT_READ | PROT_WRITE;
	return w->mixed ? mixed[pick(w, 6)] : pure[pick(w, 2)];
}

static struct region *pick_region(struct worker *w)
{
	struct region *r = &w->regions[pick(w, N_REGIONS)];

	return r->start ? r : NULL;
}

/* A random part of a region, at least one page. */
static unsigned char *pick_part(struct worker *w, const struct region *r, size_t *ret_size)
{
	uint32_t first = pick(w, r->pages);

	*ret_size = (size_t)(1 + pick(w, r->pages - first)) * WORK_PAGE;
	return r->start + (size_t)first * WORK_PAGE;
}

static void do_map(struct worker *w)
{
	struct region *r = &w->regions[pick(w, N_REGIONS)];
	uint32_t from = pick(w, FILE_PAGES), kind = pick(w, 8);
	int flags = MAP_PRIVATE, fd = -1;
	void *p;

	if (r->start)
		munmap(r->start, (size_t)r->pages * WORK_PAGE);
	r->anon = kind < 3;
	r->scratch = kind == 7;
	r->freed = false;
	r->pages = 1 + pick(w, REGION_PAGES);
	if (r->anon) {
		flags |= MAP_ANONYMOUS;
		from = 0;
	} else {
		fd = r->scratch ? scratch[pick(w, N_SCRATCH)] : files[pick(w, N_FILES)];
		if (r->pages > FILE_PAGES - from)
			r->pages = FILE_PAGES - from;
	}
	p = mmap(NULL, (size_t)r->pages * WORK_PAGE, pick_prot(w, r), flags, fd,
		 (off_t)from * WORK_PAGE);
	r->start = p == MAP_FAILED ? NULL : p;
	if (r->anon && r->start && !w->mixed)
		madvise(r->start, (size_t)r->pages * WORK_PAGE, MADV_DONTFORK);
}

/* Read pages of a region, or write some; what cannot be touched is left. */
static void do_touch(struct worker *w)
{
	struct region *r = pick_region(w);
	volatile uint32_t n;
	volatile bool write;

	if (!r || (r->freed && !w->mixed))
		return;
	n = 1 + pick(w, r->pages);
	write = r->anon ? pick(w, 4) != 0 : pick(w, 6) == 0;
	if (sigsetjmp(on_fault, 1))
		return;
	while (n-- > 0) {
		unsigned char *page = r->start + (size_t)pick(w, r->pages) * WORK_PAGE;

		if (write)
			*(volatile uint64_t *)(void *)page = work_random(&w->random);
		else
			(void)*(volatile unsigned char *)page;
	}
}

static void do_protect(struct worker *w)
{
	struct region *r = pick_region(w);
	unsigned char *part;
	size_t size;

	if (!r)
		return;
	part = pick_part(w, r, &size);
	mprotect(part, size, pick_prot(w, r));
}

static void do_unmap(struct worker *w)
{
	struct region *r = pick_region(w);
	unsigned char *part;
	size_t size;
	void *hole;

	if (!r)
		return;
	if (pick(w, 3) == 0) {
		munmap(r->start, (size_t)r->pages * WORK_PAGE);
		r->start = NULL;
		return;
	}
	/* Not a hole, or another region would come to lie in it. */
	part = pick_part(w, r, &size);
	hole = mmap(part, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	/* do_protect() may open it again: it is anonymous memory as do_map()'s. */
	if (hole != MAP_FAILED && !w->mixed)
		madvise(hole, size, MADV_DONTFORK);
}

static void do_move(struct worker *w)
{
	struct region *r = pick_region(w);
	size_t size = r ? (size_t)r->pages * WORK_PAGE : 0;
	void *p = r ? mremap(r->start, size, size, MREMAP_MAYMOVE) : MAP_FAILED;

	if (p != MAP_FAILED)
		r->start = p;
}

static void do_advise(struct worker *w)
{
	static const int file[] = { MADV_DONTNEED, MADV_PAGEOUT, MADV_COLD,
				    MADV_COLLAPSE, MADV_RANDOM,	 MADV_NORMAL };
	static const int anon[] = { MADV_FREE, MADV_FREE,     MADV_FREE,
				    MADV_FREE, MADV_DONTNEED, MADV_PAGEOUT,
				    MADV_COLD, MADV_HUGEPAGE, MADV_COLLAPSE };
	struct region *r = pick_region(w);
	unsigned char *part;
	size_t size;
	int advice;

	if (!r)
		return;
	part = pick_part(w, r, &size);
	/* Of a huge page, smaps counts what is mapped, and the gauge what it takes. */
	advice = r->anon ? anon[pick(w, w->mixed ? 9 : 7)] : file[pick(w, 6)];
	if (advice == MADV_FREE)
		r->freed = true;
	madvise(part, size, advice);
}

static void do_lock(struct worker *w)
{
	struct region *r = pick_region(w);
	unsigned char *part;
	size_t size;

	/* Locked memory cannot be reclaimed: little of it, and not for long. Nor is it on a list. */
	if (!r || (r->anon && !w->mixed) || pick(w, 4))
		return;
	part = pick_part(w, r, &size);
	if (size > 64 * WORK_PAGE)
		size = 64 * WORK_PAGE;
	mlock(part, size);
	if (pick(w, 2))
		munlock(part, size);
}

static void do_truncate(struct worker *w)
{
	int fd = scratch[pick(w, N_SCRATCH)];
	off_t full = (off_t)FILE_PAGES * WORK_PAGE;

	for (int i = 0; i < N_REGIONS; i++)
		if (w->regions[i].start && w->regions[i].scratch) {
			__atomic_add_fetch(&shared->truncates, 1, __ATOMIC_SEQ_CST);
			break;
		}
	if (ftruncate(fd, (off_t)pick(w, FILE_PAGES) * WORK_PAGE + pick(w, WORK_PAGE)) < 0 ||
	    ftruncate(fd, full) < 0)
		work_die("cannot truncate: %s", strerror(errno));
}

static void do_fork(struct worker *w)
{
	pid_t pid;

	if (__atomic_add_fetch(&shared->n_processes, 1, __ATOMIC_SEQ_CST) > MAX_PROCESSES) {
		__atomic_sub_fetch(&shared->n_processes, 1, __ATOMIC_SEQ_CST);
		return;
	}
	pid = fork();
	if (pid < 0)
		__atomic_sub_fetch(&shared->n_processes, 1, __ATOMIC_SEQ_CST);
	if (pid != 0)
		return;
	__atomic_add_fetch(&shared->forks, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < N_REGIONS && !w->mixed; i++)
		if (w->regions[i].anon)
			w->regions[i].start = NULL; /* see do_map() */
	w->random ^= (uint64_t)getpid() << 20;
	w->steps_left = 20 + pick(w, 300);
	if (pick(w, 3) == 0) {
		__atomic_sub_fetch(&shared->n_processes, 1, __ATOMIC_SEQ_CST);
		__atomic_add_fetch(&shared->execs, 1, __ATOMIC_SEQ_CST);
		execl(program, program, "--linger", "300", NULL);
		_exit(1);
	}
}

static void step(struct worker *w)
{
	switch (pick(w, 24)) {
	case 0 ... 4:
		do_map(w);
		break;
	case 5 ... 10:
		do_touch(w);
		break;
	case 11 ... 14:
		do_protect(w);
		break;
	case 15 ... 16:
		do_unmap(w);
		break;
	case 17:
		do_move(w);
		break;
	case 18 ... 20:
		do_advise(w);
		break;
	case 21:
		do_lock(w);
		break;
	case 22:
		do_fork(w);
		break;
	default:
		do_truncate(w);
	}
}

static void work(struct worker *w)
{
	struct sigaction action = { .sa_handler = fault, .sa_flags = SA_NODEFER };

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		step(w);
		if (w->steps_left > 0 && --w->steps_left == 0)
			break;
	}
	__atomic_sub_fetch(&shared->n_processes, 1, __ATOMIC_SEQ_CST);
	_exit(0);
}

/* --- The one that watches ------------------------------------------------------------------------- */

static void disturb(struct disturb *d)
{
	uint64_t until = work_now_usec() + ROUND_USEC;

	while (work_now_usec() < until)
		disturb_once(d);
}

/* The gauges, and LazyFree of all processes, which is one of them too when nothing is mixed. */
static void look(struct gauges_seen *ret, bool mixed, uint64_t *ret_smaps)
{
	for (int i = 0; i < 3; i++) {
		gauges_look(settle_file, ret);
		*ret_smaps = gauges_rollup("LazyFree") / (WORK_PAGE / 1024);
		if (mixed || *ret_smaps == ret->lazyfree)
			return;
	}
}

struct verdict {
	uint32_t exec_wrong, lazyfree_wrong, rollup_wrong, sum_wrong, smaps_wrong;
	uint64_t most_exec, most_lazyfree, most_shared;
};

static void judge(struct verdict *v, const struct gauges_seen *seen, uint64_t smaps, uint32_t round,
		  bool mixed)
{
	const struct gauges *c = &seen->counted;
	/* Each process' Pss_Exec is rounded down to KiB. */
	bool sum_right = c->pss <= seen->exec * 4 && seen->exec * 4 - c->pss <= c->processes;

	v->exec_wrong += seen->exec != c->exec;
	v->lazyfree_wrong += seen->lazyfree != c->lazyfree;
	v->rollup_wrong += c->pss_wrong != 0;
	v->sum_wrong += !mixed && !sum_right;
	v->smaps_wrong += !mixed && smaps != seen->lazyfree;
	if (c->exec > v->most_exec)
		v->most_exec = c->exec;
	if (c->lazyfree > v->most_lazyfree)
		v->most_lazyfree = c->lazyfree;
	if (c->exec_ptes > v->most_shared)
		v->most_shared = c->exec_ptes;
	work_say("round %u: nr_exec_mapped %llu counted %llu (%llu mappings, Pss_Exec %llu KiB), "
		 "nr_lazyfree %llu counted %llu, LazyFree %llu, %llu processes",
		 round, (unsigned long long)seen->exec, (unsigned long long)c->exec,
		 (unsigned long long)c->exec_ptes, (unsigned long long)c->pss,
		 (unsigned long long)seen->lazyfree, (unsigned long long)c->lazyfree,
		 (unsigned long long)smaps, (unsigned long long)c->processes);
}

static pid_t start_workers(uint64_t seed, uint32_t n, bool mixed)
{
	pid_t group = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct worker w = { .random = (seed * 1000 + i) * 7919 + 1, .mixed = mixed };
		pid_t pid = fork();

		if (pid < 0)
			work_die("fork: %s", strerror(errno));
		if (pid == 0) {
			setpgid(0, group);
			__atomic_add_fetch(&shared->n_processes, 1, __ATOMIC_SEQ_CST);
			work(&w);
		}
		if (group == 0)
			group = pid;
		setpgid(pid, group);
	}
	return group;
}

static void end_all(pid_t group)
{
	kill(-group, SIGKILL);
	kill(-group, SIGCONT);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
	for (int i = 0; i < 1000 && kill(-group, 0) == 0; i++)
		usleep(10000);
}

static void report(const struct verdict *v, const struct gauges_seen *start,
		   const struct gauges_seen *end, uint32_t rounds, bool mixed, bool *ret_good)
{
	const char *kind = mixed ? "mixed" : "pure";
	char name[100];
	bool good = true;

	snprintf(name, sizeof(name), "nr_exec_mapped_is_exact_%s", kind);
	good &= gauges_check(v->exec_wrong == 0 && v->most_exec > 500, name,
			     "wrong in %u of %u rounds, up to %llu pages in %llu mappings",
			     v->exec_wrong, rounds, (unsigned long long)v->most_exec,
			     (unsigned long long)v->most_shared);
	snprintf(name, sizeof(name), "nr_lazyfree_is_exact_%s", kind);
	good &= gauges_check(v->lazyfree_wrong == 0 && v->most_lazyfree > 100, name,
			     "wrong in %u of %u rounds, up to %llu pages", v->lazyfree_wrong,
			     rounds, (unsigned long long)v->most_lazyfree);
	snprintf(name, sizeof(name), "Pss_Exec_is_the_share_of_executable_file_pages_%s", kind);
	good &= gauges_check(v->rollup_wrong == 0, name, "wrong in %u of %u rounds",
			     v->rollup_wrong, rounds);
	if (!mixed) {
		good &= gauges_check(v->sum_wrong == 0, "nr_exec_mapped_is_the_sum_of_Pss_Exec",
				     "wrong in %u of %u rounds", v->sum_wrong, rounds);
		good &= gauges_check(v->smaps_wrong == 0, "nr_lazyfree_is_the_sum_of_LazyFree",
				     "wrong in %u of %u rounds", v->smaps_wrong, rounds);
	}
	snprintf(name, sizeof(name), "gauges_are_back_when_all_have_exited_%s", kind);
	good &= gauges_check(end->exec == start->exec && end->lazyfree == start->lazyfree, name,
			     "exec %llu to %llu, lazyfree %llu to %llu",
			     (unsigned long long)start->exec, (unsigned long long)end->exec,
			     (unsigned long long)start->lazyfree,
			     (unsigned long long)end->lazyfree);
	*ret_good = good;
}

/* A test that is right about what never happened says nothing. */
static bool report_events(const struct disturb *d, const struct watch *text,
			  const struct vmstat *start, const struct vmstat *end, bool mixed)
{
	static const char *const counters[] = { "pgmigrate_success", "pswpout",	    "pswpin",
						"pgsteal_exec",	     "pglazyfreed", "pgfree" };
	char changes[200], name[100];
	bool all = text->moved > 0 && d->lru > 0 && d->lever > 0 && shared->truncates > 0 &&
		   shared->forks > 0 && shared->execs > 0;

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		all &= vmstat_diff(start, end, counters[i]) > 0;
	vmstat_text(start, end, "pgmigrate_success pswpout pswpin pgsteal_exec pglazyfreed",
		    changes, sizeof(changes));
	snprintf(name, sizeof(name), "the_mixture_has_all_of_it_%s", mixed ? "mixed" : "pure");
	return gauges_check(all, name,
			    "%llu pages of text moved, %u changes of the LRU, %u of a lever, %u "
			    "truncates of mapped files, %u forks, %u execs,%s",
			    (unsigned long long)text->moved, d->lru, d->lever, shared->truncates,
			    shared->forks, shared->execs, changes);
}

static void prepare(const char *folder)
{
	uint64_t random = 1;
	char path[300];

	snprintf(program, sizeof(program), "%s/gauge-mixture", folder);
	snprintf(settle_file, sizeof(settle_file), "%s/settle", folder);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		work_die("no shared memory");
	for (int i = 0; i < N_FILES + N_SCRATCH; i++) {
		static uint64_t page[WORK_PAGE / 8];
		int fd;

		snprintf(path, sizeof(path), "%s/mixture-%d", folder, i);
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
		for (int k = 0; k < FILE_PAGES; k++) {
			page[k % 512] = work_random(&random);
			if (fd < 0 || write(fd, page, sizeof(page)) != sizeof(page))
				work_die("%s: %s", path, strerror(errno));
		}
		fsync(fd);
		if (i >= N_FILES) {
			scratch[i - N_FILES] = fd;
			continue;
		}
		/* Huge pages of a file are for files that nobody can write. */
		close(fd);
		files[i] = gauges_open(path);
	}
}

int main(int argc, char **argv)
{
	struct work_option options[N_OPTIONS] = {
		[SEED] = { "--seed", 1 },	[ROUNDS] = { "--rounds", 12 },
		[WORKERS] = { "--workers", 4 }, [MIXED] = { "--mixed", 1 },
		[LINGER] = { "--linger", 0 },
	};
	static struct vmstat at_start, at_end;
	static struct watch text;
	struct disturb me = { 0 };
	struct verdict verdict = { 0 };
	struct gauges_seen start, now;
	const char *folder = NULL;
	uint32_t rounds = 0;
	uint64_t smaps;
	bool mixed, good;
	pid_t group;

	work_options(argc, argv, options, N_OPTIONS, &folder);
	if (options[LINGER].value > 0) {
		usleep((useconds_t)options[LINGER].value * 1000);
		return 0;
	}
	if (!folder)
		work_die("gauge-mixture: which folder?");
	mixed = options[MIXED].value;
	me.random = options[SEED].value + 77;
	prepare(folder);
	look(&start, mixed, &smaps);
	vmstat_read(&at_start);
	watch_start(&text, files[0]);
	group = start_workers(options[SEED].value, (uint32_t)options[WORKERS].value, mixed);
	/* Compaction now and then spares the watched text for a while: some more rounds, then. */
	for (;
	     rounds < options[ROUNDS].value || (!text.moved && rounds < 3 * options[ROUNDS].value);
	     rounds++) {
		disturb(&me);
		gauges_stop(group);
		look(&now, mixed, &smaps);
		judge(&verdict, &now, smaps, rounds, mixed);
		watch_look(&text);
		kill(-group, SIGCONT);
	}
	end_all(group);
	watch_end(&text);
	vmstat_read(&at_end);
	look(&now, mixed, &smaps);
	report(&verdict, &start, &now, rounds, mixed, &good);
	good &= report_events(&me, &text, &at_start, &at_end, mixed);
	return good ? 0 : 1;
}
