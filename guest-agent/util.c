// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest-agent/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t read_clock(clockid_t id)
{
	struct timespec ts = { 0 };

	(void)clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t clock_us(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t uptime_us(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

uint64_t cpu_us(void)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

int root_path(const char *root, const char *path, char *buf)
{
	int n = snprintf(buf, AGENT_PATH_MAX, "%s%s", root, path);

	return n < 0 || n >= AGENT_PATH_MAX ? -ENAMETOOLONG : 0;
}

int root_open(const char *root, const char *path, int flags)
{
	char buf[AGENT_PATH_MAX];
	int fd, r;

	r = root_path(root, path, buf);
	if (r < 0)
		return r;
	fd = open(buf, flags | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

ssize_t read_again(int fd, char *buf, size_t size)
{
	size_t have = 0;

	while (have < size - 1) {
		ssize_t n = pread(fd, buf + have, size - 1 - have, (off_t)have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	buf[have] = '\0';
	return (ssize_t)have;
}

ssize_t read_file(const char *root, const char *path, char *buf, size_t size)
{
	int fd = root_open(root, path, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read_again(fd, buf, size);
	(void)close(fd);
	return n;
}

int write_file(const char *root, const char *path, const char *text)
{
	int fd = root_open(root, path, O_WRONLY | O_TRUNC);
	int r = 0;

	if (fd < 0)
		return fd;
	if (write(fd, text, strlen(text)) < 0)
		r = -errno;
	(void)close(fd);
	return r;
}

int read_number(const char *root, const char *path, uint64_t *ret_value)
{
	char buf[64];
	const char *p = buf;
	uint64_t value;
	ssize_t n;

	n = read_file(root, path, buf, sizeof(buf));
	if (n < 0)
		return (int)n;
	if (!take_number(&p, &value) || (*p != '\n' && *p != '\0'))
		return -EBADMSG;
	*ret_value = value;
	return 0;
}

bool take_number(const char **p, uint64_t *ret_value)
{
	const char *s = *p;
	uint64_t value = 0;

	if (*s < '0' || *s > '9')
		return false;
	for (; *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*s - '0'), &value))
			return false;
	*p = s;
	*ret_value = value;
	return true;
}
