/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What happens to memory behind the backs of those who use it: reclaim, compaction, a change of the
 * LRU, and the kernel's levers set to anything, mostly their strongest. And a watch over some pages
 * of text, which tells migration from all the rest: a page that is mapped still, and has another
 * frame, has been moved. For programs with one thread, run by root.
 */
#ifndef BALLAST_DISTURB_H
#define BALLAST_DISTURB_H

#include "tests/workloads/gauges.h"

struct disturb_lever {
	const char *path;
	uint32_t strongest; /* 0 … this */
};

static const struct disturb_lever disturb_levers[] = {
	{ "/proc/sys/vm/exec_protect", 3 },
	{ "/proc/sys/vm/lazyfree_first", 2 },
	{ "/proc/sys/vm/anon_prefault_max_order", 4 },
	{ "/proc/sys/vm/madvise_free_swap", 1 },
};

enum { DISTURB_LEVERS = sizeof(disturb_levers) / sizeof(disturb_levers[0]) };

/* What was done so far; the caller sets it to zero, and random to a seed. */
struct disturb {
	uint64_t random;
	uint32_t lru, compact, lever, reclaim;
};

static inline uint32_t disturb_pick(struct disturb *d, uint32_t n)
{
	return (uint32_t)(work_random(&d->random) >> 16) % n;
}

/* One of the levers that this kernel has, every second time to its strongest; false without any. */
static inline bool disturb_lever(struct disturb *d)
{
	uint32_t first = disturb_pick(d, DISTURB_LEVERS);
	char value[12];

	for (uint32_t i = 0; i < DISTURB_LEVERS; i++) {
		const struct disturb_lever *l = &disturb_levers[(first + i) % DISTURB_LEVERS];

		snprintf(value, sizeof(value), "%u",
			 disturb_pick(d, 2) ? l->strongest : disturb_pick(d, l->strongest + 1));
		if (gauges_write(l->path, value) >= 0)
			return true;
	}
	return false;
}

static inline int disturb_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Hold a part of the free memory for a while, but only its upper half: others get the lower. */
static inline void disturb_hold_upper(uint64_t size)
{
	uint64_t n = size / WORK_PAGE, *frames = (uint64_t *)(void *)work_map(2 * n * 8), middle;
	unsigned char *p = work_map(size);
	int fd = gauges_open("/proc/self/pagemap");

	for (uint64_t i = 0; i < n; i++)
		p[i * WORK_PAGE] = 1;
	if (pread(fd, frames, n * 8, (off_t)((uintptr_t)p / WORK_PAGE * 8)) != (ssize_t)(n * 8))
		work_die("pagemap: %s", strerror(errno));
	close(fd);
	for (uint64_t i = 0; i < n; i++)
		frames[n + i] = frames[i] &= GAUGES_PFN_MASK;
	qsort(frames + n, n, sizeof(frames[0]), disturb_compare);
	middle = frames[n + n / 2];
	for (uint64_t i = 0; i < n; i++)
		if (frames[i] < middle)
			madvise(p + i * WORK_PAGE, WORK_PAGE, MADV_DONTNEED);
	usleep(200000);
	munmap(p, size);
	munmap(frames, 2 * n * 8);
}

/*
 * Compaction moves pages from low to high addresses, and finds little to do in a guest whose memory
 * is mostly free. So see to it that some pages are low, and that there is room above.
 */
static inline void disturb_compact(struct disturb *d)
{
	uint64_t kib;

	if (gauges_line("/proc/meminfo", "MemFree", &kib) && kib > 32768)
		disturb_hold_upper((kib - 16384) / 4 * 4096);
	gauges_set("/proc/sys/vm/compact_memory", "1");
	d->compact++;
}

/**
 * disturb_once() - do one of these, and rest for up to a tenth of a second.
 */
static inline void disturb_once(struct disturb *d)
{
	static const char *const amounts[] = { "2M", "6M", "12M", "20M swappiness=0" };

	switch (disturb_pick(d, 6)) {
	case 0:
		gauges_set("/sys/kernel/mm/lru_gen/enabled", disturb_pick(d, 2) ? "7" : "0");
		d->lru++;
		break;
	case 1:
		disturb_compact(d);
		break;
	case 2:
		d->lever += disturb_lever(d);
		break;
	default:
		/* It says EAGAIN when there was less. */
		gauges_write("/sys/fs/cgroup/memory.reclaim", amounts[disturb_pick(d, 4)]);
		d->reclaim++;
	}
	usleep(disturb_pick(d, 100000));
}

/* --- Text that is watched ------------------------------------------------------------------------- */

enum { WATCH_PAGES = 256 };

struct watch {
	unsigned char *text;
	int pagemap;
	uint64_t frames[WATCH_PAGES]; /* 0: unknown */
	uint64_t moved;
};

static inline uint64_t watch_frame(const struct watch *w, uint32_t i)
{
	uint64_t entry, page = (uintptr_t)w->text / WORK_PAGE + i;

	if (pread(w->pagemap, &entry, sizeof(entry), (off_t)(page * 8)) != sizeof(entry))
		work_die("pagemap: %s", strerror(errno));
	return entry & GAUGES_PRESENT ? entry & GAUGES_PFN_MASK : 0;
}

/**
 * watch_look() - add the pages that have moved since the last call, and bring back the missing ones.
 */
static inline void watch_look(struct watch *w)
{
	/* First look at all: a fault maps the pages around it, too. */
	for (uint32_t i = 0; i < WATCH_PAGES; i++) {
		uint64_t frame = watch_frame(w, i);

		w->moved += frame && w->frames[i] && frame != w->frames[i];
	}
	for (uint32_t i = 0; i < WATCH_PAGES; i++)
		(void)*(volatile unsigned char *)(w->text + (size_t)i * WORK_PAGE);
	for (uint32_t i = 0; i < WATCH_PAGES; i++)
		w->frames[i] = watch_frame(w, i);
}

/* Map the beginning of a file executable; its pages are there when this returns. */
static inline void watch_start(struct watch *w, int fd)
{
	memset(w, 0, sizeof(*w));
	w->text = mmap(NULL, WATCH_PAGES * WORK_PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (w->text == MAP_FAILED)
		work_die("mmap: %s", strerror(errno));
	w->pagemap = gauges_open("/proc/self/pagemap");
	watch_look(w);
}

static inline void watch_end(struct watch *w)
{
	munmap(w->text, WATCH_PAGES * WORK_PAGE);
	close(w->pagemap);
}

#endif
