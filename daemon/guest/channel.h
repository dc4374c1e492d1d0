/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host's end of one guest's agent channel, on sd-event. It connects to the channel's Unix
 * socket by itself and again after a loss with a back-off, decodes what the guest sends, and sends
 * commands. The guest is not trusted: it can make the channel neither block nor grow, nor take more
 * than its share of the loop (64 KiB a second, then its socket isn't read for a while). A guest
 * that breaks the protocol is cut off and tried again later. What it says is passed on as it is;
 * the core clamps.
 *
 * Use: channel_new() when HYP_GUEST names a socket; the callbacks run in the loop's thread, out of
 * the loop only, never from within channel_new(). A callback may call channel_send_…() but must not
 * free the channel. To free it later from the loop: note it and do it after hyp_next() or a defer
 * source. The channel renews the guest's lease by itself while it is up (WELCOME), where
 * channel_lease() grants one.
 *
 * Times in µs of CLOCK_MONOTONIC.
 */
#ifndef BALLAST_GUEST_CHANNEL_H
#define BALLAST_GUEST_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "daemon/core/snapshot.h"
#include "guest-agent/proto/wire.h"

struct channel;

/* What happened; each may be NULL. @userdata is what channel_new() got. */
struct channel_callbacks {
	/* The state has changed. @reason: one line for a person, such as "Permission denied". */
	void (*link_changed)(struct channel *channel, enum agent_link link, const char *reason,
			     void *userdata);
	/*
	 * A session began (@new_session) or the agent repeated its hello. What was known of the
	 * guest's inside is void for a new session. The boot id tells a reboot from a restart of
	 * the agent or of a link.
	 */
	void (*hello)(struct channel *channel, const struct wire_hello *hello, bool new_session,
		      void *userdata);
	/* @at_us: arrival. Only after a hello, as all that follow. */
	void (*sample)(struct channel *channel, const struct wire_sample *sample, uint64_t at_us,
		       void *userdata);
	/* At most ten a second; those between are counted and dropped. */
	void (*pressure)(struct channel *channel, const struct wire_pressure *pressure,
			 uint64_t at_us, void *userdata);
	/* @status: 0 or a negative errno. The sequence is in result->command_seq. */
	void (*result)(struct channel *channel, const struct wire_result *result, int status,
		       uint64_t at_us, void *userdata);
};

struct channel_counters {
	uint64_t bytes_in, frames_in, frames_out;
	uint64_t refused; /* frames or noise that weren't the protocol */
	uint64_t dropped; /* frames too many, or before the hello */
	uint64_t pauses; /* times that reading was paused since the guest sent too much */
	uint64_t late; /* commands never sent because their lifetime ran out in the queue */
};

/**
 * channel_new() - watch a channel.
 * @event: the loop; a reference is kept. @path: of the socket; copied.
 * @callbacks: copied. @ret: owned by the caller, to be given to channel_free().
 *
 * Return: 0, -ENOMEM, -ENAMETOOLONG, or what sd-event says.
 */
int channel_new(struct channel **ret, sd_event *event, const char *path,
		const struct channel_callbacks *callbacks, void *userdata);

/**
 * channel_lease() - whether the guest's settings are the host's to change. Only then the channel
 * renews the agent's lease: at once, and from then on. Not so at first.
 */
void channel_lease(struct channel *channel, bool granted);

/** channel_free() - close it; the guest restores its own values when its lease ends. */
struct channel *channel_free(struct channel *channel);

enum agent_link channel_link(const struct channel *channel);
const struct channel_counters *channel_counters(const struct channel *channel);

/**
 * channel_guest_open() - tell what the hypervisor says of the guest's end (HYP_GUEST). It only makes the state clearer: an open end without a hello is AGENT_BUSY.
 */
void channel_guest_open(struct channel *channel, bool open);

/**
 * channel_send_shed(), channel_send_profile(), channel_send_sample_now(), channel_send_rate() -
 * send a command to the agent. Never blocks.
 * @lifetime_us: after this time it is void, in our queue as well as in the guest; 1 ms to 60 s.
 * @ret_seq: the sequence that the result will name; may be NULL.
 *
 * Return: 0 (sent or queued); -ENOTCONN without a hello, -EAGAIN while two commands wait for a
 * guest that doesn't read, -EINVAL for a value that the protocol doesn't permit.
 */
int channel_send_shed(struct channel *channel, const struct wire_shed *shed, uint64_t lifetime_us,
		      uint32_t *ret_seq);
int channel_send_profile(struct channel *channel, const struct profile *profile,
			 uint64_t lifetime_us, uint32_t *ret_seq);
int channel_send_sample_now(struct channel *channel, uint64_t lifetime_us, uint32_t *ret_seq);
int channel_send_rate(struct channel *channel, uint64_t interval_ms, uint64_t lifetime_us,
		      uint32_t *ret_seq);

/** channel_capabilities() - a hello's capabilities as enum agent_capability has them. */
uint32_t channel_capabilities(const struct wire_hello *hello);

/** channel_settable() - bit a knob_id: the settings that a profile can set in the guest. */
uint32_t channel_settable(const struct wire_hello *hello);

#endif
