// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Talk to a real guest's agent from a script:
 *
 *	agent-talk SOCKET COMMAND...
 *
 * Commands are carried out in their order on one connection; each prints one line:
 *
 *	hello			wait for a hello
 *	sample			wait for a sample
 *	ask			ask for a sample and wait for it
 *	rate=MS			set the interval
 *	shed=BYTES[,file][,anon]	shed, with a lifetime of 20 s; samples on the way are counted
 *	set=KNOB:VALUE[,KNOB:VALUE]...	set these settings, and give the others their own values
 *	welcome=MS		grant a lease
 *	pressure=MS		wait that long for a pressure frame
 *	quiet=MS		wait that long: fails if a pressure frame comes
 *	count=MS		count samples for that long, with what they cost
 *	bye			wait for the agent to say bye
 *
 * Ends with 1 at the first command that fails.
 */
#include <stdlib.h>

#include "tests/integration/peer.h"

#define PATIENCE_MS 15000

static void print_stats(const struct wire_sample *sample)
{
	for (int i = 0; i < STAT_MAX_ID; i++)
		if (stat_has(&sample->stats, i))
			printf(" %s=%s%llu", stat_infos[i].name,
			       sample->approximate >> i & 1 ? "~" : "",
			       (unsigned long long)sample->stats.value[i]);
}

static void print_settings(const char *prefix, const struct profile *profile)
{
	for (int i = 0; i < KNOB_MAX_ID; i++)
		if (knob_has(profile, i))
			printf(" %s.%s=%llu", prefix, knob_infos[i].name,
			       (unsigned long long)profile->value[i]);
}

static void print_message(const struct wire_message *msg)
{
	printf("%s seq=%u", wire_type_name(msg->type), msg->seq);
	if (msg->type == WIRE_HELLO) {
		printf(" nonce=%llx release=%s capabilities=%llx knobs=%llx",
		       (unsigned long long)msg->hello.nonce, msg->hello.release,
		       (unsigned long long)msg->hello.capabilities,
		       (unsigned long long)msg->hello.knobs_writable);
		print_settings("own", &msg->hello.own);
		print_settings("now", &msg->hello.now);
	}
	if (msg->type == WIRE_SAMPLE) {
		printf(" clock_us=%llu slow_age_us=%llu cost_us=%llu cause=%llu",
		       (unsigned long long)msg->sample.clock_us,
		       (unsigned long long)msg->sample.slow_age_us,
		       (unsigned long long)msg->sample.cost_us,
		       (unsigned long long)msg->sample.cause);
		print_stats(&msg->sample);
	}
	if (msg->type == WIRE_RESULT)
		printf(" status=%llu asked=%llu done=%llu took_us=%llu",
		       (unsigned long long)msg->result.status,
		       (unsigned long long)msg->result.asked, (unsigned long long)msg->result.done,
		       (unsigned long long)msg->result.took_us);
	if (msg->type == WIRE_PRESSURE)
		printf(" window_us=%llu threshold_us=%llu some_us=%llu",
		       (unsigned long long)msg->pressure.window_us,
		       (unsigned long long)msg->pressure.threshold_us,
		       (unsigned long long)msg->pressure.some_us);
	printf("\n");
}

static bool wait_and_print(struct peer *peer, enum wire_type type, int timeout_ms)
{
	struct wire_message msg;

	if (!peer_wait(peer, type, &msg, timeout_ms))
		return false;
	print_message(&msg);
	return true;
}

/* Wait for the answer, and count the samples that come before it. */
static bool ask_and_print(struct peer *peer, const struct wire_message *command)
{
	struct wire_message msg;
	unsigned int samples = 0;

	if (!peer_send(peer, command))
		return false;
	while (peer_next(peer, &msg, PATIENCE_MS)) {
		samples += msg.type == WIRE_SAMPLE;
		if (msg.type != WIRE_RESULT || msg.result.command_seq != command->seq)
			continue;
		printf("samples=%u ", samples);
		print_message(&msg);
		return msg.result.status == 0;
	}
	return false;
}

static bool do_shed(struct peer *peer, const char *value)
{
	struct wire_message msg = peer_command(peer, WIRE_SHED);

	msg.command.lifetime_ms = 20000;
	msg.shed.bytes = strtoull(value, NULL, 10);
	msg.shed.swappiness = 200;
	if (strstr(value, ",file"))
		msg.shed.flags |= WIRE_SHED_FILE;
	if (strstr(value, ",anon"))
		msg.shed.flags |= WIRE_SHED_ANON;
	return ask_and_print(peer, &msg);
}

static bool put_setting(struct profile *profile, const char *setting)
{
	const char *colon = strchr(setting, ':');
	char name[32] = "";
	int id;

	if (colon)
		(void)snprintf(name, sizeof(name), "%.*s", (int)(colon - setting), setting);
	id = knob_by_name(name);
	if (id >= 0)
		knob_put(profile, id, strtoull(colon + 1, NULL, 10));
	return id >= 0;
}

static bool do_set(struct peer *peer, const char *value)
{
	struct wire_message msg = peer_command(peer, WIRE_PROFILE);

	for (;;) {
		if (!put_setting(&msg.profile, value))
			return false;
		value = strchr(value, ',');
		if (!value++)
			return ask_and_print(peer, &msg);
	}
}

static bool do_rate(struct peer *peer, const char *value)
{
	struct wire_message msg = peer_command(peer, WIRE_RATE);

	msg.rate.interval_ms = strtoull(value, NULL, 10);
	return ask_and_print(peer, &msg);
}

static bool do_welcome(struct peer *peer, const char *value)
{
	struct wire_message msg = peer_command(peer, WIRE_WELCOME);

	msg.welcome.lease_ms = strtoull(value, NULL, 10);
	return peer_send(peer, &msg);
}

static bool do_ask(struct peer *peer)
{
	struct wire_message msg = peer_command(peer, WIRE_SAMPLE_NOW);

	if (!peer_send(peer, &msg))
		return false;
	while (peer_wait(peer, WIRE_SAMPLE, &msg, PATIENCE_MS))
		if (msg.sample.cause == WIRE_CAUSE_ASKED) {
			print_message(&msg);
			return true;
		}
	return false;
}

static bool do_count(struct peer *peer, int timeout_ms)
{
	uint64_t begin = peer_now_us(), end = begin + (uint64_t)timeout_ms * 1000;
	struct wire_message msg;
	uint64_t first = 0, last = 0;
	unsigned int n = 0;

	while (peer_now_us() < end && peer_wait(peer, WIRE_SAMPLE, &msg, timeout_ms)) {
		if (n++ == 0)
			first = msg.sample.cost_us;
		last = msg.sample.cost_us;
	}
	printf("count samples=%u cost_us=%llu a_sample_us=%llu wall_us=%llu\n", n,
	       (unsigned long long)(last - first),
	       (unsigned long long)(n > 1 ? (last - first) / (n - 1) : 0),
	       (unsigned long long)(peer_now_us() - begin));
	return n > 1;
}

static bool carry_out(struct peer *peer, const char *command)
{
	const char *value = strchr(command, '=');
	size_t len = value ? (size_t)(value++ - command) : strlen(command);
	int ms = value ? atoi(value) : 0; // NOLINT: a test's own argument

#define IS(name) (strlen(name) == len && strncmp(command, name, len) == 0)
	if (IS("hello"))
		return wait_and_print(peer, WIRE_HELLO, PATIENCE_MS);
	if (IS("sample"))
		return wait_and_print(peer, WIRE_SAMPLE, PATIENCE_MS);
	if (IS("bye"))
		return wait_and_print(peer, WIRE_BYE, PATIENCE_MS);
	if (IS("ask"))
		return do_ask(peer);
	if (IS("pressure"))
		return wait_and_print(peer, WIRE_PRESSURE, ms);
	if (IS("quiet"))
		return !wait_and_print(peer, WIRE_PRESSURE, ms);
	if (IS("count"))
		return do_count(peer, ms);
	if (IS("rate") && value)
		return do_rate(peer, value);
	if (IS("welcome") && value)
		return do_welcome(peer, value);
	if (IS("shed") && value)
		return do_shed(peer, value);
	if (IS("set") && value)
		return do_set(peer, value);
	return false;
}

int main(int argc, char **argv)
{
	struct peer peer;
	int r;

	if (argc < 3) {
		fprintf(stderr, "usage: agent-talk SOCKET COMMAND...\n");
		return EXIT_FAILURE;
	}
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	r = peer_connect(&peer, argv[1]);
	if (r < 0) {
		fprintf(stderr, "agent-talk: %s: %s\n", argv[1], strerror(-r));
		return EXIT_FAILURE;
	}
	for (int i = 2; i < argc; i++) {
		if (carry_out(&peer, argv[i]))
			continue;
		printf("failed: %s (%u malformed frames)\n", argv[i], peer.bad);
		peer_close(&peer);
		return EXIT_FAILURE;
	}
	peer_close(&peer);
	return EXIT_SUCCESS;
}
