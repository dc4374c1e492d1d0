/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory of the soak's workers that is known page by page: what each page must hold, and what may be
 * done with it. A page keeps what was written to it, unless it was given up; then it may hold what
 * it had before it was written, too. Each process has its own table, in memory that is reclaimed
 * and forked like all the rest. For single-threaded processes.
 */
#ifndef BALLAST_SOAK_H
#define BALLAST_SOAK_H

#include "tests/workloads/work.h"

#include <setjmp.h>
#include <signal.h>

#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE 0x08
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum {
	SOAK_TEXTS = 4, /* files that are only read */
	SOAK_TEXT_PAGES = 2048,
	SOAK_SCRATCHES = 2, /* files that are written and truncated while mapped */
	SOAK_SCRATCH_PAGES = 1536,
	SOAK_REGIONS = 10, /* of a process */
	SOAK_REGION_PAGES = 1100, /* at most: room for a huge page */
};

enum soak_kind {
	SOAK_ANON,
	SOAK_DROPPABLE, /* anonymous memory that reclaim may take at any time */
	SOAK_TEXT, /* a private mapping of a file */
	SOAK_SCRATCH, /* a shared mapping of a file */
	SOAK_SHMEM, /* shared with all children */
};

/* What is known of a page. */
struct soak_page {
	uint32_t tag; /* written to it last, 0 for nothing */
	uint8_t prot;
	bool given_up; /* it may be as if nothing had been written */
	bool hole; /* unmapped */
};

struct soak_region {
	unsigned char *start; /* NULL: no region */
	uint32_t pages;
	enum soak_kind kind;
	uint32_t file, from; /* of what it is a mapping, and the first page there */
	struct soak_page page[SOAK_REGION_PAGES];
};

/* Shared by all processes. */
struct soak_shared {
	uint64_t steps, executed, faults;
	uint64_t caged[4]; /* pages executed in each memory cgroup */
	int processes;
};

struct soak_worker {
	struct soak_region regions[SOAK_REGIONS];
	uint64_t random;
	uint32_t next_tag;
	uint32_t steps_left; /* 0: for ever */
};

static struct soak_shared *soak_shared;
static int soak_texts[SOAK_TEXTS], soak_scratches[SOAK_SCRATCHES];
static sigjmp_buf soak_on_signal;
static volatile sig_atomic_t soak_may_jump;

static inline uint32_t soak_pick(struct soak_worker *w, uint32_t n)
{
	return (uint32_t)(work_random(&w->random) >> 16) % n;
}

/* Something is not as it must be: the soak has found a fault. */
__attribute__((format(printf, 1, 2), noreturn)) static inline void soak_fault(const char *format,
									      ...)
{
	char why[300];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	__atomic_add_fetch(&soak_shared->faults, 1, __ATOMIC_SEQ_CST);
	work_say("not ok soak-contents - process %d: %s", (int)getpid(), why);
	_exit(3);
}

/* --- Contents ------------------------------------------------------------------------------------ */

/* The tag of a page of a file; none of the tags of soak_new_tag(). */
static inline uint32_t soak_file_tag(enum soak_kind kind, uint32_t file, uint32_t page)
{
	return UINT32_C(1) << 31 | (uint32_t)kind << 24 | file << 16 | page;
}

static inline uint32_t soak_new_tag(struct soak_worker *w)
{
	w->next_tag = (w->next_tag + 1) & ~(UINT32_C(1) << 31);
	return w->next_tag ? w->next_tag : soak_new_tag(w);
}

static inline uint64_t soak_word(uint32_t tag, size_t i)
{
	return (tag + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15) ^ i;
}

/* A page of text begins with a function that returns the page's tag: mov $tag,%eax; ret. */
static inline uint64_t soak_code(uint32_t tag)
{
	return UINT64_C(0xb8) | (uint64_t)tag << 8 | UINT64_C(0xc3) << 40;
}

static inline uint64_t soak_text_word(uint32_t tag, size_t i)
{
	return i == 0 ? soak_code(tag) : soak_word(tag, i);
}

/* What a word of the page is before anything is written. */
static inline uint64_t soak_base(const struct soak_region *r, uint32_t page, size_t i)
{
	if (r->kind == SOAK_TEXT)
		return soak_text_word(soak_file_tag(SOAK_TEXT, r->file, r->from + page), i);
	return 0;
}

static inline bool soak_is_shared(const struct soak_region *r)
{
	return r->kind == SOAK_SCRATCH || r->kind == SOAK_SHMEM;
}

/* What is written to a page: shared memory gets the same from everybody. */
static inline uint32_t soak_tag_for(struct soak_worker *w, const struct soak_region *r,
				    uint32_t page)
{
	return soak_is_shared(r) ? soak_file_tag(r->kind, r->file, r->from + page)
				 : soak_new_tag(w);
}

/* Whether a page is as it must be. *ret_at is the word that isn't. */
static inline bool soak_holds(const struct soak_region *r, uint32_t page, size_t *ret_at)
{
	const struct soak_page *state = &r->page[page];
	const volatile uint64_t *word =
		(const volatile uint64_t *)(void *)(r->start + (size_t)page * WORK_PAGE);
	bool shared = soak_is_shared(r);
	uint32_t tag = shared ? soak_file_tag(r->kind, r->file, r->from + page) : state->tag;
	bool may_be_base = shared || state->given_up || !tag;

	for (size_t i = 0; i < WORK_PAGE / sizeof(*word); i++) {
		uint64_t value = word[i];

		if ((!tag || value != soak_word(tag, i)) &&
		    (!may_be_base || value != soak_base(r, page, i))) {
			*ret_at = i;
			return false;
		}
	}
	return true;
}

/* Read a page, and execute it if it is text that nobody has written to. */
static inline void soak_check_page(struct soak_region *r, uint32_t page)
{
	struct soak_page *state = &r->page[page];
	unsigned char *p = r->start + (size_t)page * WORK_PAGE;
	uint32_t (*function)(void);
	uint32_t tag;
	size_t at = 0;

	if (state->hole || !(state->prot & PROT_READ))
		return;
	if (!soak_holds(r, page, &at))
		soak_fault("kind %d, page %u of %u, prot %d%s: word %zu is %llx, written was %x, "
			   "file %u from %u",
			   r->kind, page, r->pages, state->prot,
			   state->given_up ? ", given up" : "", at,
			   (unsigned long long)((uint64_t *)(void *)p)[at], state->tag, r->file,
			   r->from);
	if (r->kind != SOAK_TEXT || state->tag || !(state->prot & PROT_EXEC))
		return;
	memcpy(&function, &p, sizeof(p));
	tag = function();
	if (tag != soak_file_tag(SOAK_TEXT, r->file, r->from + page))
		soak_fault("page %u of text %u returned %x", r->from + page, r->file, tag);
	__atomic_add_fetch(&soak_shared->executed, 1, __ATOMIC_RELAXED);
}

static inline void soak_write_page(struct soak_worker *w, struct soak_region *r, uint32_t page)
{
	struct soak_page *state = &r->page[page];
	volatile uint64_t *word =
		(volatile uint64_t *)(void *)(r->start + (size_t)page * WORK_PAGE);
	uint32_t tag;

	if (state->hole || !(state->prot & PROT_WRITE))
		return;
	tag = soak_tag_for(w, r, page);
	for (size_t i = 0; i < WORK_PAGE / sizeof(*word); i++)
		word[i] = soak_word(tag, i);
	state->tag = tag;
	state->given_up = r->kind == SOAK_DROPPABLE;
}

/*
 * Check a page, or write to it; false when there was nothing to be touched, which only the shared
 * mapping of a file that was truncated may be.
 */
__attribute__((noinline)) static bool soak_touch(struct soak_worker *w, struct soak_region *r,
						 uint32_t page, bool write)
{
	int signal = sigsetjmp(soak_on_signal, 0);

	if (signal == 0) {
		soak_may_jump = 1;
		if (write)
			soak_write_page(w, r, page);
		else
			soak_check_page(r, page);
		soak_may_jump = 0;
		return true;
	}
	if (signal != SIGBUS || r->kind != SOAK_SCRATCH)
		soak_fault("signal %d for page %u of %u, kind %d, prot %d, %s", signal, page,
			   r->pages, r->kind, r->page[page].prot, write ? "written" : "read");
	return false;
}

static inline void soak_signal(int signal)
{
	if (!soak_may_jump)
		soak_fault("signal %d out of the blue", signal);
	soak_may_jump = 0;
	siglongjmp(soak_on_signal, signal);
}

static inline void soak_catch_signals(void)
{
	struct sigaction action = { .sa_handler = soak_signal, .sa_flags = SA_NODEFER };

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGILL, &action, NULL);
}

/* --- Regions ------------------------------------------------------------------------------------- */

static inline struct soak_region *soak_region(struct soak_worker *w)
{
	struct soak_region *r = &w->regions[soak_pick(w, SOAK_REGIONS)];

	return r->start ? r : NULL;
}

static inline int soak_pick_prot(struct soak_worker *w, enum soak_kind kind)
{
	static const int text[] = { PROT_READ | PROT_EXEC,
				    PROT_READ | PROT_EXEC,
				    PROT_READ,
				    PROT_READ,
				    PROT_READ | PROT_WRITE | PROT_EXEC,
				    PROT_READ | PROT_WRITE };
	static const int data[] = { PROT_READ | PROT_WRITE,
				    PROT_READ | PROT_WRITE,
				    PROT_READ | PROT_WRITE,
				    PROT_READ | PROT_WRITE | PROT_EXEC,
				    PROT_READ,
				    PROT_NONE };

	return kind == SOAK_TEXT || kind == SOAK_SCRATCH ? text[soak_pick(w, 6)]
							 : data[soak_pick(w, 6)];
}

/* A part of a region, at least one page. */
static inline uint32_t soak_part(struct soak_worker *w, const struct soak_region *r,
				 uint32_t *ret_first)
{
	*ret_first = soak_pick(w, r->pages);
	return 1 + soak_pick(w, r->pages - *ret_first);
}

static inline void soak_drop(struct soak_region *r)
{
	if (r->start)
		munmap(r->start, (size_t)r->pages * WORK_PAGE);
	r->start = NULL;
}

/* Put a new region in the place of an old one. */
static inline void soak_map(struct soak_worker *w, struct soak_region *r, enum soak_kind kind,
			    int prot)
{
	int flags = MAP_PRIVATE, fd = -1;
	void *p;

	soak_drop(r);
	r->kind = kind;
	r->pages = soak_pick(w, 4) ? 1 + soak_pick(w, SOAK_REGION_PAGES) : SOAK_REGION_PAGES;
	r->file = r->from = 0;
	switch (kind) {
	case SOAK_ANON:
		flags |= MAP_ANONYMOUS;
		break;
	case SOAK_DROPPABLE:
		flags = MAP_DROPPABLE | MAP_ANONYMOUS;
		break;
	case SOAK_SHMEM:
		flags = MAP_SHARED | MAP_ANONYMOUS;
		break;
	case SOAK_TEXT:
		r->file = soak_pick(w, SOAK_TEXTS);
		/* Much of it is mapped by several, some with and some without execute permission. */
		r->from = soak_pick(w, 2) * soak_pick(w, SOAK_TEXT_PAGES - SOAK_REGION_PAGES);
		fd = soak_texts[r->file];
		break;
	case SOAK_SCRATCH:
		flags = MAP_SHARED;
		r->file = soak_pick(w, SOAK_SCRATCHES);
		r->from = soak_pick(w, SOAK_SCRATCH_PAGES - SOAK_REGION_PAGES);
		fd = soak_scratches[r->file];
		break;
	}
	p = mmap(NULL, (size_t)r->pages * WORK_PAGE, prot, flags, fd, (off_t)r->from * WORK_PAGE);
	if (p == MAP_FAILED)
		return;
	r->start = p;
	for (uint32_t i = 0; i < r->pages; i++)
		r->page[i] = (struct soak_page){ .prot = (uint8_t)prot };
}

/* The pages have been given up; @surely: they are as new. */
static inline void soak_forget(struct soak_region *r, uint32_t first, uint32_t n, bool surely)
{
	for (uint32_t i = first; i < first + n; i++) {
		if (soak_is_shared(r))
			continue;
		if (surely)
			r->page[i].tag = 0;
		r->page[i].given_up = true;
	}
}

#endif
