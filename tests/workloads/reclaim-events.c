/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Do the patched kernel's events count what their names say? A file is mapped with and without
 * execute permission, reclaimed and touched again, and swapped memory is given up with MADV_FREE;
 * each counter must move by exactly the pages that this concerned, or not at all. The corners of
 * nr_exec_mapped that random use seldom meets are here too: huge pages of code, and more mappings
 * than the kernel counts for a page. Prints "ok" and "not ok" lines.
 *
 *	reclaim-events FOLDER		(on a disk that can be written)
 */
#include "tests/workloads/gauges.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { PAGES = 1024 };

struct events {
	uint64_t activate, rotate, majfault, refault, steal, swap, all_majfault;
};

static void read_events(struct events *ret)
{
	ret->activate = gauges_vmstat("pgactivate_exec");
	ret->rotate = gauges_vmstat("pgrotate_exec");
	ret->majfault = gauges_vmstat("pgmajfault_exec");
	ret->refault = gauges_vmstat("pgrefault_exec");
	ret->steal = gauges_vmstat("pgsteal_exec");
	ret->swap = gauges_vmstat("pglazyfree_swap");
	ret->all_majfault = gauges_vmstat("pgmajfault");
}

static struct events since(const struct events *before)
{
	struct events now;

	read_events(&now);
	now.activate -= before->activate;
	now.rotate -= before->rotate;
	now.majfault -= before->majfault;
	now.refault -= before->refault;
	now.steal -= before->steal;
	now.swap -= before->swap;
	now.all_majfault -= before->all_majfault;
	return now;
}

static unsigned char *map_file(const char *path, int prot)
{
	return work_map_file(path, PAGES * WORK_PAGE, prot, MAP_PRIVATE);
}

/* Without readahead each missing page is a fault; but reclaim doesn't look at its accesses then. */
static unsigned char *map_random(const char *path, int prot)
{
	unsigned char *p = map_file(path, prot);

	madvise(p, PAGES * WORK_PAGE, MADV_RANDOM);
	return p;
}

static void touch(const volatile unsigned char *p)
{
	for (size_t i = 0; i < PAGES; i++)
		(void)p[i * WORK_PAGE];
}

static uint64_t resident(void *p)
{
	static unsigned char in[PAGES];
	uint64_t n = 0;

	if (mincore(p, PAGES * WORK_PAGE, in) < 0)
		work_die("mincore: %s", strerror(errno));
	for (size_t i = 0; i < PAGES; i++)
		n += in[i] & 1;
	return n;
}

static void make_file(const char *path)
{
	static unsigned char page[WORK_PAGE];
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

	for (uint64_t i = 0; i < PAGES; i++) {
		work_fill_page(page, i);
		if (fd < 0 || write(fd, page, sizeof(page)) != sizeof(page))
			work_die("%s: %s", path, strerror(errno));
	}
	fsync(fd);
	close(fd);
}

/* Take the pages of a mapping away and touch them again. */
static bool steal_and_refault(const char *path, bool exec)
{
	int prot = PROT_READ | (exec ? PROT_EXEC : 0);
	unsigned char *p = map_random(path, prot);
	struct events before, stolen, back;
	uint64_t taken, expected;
	bool good;

	touch(p);
	read_events(&before);
	madvise(p, PAGES * WORK_PAGE, MADV_PAGEOUT);
	stolen = since(&before);
	taken = PAGES - resident(p);
	expected = exec ? taken : 0;
	good = gauges_check(taken >= PAGES * 9 / 10 && stolen.steal == expected,
			    exec ? "pgsteal_exec_counts_text_taken"
				 : "pgsteal_exec_leaves_out_data",
			    "%llu of %d pages taken, counted %llu", (unsigned long long)taken,
			    PAGES, (unsigned long long)stolen.steal);
	read_events(&before);
	touch(p);
	back = since(&before);
	good &= gauges_check(back.majfault == expected && back.refault == expected &&
				     back.all_majfault == taken,
			     exec ? "faults_on_text_are_counted" : "faults_on_data_are_not_counted",
			     "pgmajfault %llu pgmajfault_exec %llu pgrefault_exec %llu",
			     (unsigned long long)back.all_majfault,
			     (unsigned long long)back.majfault, (unsigned long long)back.refault);
	munmap(p, PAGES * WORK_PAGE);
	return good;
}

/* A page that was never in memory is a major fault, but no refault. */
static bool first_fault(const char *path)
{
	struct events before, seen;
	unsigned char *p;

	make_file(path);
	gauges_set("/proc/sys/vm/drop_caches", "1");
	p = map_random(path, PROT_READ | PROT_EXEC);
	read_events(&before);
	touch(p);
	seen = since(&before);
	munmap(p, PAGES * WORK_PAGE);
	return gauges_check(seen.majfault == PAGES && seen.refault == 0,
			    "first_faults_are_no_refaults",
			    "pgmajfault_exec %llu pgrefault_exec %llu",
			    (unsigned long long)seen.majfault, (unsigned long long)seen.refault);
}

/*
 * The classic LRU activates text on its first reference and keeps it there while it is referenced. A
 * new mapping each time, because what TCG has in its TLB it does not mark as accessed again.
 */
static bool keep_text(const char *path, bool exec)
{
	int prot = PROT_READ | (exec ? PROT_EXEC : 0);
	struct events before, seen;
	bool activated, rotated;

	gauges_set("/sys/kernel/mm/lru_gen/enabled", "0");
	read_events(&before);
	for (int i = 0; i < 12; i++) {
		unsigned char *p = map_file(path, prot);

		touch(p);
		gauges_write("/sys/fs/cgroup/memory.reclaim", "3M swappiness=0");
		munmap(p, PAGES * WORK_PAGE);
	}
	seen = since(&before);
	activated = exec ? seen.activate > 0 : seen.activate == 0;
	rotated = exec ? seen.rotate > 0 : seen.rotate == 0;
	return gauges_check(activated && rotated,
			    exec ? "text_in_use_is_activated_and_rotated"
				 : "data_in_use_is_not_counted_as_text",
			    "pgactivate_exec %llu pgrotate_exec %llu",
			    (unsigned long long)seen.activate, (unsigned long long)seen.rotate);
}

static bool gauge_moved(uint64_t start, uint64_t pages, const char *name)
{
	uint64_t now = gauges_vmstat("nr_exec_mapped");

	return gauges_check(now == start + pages, name, "nr_exec_mapped %llu and %lld pages",
			    (unsigned long long)start, (long long)(now - start));
}

/* A page's count ends at 255: it must hold until the last mapping is gone, and be zero then. */
static bool map_often(const char *path)
{
	uint64_t start = gauges_vmstat("nr_exec_mapped");
	unsigned char *p[300];
	bool good;

	for (size_t i = 0; i < 300; i++) {
		p[i] = map_file(path, PROT_READ | PROT_EXEC);
		touch(p[i]);
	}
	good = gauge_moved(start, PAGES, "text_mapped_300_times_counts_once");
	for (size_t i = 1; i < 300; i++)
		munmap(p[i], PAGES * WORK_PAGE);
	good &= gauge_moved(start, PAGES, "text_counts_until_the_last_mapping_goes");
	munmap(p[0], PAGES * WORK_PAGE);
	return gauge_moved(start, 0, "text_mapped_300_times_is_forgotten") && good;
}

/* Two MiB of code as one huge page, a half of which loses its execute permission. */
static bool map_huge(const char *path)
{
	const size_t size = 2 * WORK_MIB;
	uint64_t start = gauges_vmstat("nr_exec_mapped"), kib = 0;
	unsigned char *area = work_map(2 * size);
	unsigned char *p = (unsigned char *)(((uintptr_t)area + size - 1) & ~(uintptr_t)(size - 1));
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool good;

	if (mmap(p, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
		work_die("%s: %s", path, strerror(errno));
	close(fd);
	for (size_t i = 0; i < size; i += WORK_PAGE)
		(void)*(volatile unsigned char *)(p + i);
	madvise(p, size, MADV_COLLAPSE);
	(void)*(volatile unsigned char *)p;
	gauges_line("/proc/self/smaps_rollup", "FilePmdMapped", &kib);
	good = gauges_check(kib == 2048, "text_collapses_to_a_huge_page", "%llu KiB",
			    (unsigned long long)kib);
	good &= gauge_moved(start, 512, "huge_text_counts_by_pages");
	mprotect(p, size, PROT_READ);
	good &= gauge_moved(start, 0, "huge_text_made_data_is_no_text");
	mprotect(p, size, PROT_READ | PROT_EXEC);
	good &= gauge_moved(start, 512, "huge_data_made_text_is_text");
	mprotect(p, size / 2, PROT_READ);
	for (size_t i = 0; i < size; i += WORK_PAGE)
		(void)*(volatile unsigned char *)(p + i);
	good &= gauge_moved(start, 256, "half_of_a_huge_page_counts_half");
	munmap(area, 2 * size);
	return gauge_moved(start, 0, "huge_text_is_forgotten") && good;
}

static bool free_swapped(void)
{
	uint64_t size = 16 * WORK_MIB, swapped, left;
	unsigned char *p = work_cold_anon(size, 5);
	struct events before, seen;

	madvise(p, size, MADV_PAGEOUT);
	/* What is written out at this moment is taken the second time. */
	usleep(300000);
	madvise(p, size, MADV_PAGEOUT);
	gauges_line("/proc/self/smaps_rollup", "Swap", &swapped);
	read_events(&before);
	madvise(p, size, MADV_FREE);
	seen = since(&before);
	gauges_line("/proc/self/smaps_rollup", "Swap", &left);
	munmap(p, size);
	return gauges_check(swapped > 1024 && seen.swap == (swapped - left) / 4,
			    "pglazyfree_swap_counts_dropped_entries",
			    "%llu entries before, %llu after, counted %llu",
			    (unsigned long long)swapped / 4, (unsigned long long)left / 4,
			    (unsigned long long)seen.swap);
}

int main(int argc, char **argv)
{
	const char *folder = NULL;
	char text[300], data[300];
	bool good = true;

	work_options(argc, argv, NULL, 0, &folder);
	if (!folder)
		work_die("reclaim-events: which folder?");
	snprintf(text, sizeof(text), "%s/text", folder);
	snprintf(data, sizeof(data), "%s/data", folder);
	make_file(data);
	good &= first_fault(text);
	good &= steal_and_refault(text, true);
	good &= steal_and_refault(data, false);
	good &= map_often(text);
	good &= map_huge(text);
	good &= keep_text(text, true);
	good &= keep_text(data, false);
	good &= free_swapped();
	return good ? 0 : 1;
}
