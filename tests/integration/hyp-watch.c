// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Shows what daemon/hyp says, a line a message, and takes requests a line from standard input:
 *
 *	stats			ask for statistics
 *	balloon UUID BYTES	set a target
 *	list			list again
 *	quit			or end of file
 *
 * For the scripts beside it, and for a person: hyp-watch [URI [read-only]].
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/hyp/hyp.h"
#include "daemon/util/time.h"
#include "daemon/util/uuid.h"

static void show_guest(const struct hyp_guest *guest)
{
	printf(" pid=%d phase=%s started=%d obstacles=%" PRIu32 " maximum=%" PRIu64
	       " autodeflate=%d reporting=%d tcg=%d channel=%s open=%d metadata=%s",
	       guest->pid, guest_phase_name(guest->phase), guest->started, guest->obstacles,
	       guest->maximum, guest->autodeflate, guest->reporting, guest->tcg,
	       guest->channel_path, guest->channel_open, guest->metadata);
}

static void show_stats(const struct hyp_stats *stats)
{
	printf(" phase=%s complete=%d actual=%" PRIu64 " maximum=%" PRIu64 " updated=%d",
	       guest_phase_name(stats->phase), stats->complete, stats->actual, stats->maximum,
	       stats->updated);
	if (stats->has_usable)
		printf(" usable=%" PRIu64, stats->usable);
	if (stats->has_unused)
		printf(" unused=%" PRIu64, stats->unused);
}

static void show(const struct hyp_message *message, uint64_t start_us)
{
	printf("%" PRIu64 " %s", (now_us() - start_us) / USEC_PER_MSEC,
	       hyp_kind_name(message->kind));
	if (message->name[0])
		printf(" %s", message->name);
	if (message->kind == HYP_GUEST)
		show_guest(&message->guest);
	else if (message->kind == HYP_STATS)
		show_stats(&message->stats);
	else if (message->kind == HYP_PHASE)
		printf(" phase=%s", guest_phase_name(message->phase));
	else if (message->kind == HYP_BALLOON)
		printf(" actual=%" PRIu64, message->actual);
	else if (message->kind == HYP_CALL_DONE)
		printf(" target=%" PRIu64 " status=%s took=%" PRIu64 "ms", message->call.target,
		       message->call.status ? strerrorname_np(-message->call.status) : "ok",
		       (message->at_us - message->call.sent_us) / USEC_PER_MSEC);
	else if (message->kind == HYP_SUSPECT)
		printf(" suspect=%d", message->suspect);
	printf(" code=%d text=%s\n", message->code, message->text);
}

static int request(struct hyp *h, char *line)
{
	char *verb = strtok(line, " \n"), *uuid_text, *bytes;
	uint8_t uuid[16];

	if (!verb)
		return -EINVAL;
	if (strcmp(verb, "stats") == 0)
		return hyp_request_stats(h);
	if (strcmp(verb, "list") == 0)
		return hyp_request_list(h);
	uuid_text = strtok(NULL, " \n");
	bytes = strtok(NULL, " \n");
	if (strcmp(verb, "balloon") != 0 || !uuid_text || !bytes || uuid_parse(uuid_text, uuid) < 0)
		return -EINVAL;
	return hyp_request_balloon(h, uuid, strtoull(bytes, NULL, 10));
}

static bool take_request(struct hyp *h)
{
	char line[256];
	int r;

	if (!fgets(line, sizeof(line), stdin) || strcmp(line, "quit\n") == 0)
		return false;
	r = request(h, line);
	if (r < 0)
		printf("refused %s\n", strerrorname_np(-r));
	return true;
}

int main(int argc, char **argv)
{
	struct hyp_options options = { .retry_max_us = 2 * USEC_PER_SEC };
	uint64_t start_us = now_us();
	struct hyp_message message;
	struct hyp *h;
	bool go = true;
	int r;

	options.uri = argc > 1 ? argv[1] : NULL;
	options.read_only = argc > 2 && strcmp(argv[2], "read-only") == 0;
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)setvbuf(stdin, NULL, _IONBF, 0);
	r = hyp_new(&h, &options);
	if (r < 0) {
		fprintf(stderr, "hyp-watch: %s\n", strerror(-r));
		return EXIT_FAILURE;
	}
	while (go) {
		struct pollfd fds[] = { { .fd = hyp_fd(h), .events = POLLIN },
					{ .fd = STDIN_FILENO, .events = POLLIN } };

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		if (fds[0].revents)
			while (hyp_next(h, &message))
				show(&message, start_us);
		if (fds[1].revents)
			go = take_request(h);
	}
	(void)hyp_free(h);
	return EXIT_SUCCESS;
}
