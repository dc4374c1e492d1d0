// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/util/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include "daemon/util/cleanup.h"

ssize_t fs_pread(int fd, char *buf, size_t size)
{
	size_t have = 0;
	ssize_t n;

	buf[0] = '\0';
	while (have < size - 1) {
		n = pread(fd, buf + have, size - 1 - have, (off_t)have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			buf[0] = '\0';
			return -errno;
		}
		if (n == 0)
			break;
		have += (size_t)n;
	}
	buf[have] = '\0';
	return (ssize_t)have;
}

ssize_t fs_read(const char *path, char *buf, size_t size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		buf[0] = '\0';
		return -errno;
	}
	return fs_pread(fd, buf, size);
}

int fs_open_under(const char *root, const char *path)
{
	char full[PATH_MAX];
	int fd;

	if ((size_t)snprintf(full, sizeof(full), "%s%s", root, path) >= sizeof(full))
		return -ENAMETOOLONG;
	fd = open(full, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		size -= (size_t)n;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

int fs_write_atomic(const char *path, const void *data, size_t size)
{
	_cleanup_close_ int fd = -1;
	char temporary[PATH_MAX];
	int r;

	if ((size_t)snprintf(temporary, sizeof(temporary), "%s.new", path) >= sizeof(temporary))
		return -ENAMETOOLONG;
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return -errno;
	r = write_all(fd, data, size);
	if (r == 0 && rename(temporary, path) < 0)
		r = -errno;
	if (r < 0)
		(void)unlink(temporary);
	return r;
}
