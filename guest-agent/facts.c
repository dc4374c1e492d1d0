// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest-agent/facts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest-agent/util.h"

#define VIRTIO	   "/sys/bus/virtio/devices"
#define BALLOON_ID "0x0005"
/* features of the balloon, by number in the virtio specification */
#define BALLOON_F_DEFLATE_ON_OOM 2
#define BALLOON_F_REPORTING	 5

int facts_reclaim_path(const char *root, char *ret)
{
	char mounts[8192], where[AGENT_PATH_MAX];
	ssize_t n;
	int fd, r;

	n = read_file(root, "/proc/self/mounts", mounts, sizeof(mounts));
	if (n < 0)
		return (int)n;
	r = procfs_cgroup2(mounts, where, sizeof(where));
	if (r < 0)
		return r;
	if (snprintf(ret, AGENT_PATH_MAX, "%s/memory.reclaim", where) >= AGENT_PATH_MAX)
		return -ENAMETOOLONG;
	fd = root_open(root, ret, O_WRONLY);
	if (fd < 0)
		return fd;
	(void)close(fd);
	return 0;
}

/* A device's features are a line of 0 and 1, the first for feature 0. */
static uint64_t balloon_capabilities(const char *root, const char *entry)
{
	char path[AGENT_PATH_MAX], text[128];
	uint64_t caps = 0;
	ssize_t n;

	(void)snprintf(path, sizeof(path), VIRTIO "/%.64s/device", entry);
	if (read_file(root, path, text, sizeof(text)) < 0 ||
	    strncmp(text, BALLOON_ID "\n", strlen(BALLOON_ID) + 1) != 0)
		return 0;
	(void)snprintf(path, sizeof(path), VIRTIO "/%.64s/driver", entry);
	n = root_open(root, path, O_PATH);
	if (n < 0)
		return 0;
	(void)close((int)n);
	caps |= WIRE_CAP_BALLOON;
	(void)snprintf(path, sizeof(path), VIRTIO "/%.64s/features", entry);
	n = read_file(root, path, text, sizeof(text));
	if (n > BALLOON_F_DEFLATE_ON_OOM && text[BALLOON_F_DEFLATE_ON_OOM] == '1')
		caps |= WIRE_CAP_AUTODEFLATE;
	if (n > BALLOON_F_REPORTING && text[BALLOON_F_REPORTING] == '1')
		caps |= WIRE_CAP_REPORTING;
	return caps;
}

static uint64_t all_balloons(const char *root)
{
	char path[AGENT_PATH_MAX];
	struct dirent *entry;
	uint64_t caps = 0;
	DIR *dir;

	if (root_path(root, VIRTIO, path) < 0)
		return 0;
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (*entry->d_name != '.')
			caps |= balloon_capabilities(root, entry->d_name);
	if (dir)
		(void)closedir(dir);
	return caps;
}

static bool uses_mglru(const char *root)
{
	char text[32];

	return read_file(root, "/sys/kernel/mm/lru_gen/enabled", text, sizeof(text)) > 0 &&
	       strtoul(text, NULL, 16) & 1;
}

static uint64_t kernel_capabilities(const char *root, const struct numbers *numbers,
				    const struct trigger *trigger)
{
	uint64_t counted = numbers->stats.present & ~numbers->approximate;
	char path[AGENT_PATH_MAX];
	uint64_t caps = all_balloons(root);

	if (counted >> STAT_LAZYFREE & 1)
		caps |= WIRE_CAP_LAZYFREE;
	if (counted >> STAT_EXEC_MAPPED & 1)
		caps |= WIRE_CAP_EXEC;
	if (counted >> STAT_STEAL_EXEC & 1)
		caps |= WIRE_CAP_EXEC_EVENTS;
	if (counted >> STAT_PSI_SOME & 1)
		caps |= WIRE_CAP_PSI;
	if (trigger->fd >= 0)
		caps |= WIRE_CAP_PSI_TRIGGER;
	if (facts_reclaim_path(root, path) == 0)
		caps |= WIRE_CAP_RECLAIM;
	if (uses_mglru(root))
		caps |= WIRE_CAP_MGLRU;
	return caps;
}

static void read_release(const char *root, struct wire_hello *hello)
{
	uint64_t *numbers[] = { &hello->kernel_major, &hello->kernel_minor, &hello->kernel_patch };
	const char *s = hello->release;
	char text[WIRE_RELEASE_MAX + 1];
	uint64_t value;
	size_t i;

	if (read_file(root, "/proc/sys/kernel/osrelease", text, sizeof(text)) < 0)
		return;
	for (i = 0; text[i] && text[i] != '\n'; i++)
		hello->release[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
	hello->release[i] = '\0';
	for (i = 0; i < 3; i++) {
		if (!take_number(&s, &value) || value > UINT32_MAX)
			return;
		*numbers[i] = value;
		if (*s++ != '.')
			return;
	}
}

static void read_boot_id(const char *root, struct wire_hello *hello)
{
	char text[64], digits[33] = "";
	size_t n = 0;

	if (read_file(root, "/proc/sys/kernel/random/boot_id", text, sizeof(text)) < 0)
		return;
	for (const char *s = text; *s && n < 32; s++)
		if (strchr("0123456789abcdefABCDEF", *s))
			digits[n++] = *s;
	hello->boot_id_lo = strtoull(digits + 16, NULL, 16);
	digits[16] = '\0';
	hello->boot_id_hi = strtoull(digits, NULL, 16);
}

void facts_collect(const char *root, uint64_t allow, const struct numbers *numbers,
		   const struct knobs *knobs, const struct trigger *trigger, struct wire_hello *ret)
{
	struct wire_hello hello = { .protocol = WIRE_VERSION, .agent = BALLAST_VERSION };

	hello.page_size = (uint64_t)sysconf(_SC_PAGESIZE);
	hello.capabilities = allow | kernel_capabilities(root, numbers, trigger);
	hello.knobs_writable = allow & WIRE_CAP_PROFILE ? knobs_writable(knobs) : 0;
	knobs_values(knobs, &hello.own, &hello.now);
	read_release(root, &hello);
	read_boot_id(root, &hello);
	*ret = hello;
}
