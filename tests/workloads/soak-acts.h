/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the soak's workers do with memory, each act a function that leaves the table of soak.h true:
 * map, touch, write in rows, protect, unmap, move, give up, lock, truncate, fork, execute, race with
 * threads, userfaultfd, read files. For single-threaded processes; the threads are an act's own.
 */
#ifndef BALLAST_SOAK_ACTS_H
#define BALLAST_SOAK_ACTS_H

#include "tests/workloads/soak.h"

#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#ifndef UFFD_FEATURE_WP_UNPOPULATED
#define UFFD_FEATURE_WP_UNPOPULATED (1 << 13)
#endif

enum {
	ACTS_MAX_PROCESSES = 14,
	ACTS_THREADS = 3,
	ACTS_UFFD_PAGES = 64,
};

/* What the soak adds up about its memory cgroups. */
struct acts_sum {
	uint64_t kills, cages, cage_kills, text_cages, text_kills, text_stuck, text_least;
};

static char acts_program[300];

static inline void act_map(struct soak_worker *w)
{
	static const enum soak_kind kinds[] = { SOAK_ANON,	SOAK_ANON,    SOAK_ANON,
						SOAK_TEXT,	SOAK_TEXT,    SOAK_TEXT,
						SOAK_DROPPABLE, SOAK_SCRATCH, SOAK_SHMEM };
	enum soak_kind kind = kinds[soak_pick(w, sizeof(kinds) / sizeof(kinds[0]))];

	soak_map(w, &w->regions[soak_pick(w, SOAK_REGIONS)], kind, soak_pick_prot(w, kind));
}

static inline void act_touch(struct soak_worker *w)
{
	struct soak_region *r = soak_region(w);
	bool write = soak_pick(w, 2);

	if (!r)
		return;
	for (uint32_t n = 1 + soak_pick(w, r->pages); n > 0; n--)
		soak_touch(w, r, soak_pick(w, r->pages), write);
}

/* Check a region from end to end. */
static inline void act_check(struct soak_worker *w)
{
	struct soak_region *r = soak_region(w);

	for (uint32_t i = 0; r && i < r->pages; i++)
		soak_touch(w, r, i, false);
}

/* Write fresh memory page by page, up, down or in steps; some pages of it are there before. */
static inline void act_row(struct soak_worker *w)
{
	struct soak_region *r = &w->regions[soak_pick(w, SOAK_REGIONS)];
	uint32_t first, n, step = soak_pick(w, 4) ? 1 : 2;
	bool down = soak_pick(w, 5) == 0;

	if (!r->start || r->kind != SOAK_ANON || soak_pick(w, 2))
		soak_map(w, r, soak_pick(w, 8) ? SOAK_ANON : SOAK_DROPPABLE,
			 PROT_READ | PROT_WRITE);
	if (!r->start)
		return;
	if (soak_pick(w, 3) == 0)
		madvise(r->start, (size_t)r->pages * WORK_PAGE,
			soak_pick(w, 2) ? MADV_RANDOM : MADV_HUGEPAGE);
	n = soak_part(w, r, &first);
	for (uint32_t k = soak_pick(w, 6); k > 0; k--)
		soak_touch(w, r, first + soak_pick(w, n), soak_pick(w, 4) != 0);
	for (uint32_t i = 0; i < n; i += step)
		soak_touch(w, r, down ? first + n - 1 - i : first + i, true);
	for (uint32_t i = 0; i < r->pages; i++)
		soak_touch(w, r, i, false);
}

static inline void act_protect(struct soak_worker *w)
{
	struct soak_region *r = soak_region(w);
	uint32_t first, n;
	int prot;

	if (!r)
		return;
	n = soak_part(w, r, &first);
	prot = soak_pick_prot(w, r->kind);
	/* After a failure nobody knows how far it came. */
	if (mprotect(r->start + (size_t)first * WORK_PAGE, (size_t)n * WORK_PAGE, prot) < 0) {
		soak_drop(r);
		return;
	}
	for (uint32_t i = first; i < first + n; i++)
		r->page[i].prot = (uint8_t)prot;
}

static inline void act_unmap(struct soak_worker *w)
{
	struct soak_region *r = soak_region(w);
	uint32_t first, n;
	void *p;

	if (!r)
		return;
	if (soak_pick(w, 2)) {
		soak_drop(r);
		return;
	}
	/* Not a hole, or another region would come to lie in it. */
	n = soak_part(w, r, &first);
	p = mmap(r->start + (size_t)first * WORK_PAGE, (size_t)n * WORK_PAGE, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (p == MAP_FAILED) {
		soak_drop(r);
		return;
	}
	for (uint32_t i = first; i < first + n; i++)
		r->page[i].hole = true;
}

static inline void act_move(struct soak_worker *w)
{
	struct soak_region *r = soak_region(w);
	size_t size;
	void *to;

	if (!r)
		return;
	size = (size_t)r->pages * WORK_PAGE;
	to = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (to == MAP_FAILED)
		return;
	/* It refuses what mprotect() has parted. */
	if (mremap(r->start, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED)
		munmap(to, size);
	else
		r->start = to;
}

static inline void act_advise(struct soak_worker *w)
{
	static const int file[] = {
		MADV_DONTNEED, MADV_PAGEOUT, MADV_COLD,		 MADV_COLLAPSE,
		MADV_RANDOM,   MADV_NORMAL,  MADV_POPULATE_READ, MADV_WILLNEED
	};
	static const int anon[] = { MADV_FREE,	 MADV_FREE,	MADV_FREE,     MADV_FREE,
				    MADV_FREE,	 MADV_DONTNEED, MADV_PAGEOUT,  MADV_PAGEOUT,
				    MADV_COLD,	 MADV_HUGEPAGE, MADV_COLLAPSE, MADV_POPULATE_WRITE,
				    MADV_RANDOM, MADV_NORMAL };
	struct soak_region *r = soak_region(w);
	uint32_t first, n;
	int advice, result;

	if (!r)
		return;
	advice = r->kind == SOAK_ANON || r->kind == SOAK_DROPPABLE ? anon[soak_pick(w, 14)]
								   : file[soak_pick(w, 8)];
	n = soak_part(w, r, &first);
	result = madvise(r->start + (size_t)first * WORK_PAGE, (size_t)n * WORK_PAGE, advice);
	/* What is refused may have been done for a part. */
	if (advice == MADV_FREE || advice == MADV_DONTNEED)
		soak_forget(r, first, n, advice == MADV_DONTNEED && result == 0);
}

/* Locked memory cannot be reclaimed: little of it, and most of it not for long. */
static inline void act_lock(struct soak_worker *w)
{
	struct soak_region *r = soak_region(w);
	uint32_t first, n;
	unsigned char *p;

	if (!r)
		return;
	n = soak_part(w, r, &first);
	if (n > 64)
		n = 64;
	p = r->start + (size_t)first * WORK_PAGE;
	mlock2(p, (size_t)n * WORK_PAGE, soak_pick(w, 2) ? MLOCK_ONFAULT : 0);
	for (uint32_t i = first; i < first + n; i++)
		soak_touch(w, r, i, true);
	if (soak_pick(w, 4))
		munlock(p, (size_t)n * WORK_PAGE);
}

static inline void act_truncate(struct soak_worker *w)
{
	int fd = soak_scratches[soak_pick(w, SOAK_SCRATCHES)];
	off_t full = (off_t)SOAK_SCRATCH_PAGES * WORK_PAGE;
	off_t at = (off_t)soak_pick(w, SOAK_SCRATCH_PAGES) * WORK_PAGE + 8 * soak_pick(w, 512);

	if (ftruncate(fd, at) < 0 || ftruncate(fd, full) < 0)
		soak_fault("cannot truncate: %s", strerror(errno));
}

/* Read a file through its descriptor: page cache that nobody maps. */
static inline void act_read(struct soak_worker *w)
{
	int fd = soak_texts[soak_pick(w, SOAK_TEXTS)];
	uint64_t buffer[WORK_PAGE / 8];

	for (uint32_t i = soak_pick(w, 400); i > 0; i--) {
		uint32_t page = soak_pick(w, SOAK_TEXT_PAGES);

		if (pread(fd, buffer, sizeof(buffer), (off_t)page * WORK_PAGE) != sizeof(buffer))
			soak_fault("cannot read page %u: %s", page, strerror(errno));
		if (buffer[7] != soak_word((uint32_t)(buffer[0] >> 8), 7))
			soak_fault("page %u of a file is %llx", page,
				   (unsigned long long)buffer[7]);
	}
	if (soak_pick(w, 8) == 0)
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* --- Threads of one address space ----------------------------------------------------------------- */

struct acts_racer {
	pthread_t thread;
	unsigned char *start;
	uint32_t pages, first, step, tag;
};

static inline void *acts_race(void *arg)
{
	const struct acts_racer *racer = arg;

	for (uint32_t i = racer->first; i < racer->pages; i += racer->step)
		work_fill_page(racer->start + (size_t)i * WORK_PAGE, racer->tag + i);
	return NULL;
}

/* What lies behind the pages of the others changes all the time, and parts and joins its mapping. */
static inline void *acts_churn(void *arg)
{
	const struct acts_racer *racer = arg;
	unsigned char *p = racer->start + (size_t)racer->pages * WORK_PAGE;

	for (uint32_t i = 0; i < racer->step; i++) {
		p[(i % 16) * WORK_PAGE] = 1;
		mprotect(p, 8 * WORK_PAGE, i % 2 ? PROT_READ | PROT_WRITE : PROT_READ);
		madvise(p, 16 * WORK_PAGE, i % 3 ? MADV_DONTNEED : MADV_FREE);
		mprotect(p, 8 * WORK_PAGE, PROT_READ | PROT_WRITE);
	}
	return NULL;
}

/*
 * Threads write the same fresh memory, each its own pages; in turn, or each a part. None may lose a
 * page to another one's fault.
 */
static inline void act_race(struct soak_worker *w)
{
	struct acts_racer racers[ACTS_THREADS + 1];
	uint32_t pages = 32 + soak_pick(w, 480), tag = soak_new_tag(w), started = 0;
	bool parts = soak_pick(w, 2);
	size_t size = (size_t)(pages + 16) * WORK_PAGE;
	unsigned char *p =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return;
	if (soak_pick(w, 4) == 0)
		madvise(p, size, soak_pick(w, 2) ? MADV_HUGEPAGE : MADV_RANDOM);
	for (uint32_t i = 0; i <= ACTS_THREADS; i++) {
		struct acts_racer *racer = &racers[i];

		*racer = (struct acts_racer){ .start = p, .pages = pages, .tag = tag };
		racer->first = parts ? pages * i / ACTS_THREADS : i;
		racer->step = parts ? 1 : ACTS_THREADS;
		if (parts && i < ACTS_THREADS)
			racer->pages = pages * (i + 1) / ACTS_THREADS;
		if (i == ACTS_THREADS)
			racer->step = 1 + soak_pick(w, 30);
		if (pthread_create(&racer->thread, NULL, i < ACTS_THREADS ? acts_race : acts_churn,
				   racer) != 0)
			break;
		started++;
	}
	for (uint32_t i = 0; i < started; i++)
		pthread_join(racers[i].thread, NULL);
	for (uint32_t i = 0; started > ACTS_THREADS && i < pages; i++)
		if (!work_check_page(p + (size_t)i * WORK_PAGE, tag + i))
			soak_fault(
				"page %u of %u that %s threads wrote is not what they wrote: %llx",
				i, pages, parts ? "far" : "near",
				(unsigned long long)*(uint64_t *)(void *)(p +
									  (size_t)i * WORK_PAGE));
	munmap(p, size);
}

/* --- userfaultfd: what is missing or protected stays so -------------------------------------------- */

struct acts_uffd {
	int fd;
	unsigned char *start;
	uint32_t tag[ACTS_UFFD_PAGES]; /* 0: missing */
	bool zero[ACTS_UFFD_PAGES], protected[ACTS_UFFD_PAGES];
};

/* A descriptor with some features; negative when the kernel doesn't have them. */
static inline int acts_uffd_api(uint64_t features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* False where there is no userfaultfd; without protection where the kernel has none. */
static inline bool acts_uffd_open(struct acts_uffd *u)
{
	struct uffdio_register reg = { .range.len = (uint64_t)ACTS_UFFD_PAGES * WORK_PAGE,
				       .mode = UFFDIO_REGISTER_MODE_MISSING |
					       UFFDIO_REGISTER_MODE_WP };

	memset(u, 0, sizeof(*u));
	u->fd = acts_uffd_api(UFFD_FEATURE_SIGBUS | UFFD_FEATURE_PAGEFAULT_FLAG_WP |
			      UFFD_FEATURE_WP_UNPOPULATED);
	if (u->fd < 0) {
		reg.mode = UFFDIO_REGISTER_MODE_MISSING;
		u->fd = acts_uffd_api(UFFD_FEATURE_SIGBUS);
	}
	if (u->fd < 0)
		return false;
	u->start = mmap(NULL, reg.range.len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	reg.range.start = (uint64_t)(uintptr_t)u->start;
	if (u->start == MAP_FAILED || ioctl(u->fd, UFFDIO_REGISTER, &reg) < 0)
		soak_fault("userfaultfd: %s", strerror(errno));
	return true;
}

static inline void acts_uffd_fill(struct soak_worker *w, struct acts_uffd *u, uint32_t page)
{
	static unsigned char source[WORK_PAGE] __attribute__((aligned(WORK_PAGE)));
	uint64_t at = (uint64_t)(uintptr_t)u->start + (uint64_t)page * WORK_PAGE;
	bool zero = soak_pick(w, 4) == 0;
	uint32_t tag = soak_new_tag(w);
	struct uffdio_copy copy = { .dst = at,
				    .src = (uint64_t)(uintptr_t)source,
				    .len = WORK_PAGE };
	struct uffdio_zeropage zeropage = { .range = { .start = at, .len = WORK_PAGE } };
	int r;

	work_fill_page(source, tag);
	r = zero ? ioctl(u->fd, UFFDIO_ZEROPAGE, &zeropage) : ioctl(u->fd, UFFDIO_COPY, &copy);
	/* What protects a missing page is in the way of a page of zeros. */
	if (r < 0 && errno == EEXIST && !u->tag[page] && !(zero && u->protected[page]))
		soak_fault("userfaultfd: page %u is there, and nobody has put it there", page);
	if (r < 0)
		return;
	if (u->tag[page])
		soak_fault("userfaultfd: page %u was there, and was filled again", page);
	u->tag[page] = tag;
	u->zero[page] = zero;
	u->protected[page] = false;
}

static inline void acts_uffd_protect(struct soak_worker *w, struct acts_uffd *u, uint32_t page)
{
	bool on = soak_pick(w, 2);
	struct uffdio_writeprotect protect = {
		.range = { .start = (uint64_t)(uintptr_t)u->start + (uint64_t)page * WORK_PAGE,
			   .len = WORK_PAGE },
		.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	if (ioctl(u->fd, UFFDIO_WRITEPROTECT, &protect) == 0)
		u->protected[page] = on;
}

/* The signal that touching a page gives; 0 for none. */
__attribute__((noinline)) static int acts_try(unsigned char *p, bool write, uint32_t tag)
{
	int signal = sigsetjmp(soak_on_signal, 0);

	if (signal)
		return signal;
	soak_may_jump = 1;
	if (write)
		work_fill_page(p, tag);
	else
		(void)*(volatile unsigned char *)p;
	soak_may_jump = 0;
	return 0;
}

static inline void acts_uffd_touch(struct soak_worker *w, struct acts_uffd *u, uint32_t page)
{
	static const unsigned char zeros[WORK_PAGE];
	unsigned char *p = u->start + (size_t)page * WORK_PAGE;
	uint32_t tag = soak_new_tag(w);
	bool write = soak_pick(w, 2);
	bool allowed = u->tag[page] && !(write && u->protected[page]);
	int signal = acts_try(p, write, tag);

	if (signal != (allowed ? 0 : SIGBUS))
		soak_fault("userfaultfd: page %u, %s, %s, %s: signal %d", page,
			   u->tag[page] ? "there" : "missing",
			   u->protected[page] ? "protected" : "not protected",
			   write ? "written" : "read", signal);
	if (signal)
		return;
	if (write) {
		u->tag[page] = tag;
		u->zero[page] = false;
	}
	if (u->zero[page] ? memcmp(p, zeros, WORK_PAGE) != 0 : !work_check_page(p, u->tag[page]))
		soak_fault("userfaultfd: page %u has not kept what was written", page);
}

static inline void act_uffd(struct soak_worker *w)
{
	struct acts_uffd u;

	if (!acts_uffd_open(&u))
		return;
	for (uint32_t i = 0; i < 300; i++) {
		/* Mostly in a row, as prediction would have it. */
		uint32_t page =
			soak_pick(w, 3) ? i / 4 % ACTS_UFFD_PAGES : soak_pick(w, ACTS_UFFD_PAGES);

		switch (soak_pick(w, 8)) {
		case 0 ... 2:
			acts_uffd_fill(w, &u, page);
			break;
		case 3:
			acts_uffd_protect(w, &u, page);
			break;
		case 4 ... 6:
			acts_uffd_touch(w, &u, page);
			break;
		default:
			if (soak_pick(w, 4) == 0)
				madvise(u.start, (size_t)ACTS_UFFD_PAGES * WORK_PAGE, MADV_PAGEOUT);
		}
	}
	close(u.fd);
	munmap(u.start, (size_t)ACTS_UFFD_PAGES * WORK_PAGE);
}

/* --- Processes -------------------------------------------------------------------------------------- */

static inline void act_fork(struct soak_worker *w)
{
	pid_t pid;

	if (__atomic_add_fetch(&soak_shared->processes, 1, __ATOMIC_SEQ_CST) > ACTS_MAX_PROCESSES) {
		__atomic_sub_fetch(&soak_shared->processes, 1, __ATOMIC_SEQ_CST);
		return;
	}
	pid = fork();
	if (pid < 0)
		__atomic_sub_fetch(&soak_shared->processes, 1, __ATOMIC_SEQ_CST);
	if (pid != 0)
		return;
	w->random ^= (uint64_t)getpid() << 20;
	w->steps_left = 20 + soak_pick(w, 200);
	/* Reclaim forgets what is droppable, and fork() does. */
	for (uint32_t i = 0; i < SOAK_REGIONS; i++)
		if (w->regions[i].kind == SOAK_DROPPABLE && w->regions[i].start)
			soak_forget(&w->regions[i], 0, w->regions[i].pages, true);
	if (soak_pick(w, 3) == 0) {
		__atomic_sub_fetch(&soak_shared->processes, 1, __ATOMIC_SEQ_CST);
		execl(acts_program, acts_program, "--linger", "300", NULL);
		_exit(1);
	}
}

/**
 * acts_work() - do one act after the other, for ever or until there are no steps left.
 */
__attribute__((noreturn)) static inline void acts_work(struct soak_worker *w)
{
	static void (*const acts[])(struct soak_worker *) = {
		act_map,      act_map,	  act_map,     act_map,	    act_touch,	act_touch,
		act_touch,    act_touch,  act_touch,   act_check,   act_row,	act_row,
		act_row,      act_row,	  act_protect, act_protect, act_unmap,	act_unmap,
		act_move,     act_advise, act_advise,  act_advise,  act_advise, act_lock,
		act_truncate, act_read,	  act_race,    act_race,    act_uffd,	act_fork,
		act_fork,
	};

	for (;;) {
		acts[soak_pick(w, sizeof(acts) / sizeof(acts[0]))](w);
		__atomic_add_fetch(&soak_shared->steps, 1, __ATOMIC_RELAXED);
		if (w->steps_left > 0 && --w->steps_left == 0)
			break;
	}
	__atomic_sub_fetch(&soak_shared->processes, 1, __ATOMIC_SEQ_CST);
	_exit(0);
}

static inline int acts_file(const char *folder, enum soak_kind kind, uint32_t file, uint32_t pages)
{
	uint64_t page[WORK_PAGE / 8];
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/soak-%d-%u", folder, kind, file);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	for (uint32_t i = 0; i < pages; i++) {
		uint32_t tag = soak_file_tag(kind, file, i);

		for (size_t k = 0; k < WORK_PAGE / 8; k++)
			page[k] = kind == SOAK_TEXT ? soak_text_word(tag, k) : soak_word(tag, k);
		if (fd < 0 || write(fd, page, sizeof(page)) != sizeof(page))
			work_die("%s: %s", path, strerror(errno));
	}
	fsync(fd);
	if (kind != SOAK_TEXT)
		return fd;
	/* Huge pages of a file are for files that nobody can write. */
	close(fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		work_die("%s: %s", path, strerror(errno));
	return fd;
}

/**
 * acts_prepare() - make the files in @folder, and what all processes share.
 */
static inline void acts_prepare(const char *folder)
{
	snprintf(acts_program, sizeof(acts_program), "%s/soak", folder);
	soak_shared = mmap(NULL, sizeof(*soak_shared), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (soak_shared == MAP_FAILED)
		work_die("no shared memory");
	for (uint32_t i = 0; i < SOAK_TEXTS; i++)
		soak_texts[i] = acts_file(folder, SOAK_TEXT, i, SOAK_TEXT_PAGES);
	for (uint32_t i = 0; i < SOAK_SCRATCHES; i++)
		soak_scratches[i] = acts_file(folder, SOAK_SCRATCH, i, SOAK_SCRATCH_PAGES);
}

#endif
