/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A channel between two stand-ins: a listening socket for QEMU, and the test itself for the guest.
 * What the channel tells is noted. One test at a time.
 */
#ifndef BALLAST_TESTS_UNIT_CHANNEL_FIXTURE_H
#define BALLAST_TESTS_UNIT_CHANNEL_FIXTURE_H

#include "tests/unit/harness.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/guest/internal.h"
#include "daemon/util/time.h"

#define NONCE 77

static const struct channel_limits limits = {
	.hello_us = 60000,
	.silence_us = 80000,
	.retry_min_us = 10000,
	.retry_max_us = 20000,
	.broken_min_us = 150000,
	.broken_max_us = 300000,
	.forgive_us = 10 * USEC_PER_SEC,
	.welcome_us = USEC_PER_SEC,
	.lease_us = 3 * USEC_PER_SEC,
	.pressure_us = 50000,
	.session_us = 5000,
	.calm_us = 30000,
	.bytes_per_s = 64 * 1024,
	.strikes = 4,
};

/* What the channel has told. */
struct told {
	unsigned int n_links, n_hellos, n_sessions, n_samples, n_pressures, n_results;
	enum agent_link link;
	char reason[128];
	struct wire_hello hello;
	struct wire_sample sample;
	struct wire_result result;
	int status;
};

struct fixture {
	sd_event *event;
	struct channel *channel;
	struct told told;
	char path[64];
	int listener, guest; /* guest: the accepted connection */
	uint32_t seq;
};

static inline void on_link(struct channel *channel, enum agent_link link, const char *reason,
			   void *userdata)
{
	struct told *told = userdata;

	(void)channel;
	told->n_links++;
	told->link = link;
	(void)snprintf(told->reason, sizeof(told->reason), "%s", reason);
}

static inline void on_hello(struct channel *channel, const struct wire_hello *hello,
			    bool new_session, void *userdata)
{
	struct told *told = userdata;

	(void)channel;
	told->n_hellos++;
	told->n_sessions += new_session;
	told->hello = *hello;
}

static inline void on_sample(struct channel *channel, const struct wire_sample *sample,
			     uint64_t at_us, void *userdata)
{
	struct told *told = userdata;

	(void)channel;
	CU_ASSERT(at_us <= now_us());
	told->n_samples++;
	told->sample = *sample;
}

static inline void on_pressure(struct channel *channel, const struct wire_pressure *pressure,
			       uint64_t at_us, void *userdata)
{
	struct told *told = userdata;

	(void)channel;
	(void)pressure;
	(void)at_us;
	told->n_pressures++;
}

static inline void on_result(struct channel *channel, const struct wire_result *result, int status,
			     uint64_t at_us, void *userdata)
{
	struct told *told = userdata;

	(void)channel;
	(void)at_us;
	told->n_results++;
	told->result = *result;
	told->status = status;
}

static const struct channel_callbacks callbacks = { on_link, on_hello, on_sample, on_pressure,
						    on_result };

/* --- The stand-in for QEMU and guest ---------------------------------------------------------- */

static inline void run_for(struct fixture *f, uint64_t us)
{
	uint64_t end = now_us() + us, now;

	while ((now = now_us()) < end)
		if (sd_event_run(f->event, end - now) < 0)
			CU_FAIL_FATAL("the loop failed");
}

static inline void start_listening(struct fixture *f)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", f->path);
	f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	CU_ASSERT_FATAL(bind(f->listener, (struct sockaddr *)&address, sizeof(address)) == 0);
	CU_ASSERT_FATAL(listen(f->listener, 1) == 0);
}

static inline void accept_host(struct fixture *f)
{
	for (int i = 0; i < 200; i++) {
		run_for(f, 2000);
		f->guest = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (f->guest >= 0)
			return;
	}
	CU_FAIL_FATAL("the channel doesn't connect");
}

static inline void setup(struct fixture *f)
{
	*f = (struct fixture){ .listener = -1, .guest = -1 };
	(void)snprintf(f->path, sizeof(f->path), "/tmp/ballast-channel-%d.sock", (int)getpid());
	(void)unlink(f->path);
	CU_ASSERT_FATAL(sd_event_new(&f->event) >= 0);
	CU_ASSERT_FATAL(channel_new_limited(&f->channel, f->event, f->path, &callbacks, &f->told,
					    &limits) == 0);
	channel_lease(f->channel, true);
}

static inline void setup_connected(struct fixture *f)
{
	setup(f);
	start_listening(f);
	accept_host(f);
}

static inline void teardown(struct fixture *f)
{
	f->channel = channel_free(f->channel);
	(void)sd_event_unref(f->event);
	if (f->guest >= 0)
		(void)close(f->guest);
	if (f->listener >= 0)
		(void)close(f->listener);
	(void)unlink(f->path);
}

static inline void say_bytes(struct fixture *f, const void *data, size_t size)
{
	CU_ASSERT_EQUAL(send(f->guest, data, size, MSG_NOSIGNAL), (ssize_t)size);
	run_for(f, 2000);
}

static inline size_t encode(struct fixture *f, struct wire_message *message, uint8_t *frame)
{
	ssize_t n;

	message->seq = f->seq++;
	n = wire_encode(message, frame, WIRE_FRAME_MAX);
	CU_ASSERT_FATAL(n > 0);
	return (size_t)n;
}

static inline void say(struct fixture *f, struct wire_message *message)
{
	uint8_t frame[WIRE_FRAME_MAX];

	say_bytes(f, frame, encode(f, message, frame));
}

static inline struct wire_message hello_message(uint64_t nonce)
{
	struct wire_message message = { .type = WIRE_HELLO };

	message.hello = (struct wire_hello){
		.protocol = WIRE_VERSION,
		.nonce = nonce,
		.page_size = 4096,
		.boot_id_hi = 1,
		.capabilities = WIRE_CAP_SAMPLE | WIRE_CAP_SHED,
		.interval_ms = 100,
		.clock_us = 5 * USEC_PER_SEC,
		.release = "6.12.0",
		.agent = "0.1",
	};
	return message;
}

static inline void say_hello(struct fixture *f, uint64_t nonce)
{
	struct wire_message message = hello_message(nonce);

	say(f, &message);
}

static inline struct wire_message sample_message(uint64_t free_bytes)
{
	struct wire_message message = { .type = WIRE_SAMPLE };

	message.sample.interval_ms = 100;
	message.sample.clock_us = 6 * USEC_PER_SEC;
	stat_put(&message.sample.stats, STAT_FREE, free_bytes);
	return message;
}

static inline void say_sample(struct fixture *f, uint64_t free_bytes)
{
	struct wire_message message = sample_message(free_bytes);

	say(f, &message);
}

/* The next frame of the host, or false. */
static inline bool hear(struct fixture *f, struct wire_message *ret)
{
	uint8_t header[WIRE_FRAME_MAX];
	ssize_t n = recv(f->guest, header, WIRE_HEADER_SIZE, MSG_PEEK);
	uint32_t length;

	if (n < WIRE_HEADER_SIZE)
		return false;
	memcpy(&length, header + 8, sizeof(length));
	n = recv(f->guest, header, WIRE_HEADER_SIZE + length, 0);
	CU_ASSERT_EQUAL_FATAL(wire_decode(header, (size_t)n, ret), WIRE_OK);
	return true;
}

static inline bool hear_type(struct fixture *f, enum wire_type type, struct wire_message *ret)
{
	while (hear(f, ret))
		if (ret->type == type)
			return true;
	return false;
}

#endif
