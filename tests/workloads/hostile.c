/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What no guest should do to the host: it sits on the agent's port and speaks the agent's protocol
 * in bad faith. Start the guest with agent=no.
 *
 *	hostile MODE [--anon MIB] [--cache MIB]
 */
#include "guest-agent/proto/wire.h"
#include "tests/workloads/work.h"

#define TICK_MS 10

enum { ANON, CACHE, N_OPTIONS };

static const char port_path[] = "/dev/virtio-ports/" WIRE_PORT_NAME;
static const char cold_file[] = "/data/cold";

struct hostile;

/* Counts are frames in a tick, "every" is in ticks. */
struct mode {
	const char *name;
	unsigned int hellos, samples, pressures, results;
	unsigned int hello_every, sample_every;
	unsigned int answer_after; /* ticks */
	bool new_nonce, new_boot, bye, noise, half, deaf;
	void (*edit)(struct hostile *h, struct stat_set *stats);
};

struct hostile {
	const struct mode *mode;
	int fd;
	uint64_t tick, random, nonce, total;
	uint32_t seq, last_command;
	uint64_t answer_at; /* tick, 0: nothing to answer */
	struct wire_message command;
	struct wire_decoder decoder;
};

static void edit_huge(struct hostile *h, struct stat_set *stats)
{
	for (int i = 0; i < STAT_MAX_ID; i++)
		stat_put(stats, i, UINT64_MAX - (h->tick & 1));
}

static void edit_wraps(struct hostile *h, struct stat_set *stats)
{
	static const uint64_t values[] = {
		0, 1, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX - 4095, UINT64_MAX
	};

	for (int i = 0; i < STAT_MAX_ID; i++)
		stat_put(stats, i, values[work_random(&h->random) % 6]);
}

/* Always in need: stalls and refaults with every sample. */
static void edit_stalls(struct hostile *h, struct stat_set *stats)
{
	stat_put(stats, STAT_ALLOC_STALL, 100 * h->tick);
	stat_put(stats, STAT_REFAULT_FILE, 100 * h->tick);
	stat_put(stats, STAT_SWAP_IN, 100 * h->tick);
	stat_put(stats, STAT_OOM_KILL, h->tick);
	stat_put(stats, STAT_PSI_SOME, 10000 * h->tick);
	stat_put(stats, STAT_PSI_FULL, 10000 * h->tick);
}

static void edit_text(struct hostile *h, struct stat_set *stats)
{
	stat_put(stats, STAT_EXEC_MAPPED, h->total);
	stat_put(stats, STAT_MAPPED, h->total);
	stat_put(stats, STAT_FREE, 0);
}

static void edit_lazyfree(struct hostile *h, struct stat_set *stats)
{
	stat_put(stats, STAT_LAZYFREE, 2 * h->total);
	stat_put(stats, STAT_INACTIVE_FILE, 2 * h->total);
}

static void edit_free(struct hostile *h, struct stat_set *stats)
{
	stat_put(stats, STAT_FREE, 2 * h->total);
	stat_put(stats, STAT_TOTAL, 4 * h->total);
}

static const struct mode modes[] = {
	{ "flood", .samples = 50 },
	{ "noise", .noise = true },
	{ "half", .half = true, .hello_every = 300 },
	{ "hello", .hellos = 20 },
	{ "sessions", .hello_every = 25, .new_nonce = true },
	{ "nonces", .hellos = 1, .new_nonce = true, .new_boot = true },
	{ "flap", .hello_every = 25, .bye = true, .new_nonce = true },
	{ "boots", .hello_every = 10, .new_boot = true, .sample_every = 20 },
	{ "huge", .sample_every = 20, .edit = edit_huge },
	{ "wraps", .sample_every = 20, .edit = edit_wraps },
	{ "pressure", .pressures = 100, .sample_every = 20, .edit = edit_stalls },
	{ "results", .results = 20, .sample_every = 100 },
	{ "lazyfree", .sample_every = 50, .edit = edit_lazyfree },
	{ "free", .sample_every = 50, .edit = edit_free },
	{ "text", .sample_every = 50, .edit = edit_text },
	{ "slow", .sample_every = 100, .answer_after = 400, .edit = edit_lazyfree },
	{ "deaf", .sample_every = 50, .deaf = true, .edit = edit_lazyfree },
};

static void put(struct hostile *h, const void *data, size_t size)
{
	if (write(h->fd, data, size) < 0 && errno != EAGAIN && errno != EPIPE)
		work_die("%s: %s", port_path, strerror(errno));
}

static void say(struct hostile *h, struct wire_message *message)
{
	uint8_t frame[WIRE_FRAME_MAX];
	ssize_t n;

	message->seq = ++h->seq;
	n = wire_encode(message, frame, sizeof(frame));
	if (n > 0)
		put(h, frame,
		    h->mode->half && message->type == WIRE_SAMPLE ? (size_t)n / 2 : (size_t)n);
}

static void say_hello(struct hostile *h)
{
	struct wire_message message = {
		.type = WIRE_HELLO,
		.hello = { .protocol = 1,
			   .boot_id_hi = 1,
			   .page_size = 4096,
			   .kernel_major = 6,
			   .capabilities = UINT64_MAX,
			   .knobs_writable = UINT64_MAX,
			   .interval_ms = 1000,
			   .clock_us = UINT64_MAX - 5,
			   .release = "6.66.hostile",
			   .agent = "666" },
	};

	if (h->mode->new_nonce)
		h->nonce++;
	if (h->mode->new_boot)
		message.hello.boot_id_hi = work_random(&h->random);
	message.hello.nonce = h->nonce;
	say(h, &message);
}

static uint64_t meminfo(const char *key)
{
	unsigned long long value = 0;
	char line[128];
	FILE *file = fopen("/proc/meminfo", "re");

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':')
			value = strtoull(line + strlen(key) + 1, NULL, 10);
	if (file)
		(void)fclose(file);
	return value * 1024;
}

static void say_sample(struct hostile *h)
{
	struct wire_message message = {
		.type = WIRE_SAMPLE,
		.sample = { .clock_us = work_random(&h->random),
			    .cause = h->mode->samples ? WIRE_CAUSE_ASKED : WIRE_CAUSE_TIMER,
			    .interval_ms = 1000,
			    .slow_age_us = UINT64_MAX },
	};
	struct stat_set *stats = &message.sample.stats;

	stat_put(stats, STAT_TOTAL, h->total);
	stat_put(stats, STAT_FREE, meminfo("MemFree"));
	stat_put(stats, STAT_ACTIVE_FILE, meminfo("Active(file)"));
	stat_put(stats, STAT_INACTIVE_FILE, meminfo("Inactive(file)"));
	stat_put(stats, STAT_ACTIVE_ANON, meminfo("Active(anon)"));
	stat_put(stats, STAT_INACTIVE_ANON, meminfo("Inactive(anon)"));
	if (h->mode->edit)
		h->mode->edit(h, stats);
	say(h, &message);
}

static void say_pressure(struct hostile *h)
{
	struct wire_message message = {
		.type = WIRE_PRESSURE,
		.pressure = { .clock_us = h->tick,
			      .kind = WIRE_PSI_FULL,
			      .some_us = UINT64_MAX,
			      .full_us = UINT64_MAX },
	};

	say(h, &message);
}

/* Of a shed that may never have been asked for, with an effect that there never was. */
static void say_result(struct hostile *h, uint32_t to)
{
	struct wire_message message = {
		.type = WIRE_RESULT,
		.result = { .command_seq = to,
			    .command_type = WIRE_SHED,
			    .asked = UINT64_MAX,
			    .done = UINT64_MAX },
	};

	say(h, &message);
}

/* Everything is done at once, and nothing of it is true. */
static void say_done(struct hostile *h)
{
	const struct wire_message *command = &h->command;
	struct wire_message message = {
		.type = WIRE_RESULT,
		.result = { .command_seq = command->seq,
			    .command_type = command->type,
			    .asked = command->type == WIRE_SHED ? command->shed.bytes : 0,
			    .done = command->type == WIRE_SHED ? command->shed.bytes : 0 },
	};

	say(h, &message);
	h->answer_at = 0;
}

static void listen_to_host(struct hostile *h)
{
	uint8_t data[1024];
	const uint8_t *at = data;
	struct wire_message message;
	ssize_t n = read(h->fd, data, sizeof(data));
	size_t left = n > 0 ? (size_t)n : 0;
	enum wire_error error;

	while ((error = wire_decoder_push(&h->decoder, &at, &left, &message)) != WIRE_MORE) {
		if (error != WIRE_OK || message.type == WIRE_WELCOME)
			continue;
		h->last_command = message.seq;
		h->command = message;
		h->answer_at = h->tick + h->mode->answer_after + 1;
	}
}

static bool is_due(const struct hostile *h, unsigned int every)
{
	return every > 0 && h->tick % every == 0;
}

static void say_noise(struct hostile *h)
{
	uint64_t noise[64];

	for (size_t i = 0; i < 64; i++)
		noise[i] = work_random(&h->random);
	put(h, noise, sizeof(noise));
}

static void act(struct hostile *h)
{
	const struct mode *mode = h->mode;
	struct wire_message bye = { .type = WIRE_BYE };

	if (mode->bye && is_due(h, mode->hello_every))
		say(h, &bye);
	/* Where it isn't the attack itself, often enough to be heard by a daemon that comes late. */
	if (is_due(h, mode->hello_every ? mode->hello_every : 100))
		say_hello(h);
	for (unsigned int i = 0; i < mode->hellos; i++)
		say_hello(h);
	for (unsigned int i = 0; i < mode->samples; i++)
		say_sample(h);
	for (unsigned int i = 0; i < mode->pressures; i++)
		say_pressure(h);
	for (unsigned int i = 0; i < mode->results; i++)
		say_result(h, h->last_command > i ? h->last_command - i : i);
	if (is_due(h, mode->sample_every) || mode->half)
		say_sample(h);
	if (mode->noise)
		say_noise(h);
	if (!mode->deaf)
		listen_to_host(h);
	if (h->answer_at && h->tick >= h->answer_at)
		say_done(h);
}

static const struct mode *find_mode(const char *name)
{
	for (size_t i = 0; name && i < sizeof(modes) / sizeof(*modes); i++)
		if (strcmp(modes[i].name, name) == 0)
			return &modes[i];
	return NULL;
}

int main(int argc, char **argv)
{
	struct work_option options[N_OPTIONS] = {
		[ANON] = { "--anon", 48 },
		[CACHE] = { "--cache", 48 },
	};
	struct hostile h = { .random = 88172645463325252u, .nonce = 1 };
	const char *name = NULL;
	uint64_t next;

	work_options(argc, argv, options, N_OPTIONS, &name);
	h.mode = find_mode(name);
	if (!h.mode)
		work_die("hostile: no mode '%s'", name ? name : "");
	(void)work_cold_anon(options[ANON].value * WORK_MIB, 1);
	work_read_file(cold_file, 0, options[CACHE].value * WORK_MIB);
	h.total = meminfo("MemTotal");
	h.fd = open(port_path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (h.fd < 0)
		work_die("%s: %s", port_path, strerror(errno));
	work_say("ready");
	next = work_now_usec();
	for (;; h.tick++) {
		act(&h);
		next += TICK_MS * 1000;
		if (next < work_now_usec())
			next = work_now_usec();
		work_sleep_until(next);
	}
}
