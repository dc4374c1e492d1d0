// SPDX-License-Identifier: GPL-2.0-or-later
/* What goes out: written at once, or kept in two frames until the guest reads. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/guest/internal.h"
#include "daemon/util/time.h"

/* Write what the socket takes. An error of the socket shows as an event, and is handled there. */
void channel_flush(struct channel *channel, uint64_t now)
{
	while (channel->n_queue) {
		struct outgoing *first = &channel->queue[0];
		ssize_t n;

		if (first->sent == 0 && now >= first->void_us) {
			channel->counters.late++;
		} else {
			n = send(channel->fd, first->data + first->sent, first->size - first->sent,
				 MSG_DONTWAIT | MSG_NOSIGNAL);
			if (n < 0)
				break;
			first->sent += (size_t)n;
			if (first->sent < first->size)
				break;
			channel->counters.frames_out++;
		}
		channel->n_queue--;
		memmove(first, first + 1, channel->n_queue * sizeof(*first));
	}
	channel_watch(channel);
}

static uint64_t guest_clock(const struct channel *channel, uint64_t now)
{
	if (!channel->guest_clock_at_us)
		return 0;
	return channel->guest_clock_us + (now - channel->guest_clock_at_us);
}

static int send_message(struct channel *channel, struct wire_message *message, uint64_t lifetime_us,
			uint32_t *ret_seq)
{
	struct outgoing *outgoing;
	uint64_t now = now_us();
	ssize_t n;

	if (!channel->session || channel->link != AGENT_UP)
		return -ENOTCONN;
	channel_flush(channel, now);
	if (channel->n_queue == QUEUE_MAX)
		return -EAGAIN;
	message->seq = channel->next_seq;
	message->command = (struct wire_command){
		.nonce = channel->nonce,
		.lifetime_ms = lifetime_us / USEC_PER_MSEC,
		.sent_us = guest_clock(channel, now),
	};
	outgoing = &channel->queue[channel->n_queue];
	n = wire_encode(message, outgoing->data, sizeof(outgoing->data));
	if (n < 0)
		return (int)n;
	outgoing->size = (size_t)n;
	outgoing->sent = 0;
	outgoing->void_us = now + lifetime_us;
	channel->n_queue++;
	channel->next_seq++;
	if (ret_seq)
		*ret_seq = message->seq;
	channel_flush(channel, now);
	return 0;
}

int channel_send_shed(struct channel *channel, const struct wire_shed *shed, uint64_t lifetime_us,
		      uint32_t *ret_seq)
{
	struct wire_message message = { .type = WIRE_SHED, .shed = *shed };

	return send_message(channel, &message, lifetime_us, ret_seq);
}

int channel_send_profile(struct channel *channel, const struct profile *profile,
			 uint64_t lifetime_us, uint32_t *ret_seq)
{
	struct wire_message message = { .type = WIRE_PROFILE, .profile = *profile };

	return send_message(channel, &message, lifetime_us, ret_seq);
}

int channel_send_sample_now(struct channel *channel, uint64_t lifetime_us, uint32_t *ret_seq)
{
	struct wire_message message = { .type = WIRE_SAMPLE_NOW };

	return send_message(channel, &message, lifetime_us, ret_seq);
}

int channel_send_rate(struct channel *channel, uint64_t interval_ms, uint64_t lifetime_us,
		      uint32_t *ret_seq)
{
	struct wire_message message = { .type = WIRE_RATE, .rate.interval_ms = interval_ms };

	return send_message(channel, &message, lifetime_us, ret_seq);
}

/*
 * A sign of life, which renews the guest's lease, whoever has set what is leased. So there is none
 * for a guest that isn't acted on: it has its own values back then, at the latest when the lease
 * ends. The agent needs it for nothing else.
 */
void channel_welcome(struct channel *channel, uint64_t now)
{
	struct wire_message message = {
		.type = WIRE_WELCOME,
		.welcome.lease_ms = channel->limits->lease_us / USEC_PER_MSEC,
	};

	channel->welcome_us = NEVER;
	if (!channel->lease)
		return;
	(void)send_message(channel, &message, channel->limits->welcome_us, NULL);
	channel->welcome_us = now + channel->limits->welcome_us;
}
