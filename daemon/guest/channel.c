// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation. A channel is closed and waits for its next attempt, or it is connected and
 * waits for a hello, or a session is on (nonce). A second client of QEMU's socket is let wait in
 * its queue by the kernel: it looks connected, and there is no hello. So a missing hello only
 * changes what is shown; the connection stays, and the hello may come at any time later.
 *
 * What comes in is limited by a bucket of bytes: when it is empty the socket isn't read for a
 * while, and QEMU and then the guest have to wait. Breaches of the protocol are strikes, which are
 * forgiven one by one; a few are normal, as when an agent dies within a frame. What goes out is
 * written at once or kept in two frames; a frame that was begun is finished, one that wasn't is
 * dropped when its lifetime is over. One timer serves all deadlines.
 */
#include "daemon/guest/channel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/guest/internal.h"
#include "daemon/util/cleanup.h"
#include "daemon/util/fs.h"
#include "daemon/util/num.h"
#include "daemon/util/time.h"

#define READ_SIZE      4096
#define SEND_BUFFER    8192 /* of the socket: few frames for a guest that doesn't read */
#define TIMER_ACCURACY (10 * USEC_PER_MSEC)
#define UNIX_LIST_MAX  (256 * 1024)

const struct channel_limits channel_default_limits = {
	.hello_us = 5 * USEC_PER_SEC,
	.silence_us = 5 * USEC_PER_SEC,
	.retry_min_us = 500 * USEC_PER_MSEC,
	.retry_max_us = 30 * USEC_PER_SEC,
	.broken_min_us = 5 * USEC_PER_SEC,
	.broken_max_us = 300 * USEC_PER_SEC,
	.forgive_us = 60 * USEC_PER_SEC,
	.welcome_us = WIRE_LEASE_DEFAULT_MS * USEC_PER_MSEC / 3,
	.lease_us = WIRE_LEASE_DEFAULT_MS * USEC_PER_MSEC,
	.pressure_us = 100 * USEC_PER_MSEC,
	.session_us = 200 * USEC_PER_MSEC,
	.calm_us = 10 * USEC_PER_SEC,
	.bytes_per_s = 64 * 1024,
	.strikes = 4,
};

static const struct channel_callbacks no_callbacks;

/* --- State ------------------------------------------------------------------------------------ */

/* Set the one timer to the earliest deadline. */
static void schedule(struct channel *channel)
{
	uint64_t at = min_u64(channel->retry_us, channel->hello_us);

	at = min_u64(at, min_u64(channel->silence_us, channel->welcome_us));
	at = min_u64(at, channel->resume_us);
	(void)sd_event_source_set_time(channel->timer, at);
	(void)sd_event_source_set_enabled(channel->timer,
					  at == NEVER ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

/* What the loop should wake us for. */
void channel_watch(struct channel *channel)
{
	uint32_t events = channel->resume_us == NEVER ? EPOLLIN : 0;

	if (channel->n_queue)
		events |= EPOLLOUT;
	if (channel->io)
		(void)sd_event_source_set_io_events(channel->io, events);
}

void channel_set_link(struct channel *channel, enum agent_link link, const char *reason)
{
	if (channel->link == link && strcmp(channel->reason, reason) == 0)
		return;
	channel->link = link;
	(void)snprintf(channel->reason, sizeof(channel->reason), "%s", reason);
	if (channel->callbacks.link_changed)
		channel->callbacks.link_changed(channel, link, channel->reason, channel->userdata);
}

void channel_end_session(struct channel *channel)
{
	channel->session = false;
	channel->nonce = 0;
	channel->guest_clock_us = channel->guest_clock_at_us = 0;
	channel->silence_us = channel->welcome_us = NEVER;
	channel->n_queue = 0;
}

static void close_link(struct channel *channel)
{
	channel_end_session(channel);
	channel->io = sd_event_source_disable_unref(channel->io);
	if (channel->fd >= 0)
		(void)close(TAKE_FD(channel->fd));
	wire_decoder_reset(&channel->decoder);
	channel->hello_us = channel->resume_us = NEVER;
	channel->noise = channel->cut = false;
}

/* Closed by the other side, or never opened: try again soon, then more rarely. */
static void lose(struct channel *channel, uint64_t now, enum agent_link link, const char *reason)
{
	close_link(channel);
	channel->retry_us = now + channel->retry_delay_us;
	channel->retry_delay_us =
		min_u64(channel->retry_delay_us * 2, channel->limits->retry_max_us);
	channel_set_link(channel, link, reason);
	schedule(channel);
}

/* Cut off by us. */
static void cut_off(struct channel *channel, uint64_t now)
{
	if (channel->session && now - channel->session_us >= channel->limits->broken_max_us)
		channel->broken_delay_us = channel->limits->broken_min_us;
	close_link(channel);
	channel->strikes = 0;
	channel->retry_us = now + channel->broken_delay_us;
	channel->broken_delay_us =
		min_u64(channel->broken_delay_us * 2, channel->limits->broken_max_us);
	schedule(channel);
}

/* --- The byte budget -------------------------------------------------------------------------- */

static void refill(struct channel *channel, uint64_t now)
{
	uint64_t most = channel->limits->bytes_per_s, passed = now - channel->budget_us;

	/* A second fills it, so the product below is small. */
	if (passed >= USEC_PER_SEC)
		channel->budget = most;
	else
		channel->budget = min_u64(channel->budget + passed * most / USEC_PER_SEC, most);
	channel->budget_us = now;
}

static void pause_reading(struct channel *channel, uint64_t now)
{
	channel->counters.pauses++;
	channel->resume_us = now + USEC_PER_SEC / 4;
	channel_watch(channel);
}

/* One read a turn of the loop, so that others have theirs. */
static void receive(struct channel *channel, uint64_t now)
{
	uint8_t data[READ_SIZE];
	ssize_t n;

	refill(channel, now);
	if (channel->budget < WIRE_HEADER_SIZE) {
		pause_reading(channel, now);
		return;
	}
	n = recv(channel->fd, data, min_u64(sizeof(data), channel->budget), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		lose(channel, now, AGENT_CONNECTING,
		     n < 0 ? strerror(errno) : "the hypervisor closed the channel");
		return;
	}
	channel->budget -= (uint64_t)n;
	channel->counters.bytes_in += (uint64_t)n;
	channel_take_bytes(channel, data, (size_t)n, now);
	if (channel->cut)
		cut_off(channel, now);
}

/* --- The loop's callbacks --------------------------------------------------------------------- */

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct channel *channel = userdata;
	uint64_t now = now_us();

	(void)source;
	(void)fd;
	if (events & EPOLLOUT)
		channel_flush(channel, now);
	/* While reading is paused the end is reported all the same. */
	if ((events & (EPOLLHUP | EPOLLERR)) && channel->resume_us != NEVER)
		lose(channel, now, AGENT_CONNECTING, "the hypervisor closed the channel");
	else if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		receive(channel, now);
	schedule(channel);
	return 0;
}

static int connect_socket(struct channel *channel)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int size = SEND_BUFFER, r;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (connect(fd, (const struct sockaddr *)&channel->address, sizeof(channel->address)) < 0)
		return -errno;
	r = sd_event_add_io(channel->event, &channel->io, fd, EPOLLIN, on_io, channel);
	if (r < 0)
		return r;
	channel->fd = TAKE_FD(fd);
	return 0;
}

static void open_link(struct channel *channel, uint64_t now)
{
	int r = connect_socket(channel);

	channel->retry_us = NEVER;
	if (r == -EAGAIN) {
		lose(channel, now, AGENT_BUSY, "too many wait for the channel");
		return;
	}
	if (r < 0) {
		lose(channel, now, AGENT_CONNECTING, strerror(-r));
		return;
	}
	channel->hello_us = now + channel->limits->hello_us;
	channel_set_link(channel, AGENT_CONNECTING, "waiting for the agent's hello");
}

static enum socket_clients ask_clients(const struct channel *channel)
{
	_cleanup_free_ char *text = malloc(UNIX_LIST_MAX);

	if (!text || fs_read("/proc/net/unix", text, UNIX_LIST_MAX) <= 0)
		return SOCKET_UNKNOWN;
	return socket_clients_parse(text, channel->address.sun_path);
}

/* There is no hello: say why, and keep waiting. */
static void explain_silence(struct channel *channel)
{
	enum socket_clients clients = ask_clients(channel);

	channel->hello_us = NEVER;
	if (clients == SOCKET_OTHERS ||
	    (clients == SOCKET_UNKNOWN && channel->guest_open && !channel->noise))
		channel_set_link(channel, AGENT_BUSY, "another program holds the channel");
	else if (channel->noise)
		channel_set_link(channel, AGENT_BROKEN,
				 "what runs in the guest isn't ballast-agent");
	else
		channel_set_link(channel, AGENT_SILENT,
				 channel->guest_open ? "the agent doesn't answer"
						     : "no ballast-agent runs in the guest");
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct channel *channel = userdata;
	uint64_t now = now_us();

	(void)source;
	(void)usec;
	if (now >= channel->retry_us)
		open_link(channel, now);
	if (now >= channel->hello_us)
		explain_silence(channel);
	if (now >= channel->resume_us) {
		channel->resume_us = NEVER;
		channel_watch(channel);
	}
	if (now >= channel->silence_us) {
		channel->silence_us = NEVER;
		channel_set_link(channel, AGENT_SILENT, "the agent has fallen silent");
	}
	if (now >= channel->welcome_us)
		channel_welcome(channel, now);
	schedule(channel);
	return 0;
}

/* --- The object ------------------------------------------------------------------------------- */

DEFINE_CLEANUP(struct channel *, channel_free);

int channel_new_limited(struct channel **ret, sd_event *event, const char *path,
			const struct channel_callbacks *callbacks, void *userdata,
			const struct channel_limits *limits)
{
	_cleanup_(channel_freep) struct channel *channel = NULL;
	int r;

	if (strlen(path) >= sizeof(channel->address.sun_path))
		return -ENAMETOOLONG;
	channel = calloc(1, sizeof(*channel));
	if (!channel)
		return -ENOMEM;
	channel->fd = -1;
	channel->limits = limits;
	channel->callbacks = callbacks ? *callbacks : no_callbacks;
	channel->userdata = userdata;
	channel->event = sd_event_ref(event);
	channel->link = AGENT_CONNECTING;
	channel->address.sun_family = AF_UNIX;
	memcpy(channel->address.sun_path, path, strlen(path) + 1);
	channel->retry_us = now_us();
	channel->retry_delay_us = limits->retry_min_us;
	channel->broken_delay_us = limits->broken_min_us;
	channel->hello_us = channel->silence_us = channel->welcome_us = channel->resume_us = NEVER;
	channel->budget = limits->bytes_per_s;
	channel->budget_us = channel->retry_us;
	channel->next_seq = 1;
	r = sd_event_add_time(event, &channel->timer, CLOCK_MONOTONIC, channel->retry_us,
			      TIMER_ACCURACY, on_timer, channel);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(channel);
	return 0;
}

int channel_new(struct channel **ret, sd_event *event, const char *path,
		const struct channel_callbacks *callbacks, void *userdata)
{
	return channel_new_limited(ret, event, path, callbacks, userdata, &channel_default_limits);
}

void channel_lease(struct channel *channel, bool granted)
{
	if (channel->lease == granted)
		return;
	channel->lease = granted;
	if (channel->session)
		channel_welcome(channel, now_us());
	schedule(channel);
}

struct channel *channel_free(struct channel *channel)
{
	if (!channel)
		return NULL;
	close_link(channel);
	channel->timer = sd_event_source_disable_unref(channel->timer);
	channel->event = sd_event_unref(channel->event);
	free(channel);
	return NULL;
}

enum agent_link channel_link(const struct channel *channel)
{
	return channel->link;
}

const struct channel_counters *channel_counters(const struct channel *channel)
{
	return &channel->counters;
}

void channel_guest_open(struct channel *channel, bool open)
{
	channel->guest_open = open;
}

uint32_t channel_capabilities(const struct wire_hello *hello)
{
	static const struct {
		uint64_t wire;
		enum agent_capability agent;
	} map[] = {
		{ WIRE_CAP_SAMPLE, AGENT_MAY_SAMPLE },
		{ WIRE_CAP_PROFILE, AGENT_MAY_PROFILE },
		{ WIRE_CAP_SHED, AGENT_MAY_SHED },
		{ WIRE_CAP_RECLAIM, AGENT_HAS_RECLAIM },
		{ WIRE_CAP_REPORTING, AGENT_HAS_REPORTING },
	};
	uint32_t capabilities = 0;

	for (size_t i = 0; i < sizeof(map) / sizeof(*map); i++)
		if (hello->capabilities & map[i].wire)
			capabilities |= map[i].agent;
	if (hello->knobs_writable & wire_knob_bit(KNOB_LAZYFREE_FIRST))
		capabilities |= AGENT_HAS_LAZYFREE_FIRST;
	if (hello->knobs_writable & wire_knob_bit(KNOB_EXEC_PROTECT))
		capabilities |= AGENT_HAS_EXEC_PROTECT;
	return capabilities;
}

uint32_t channel_settable(const struct wire_hello *hello)
{
	uint32_t settable = 0;

	for (int i = 0; i < KNOB_MAX_ID; i++)
		if (hello->knobs_writable & wire_knob_bit(i))
			settable |= UINT32_C(1) << i;
	return settable;
}
