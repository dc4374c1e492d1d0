// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest-agent/procfs.h"

#include <errno.h>
#include <string.h>

#include "guest-agent/util.h"

/* What an extra is called, and in which file. */
static const struct {
	enum stat_source source;
	const char *key;
} extras[EXTRA_MAX] = {
	[EXTRA_CACHED] = { STAT_SOURCE_MEMINFO, "Cached" },
	[EXTRA_BUFFERS] = { STAT_SOURCE_MEMINFO, "Buffers" },
	[EXTRA_ANON_PAGES] = { STAT_SOURCE_MEMINFO, "AnonPages" },
};

/* A whole line "KEY[:] NUMBER [kB]". */
struct line {
	const char *key;
	size_t key_len;
	uint64_t value;
	bool kib;
};

static bool key_is(const struct line *line, const char *key)
{
	return *key == *line->key && strncmp(line->key, key, line->key_len) == 0 &&
	       key[line->key_len] == '\0';
}

/* Read the line at *p and move *p behind it. False at the end; a line without end is none. */
static bool next_line(const char **p, struct line *line)
{
	for (const char *end; (end = strchr(*p, '\n')); *p = end + 1) {
		const char *s = *p + strcspn(*p, ": \n");

		*line = (struct line){ .key = *p, .key_len = (size_t)(s - *p) };
		s += strspn(s, ": \t");
		if (s >= end || line->key_len == 0 || !take_number(&s, &line->value))
			continue;
		line->kib = strncmp(s, " kB\n", 4) == 0;
		if (!line->kib && *s != '\n')
			continue;
		*p = end + 1;
		return true;
	}
	return false;
}

static void put_extra(struct numbers *numbers, enum extra_id id, uint64_t value)
{
	numbers->extra[id] = value;
	numbers->extra_present |= UINT32_C(1) << id;
}

static bool wants(enum stat_source have, enum stat_source want)
{
	return have == want || (have == STAT_SOURCE_VMSTAT && want == STAT_SOURCE_VMSTAT_PAGES);
}

/* Give a line's value to whoever wants it. @scale: of the statistics in pages. */
static void take_line(const struct line *line, enum stat_source source, uint64_t scale,
		      struct numbers *numbers)
{
	for (int i = 0; i < STAT_MAX_ID; i++) {
		uint64_t value = line->value;

		if (!wants(source, stat_infos[i].source) || !key_is(line, stat_infos[i].key))
			continue;
		if (stat_infos[i].source == STAT_SOURCE_VMSTAT_PAGES &&
		    __builtin_mul_overflow(value, scale, &value))
			return;
		stat_put(&numbers->stats, i, value);
		return;
	}
	for (int i = 0; i < EXTRA_MAX; i++)
		if (extras[i].source == source && key_is(line, extras[i].key))
			put_extra(numbers, i, line->value);
}

void procfs_meminfo(const char *text, struct numbers *numbers)
{
	struct line line;

	while (next_line(&text, &line))
		if (!line.kib || !__builtin_mul_overflow(line.value, 1024, &line.value))
			take_line(&line, STAT_SOURCE_MEMINFO, 1, numbers);
}

void procfs_vmstat(const char *text, uint64_t page_size, struct numbers *numbers)
{
	static const char stall[] = "allocstall_";
	uint64_t stalls = 0;
	bool any = false;
	struct line line;

	while (next_line(&text, &line)) {
		take_line(&line, STAT_SOURCE_VMSTAT, page_size, numbers);
		if (strncmp(line.key, stall, sizeof(stall) - 1) == 0) {
			stalls += line.value;
			any = true;
		}
	}
	if (any)
		stat_put(&numbers->stats, STAT_ALLOC_STALL, stalls);
}

void procfs_zoneinfo(const char *text, uint64_t page_size, struct numbers *numbers)
{
	static const char count[] = "count:";
	uint64_t pages = 0, value;
	bool any = false;

	for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
		const char *s = text + strspn(text, " ");

		if (strncmp(s, count, sizeof(count) - 1) != 0)
			continue;
		s += sizeof(count) - 1;
		s += strspn(s, " ");
		if (!take_number(&s, &value) || s != end ||
		    __builtin_add_overflow(pages, value, &pages))
			continue;
		any = true;
	}
	if (any && !__builtin_mul_overflow(pages, page_size, &pages))
		stat_put(&numbers->stats, STAT_FREE_PCP, pages);
}

/* Whether a key such as "memory some" names this file and the first word of the line. */
static bool psi_key_is(const char *key, const char *file, const char *line, size_t word)
{
	size_t len = strlen(file);

	return strncmp(key, file, len) == 0 && key[len] == ' ' && strlen(key + len + 1) == word &&
	       strncmp(key + len + 1, line, word) == 0;
}

void procfs_psi(const char *text, const char *file, struct numbers *numbers)
{
	for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
		const char *total = strstr(text, " total=");
		size_t word = strcspn(text, " \n");
		uint64_t value;

		if (!total || total > end)
			continue;
		total += strlen(" total=");
		if (!take_number(&total, &value) || total != end)
			continue;
		for (int i = 0; i < STAT_MAX_ID; i++)
			if (stat_infos[i].source == STAT_SOURCE_PSI &&
			    psi_key_is(stat_infos[i].key, file, text, word))
				stat_put(&numbers->stats, i, value);
	}
}

static void put_approximate(struct numbers *numbers, enum stat_id id, uint64_t value)
{
	stat_put(&numbers->stats, id, value);
	numbers->approximate |= UINT64_C(1) << id;
}

static void approximate_lazyfree(struct numbers *n)
{
	uint64_t af, inf, aa, ina, cached, buffers, shmem, anon, by_file, by_anon;

	if (!stat_get(&n->stats, STAT_ACTIVE_FILE, &af) ||
	    !stat_get(&n->stats, STAT_INACTIVE_FILE, &inf) ||
	    !stat_get(&n->stats, STAT_ACTIVE_ANON, &aa) ||
	    !stat_get(&n->stats, STAT_INACTIVE_ANON, &ina) ||
	    !extra_get(n, EXTRA_CACHED, &cached) || !extra_get(n, EXTRA_BUFFERS, &buffers) ||
	    !stat_get(&n->stats, STAT_SHMEM, &shmem) || !extra_get(n, EXTRA_ANON_PAGES, &anon))
		return;
	by_file = less(af + inf, less(cached + buffers, shmem));
	by_anon = less(anon + shmem, aa + ina);
	put_approximate(n, STAT_LAZYFREE, by_file < by_anon ? by_file : by_anon);
}

void procfs_approximate(struct numbers *numbers)
{
	uint64_t mapped;

	if (!stat_has(&numbers->stats, STAT_LAZYFREE))
		approximate_lazyfree(numbers);
	if (!stat_has(&numbers->stats, STAT_EXEC_MAPPED) &&
	    stat_get(&numbers->stats, STAT_MAPPED, &mapped))
		put_approximate(numbers, STAT_EXEC_MAPPED, mapped);
}

static uint64_t hash_more(uint64_t hash, const char *from, const char *to)
{
	while (from < to)
		hash = (hash ^ (uint8_t)*from++) * UINT64_C(0x100000001b3);
	return hash;
}

bool procfs_status(const char *text, struct process_status *ret)
{
	struct process_status status = { .print = UINT64_C(0xcbf29ce484222325) };
	bool whole = false;

	for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
		const char *s = text;

		if (strncmp(s, "Vm", 2) == 0)
			status.print = hash_more(status.print, s, end);
		if (strncmp(s, "State:", 6) == 0)
			whole = true;
		if (strncmp(s, "PPid:\t", 6) == 0) {
			s += 6;
			(void)take_number(&s, &status.parent);
		}
		if (strncmp(s, "VmSwap:", 7) == 0) {
			s += 7;
			s += strspn(s, " \t");
			status.has_mm = take_number(&s, &status.swap) &&
					!__builtin_mul_overflow(status.swap, 1024, &status.swap);
		}
	}
	if (whole)
		*ret = status;
	return whole;
}

/* A field of mounts, with \ooo for blanks. */
static int unescape(const char *from, size_t len, char *buf, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char c = from[i];

		if (c == '\\' && len - i > 3) {
			c = (char)((from[i + 1] & 3) << 6 | (from[i + 2] & 7) << 3 |
				   (from[i + 3] & 7));
			i += 3;
		}
		if (n + 1 >= size)
			return -ENAMETOOLONG;
		buf[n++] = c;
	}
	buf[n] = '\0';
	return 0;
}

int procfs_cgroup2(const char *mounts, char *buf, size_t size)
{
	for (const char *end; (end = strchr(mounts, '\n')); mounts = end + 1) {
		const char *path = strchr(mounts, ' ');
		size_t len;

		if (!path || ++path > end)
			continue;
		len = strcspn(path, " \n");
		if (strncmp(path + len, " cgroup2 ", 9) == 0)
			return unescape(path, len, buf, size);
	}
	return -ENOENT;
}
