// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest-agent/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "guest-agent/util.h"

int notify_send(const char *message)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	int fd, r = 1;

	if (len == 0)
		return 0;
	if (len >= sizeof(addr.sun_path) || (*path != '/' && *path != '@'))
		return -EINVAL;
	memcpy(addr.sun_path, path, len);
	if (*path == '@')
		addr.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (sendto(fd, message, strlen(message), MSG_NOSIGNAL, (const struct sockaddr *)&addr,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
		r = -errno;
	(void)close(fd);
	return r;
}

uint64_t notify_watchdog_us(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t value;

	if (!usec || !take_number(&usec, &value) || *usec)
		return 0;
	if (pid) {
		uint64_t whom;

		if (!take_number(&pid, &whom) || *pid || whom != (uint64_t)getpid())
			return 0;
	}
	return value / 2;
}
