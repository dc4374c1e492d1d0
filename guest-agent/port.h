/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The port to the host: a virtio-serial port, or a Unix socket that stands in for it. Nothing
 * here blocks. Frames leave whole or not at all: what doesn't fit the queue is dropped before its
 * first byte, what was begun is finished first.
 *
 * While no host holds the other end of a virtio port, reads give end-of-file and poll says
 * POLLHUP at once and for ever, so the port is watched edge-triggered: the kernel wakes us when
 * the host comes or goes.
 */
#ifndef BALLAST_AGENT_PORT_H
#define BALLAST_AGENT_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "guest-agent/config.h"
#include "guest-agent/proto/wire.h"

#define PORT_QUEUE    (4 * WIRE_FRAME_MAX)
#define PORT_RETRY_US 1000000 /* between attempts to open the port */
#define PORT_POLL_US  10000000 /* between looks at a port without host, beside its wake-ups */

enum port_state {
	PORT_CLOSED, /* there is none, or it can't be opened */
	PORT_WAITING, /* open, no host at the other end */
	PORT_UP,
};

struct port {
	const char *root;
	const char *configured; /* path, or "" */
	char path[AGENT_PORT_MAX];
	int fd;
	enum port_state state;
	int error; /* why it is closed, a negative errno */
	uint64_t next_us; /* when to look again, while it isn't up */
	size_t len; /* bytes in the queue */
	uint64_t dropped; /* frames that didn't fit */
	uint8_t queue[PORT_QUEUE];
};

/**
 * port_find() - find the port by its name, also without udev.
 * @ret: AGENT_PORT_MAX bytes.
 *
 * Return: 0, or -ENOENT.
 */
int port_find(const char *root, char *ret);

/**
 * port_init() - nothing is opened yet.
 * @configured: path of the port, or "" to look for it by name; kept.
 */
void port_init(struct port *port, const char *root, const char *configured);

/**
 * port_check() - open the port if it is time, and see whether there is a host.
 * @epoll_fd: the port is added to it when it is opened.
 *
 * Return: whether a host has come: a session begins.
 */
bool port_check(struct port *port, int epoll_fd, uint64_t now_us);

/**
 * port_read() - read what there is.
 *
 * Return: bytes; 0 if there is nothing now; -EPIPE if the host has gone: the session is over and
 * the queue is empty.
 */
ssize_t port_read(struct port *port, void *buf, size_t size, uint64_t now_us);

/**
 * port_send() - queue a frame and write what can be written.
 * @droppable: don't queue it behind something else: it will be out of date.
 *
 * Return: whether it was taken.
 */
bool port_send(struct port *port, const uint8_t *frame, size_t size, bool droppable);

/**
 * port_flush() - write what can be written.
 */
void port_flush(struct port *port);

void port_close(struct port *port);

#endif
