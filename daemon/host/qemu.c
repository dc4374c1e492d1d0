// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a guest's QEMU costs the host. /proc/PID/status has the whole process for anyone to read.
 * QEMU's own part is all anonymous memory outside of the mapping that is the guest's RAM, which
 * smaps shows to those who may trace the process. Reading smaps makes the kernel walk every page
 * of the guest, so it is read rarely, and the more rarely the longer it takes.
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
#include "daemon/util/parse.h"
#include "daemon/util/time.h"

/* Estimates for where smaps can't be read: QEMU 7.2 with few devices, some minutes after boot. */
#define OVERHEAD_KVM MIB(32)
#define OVERHEAD_TCG MIB(96)

#define SMAPS_PERIOD (30 * USEC_PER_SEC)
#define SMAPS_SHARE  1000 /* at most a thousandth of the time */
#define SMAPS_MAX    MIB(4) /* of text; about 6000 mappings */

/* Mappings that are RAM at least in part: larger than any arena of the allocator (64 MiB). */
#define LARGE_MAPPING MIB(128)

DEFINE_CLEANUP(struct host_guest *, host_guest_close);

struct host_guest {
	int dir; /* /proc/PID */
	int status;
	uint64_t maximum;
	uint64_t overhead;
	bool measured;
	uint64_t smaps_next_us; /* when to read it again */
};

/* --- smaps ------------------------------------------------------------------------------------ */

/* Both numbers of a mapping's first line, "55d0c000-55d0d000 rw-p ...". */
static bool parse_range(const char *line, uint64_t *ret_size, const char **ret_flags)
{
	unsigned long long start, end;
	char *p;

	if (!((*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f')))
		return false;
	start = strtoull(line, &p, 16);
	if (*p != '-')
		return false;
	end = strtoull(p + 1, &p, 16);
	if (*p != ' ' || end < start || strlen(p) < strlen(" rw-p"))
		return false;
	*ret_size = end - start;
	*ret_flags = p + 1;
	return true;
}

/*
 * The RAM is mapped readable and writable, and never executable, as the translator's buffer is. It
 * is one mapping of the guest's size, or several where there are NUMA cells or memory devices.
 */
static void begin_mapping(struct smaps_scan *scan, uint64_t size, const char *flags)
{
	bool plain = strncmp(flags, "rw-", 3) == 0;

	scan->in_exact = plain && size == scan->maximum;
	scan->in_large = plain && size >= LARGE_MAPPING;
	if (scan->in_exact)
		scan->exact_found = true;
	if (scan->in_large)
		scan->large_size += size;
}

static bool parse_kib_line(const char *line, const char *key, uint64_t *ret_bytes)
{
	struct parse_field field = { .key = key };

	if (parse_fields(line, &field, 1) != 1)
		return false;
	*ret_bytes = field.value;
	return true;
}

void smaps_line(struct smaps_scan *scan, const char *line)
{
	const char *flags;
	uint64_t bytes;

	if (parse_range(line, &bytes, &flags)) {
		begin_mapping(scan, bytes, flags);
		return;
	}
	if (!parse_kib_line(line, "Anonymous", &bytes) && !parse_kib_line(line, "Swap", &bytes))
		return;
	scan->all += bytes;
	if (scan->in_exact)
		scan->exact += bytes;
	if (scan->in_large)
		scan->large += bytes;
}

bool smaps_overhead(const struct smaps_scan *scan, uint64_t *ret_overhead)
{
	if (scan->exact_found)
		*ret_overhead = scan->all - scan->exact;
	else if (scan->large_size >= scan->maximum &&
		 scan->large_size - scan->maximum <= scan->maximum / 16)
		*ret_overhead = scan->all - scan->large;
	else
		return false;
	return true;
}

/* Feed the lines of @text, and move a last, incomplete one to its start. Returns its size. */
static size_t feed_lines(struct smaps_scan *scan, char *text)
{
	char *newline;
	size_t rest;
	char *line = text;

	while ((newline = strchr(line, '\n'))) {
		*newline = '\0';
		smaps_line(scan, line);
		line = newline + 1;
	}
	rest = strlen(line);
	memmove(text, line, rest + 1);
	return rest;
}

static int scan_smaps(int fd, struct smaps_scan *scan)
{
	char text[8192];
	size_t have = 0, total = 0;
	ssize_t n;

	while (total < SMAPS_MAX) {
		/* A line without end: not what the kernel writes. */
		if (have >= sizeof(text) - 1)
			return -EBADMSG;
		n = read(fd, text + have, sizeof(text) - 1 - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		text[have + (size_t)n] = '\0';
		have = feed_lines(scan, text);
		total += (size_t)n;
	}
	return -EFBIG;
}

static void measure_overhead(struct host_guest *guest, uint64_t now)
{
	struct smaps_scan scan = { .maximum = guest->maximum };
	_cleanup_close_ int fd = openat(guest->dir, "smaps", O_RDONLY | O_CLOEXEC);
	uint64_t begin_us = now_us(), took_us;

	guest->smaps_next_us = now + SMAPS_PERIOD;
	if (fd < 0 || scan_smaps(fd, &scan) < 0)
		return;
	took_us = now_us() - begin_us;
	if (took_us * SMAPS_SHARE > SMAPS_PERIOD)
		guest->smaps_next_us = now + took_us * SMAPS_SHARE;
	if (smaps_overhead(&scan, &guest->overhead))
		guest->measured = true;
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
	uint64_t footprint = all > cost->overhead ? all - cost->overhead : 0;

	return footprint < maximum ? footprint : maximum;
}

int host_guest_read(struct host_guest *guest, uint64_t now, struct cost_part *ret)
{
	struct cost_part cost = { .at_us = now };
	int r;

	if (now >= guest->smaps_next_us)
		measure_overhead(guest, now);
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
	guest->smaps_next_us = 0;
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
