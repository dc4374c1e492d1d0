/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All of /proc/vmstat at one time, and what changed between two times: the numbers of a workload's
 * result. Nothing is allocated, so that reading it disturbs little; the tables (12 KiB each) belong
 * to the caller. Per-CPU counters are folded first, which takes root. From any thread.
 */
#ifndef BALLAST_VMSTAT_H
#define BALLAST_VMSTAT_H

#include "tests/workloads/work.h"

#define VMSTAT_ROWS 288

struct vmstat_row {
	char key[40];
	uint64_t value;
};

struct vmstat {
	size_t n;
	struct vmstat_row rows[VMSTAT_ROWS];
};

static inline void vmstat_refresh(void)
{
	int fd = open("/proc/sys/vm/stat_refresh", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "1", 1) != 1)
		work_die("/proc/sys/vm/stat_refresh: %s", strerror(errno));
	close(fd);
}

/* A line "key value"; what isn't one, or has no place, ends the program. */
static inline void vmstat_line(struct vmstat *stat, const char *line)
{
	const char *space = strchr(line, ' ');
	struct vmstat_row *row = &stat->rows[stat->n];

	if (!space || stat->n == VMSTAT_ROWS || (size_t)(space - line) >= sizeof(row->key))
		work_die("/proc/vmstat: no place for '%s'", line);
	memcpy(row->key, line, (size_t)(space - line));
	row->key[space - line] = '\0';
	row->value = strtoull(space + 1, NULL, 10);
	stat->n++;
}

/**
 * vmstat_read() - read it all, with the per-CPU counters folded.
 */
static inline void vmstat_read(struct vmstat *ret)
{
	char text[16384], *save = NULL;
	size_t size = 0;
	ssize_t got;
	int fd;

	vmstat_refresh();
	fd = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		work_die("/proc/vmstat: %s", strerror(errno));
	while (size < sizeof(text) - 1 &&
	       (got = read(fd, text + size, sizeof(text) - 1 - size)) > 0)
		size += (size_t)got;
	close(fd);
	text[size] = '\0';
	ret->n = 0;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		vmstat_line(ret, line);
}

/**
 * vmstat_find() - the value of a key; false when this kernel doesn't have it.
 */
static inline bool vmstat_find(const struct vmstat *stat, const char *key, uint64_t *ret_value)
{
	for (size_t i = 0; i < stat->n; i++)
		if (strcmp(stat->rows[i].key, key) == 0) {
			*ret_value = stat->rows[i].value;
			return true;
		}
	return false;
}

/* The value of a key that every kernel has, or that the workload is about. */
static inline uint64_t vmstat_get(const struct vmstat *stat, const char *key)
{
	uint64_t value;

	if (!vmstat_find(stat, key, &value))
		work_die("/proc/vmstat has no %s: is this the patched kernel?", key);
	return value;
}

/**
 * vmstat_diff() - how much a key has grown; gauges (nr_...) shrink, too.
 */
static inline int64_t vmstat_diff(const struct vmstat *before, const struct vmstat *after,
				  const char *key)
{
	return (int64_t)(vmstat_get(after, key) - vmstat_get(before, key));
}

/**
 * vmstat_text() - the differences of some keys as " key=value key=value", for a line of results.
 * @before: NULL for the values themselves, as they are afterwards
 * @keys: separated by spaces; "name=key" prints another name; a key that this kernel doesn't have
 *	is left out, since absent isn't zero
 * @size: of @ret; text that has no place ends the program
 *
 * Returns @ret.
 */
static inline const char *vmstat_text(const struct vmstat *before, const struct vmstat *after,
				      const char *keys, char *ret, size_t size)
{
	char word[80];
	size_t at = 0;
	int used = 0;

	ret[0] = '\0';
	for (; sscanf(keys, "%79s%n", word, &used) == 1; keys += used) {
		char *equal = strchr(word, '=');
		const char *key = equal ? equal + 1 : word;
		uint64_t was = 0, is;

		if ((before && !vmstat_find(before, key, &was)) || !vmstat_find(after, key, &is))
			continue;
		if (equal)
			*equal = '\0';
		at += (size_t)snprintf(ret + at, size - at, " %s=%lld", word,
				       (long long)(is - was));
		if (at >= size)
			work_die("no place for the changes of /proc/vmstat");
	}
	return ret;
}

#endif
