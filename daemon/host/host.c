// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/host/internal.h"
#include "daemon/util/cleanup.h"
#include "daemon/util/fs.h"
#include "daemon/util/parse.h"

#define TEXT_SIZE 4096 /* of what is read of meminfo, which has some 1.5 KiB */

DEFINE_CLEANUP(struct host *, host_free);

struct host {
	char root[PATH_MAX];
	int meminfo, pressure, thp; /* -1: not there */
	int cgroup_usage, cgroup_limit;
};

/* --- The cgroup ------------------------------------------------------------------------------- */

/* Where memory control groups may be mounted, and what their files are called there. */
static const struct hierarchy {
	const char *mount, *usage, *limit;
} hierarchies[] = {
	{ "/sys/fs/cgroup", "memory.current", "memory.max" },
	{ "/sys/fs/cgroup/memory", "memory.usage_in_bytes", "memory.limit_in_bytes" },
	{ "/sys/fs/cgroup/unified", "memory.current", "memory.max" },
};

/* The part of a cgroup's name that is below the mount. */
static const char *below_mount(const struct hierarchy *hierarchy, const char *cgroup)
{
	size_t size = strlen(hierarchy->mount);

	if (strncmp(cgroup, hierarchy->mount, size) == 0 && cgroup[size] == '/')
		cgroup += size;
	return cgroup + strspn(cgroup, "/");
}

static int open_cgroup_in(struct host *host, const struct hierarchy *hierarchy, const char *cgroup)
{
	const char *name = below_mount(hierarchy, cgroup);
	char path[PATH_MAX];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s/%s", hierarchy->mount, name, hierarchy->usage);
	fd = fs_open_under(host->root, path);
	if (fd < 0)
		return fd;
	host->cgroup_usage = fd;
	/* A root group has no limit. */
	(void)snprintf(path, sizeof(path), "%s/%s/%s", hierarchy->mount, name, hierarchy->limit);
	host->cgroup_limit = fs_open_under(host->root, path);
	return 0;
}

static int open_cgroup(struct host *host, const char *cgroup)
{
	int r = -ENOENT;

	if (!cgroup || !cgroup[0])
		return 0;
	for (size_t i = 0; i < sizeof(hierarchies) / sizeof(*hierarchies); i++) {
		r = open_cgroup_in(host, &hierarchies[i], cgroup);
		if (r != -ENOENT)
			break;
	}
	return r;
}

static bool read_number(int fd, uint64_t *ret_value)
{
	char text[64];
	const char *p = text;

	if (fd < 0 || fs_pread(fd, text, sizeof(text)) <= 0)
		return false;
	return parse_u64(&p, ret_value) && (*p == '\n' || *p == '\0');
}

static void read_cgroup(const struct host *host, uint64_t now_us, struct host_snapshot *ret)
{
	if (!read_number(host->cgroup_usage, &ret->cgroup_usage))
		return;
	ret->cgroup_at_us = now_us;
	/* "max" is no number; v1 writes a number near 2^63 for it. */
	if (!read_number(host->cgroup_limit, &ret->cgroup_limit) ||
	    ret->cgroup_limit >= INT64_MAX / 2)
		ret->cgroup_limit = UINT64_MAX;
}

/* --- Memory ----------------------------------------------------------------------------------- */

static int read_meminfo(const struct host *host, uint64_t now_us, struct host_snapshot *ret)
{
	struct parse_field fields[] = {
		{ .key = "MemTotal" },	{ .key = "MemFree" },  { .key = "MemAvailable" },
		{ .key = "SwapTotal" }, { .key = "SwapFree" },
	};
	char text[TEXT_SIZE];
	ssize_t n = fs_pread(host->meminfo, text, sizeof(text));

	if (n < 0)
		return (int)n;
	(void)parse_fields(text, fields, sizeof(fields) / sizeof(*fields));
	if (!fields[0].found || !fields[1].found || !fields[2].found)
		return -EBADMSG;
	ret->at_us = now_us;
	ret->total = fields[0].value;
	ret->free = fields[1].value;
	ret->available = fields[2].value;
	/* A kernel without swap has no such lines, and no swap. */
	ret->swap_total = fields[3].found ? fields[3].value : 0;
	ret->swap_free = fields[4].found ? fields[4].value : 0;
	return 0;
}

static bool read_thp(const struct host *host)
{
	char text[128];

	if (host->thp < 0 || fs_pread(host->thp, text, sizeof(text)) <= 0)
		return false;
	return strstr(text, "[always]") || strstr(text, "[madvise]");
}

/* --- Pressure --------------------------------------------------------------------------------- */

bool pressure_parse(const char *text, const char *kind, uint32_t *ret_avg10)
{
	const char *p = strstr(text, kind);

	if (!p || (p != text && p[-1] != '\n'))
		return false;
	p += strlen(kind);
	if (strncmp(p, " avg10=", strlen(" avg10=")) != 0)
		return false;
	p += strlen(" avg10=");
	return parse_hundredths(&p, ret_avg10);
}

static void read_pressure(const struct host *host, uint64_t now_us, struct host_snapshot *ret)
{
	char text[512];

	/* Booted with psi=0 the file is there, but reading it fails. */
	if (host->pressure < 0 || fs_pread(host->pressure, text, sizeof(text)) <= 0)
		return;
	if (!pressure_parse(text, "some", &ret->psi_some_avg10))
		return;
	(void)pressure_parse(text, "full", &ret->psi_full_avg10);
	ret->psi_at_us = now_us;
}

int host_pressure_fd(const struct host *host, uint64_t threshold_us, uint64_t window_us)
{
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX], trigger[64];
	int n;

	(void)snprintf(path, sizeof(path), "%.4000s/proc/pressure/memory", host->root);
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -EOPNOTSUPP : -errno;
	n = snprintf(trigger, sizeof(trigger), "some %" PRIu64 " %" PRIu64, threshold_us,
		     window_us);
	if (write(fd, trigger, (size_t)n + 1) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* --- The object ------------------------------------------------------------------------------- */

const char *host_root(const struct host *host)
{
	return host->root;
}

int host_read(struct host *host, uint64_t now_us, struct host_snapshot *ret)
{
	int r;

	*ret = (struct host_snapshot){ 0 };
	r = read_meminfo(host, now_us, ret);
	if (r < 0)
		return r;
	read_pressure(host, now_us, ret);
	read_cgroup(host, now_us, ret);
	ret->thp_always = read_thp(host);
	return 0;
}

int host_new(struct host **ret, const struct host_options *options)
{
	_cleanup_(host_freep) struct host *host = calloc(1, sizeof(*host));
	int r;

	if (!host)
		return -ENOMEM;
	host->cgroup_usage = host->cgroup_limit = -1;
	(void)snprintf(host->root, sizeof(host->root), "%s", options->root ? options->root : "");
	host->meminfo = fs_open_under(host->root, "/proc/meminfo");
	host->pressure = fs_open_under(host->root, "/proc/pressure/memory");
	host->thp = fs_open_under(host->root, "/sys/kernel/mm/transparent_hugepage/enabled");
	if (host->meminfo < 0)
		return host->meminfo;
	r = open_cgroup(host, options->cgroup);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(host);
	return 0;
}

struct host *host_free(struct host *host)
{
	if (!host)
		return NULL;
	cleanup_close(&host->meminfo);
	cleanup_close(&host->pressure);
	cleanup_close(&host->thp);
	cleanup_close(&host->cgroup_usage);
	cleanup_close(&host->cgroup_limit);
	free(host);
	return NULL;
}
