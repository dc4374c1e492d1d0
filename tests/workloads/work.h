/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the workloads of the lab's guests share: options, a seeded generator, the clock, memory that
 * can be checked, and lines for the host. A workload prints "ready" once when its memory is in
 * place, and then a line of "NAME key=value ..." for each round. Everything here is for programs
 * with one thread.
 */
#ifndef BALLAST_WORK_H
#define BALLAST_WORK_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define WORK_PAGE 4096u
#define WORK_MIB  (UINT64_C(1) << 20)

/* A number that the command line may set: "--name value". */
struct work_option {
	const char *name;
	uint64_t value;
};

__attribute__((format(printf, 1, 2))) static inline void work_die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

/**
 * work_options() - read "--name number" pairs into a table, and at most one word into *ret_word.
 */
static inline void work_options(int argc, char **argv, struct work_option *options, size_t n,
				const char **ret_word)
{
	for (int i = 1; i < argc; i++) {
		size_t k;

		if (argv[i][0] != '-' && ret_word) {
			*ret_word = argv[i];
			continue;
		}
		for (k = 0; k < n; k++)
			if (strcmp(argv[i], options[k].name) == 0)
				break;
		if (k == n || i + 1 == argc)
			work_die("%s: what is '%s'?", argv[0], argv[i]);
		options[k].value = strtoull(argv[++i], NULL, 10);
	}
}

static inline uint64_t work_now_usec(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* Sleep until the given time of work_now_usec(); returns at once when it is over. */
static inline void work_sleep_until(uint64_t usec)
{
	struct timespec ts = { .tv_sec = (time_t)(usec / 1000000),
			       .tv_nsec = (long)(usec % 1000000 * 1000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

static inline uint64_t work_cpu_usec(const struct rusage *usage)
{
	return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

/* xorshift64*: seeded, so that two runs do the same. */
static inline uint64_t work_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

/* A random permutation of 0 … n-1. */
static inline void work_shuffle(uint32_t *order, uint32_t n, uint64_t *state)
{
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	for (uint32_t i = n; i > 1; i--) {
		uint32_t k = (uint32_t)(work_random(state) % i), other = order[k];

		order[k] = order[i - 1];
		order[i - 1] = other;
	}
}

static inline unsigned char *work_map(uint64_t size)
{
	void *p = mmap(NULL, size ? size : WORK_PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		work_die("no %llu bytes: %s", (unsigned long long)size, strerror(errno));
	return p;
}

/* The beginning of a file; @prot and @flags are those of mmap(). */
static inline unsigned char *work_map_file(const char *path, uint64_t size, int prot, int flags)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *p;

	if (fd < 0)
		work_die("%s: %s", path, strerror(errno));
	p = mmap(NULL, size, prot, flags, fd, 0);
	if (p == MAP_FAILED)
		work_die("%s: %s", path, strerror(errno));
	close(fd);
	return p;
}

/* Fill a page so that it is neither zero nor equal to another one, and can be checked. */
static inline void work_fill_page(unsigned char *page, uint64_t tag)
{
	uint64_t *word = (uint64_t *)(void *)page;

	for (size_t i = 0; i < WORK_PAGE / sizeof(*word); i++)
		word[i] = (tag + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ i;
}

static inline bool work_check_page(const unsigned char *page, uint64_t tag)
{
	const uint64_t *word = (const uint64_t *)(const void *)page;

	for (size_t i = 0; i < WORK_PAGE / sizeof(*word); i++)
		if (word[i] != ((tag + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ i))
			return false;
	return true;
}

/* Memory with contents that nobody looks at again. */
static inline unsigned char *work_cold_anon(uint64_t size, uint64_t seed)
{
	unsigned char *p = work_map(size);

	for (uint64_t at = 0; at < size; at += WORK_PAGE)
		work_fill_page(p + at, seed + at);
	return p;
}

/**
 * work_read_file() - read a part of a file once, so that it is in the page cache.
 */
static inline void work_read_file(const char *path, uint64_t from, uint64_t size)
{
	static unsigned char buffer[65536];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		work_die("%s: %s", path, strerror(errno));
	for (uint64_t at = 0; at < size;) {
		ssize_t n = pread(fd, buffer, sizeof(buffer), (off_t)(from + at));

		if (n <= 0)
			work_die("%s: ends before %llu MiB", path,
				 (unsigned long long)((from + size) / WORK_MIB));
		at += (uint64_t)n;
	}
	close(fd);
}

/* One line for the host, in one write, so that lines of several processes don't mix. */
__attribute__((format(printf, 1, 2))) static inline void work_say(const char *format, ...)
{
	char line[1024];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	if (n < 0)
		return;
	if ((size_t)n > sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	for (int at = 0; at < n;) {
		ssize_t k = write(STDOUT_FILENO, line + at, (size_t)(n - at));

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return;
		at += (int)k;
	}
}

#endif
