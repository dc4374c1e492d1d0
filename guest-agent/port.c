// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest-agent/port.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include "guest-agent/util.h"

#define BY_NAME "/dev/virtio-ports/" WIRE_PORT_NAME
#define CLASS	"/sys/class/virtio-ports"

/* udev makes the link by name; without it the class says which port has the name. */
static bool port_has_name(const char *root, const char *entry)
{
	char path[AGENT_PATH_MAX], name[64];

	(void)snprintf(path, sizeof(path), CLASS "/%.64s/name", entry);
	if (read_file(root, path, name, sizeof(name)) < 0)
		return false;
	name[strcspn(name, "\n")] = '\0';
	return strcmp(name, WIRE_PORT_NAME) == 0;
}

int port_find(const char *root, char *ret)
{
	char path[AGENT_PATH_MAX];
	struct dirent *entry;
	DIR *dir;
	int r = -ENOENT;

	if (root_path(root, BY_NAME, path) == 0 && access(path, F_OK) == 0) {
		(void)snprintf(ret, AGENT_PORT_MAX, "%s", BY_NAME);
		return 0;
	}
	if (root_path(root, CLASS, path) < 0)
		return -ENOENT;
	dir = opendir(path);
	while (r < 0 && dir && (entry = readdir(dir))) {
		if (*entry->d_name == '.' || !port_has_name(root, entry->d_name))
			continue;
		(void)snprintf(ret, AGENT_PORT_MAX, "/dev/%.64s", entry->d_name);
		r = 0;
	}
	if (dir)
		(void)closedir(dir);
	return r;
}

void port_init(struct port *port, const char *root, const char *configured)
{
	port->root = root;
	port->configured = configured;
	port->path[0] = '\0';
	port->fd = -1;
	port->state = PORT_CLOSED;
	port->error = 0;
	port->next_us = 0;
	port->len = 0;
	port->dropped = 0;
}

void port_close(struct port *port)
{
	if (port->fd >= 0)
		(void)close(port->fd);
	port->fd = -1;
	port->state = PORT_CLOSED;
	port->len = 0;
}

static int connect_socket(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, r = 0;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		r = -errno;
	if (r < 0)
		(void)close(fd);
	return r < 0 ? r : fd;
}

/* A terminal that stands in for a port must pass every byte as it is. */
static void make_raw(int fd)
{
	struct termios termios;

	if (tcgetattr(fd, &termios) < 0)
		return;
	cfmakeraw(&termios);
	(void)tcsetattr(fd, TCSANOW, &termios);
}

static int open_path(const char *path)
{
	struct stat st;
	int fd;

	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISSOCK(st.st_mode))
		return connect_socket(path);
	if (!S_ISCHR(st.st_mode))
		return -ENOTTY;
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	make_raw(fd);
	return fd;
}

static int open_port(struct port *port)
{
	char path[AGENT_PATH_MAX];
	int r;

	if (*port->configured)
		(void)snprintf(port->path, sizeof(port->path), "%s", port->configured);
	else {
		r = port_find(port->root, port->path);
		if (r < 0) {
			port->path[0] = '\0';
			return r;
		}
	}
	/* A port that is named is one of this system, whatever the root for /proc and /sys. */
	r = root_path(*port->configured ? "" : port->root, port->path, path);
	return r < 0 ? r : open_path(path);
}

static bool has_host(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN | POLLOUT };

	return poll(&pfd, 1, 0) >= 0 && !(pfd.revents & (POLLHUP | POLLERR | POLLNVAL));
}

static int open_and_watch(struct port *port, int epoll_fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET };

	port->fd = open_port(port);
	if (port->fd < 0)
		return port->fd;
	event.data.fd = port->fd;
	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, port->fd, &event) < 0 ? -errno : 0;
}

/* What a host that has gone left behind is of no use; a port that was unplugged says so. */
static bool is_unplugged(int fd)
{
	char buf[256];

	errno = 0;
	while (read(fd, buf, sizeof(buf)) > 0)
		;
	return errno == ENODEV;
}

bool port_check(struct port *port, int epoll_fd, uint64_t now_us)
{
	if (port->state == PORT_UP)
		return false;
	if (port->state == PORT_CLOSED) {
		if (now_us < port->next_us)
			return false;
		port->next_us = now_us + PORT_RETRY_US;
		port->error = open_and_watch(port, epoll_fd);
		if (port->error < 0) {
			port_close(port);
			return false;
		}
		port->state = PORT_WAITING;
	}
	port->next_us = now_us + PORT_POLL_US;
	if (!has_host(port->fd)) {
		if (is_unplugged(port->fd))
			port_close(port);
		return false;
	}
	port->state = PORT_UP;
	port->len = 0;
	return true;
}

/* A device stays open and waits for the next host; anything else is opened again later. */
static void lose_host(struct port *port, uint64_t now_us)
{
	struct stat st;

	port->len = 0;
	if (fstat(port->fd, &st) == 0 && S_ISCHR(st.st_mode) && port->error != -ENODEV) {
		port->state = PORT_WAITING;
		port->next_us = now_us + PORT_POLL_US;
		return;
	}
	port_close(port);
	port->next_us = now_us + PORT_RETRY_US;
}

ssize_t port_read(struct port *port, void *buf, size_t size, uint64_t now_us)
{
	ssize_t n = read(port->fd, buf, size);

	if (n > 0)
		return n;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	port->error = n < 0 ? -errno : 0;
	lose_host(port, now_us);
	return -EPIPE;
}

void port_flush(struct port *port)
{
	size_t done = 0;

	while (port->state == PORT_UP && done < port->len) {
		ssize_t n = write(port->fd, port->queue + done, port->len - done);

		if (n < 0 && errno == EINTR)
			continue;
		/* No room, or no host: the first comes back as an event, the second on reading. */
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	memmove(port->queue, port->queue + done, port->len - done);
	port->len -= done;
}

bool port_send(struct port *port, const uint8_t *frame, size_t size, bool droppable)
{
	if (port->state != PORT_UP)
		return false;
	if (size > sizeof(port->queue) - port->len || (droppable && port->len)) {
		port->dropped++;
		return false;
	}
	memcpy(port->queue + port->len, frame, size);
	port->len += size;
	port_flush(port);
	return true;
}
