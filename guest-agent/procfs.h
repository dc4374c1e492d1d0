/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parsers of the kernel's text files. Pure: text in, numbers out, no I/O and no allocation. They
 * take anything: a line that isn't understood, doesn't end or doesn't fit 64 bits leaves its
 * number absent. What to read is in stats.def; a new statistic with a key needs no line here.
 */
#ifndef BALLAST_AGENT_PROCFS_H
#define BALLAST_AGENT_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "guest-agent/proto/stats.h"

/* Numbers that the agent needs for itself and doesn't send. */
enum extra_id {
	EXTRA_CACHED, /* bytes */
	EXTRA_BUFFERS,
	EXTRA_ANON_PAGES,
	EXTRA_MAX,
};

struct numbers {
	struct stat_set stats;
	uint64_t approximate; /* bit a stat_id */
	uint64_t extra[EXTRA_MAX];
	uint32_t extra_present;
};

/* One process, of /proc/PID/status. */
struct process_status {
	bool has_mm; /* kernel threads have none */
	uint64_t swap; /* VmSwap in bytes */
	uint64_t parent; /* PPid */
	uint64_t print; /* a hash of all its memory lines: the same for who shares an mm */
};

static inline bool extra_get(const struct numbers *numbers, enum extra_id id, uint64_t *ret_value)
{
	if (!(numbers->extra_present >> id & 1))
		return false;
	*ret_value = numbers->extra[id];
	return true;
}

/**
 * procfs_meminfo() - take what stats.def wants of /proc/meminfo.
 */
void procfs_meminfo(const char *text, struct numbers *numbers);

/**
 * procfs_vmstat() - take what stats.def wants of /proc/vmstat.
 * @page_size: in bytes, for the gauges in pages.
 */
void procfs_vmstat(const char *text, uint64_t page_size, struct numbers *numbers);

/**
 * procfs_zoneinfo() - sum up the free pages in per-CPU lists, from /proc/zoneinfo.
 *
 * They are in no other file, and no few: since Linux 6.7 a CPU keeps up to an eighth of its share
 * of a zone after a bulk of frees, such as a shed, and lets it go over some twenty seconds.
 */
void procfs_zoneinfo(const char *text, uint64_t page_size, struct numbers *numbers);

/**
 * procfs_psi() - take the totals of a file of /proc/pressure.
 * @file: its name, "memory" or "io".
 */
void procfs_psi(const char *text, const char *file, struct numbers *numbers);

/**
 * procfs_approximate() - estimate what an unpatched kernel doesn't count, marked as such.
 *
 * Lazyfree pages are anonymous memory on the file lists, so they are what the file lists hold
 * above the page cache, and what the anonymous memory holds above the anonymous lists. Locked
 * memory lowers the first and raises the second, so the lesser of both is taken: it is exact but
 * for the kernel's batches where nothing is locked, and too low otherwise. Executable text is at
 * most what is mapped of the page cache; data mapped from files counts as text then.
 */
void procfs_approximate(struct numbers *numbers);

/**
 * procfs_status() - read a /proc/PID/status.
 *
 * Return: false where it isn't one (it ends early, or has no State line).
 */
bool procfs_status(const char *text, struct process_status *ret);

/**
 * procfs_cgroup2() - find where the cgroup2 hierarchy is mounted.
 * @mounts: text of /proc/self/mounts.
 *
 * Return: 0, -ENOENT, -ENAMETOOLONG.
 */
int procfs_cgroup2(const char *mounts, char *buf, size_t size);

#endif
