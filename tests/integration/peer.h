/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host's end of an agent's port, for tests: a Unix socket that listens for the agent or
 * connects to the socket of a real guest's channel, and frames over it.
 */
#ifndef BALLAST_TESTS_PEER_H
#define BALLAST_TESTS_PEER_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "guest-agent/proto/wire.h"

struct peer {
	int listener, fd;
	uint32_t seq;
	uint64_t nonce; /* of the last hello */
	uint64_t clock_us; /* the agent's, of the last frame that has it */
	unsigned int bad; /* malformed frames */
	struct wire_decoder decoder;
	uint8_t buf[2048];
	const uint8_t *at;
	size_t left;
};

static inline uint64_t peer_now_us(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static inline int peer_socket(const char *path, struct sockaddr_un *addr)
{
	*addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	(void)snprintf(addr->sun_path, sizeof(addr->sun_path), "%s", path);
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static inline int peer_listen(struct peer *peer, const char *path)
{
	struct sockaddr_un addr;

	(void)unlink(path);
	*peer = (struct peer){ .fd = -1, .listener = peer_socket(path, &addr) };
	if (bind(peer->listener, (const struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    listen(peer->listener, 4) < 0)
		return -errno;
	return 0;
}

static inline void peer_begin(struct peer *peer, int fd)
{
	peer->fd = fd;
	peer->seq = 0;
	peer->nonce = 0;
	peer->left = 0;
	memset(&peer->decoder, 0, sizeof(peer->decoder));
}

static inline int peer_connect(struct peer *peer, const char *path)
{
	struct sockaddr_un addr;

	*peer = (struct peer){ .listener = -1 };
	peer_begin(peer, peer_socket(path, &addr));
	return connect(peer->fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0 ? -errno : 0;
}

static inline bool peer_readable(int fd, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, timeout_ms) == 1;
}

static inline bool peer_accept(struct peer *peer, int timeout_ms)
{
	if (!peer_readable(peer->listener, timeout_ms))
		return false;
	peer_begin(peer, accept(peer->listener, NULL, NULL));
	return peer->fd >= 0;
}

static inline void peer_hang_up(struct peer *peer)
{
	if (peer->fd >= 0)
		(void)close(peer->fd);
	peer->fd = -1;
}

static inline void peer_close(struct peer *peer)
{
	peer_hang_up(peer);
	if (peer->listener >= 0)
		(void)close(peer->listener);
	peer->listener = -1;
}

static inline void peer_note(struct peer *peer, const struct wire_message *msg)
{
	if (msg->type == WIRE_HELLO) {
		peer->nonce = msg->hello.nonce;
		peer->clock_us = msg->hello.clock_us;
	}
	if (msg->type == WIRE_SAMPLE)
		peer->clock_us = msg->sample.clock_us;
}

/* The next frame of any type. False when none comes in time or the agent hangs up. */
static inline bool peer_next(struct peer *peer, struct wire_message *ret, int timeout_ms)
{
	uint64_t end = peer_now_us() + (uint64_t)timeout_ms * 1000;

	for (;;) {
		enum wire_error error =
			wire_decoder_push(&peer->decoder, &peer->at, &peer->left, ret);
		uint64_t now = peer_now_us();
		ssize_t n;

		if (error == WIRE_OK) {
			peer_note(peer, ret);
			return true;
		}
		if (error != WIRE_MORE) {
			peer->bad++;
			continue;
		}
		if (now >= end || !peer_readable(peer->fd, (int)((end - now) / 1000) + 1))
			return false;
		n = read(peer->fd, peer->buf, sizeof(peer->buf));
		if (n <= 0)
			return false;
		peer->at = peer->buf;
		peer->left = (size_t)n;
	}
}

/* The next frame of one type; others are passed over. */
static inline bool peer_wait(struct peer *peer, enum wire_type type, struct wire_message *ret,
			     int timeout_ms)
{
	uint64_t end = peer_now_us() + (uint64_t)timeout_ms * 1000;

	for (;;) {
		uint64_t now = peer_now_us();

		if (now >= end || !peer_next(peer, ret, (int)((end - now) / 1000) + 1))
			return false;
		if (ret->type == type)
			return true;
	}
}

/* A command with the session's nonce and a lifetime of two seconds. */
static inline struct wire_message peer_command(struct peer *peer, enum wire_type type)
{
	return (struct wire_message){
		.type = type,
		.seq = peer->seq++,
		.command = { .nonce = peer->nonce, .lifetime_ms = 2000 },
	};
}

static inline bool peer_send(struct peer *peer, const struct wire_message *msg)
{
	uint8_t frame[WIRE_FRAME_MAX];
	ssize_t n = wire_encode(msg, frame, sizeof(frame));

	return n > 0 && send(peer->fd, frame, (size_t)n, MSG_NOSIGNAL) == n;
}

/* Send a command and wait for its result. False when none comes. */
static inline bool peer_ask(struct peer *peer, const struct wire_message *msg,
			    struct wire_message *ret, int timeout_ms)
{
	uint32_t seq = msg->seq; /* both may be the same */

	if (!peer_send(peer, msg))
		return false;
	while (peer_wait(peer, WIRE_RESULT, ret, timeout_ms))
		if (ret->result.command_seq == seq)
			return true;
	return false;
}

#endif
