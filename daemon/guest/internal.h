/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of a channel share, its limits, and what tests call by itself.
 */
#ifndef BALLAST_GUEST_INTERNAL_H
#define BALLAST_GUEST_INTERNAL_H

#include <sys/un.h>

#include "daemon/guest/channel.h"

#define COMMAND_MAX 512 /* bytes of a frame that the host sends */
#define QUEUE_MAX   2
#define REASON_MAX  128
#define NEVER	    UINT64_MAX

/* All times in µs. A test makes them short. */
struct channel_limits {
	uint64_t hello_us; /* for a hello after the connection */
	uint64_t silence_us; /* without a frame, in sample intervals where those are longer */
	uint64_t retry_min_us, retry_max_us; /* back-off of connecting */
	uint64_t broken_min_us, broken_max_us; /* ... after the guest broke the protocol */
	uint64_t forgive_us; /* one strike is forgotten after this time */
	uint64_t welcome_us; /* between two signs of life */
	uint64_t lease_us;
	uint64_t pressure_us; /* least time between two pressure callbacks */
	uint64_t session_us; /* least time between two new sessions */
	uint64_t calm_us; /* a new session sooner after the last one is a breach */
	uint64_t bytes_per_s; /* that are read, at most that many at once, too */
	unsigned int strikes; /* breaches of the protocol until the guest is cut off */
};

extern const struct channel_limits channel_default_limits;

/** channel_new_limited() - channel_new() with other limits; @limits is kept, not copied. */
int channel_new_limited(struct channel **ret, sd_event *event, const char *path,
			const struct channel_callbacks *callbacks, void *userdata,
			const struct channel_limits *limits);

struct outgoing {
	uint8_t data[COMMAND_MAX];
	size_t size, sent;
	uint64_t void_us; /* not begun by then: dropped */
};

struct channel {
	const struct channel_limits *limits;
	struct channel_callbacks callbacks;
	void *userdata;
	sd_event *event;
	sd_event_source *io, *timer;
	struct sockaddr_un address;
	int fd; /* -1: closed */
	struct channel_counters counters;

	enum agent_link link;
	char reason[REASON_MAX];
	bool guest_open;

	/* deadlines, NEVER: none */
	uint64_t retry_us, hello_us, silence_us, welcome_us, resume_us;
	uint64_t retry_delay_us, broken_delay_us;

	/* what comes in */
	struct wire_decoder decoder;
	uint64_t budget, budget_us; /* bytes that may be read, as of that time */
	unsigned int strikes;
	uint64_t strike_us; /* of the last one, or when one was forgiven */
	bool noise; /* something came that wasn't the protocol, before a hello */
	bool cut; /* the guest is to be cut off */

	/* the session */
	bool session;
	bool lease; /* granted; kept over sessions */
	bool samples; /* the guest's owner permits samples, so there should be some */
	uint64_t nonce, session_us;
	uint64_t interval_us;
	uint64_t guest_clock_us, guest_clock_at_us; /* the agent's clock, and when by ours */
	uint64_t pressure_us; /* of the last callback */

	/* what goes out */
	uint32_t next_seq;
	struct outgoing queue[QUEUE_MAX];
	size_t n_queue;
};

/* channel.c */
void channel_set_link(struct channel *channel, enum agent_link link, const char *reason);
void channel_end_session(struct channel *channel);
void channel_watch(struct channel *channel); /* set what the loop should wake us for */

/* send.c */
void channel_flush(struct channel *channel, uint64_t now); /* write what the socket takes */
void channel_welcome(struct channel *channel, uint64_t now); /* a sign of life to the agent */

/* receive.c; sets .cut where the guest is to be cut off */
void channel_take_bytes(struct channel *channel, const uint8_t *data, size_t size, uint64_t now);

enum socket_clients {
	SOCKET_UNKNOWN, /* no such socket is listed, as in another network namespace */
	SOCKET_OURS, /* our connection was accepted, or nobody's was */
	SOCKET_OTHERS, /* somebody's was accepted and ours waits */
};

/**
 * socket_clients_parse() - who is connected to a listening Unix socket.
 * @text: of /proc/net/unix. @path: of the socket.
 *
 * QEMU serves one client; the connections of others stay in the state that comes before.
 */
enum socket_clients socket_clients_parse(const char *text, const char *path);

#endif
