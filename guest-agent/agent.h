/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The agent as a whole: one thread, one epoll loop.
 *
 * Theory of operation. A session begins when a host takes the other end of the port: a new nonce,
 * a hello, a sample. From then on a sample goes out at each interval, pressure when the kernel's
 * trigger fires, the hello again every few seconds (a host that has taken over within a blink
 * isn't seen as a new session, but learns the nonce by it) and when settings have changed, and
 * results when commands are done.
 * Long work (the sum over processes, a shed) is cut into steps, one a turn of the loop.
 *
 * A command is carried out only if it repeats the session's nonce, its lifetime isn't over and
 * the guest's owner permits it. What was set in the guest is leased: when the host has been silent
 * for longer than the lease, connected or not, the guest's own values come back, and so at the end.
 */
#ifndef BALLAST_AGENT_AGENT_H
#define BALLAST_AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "guest-agent/config.h"
#include "guest-agent/facts.h"
#include "guest-agent/knobs.h"
#include "guest-agent/port.h"
#include "guest-agent/proto/wire.h"
#include "guest-agent/sampler.h"
#include "guest-agent/shed.h"
#include "guest-agent/trigger.h"

#define AGENT_INTERVAL_MS 1000
#define AGENT_HELLO_US	  4000000

struct session {
	uint64_t nonce;
	uint32_t seq;
	uint64_t heard_us; /* when the host last spoke as it should */
	uint64_t lease_us;
	uint64_t next_hello_us, next_sample_us;
	struct wire_decoder decoder;
	struct wire_hello hello; /* collected at its beginning */
};

struct agent {
	const char *root;
	struct agent_config config;
	uint64_t interval_ms;
	struct port port;
	struct sampler sampler;
	struct trigger trigger;
	struct knobs knobs;
	struct shed shed;
	struct session session;
	int epoll_fd, signal_fd;
	uint64_t watchdog_us, next_watchdog_us;
	int told; /* what was last said of the port: 2 serving, 1 waiting, or why it is closed */
	int restore_told; /* why own values could not be restored, said last; 0: they could */
	int lock_fd; /* held as long as we run: one agent a guest */
};

/**
 * agent_init() - open what the agent needs.
 * @agent: all zero but root and config.
 * @ret_error: on failure, the one line to show.
 *
 * Return: 0, or a negative errno.
 */
int agent_init(struct agent *agent, char *ret_error, size_t error_size);

/**
 * agent_run() - serve until SIGTERM or SIGINT, then restore the guest's own values.
 *
 * Return: 0, or a negative errno of the loop itself.
 */
int agent_run(struct agent *agent);

void agent_deinit(struct agent *agent);

/**
 * agent_restore() - give every setting its own value back, and say on stderr if that can't be.
 */
void agent_restore(struct agent *agent);

/* Between the loop and the frames: session.c. */

/**
 * session_begin() - a host has come.
 */
void session_begin(struct agent *agent, uint64_t now_us);

/**
 * session_end() - the host has gone: what it asked for and isn't done is dropped.
 */
void session_end(struct agent *agent);

/**
 * session_bytes() - take bytes from the host that arrived at a time.
 */
void session_bytes(struct agent *agent, const uint8_t *data, size_t size, uint64_t arrived_us);

void session_hello(struct agent *agent, uint64_t now_us);
void session_sample(struct agent *agent, enum wire_sample_cause cause);
void session_bye(struct agent *agent, enum wire_bye_cause cause);

/**
 * session_shed() - take a step of the shed in progress and answer when it is over.
 */
void session_shed(struct agent *agent);

/**
 * session_pressure() - the trigger fired: stop a shed, and say so at once. The kernel counts no
 * stall for reclaim by memory.reclaim, so our own shed doesn't fire it.
 */
void session_pressure(struct agent *agent, uint64_t now_us);

/**
 * session_lease() - restore the guest's own values if the host has been silent for too long.
 *
 * Return: when to look again, or UINT64_MAX while nothing is leased.
 */
uint64_t session_lease(struct agent *agent, uint64_t now_us);

#endif
