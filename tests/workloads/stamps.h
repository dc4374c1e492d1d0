/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Anonymous memory of which it is known what each page must hold: what was written last, or zeros
 * where nothing was since it was mapped or given up. Pages that belong to nobody else may be used
 * by several threads at once, each its own ones. The caller owns the area for the life of its
 * program.
 */
#ifndef BALLAST_STAMPS_H
#define BALLAST_STAMPS_H

#include "tests/workloads/work.h"

enum { STAMPS_WORDS = WORK_PAGE / sizeof(uint64_t), STAMPS_STRIDE = 64 };

struct stamps {
	unsigned char *base; /* begins with a page table of its own, as many pages as below */
	uint32_t pages;
	uint32_t *stamp; /* of each page, 0: it holds zeros */
	uint64_t random;
};

static inline uint64_t *stamps_page(const struct stamps *area, uint32_t page)
{
	return (uint64_t *)(void *)(area->base + (size_t)page * WORK_PAGE);
}

static inline uint32_t stamps_pick(uint64_t *random, uint32_t n)
{
	return (uint32_t)(work_random(random) >> 16) % n;
}

/* @align: of the address in bytes, a power of two */
static inline void stamps_map(struct stamps *ret, uint32_t pages, uint64_t align)
{
	uint64_t size = (uint64_t)pages * WORK_PAGE;
	uintptr_t at = (uintptr_t)work_map(size + align);

	at = (at + align - 1) & ~(uintptr_t)(align - 1);
	memcpy(&ret->base, &at, sizeof(at));
	ret->pages = pages;
	ret->stamp = calloc(pages, sizeof(*ret->stamp));
	if (!ret->stamp)
		work_die("no memory");
}

static inline uint64_t stamps_word(uint32_t page, uint32_t stamp)
{
	return stamp ? ((uint64_t)stamp << 32 | (page + 1)) * UINT64_C(0x9e3779b97f4a7c15) : 0;
}

static inline void stamps_write(struct stamps *area, uint32_t page, uint32_t stamp)
{
	uint64_t *word = stamps_page(area, page);

	for (size_t i = 0; i < STAMPS_WORDS; i += STAMPS_STRIDE)
		word[i] = stamps_word(page, stamp);
	area->stamp[page] = stamp;
}

static inline bool stamps_right(const struct stamps *area, uint32_t page)
{
	const volatile uint64_t *word = stamps_page(area, page);

	for (size_t i = 0; i < STAMPS_WORDS; i += STAMPS_STRIDE)
		if (word[i] != stamps_word(page, area->stamp[page]))
			return false;
	return true;
}

static inline uint32_t stamps_count_wrong(const struct stamps *area, uint32_t first, uint32_t n)
{
	uint32_t wrong = 0;

	for (uint32_t i = first; i < first + n; i++)
		wrong += !stamps_right(area, i);
	return wrong;
}

static inline void stamps_advise(struct stamps *area, uint32_t first, uint32_t n, int advice)
{
	if (madvise(stamps_page(area, first), (size_t)n * WORK_PAGE, advice) < 0)
		work_die("madvise(%d): %s", advice, strerror(errno));
}

/* Give pages back: they hold zeros. */
static inline void stamps_drop(struct stamps *area, uint32_t first, uint32_t n)
{
	stamps_advise(area, first, n, MADV_DONTNEED);
	memset(area->stamp + first, 0, n * sizeof(*area->stamp));
}

/* How many of the pages are in memory. */
static inline uint32_t stamps_resident(const struct stamps *area, uint32_t first, uint32_t n)
{
	unsigned char is_there[4096];
	uint32_t there = 0;

	if (n > sizeof(is_there) ||
	    mincore(stamps_page(area, first), (size_t)n * WORK_PAGE, is_there) < 0)
		work_die("mincore: %s", strerror(errno));
	for (uint32_t i = 0; i < n; i++)
		there += is_there[i] & 1;
	return there;
}

#endif
