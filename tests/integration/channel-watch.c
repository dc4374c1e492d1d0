// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * channel-watch SOCKET: shows what an agent says, a line an event, and sends what standard input
 * asks for, a line a command: shed BYTES, rate MS, sample, quit.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "daemon/guest/channel.h"
#include "daemon/util/time.h"

static void on_link(struct channel *channel, enum agent_link link, const char *reason,
		    void *userdata)
{
	(void)channel;
	(void)userdata;
	printf("link %s %s\n", agent_link_name(link), reason);
}

static void on_hello(struct channel *channel, const struct wire_hello *hello, bool new_session,
		     void *userdata)
{
	(void)channel;
	(void)userdata;
	printf("hello new=%d boot=%" PRIx64 "%" PRIx64 " release=%s agent=%s capabilities=%x\n",
	       new_session, hello->boot_id_hi, hello->boot_id_lo, hello->release, hello->agent,
	       channel_capabilities(hello));
}

static void on_sample(struct channel *channel, const struct wire_sample *sample, uint64_t at_us,
		      void *userdata)
{
	(void)channel;
	(void)at_us;
	(void)userdata;
	printf("sample cause=%" PRIu64 " interval=%" PRIu64 " total=%" PRIu64 " free=%" PRIu64 "\n",
	       sample->cause, sample->interval_ms, sample->stats.value[STAT_TOTAL],
	       sample->stats.value[STAT_FREE]);
}

static void on_pressure(struct channel *channel, const struct wire_pressure *pressure,
			uint64_t at_us, void *userdata)
{
	(void)channel;
	(void)at_us;
	(void)userdata;
	printf("pressure some=%" PRIu64 "\n", pressure->some_us);
}

static void on_result(struct channel *channel, const struct wire_result *result, int status,
		      uint64_t at_us, void *userdata)
{
	(void)channel;
	(void)at_us;
	(void)userdata;
	printf("result seq=%" PRIu64 " type=%s status=%d done=%" PRIu64 "\n", result->command_seq,
	       wire_type_name((unsigned int)result->command_type), status, result->done);
}

static const struct channel_callbacks callbacks = { on_link, on_hello, on_sample, on_pressure,
						    on_result };

static int send_command(struct channel *channel, char *line, uint32_t *ret_seq)
{
	char *verb = strtok(line, " \n"), *value = strtok(NULL, " \n");
	struct wire_shed shed = { .bytes = value ? strtoull(value, NULL, 10) : 0 };

	if (verb && strcmp(verb, "shed") == 0)
		return channel_send_shed(channel, &shed, 5 * USEC_PER_SEC, ret_seq);
	if (verb && strcmp(verb, "rate") == 0)
		return channel_send_rate(channel, shed.bytes, 5 * USEC_PER_SEC, ret_seq);
	return channel_send_sample_now(channel, 5 * USEC_PER_SEC, ret_seq);
}

static int on_input(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	uint32_t seq = 0;
	char line[256];
	int r;

	(void)fd;
	(void)events;
	if (!fgets(line, sizeof(line), stdin) || strcmp(line, "quit\n") == 0)
		return sd_event_exit(sd_event_source_get_event(source), 0);
	r = send_command(userdata, line, &seq);
	printf("sent seq=%" PRIu32 " r=%d\n", seq, r);
	return 0;
}

int main(int argc, char **argv)
{
	struct channel *channel = NULL;
	sd_event *event = NULL;
	int r;

	if (argc != 2)
		return EXIT_FAILURE;
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)setvbuf(stdin, NULL, _IONBF, 0);
	r = sd_event_new(&event);
	if (r >= 0)
		r = channel_new(&channel, event, argv[1], &callbacks, NULL);
	if (r >= 0)
		channel_lease(channel, true);
	if (r >= 0)
		r = sd_event_add_io(event, NULL, STDIN_FILENO, EPOLLIN, on_input, channel);
	if (r >= 0)
		r = sd_event_loop(event);
	(void)channel_free(channel);
	(void)sd_event_unref(event);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
