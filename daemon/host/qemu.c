// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a guest's QEMU costs the host. /proc/PID/status has the whole process for anyone to read.
 * QEMU's own part is all anonymous memory outside of the mappings that are the guest's RAM: maps
 * tells them apart, and pagemap tells which pages of the others are there. Both are for those who
 * may trace the process. smaps would tell the same, but walks every page of the guest for it, some
 * 60 ms a GiB of small pages.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/host/host.h"
#include "daemon/host/internal.h"
#include "daemon/util/cleanup.h"
#include "daemon/util/fs.h"
#include "daemon/util/num.h"
#include "daemon/util/parse.h"
#include "daemon/util/time.h"

/*
 * Estimates for where it can't be measured, on the low side, so that a footprint is rather taken
 * for too large: QEMU 7.2 with few devices has 26 MiB, and under TCG a translation buffer that
 * grows to some 40 MiB in a small guest's first minutes.
 */
#define OVERHEAD_KVM MIB(24)
#define OVERHEAD_TCG MIB(56)

/* A translator's buffer fills while its guest boots, so a process is first looked at more often. */
#define MEASURE_FIRST  USEC_PER_SEC
#define MEASURE_PERIOD (30 * USEC_PER_SEC)
#define MEASURE_SHARE  1000 /* at most a thousandth of the time */

/* Mappings that are RAM at least in part: larger than any arena of the allocator (64 MiB). */
#define LARGE_MAPPING MIB(128)

/* More than that is no QEMU as we know it; the translator's buffer has at most 1 GiB. */
#define OWN_MAX	     MIB(4096)

#define ENTRIES	     2048 /* of pagemap, read at once */
#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_SWAPPED (UINT64_C(1) << 62)
#define PAGE_OF_FILE (UINT64_C(1) << 61) /* or shared */

DEFINE_CLEANUP(struct host_guest *, host_guest_close);

struct host_guest {
	int dir; /* /proc/PID */
	int status;
	uint64_t maximum;
	uint64_t overhead;
	bool measured;
	uint64_t measure_next_us; /* when to measure it again */
	uint64_t measure_wait_us; /* the last time between two measurements */
};

/* --- The mappings ----------------------------------------------------------------------------- */

bool mapping_parse(const char *line, struct mapping *ret)
{
	unsigned long long start, end, inode;
	char flags[5];

	if (sscanf(line, "%llx-%llx %4s %*x %*x:%*x %llu", &start, &end, flags, &inode) != 4)
		return false;
	if (end < start || strlen(flags) != 4)
		return false;
	*ret = (struct mapping){
		.start = start,
		.end = end,
		.readable = flags[0] == 'r',
		.writable = flags[1] == 'w',
		.executable = flags[2] == 'x',
		.private = flags[3] == 'p',
		.file = inode != 0,
	};
	return true;
}

/*
 * The RAM is mapped readable and writable, and never executable, as the translator's buffer is. It
 * is one mapping of the guest's size, or several where there are NUMA cells or memory devices.
 */
static bool may_be_ram(const struct mapping *mapping)
{
	return mapping->readable && mapping->writable && !mapping->executable;
}

static uint64_t size_of(const struct mapping *mapping)
{
	return mapping->end - mapping->start;
}

void ram_look(struct ram_look *look, const struct mapping *mapping)
{
	if (!may_be_ram(mapping))
		return;
	if (size_of(mapping) == look->maximum)
		look->exact = true;
	if (size_of(mapping) >= LARGE_MAPPING)
		look->large += size_of(mapping);
}

bool ram_found(const struct ram_look *look)
{
	return look->exact ||
	       (look->large >= look->maximum && look->large - look->maximum <= look->maximum / 16);
}

bool mapping_is_own(const struct ram_look *look, const struct mapping *mapping)
{
	/* Program text has no anonymous pages, and what can't be accessed has none at all. */
	if (!mapping->private || !(mapping->readable || mapping->writable) ||
	    (mapping->file && mapping->executable))
		return false;
	if (!may_be_ram(mapping))
		return true;
	return look->exact ? size_of(mapping) != look->maximum : size_of(mapping) < LARGE_MAPPING;
}

/* --- QEMU's own memory ------------------------------------------------------------------------ */

struct own_count {
	int pagemap;
	uint64_t page_size;
	uint64_t looked; /* bytes of mappings */
	uint64_t pages; /* that are there */
};

static int count_pages(struct own_count *count, const struct mapping *mapping)
{
	uint64_t entries[ENTRIES], page = mapping->start / count->page_size;
	uint64_t left = size_of(mapping) / count->page_size, n;
	ssize_t got;

	count->looked += size_of(mapping);
	if (count->looked > OWN_MAX)
		return -EFBIG;
	for (; left; left -= n, page += n) {
		n = left < ENTRIES ? left : ENTRIES;
		got = pread(count->pagemap, entries, n * sizeof(*entries),
			    (off_t)(page * sizeof(*entries)));
		if (got < 0)
			return -errno;
		n = (uint64_t)got / sizeof(*entries);
		if (n == 0)
			return 0; /* unmapped meanwhile */
		for (uint64_t i = 0; i < n; i++)
			count->pages += (entries[i] & (PAGE_PRESENT | PAGE_SWAPPED)) &&
					!(entries[i] & PAGE_OF_FILE);
	}
	return 0;
}

/* Go through the mappings: look for the RAM, or (@count) count the pages of the others. */
static int walk(const struct host_guest *guest, struct ram_look *look, struct own_count *count)
{
	_cleanup_close_ int fd = openat(guest->dir, "maps", O_RDONLY | O_CLOEXEC);
	_cleanup_fclose_ FILE *file = NULL;
	char line[PATH_MAX + 128];
	struct mapping mapping;
	int r = 0;

	if (fd < 0)
		return -errno;
	file = fdopen(fd, "r");
	if (!file)
		return -errno;
	(void)TAKE_FD(fd);
	while (r == 0 && fgets(line, sizeof(line), file)) {
		if (!mapping_parse(line, &mapping))
			continue;
		if (!count)
			ram_look(look, &mapping);
		else if (mapping_is_own(look, &mapping))
			r = count_pages(count, &mapping);
	}
	return r;
}

static void measure_overhead(struct host_guest *guest)
{
	_cleanup_close_ int pagemap = openat(guest->dir, "pagemap", O_RDONLY | O_CLOEXEC);
	struct ram_look look = { .maximum = guest->maximum };
	struct own_count count = { .pagemap = pagemap,
				   .page_size = (uint64_t)sysconf(_SC_PAGESIZE) };

	if (pagemap < 0 || walk(guest, &look, NULL) < 0 || !ram_found(&look))
		return;
	if (walk(guest, &look, &count) < 0)
		return;
	guest->overhead = count.pages * count.page_size;
	guest->measured = true;
}

static void measure_if_due(struct host_guest *guest, uint64_t now)
{
	uint64_t begin_us, took_us;

	if (now < guest->measure_next_us)
		return;
	begin_us = now_us();
	measure_overhead(guest);
	took_us = now_us() - begin_us;
	guest->measure_wait_us =
		min_u64(max_u64(2 * guest->measure_wait_us, MEASURE_FIRST), MEASURE_PERIOD);
	guest->measure_next_us = now + max_u64(took_us * MEASURE_SHARE, guest->measure_wait_us);
}

/* --- Cost ------------------------------------------------------------------------------------- */

static int read_status(int fd, struct cost_part *ret)
{
	struct parse_field fields[] = {
		{ .key = "RssAnon" },
		{ .key = "RssShmem" },
		{ .key = "VmSwap" },
		{ .key = "THP_enabled" },
	};
	char text[4096];
	ssize_t n = fs_pread(fd, text, sizeof(text));

	if (n < 0)
		return (int)n;
	/* A process that has ended, but whose parent hasn't noticed, has no memory. */
	if (parse_fields(text, fields, 4) == 0)
		return -ESRCH;
	ret->resident =
		(fields[0].found ? fields[0].value : 0) + (fields[1].found ? fields[1].value : 0);
	ret->swapped = fields[2].found ? fields[2].value : 0;
	/* Kernels before 5.0 don't say. */
	ret->thp = !fields[3].found || fields[3].value != 0;
	return 0;
}

static uint64_t footprint_of(const struct cost_part *cost, uint64_t maximum)
{
	uint64_t all = cost->resident + cost->swapped;

	return min_u64(less(all, cost->overhead), maximum);
}

int host_guest_read(struct host_guest *guest, uint64_t now, struct cost_part *ret)
{
	struct cost_part cost = { .at_us = now };
	int r;

	measure_if_due(guest, now);
	r = read_status(guest->status, &cost);
	if (r < 0)
		return r;
	cost.overhead = guest->overhead;
	cost.footprint = footprint_of(&cost, guest->maximum);
	*ret = cost;
	return 0;
}

void host_guest_set_maximum(struct host_guest *guest, uint64_t maximum)
{
	if (guest->maximum == maximum)
		return;
	guest->maximum = maximum;
	guest->measure_next_us = 0;
}

bool host_guest_overhead_measured(const struct host_guest *guest)
{
	return guest->measured;
}

/* --- The object ------------------------------------------------------------------------------- */

int host_guest_open(const struct host *host, int pid, uint64_t maximum, bool tcg,
		    struct host_guest **ret)
{
	_cleanup_(host_guest_closep) struct host_guest *guest = calloc(1, sizeof(*guest));
	char path[PATH_MAX];

	if (!guest)
		return -ENOMEM;
	guest->status = -1;
	(void)snprintf(path, sizeof(path), "%.4000s/proc/%d", host_root(host), pid);
	guest->dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (guest->dir < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	guest->status = openat(guest->dir, "status", O_RDONLY | O_CLOEXEC);
	if (guest->status < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	guest->maximum = maximum;
	guest->overhead = tcg ? OVERHEAD_TCG : OVERHEAD_KVM;
	*ret = TAKE_PTR(guest);
	return 0;
}

struct host_guest *host_guest_close(struct host_guest *guest)
{
	if (!guest)
		return NULL;
	cleanup_close(&guest->dir);
	cleanup_close(&guest->status);
	free(guest);
	return NULL;
}
