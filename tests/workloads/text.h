/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Large text that can be made: a file of which each page is a function of its own with an answer of
 * its own, so that it can be called page by page and checked. The mapping belongs to the caller.
 */
#ifndef BALLAST_TEXT_H
#define BALLAST_TEXT_H

#include "tests/workloads/work.h"

#ifndef __x86_64__
#error "the text is x86-64 code"
#endif

#define TEXT_LOOPS 1000

typedef uint32_t text_function(void);

/*
 * mov $TEXT_LOOPS, %ecx; 1: dec %ecx; jnz 1b; mov $answer, %eax; ret: some work, so that a round
 * takes longer than the noise of the clock.
 */
static const unsigned char text_code[] = { 0xb9, 0,    0, 0, 0, 0xff, 0xc9, 0x75,
					   0xfc, 0xb8, 0, 0, 0, 0,    0xc3 };
#define TEXT_LOOPS_AT  1
#define TEXT_ANSWER_AT 10

static inline uint32_t text_answer(uint32_t page)
{
	return page * UINT32_C(2654435761) ^ UINT32_C(0xba11a57);
}

/* The rest of the page is noise that nothing can merge. */
static inline void text_make_page(unsigned char *page, uint32_t number)
{
	const uint32_t answer = text_answer(number), loops = TEXT_LOOPS;

	work_fill_page(page, number);
	memcpy(page, text_code, sizeof(text_code));
	memcpy(page + TEXT_LOOPS_AT, &loops, sizeof(loops));
	memcpy(page + TEXT_ANSWER_AT, &answer, sizeof(answer));
}

/**
 * text_write() - write functions to an open file, a page each.
 * @first: number of the first one, which makes its answer; @n: how many
 */
static inline void text_write(FILE *file, const char *path, uint32_t first, uint32_t n)
{
	unsigned char page[WORK_PAGE] __attribute__((aligned(8)));

	for (uint32_t i = 0; i < n; i++) {
		text_make_page(page, first + i);
		if (fwrite(page, sizeof(page), 1, file) != 1)
			work_die("%s: %s", path, strerror(errno));
	}
}

/**
 * text_generate() - write the file.
 * @size: in bytes, whole pages
 */
static inline void text_generate(const char *path, uint64_t size)
{
	FILE *file = fopen(path, "we");

	if (!file)
		work_die("%s: %s", path, strerror(errno));
	text_write(file, path, 0, (uint32_t)(size / WORK_PAGE));
	if (fclose(file) != 0)
		work_die("%s: %s", path, strerror(errno));
}

/* Not MADV_RANDOM: the kernel ignores the accesses to such a mapping when it ages pages. */
static inline unsigned char *text_map(const char *path, uint64_t size, int prot)
{
	return work_map_file(path, size, prot, MAP_PRIVATE);
}

/* Call the function in a page; its mapping must be PROT_EXEC. */
static inline uint32_t text_call(const unsigned char *text, uint32_t page)
{
	const void *at = text + (size_t)page * WORK_PAGE;
	text_function *function;

	memcpy(&function, &at, sizeof(function));
	return function();
}

/* Read what the function would answer. */
static inline uint32_t text_read(const unsigned char *text, uint32_t page)
{
	uint32_t answer;

	memcpy(&answer, text + (size_t)page * WORK_PAGE + TEXT_ANSWER_AT, sizeof(answer));
	return answer;
}

/**
 * text_lost() - how many pages of a mapping are no longer in the page cache.
 * @vector: room for @pages bytes
 */
static inline uint32_t text_lost(unsigned char *text, uint32_t pages, unsigned char *vector)
{
	uint32_t lost = 0;

	if (mincore(text, (size_t)pages * WORK_PAGE, vector) < 0)
		work_die("mincore: %s", strerror(errno));
	for (uint32_t i = 0; i < pages; i++)
		lost += !(vector[i] & 1);
	return lost;
}

#endif
