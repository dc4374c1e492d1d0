/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The gauges of the patched kernel, and the same numbers counted page by page from /proc: which
 * pages of page cache are mapped executable (pagemap of every process), and which pages on the LRU
 * lists have been given up with MADV_FREE (kpageflags of the whole memory). For programs with one
 * thread, run by root.
 */
#ifndef BALLAST_GAUGES_H
#define BALLAST_GAUGES_H

#include "tests/workloads/work.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <sys/types.h>

/* Bits of /proc/kpageflags, see Documentation/admin-guide/mm/pagemap.rst. */
enum {
	GAUGES_LRU = 1 << 5,
	GAUGES_ANON = 1 << 12,
	GAUGES_SWAPBACKED = 1 << 14,
	GAUGES_UNEVICTABLE = 1 << 18,
	GAUGES_ZERO_PAGE = 1 << 24,
};

#define GAUGES_PRESENT	 (UINT64_C(1) << 63)
#define GAUGES_PFN_MASK	 ((UINT64_C(1) << 55) - 1)
#define GAUGES_PSS_SHIFT 12

/* What counting finds; all in pages but pss, which is in KiB. */
struct gauges {
	uint64_t exec; /* distinct pages of page cache in executable mappings */
	uint64_t exec_ptes; /* the same, once for each mapping */
	uint64_t pss; /* sum of Pss_Exec of all processes */
	uint64_t pss_wrong; /* processes whose Pss_Exec isn't what the map counts say */
	uint64_t processes; /* with memory of their own */
	uint64_t lazyfree; /* MADV_FREE pages on LRU lists */
};

/* A line "name value" of a file; absent is false. */
static inline bool gauges_line(const char *path, const char *name, uint64_t *ret_value)
{
	char line[256];
	FILE *f = fopen(path, "re");
	size_t n = strlen(name);
	bool found = false;

	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f)) {
		if (strncmp(line, name, n) != 0 || (line[n] != ' ' && line[n] != ':'))
			continue;
		*ret_value = strtoull(line + n + 1, NULL, 10);
		found = true;
	}
	fclose(f);
	return found;
}

static inline uint64_t gauges_vmstat(const char *name)
{
	uint64_t value;

	if (!gauges_line("/proc/vmstat", name, &value))
		work_die("/proc/vmstat has no %s: is this the patched kernel?", name);
	return value;
}

static inline int gauges_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), r = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		r = -errno;
	close(fd);
	return r;
}

static inline void gauges_set(const char *path, const char *text)
{
	int r = gauges_write(path, text);

	if (r < 0)
		work_die("cannot write '%s' to %s: %s", text, path, strerror(-r));
}

/**
 * gauges_settle() - bring to the LRU lists what waits in per-CPU batches, and to the totals what
 * per-CPU counters owe. @file is a small file on a disk.
 *
 * posix_fadvise() drains the batches of all processors when it meets a page that it cannot drop,
 * here one that is mapped. compact_memory would drain them too, and fill them again.
 */
static inline void gauges_settle(const char *file)
{
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	volatile unsigned char *p;

	if (fd < 0 || ftruncate(fd, WORK_PAGE) < 0)
		work_die("%s: %s", file, strerror(errno));
	p = mmap(NULL, WORK_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		work_die("%s: %s", file, strerror(errno));
	(void)*p;
	posix_fadvise(fd, 0, WORK_PAGE, POSIX_FADV_DONTNEED);
	munmap((void *)(uintptr_t)p, WORK_PAGE);
	close(fd);
	gauges_set("/proc/sys/vm/stat_refresh", "1");
}

static inline int gauges_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		work_die("%s: %s", path, strerror(errno));
	return fd;
}

static inline uint64_t gauges_of_pfn(int fd, uint64_t pfn)
{
	uint64_t value = 0;

	if (pread(fd, &value, sizeof(value), (off_t)(pfn * sizeof(value))) != sizeof(value))
		work_die("page %llu: no flags or count", (unsigned long long)pfn);
	return value;
}

/* The pages seen so far, and the files that tell of them. */
struct gauges_walk {
	struct gauges *sum;
	unsigned char *seen;
	uint64_t n_pfns;
	int flags, counts;
	uint64_t pss; /* of this process, as the kernel scales it */
};

static inline void gauges_page(struct gauges_walk *walk, uint64_t pfn)
{
	uint64_t count, share = (uint64_t)WORK_PAGE << GAUGES_PSS_SHIFT;

	if (pfn >= walk->n_pfns || (gauges_of_pfn(walk->flags, pfn) &
				    (GAUGES_ANON | GAUGES_SWAPBACKED | GAUGES_ZERO_PAGE)))
		return;
	walk->sum->exec_ptes++;
	if (!(walk->seen[pfn / 8] & (1 << pfn % 8))) {
		walk->seen[pfn / 8] = (unsigned char)(walk->seen[pfn / 8] | 1 << pfn % 8);
		walk->sum->exec++;
	}
	count = gauges_of_pfn(walk->counts, pfn);
	walk->pss += count >= 2 ? share / count : share;
}

static inline void gauges_range(struct gauges_walk *walk, int pagemap, uint64_t start, uint64_t end)
{
	uint64_t entries[512];

	for (uint64_t page = start / WORK_PAGE; page < end / WORK_PAGE;) {
		uint64_t n = end / WORK_PAGE - page;
		ssize_t got;

		if (n > 512)
			n = 512;
		got = pread(pagemap, entries, n * 8, (off_t)(page * 8));
		if (got <= 0)
			return;
		n = (uint64_t)got / 8;
		for (uint64_t i = 0; i < n; i++)
			if (entries[i] & GAUGES_PRESENT)
				gauges_page(walk, entries[i] & GAUGES_PFN_MASK);
		page += n;
	}
}

static inline void gauges_process(struct gauges_walk *walk, const char *pid)
{
	char path[300], line[512], perms[8];
	uint64_t start, end, kib;
	FILE *maps;
	int pagemap;

	snprintf(path, sizeof(path), "/proc/%s/pagemap", pid);
	pagemap = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	maps = fopen(path, "re");
	walk->pss = 0;
	while (maps && pagemap >= 0 && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %7s", &start, &end, perms) == 3 && perms[2] == 'x' &&
		    !strstr(line, "[vsyscall]"))
			gauges_range(walk, pagemap, start, end);
	if (maps)
		fclose(maps);
	if (pagemap >= 0)
		close(pagemap);
	snprintf(path, sizeof(path), "/proc/%s/smaps_rollup", pid);
	if (!gauges_line(path, "Pss_Exec", &kib))
		return; /* a kernel thread, or gone */
	walk->sum->processes++;
	walk->sum->pss += kib;
	if (kib != walk->pss >> GAUGES_PSS_SHIFT >> 10)
		walk->sum->pss_wrong++;
}

static inline void gauges_lazyfree(struct gauges_walk *walk)
{
	const uint64_t mask = GAUGES_LRU | GAUGES_ANON | GAUGES_SWAPBACKED | GAUGES_UNEVICTABLE;
	uint64_t flags[1024];
	ssize_t got;

	lseek(walk->flags, 0, SEEK_SET);
	while ((got = read(walk->flags, flags, sizeof(flags))) > 0)
		for (size_t i = 0; i < (size_t)got / 8; i++)
			if ((flags[i] & mask) == (GAUGES_LRU | GAUGES_ANON))
				walk->sum->lazyfree++;
}

/**
 * gauges_count() - count it all page by page. Whoever changes it should stand still meanwhile.
 */
static inline void gauges_count(struct gauges *ret)
{
	struct gauges_walk walk = { .sum = ret, .n_pfns = UINT64_C(1) << 22 };
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	memset(ret, 0, sizeof(*ret));
	walk.seen = calloc(1, walk.n_pfns / 8);
	if (!dir || !walk.seen)
		work_die("/proc or memory is missing");
	walk.flags = gauges_open("/proc/kpageflags");
	walk.counts = gauges_open("/proc/kpagecount");
	while ((entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			gauges_process(&walk, entry->d_name);
	gauges_lazyfree(&walk);
	closedir(dir);
	close(walk.flags);
	close(walk.counts);
	free(walk.seen);
}

/* The sum over all processes of a line of smaps_rollup, in KiB. */
static inline uint64_t gauges_rollup(const char *name)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc");
	uint64_t sum = 0, kib;
	char path[300];

	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%s/smaps_rollup", entry->d_name);
		if (isdigit((unsigned char)entry->d_name[0]) && gauges_line(path, name, &kib))
			sum += kib;
	}
	if (dir)
		closedir(dir);
	return sum;
}

/* Whether a process of the group is still running. */
static inline bool gauges_some_run(pid_t group)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc");
	char path[300], state;
	bool found = false;
	int pgrp, ppid;

	while (!found && (entry = readdir(dir))) {
		FILE *f;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fscanf(f, "%*d (%*[^)]) %c %d %d", &state, &ppid, &pgrp) == 3 && pgrp == group)
			found = state != 'T' && state != 'Z' && state != 'X';
		fclose(f);
	}
	closedir(dir);
	return found;
}

/**
 * gauges_stop() - stop a process group, and wait until all of its processes stand still.
 */
static inline void gauges_stop(pid_t group)
{
	uint64_t until = work_now_usec() + 120000000;

	kill(-group, SIGSTOP);
	while (gauges_some_run(group)) {
		if (work_now_usec() > until)
			work_die("not ok gauges - the processes don't stop");
		usleep(5000);
	}
}

/* The gauges, and what counting found at the same time. */
struct gauges_seen {
	struct gauges counted;
	uint64_t exec, lazyfree;
};

/* A number that changes whenever the kernel's own threads move or take pages. */
static inline uint64_t gauges_activity(void)
{
	static const char *const counters[] = { "pgmigrate_success",  "pgmigrate_fail",
						"compact_isolated",   "pgscan_kswapd",
						"pgscan_khugepaged",  "thp_collapse_alloc",
						"nr_isolated_file",   "nr_isolated_anon",
						"pgsteal_khugepaged", "compact_migrate_scanned" };
	uint64_t sum = 0;

	gauges_set("/proc/sys/vm/stat_refresh", "1");
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		sum += gauges_vmstat(counters[i]);
	return sum;
}

static inline bool gauges_exact(const struct gauges_seen *seen)
{
	return seen->exec == seen->counted.exec && seen->lazyfree == seen->counted.lazyfree &&
	       seen->counted.pss_wrong == 0;
}

/**
 * gauges_look() - read the gauges and count the pages, while nothing moves. @file is as in
 * gauges_settle().
 *
 * Work that is under way still, such as the end of an address space that the LRU's walk held, gets a
 * second to come to its end; a gauge that is wrong stays so.
 */
static inline void gauges_look(const char *file, struct gauges_seen *ret)
{
	uint64_t before;

	for (int i = 0; i < 10; i++) {
		gauges_settle(file);
		usleep(20000);
		before = gauges_activity();
		ret->exec = gauges_vmstat("nr_exec_mapped");
		ret->lazyfree = gauges_vmstat("nr_lazyfree");
		gauges_count(&ret->counted);
		if (before == gauges_activity() && gauges_exact(ret))
			return;
		usleep(100000);
	}
}

/* One line of a test, as tests/run counts them. */
__attribute__((format(printf, 3, 4))) static inline bool gauges_check(bool good, const char *name,
								      const char *format, ...)
{
	char why[300];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	work_say("%s %s - %s", good ? "ok" : "not ok", name, why);
	return good;
}

#endif
