/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages of each type with all their fields, and their frames. Constant data, nothing owned.
 */
#ifndef BALLAST_TESTS_UNIT_WIRE_MESSAGES_H
#define BALLAST_TESTS_UNIT_WIRE_MESSAGES_H

#include <errno.h>

#include "guest-agent/proto/wire.h"
#include "tests/unit/harness.h"

static const enum wire_type all_types[] = {
	WIRE_HELLO,   WIRE_SAMPLE,  WIRE_PRESSURE, WIRE_RESULT,	    WIRE_BYE,
	WIRE_WELCOME, WIRE_PROFILE, WIRE_SHED,	   WIRE_SAMPLE_NOW, WIRE_RATE,
};

#define N_TYPES (sizeof(all_types) / sizeof(*all_types))

static inline struct wire_message make_hello(void)
{
	struct wire_message msg = { .type = WIRE_HELLO,
				    .seq = 1,
				    .hello = { .protocol = 1,
					       .nonce = UINT64_MAX,
					       .boot_id_hi = 0x1122334455667788,
					       .boot_id_lo = 1,
					       .page_size = 4096,
					       .kernel_major = 6,
					       .kernel_minor = 12,
					       .kernel_patch = 117,
					       .capabilities = WIRE_CAP_SAMPLE | WIRE_CAP_SHED,
					       .interval_ms = 1000,
					       .release = "6.12.117-ballast",
					       .agent = "0.1" } };

	knob_put(&msg.hello.own, KNOB_SWAPPINESS, 60);
	knob_put(&msg.hello.now, KNOB_SWAPPINESS, 10);
	return msg;
}

static inline struct wire_message make_sample(void)
{
	struct wire_message msg = { .type = WIRE_SAMPLE,
				    .seq = 2,
				    .sample = {
					    .clock_us = 5, .uptime_us = 6, .interval_ms = 1000 } };

	for (int i = 0; i < STAT_MAX_ID; i += 2)
		stat_put(&msg.sample.stats, i, (uint64_t)i << 40);
	stat_put(&msg.sample.stats, STAT_LAZYFREE, 0);
	msg.sample.approximate = UINT64_C(1) << STAT_LAZYFREE;
	return msg;
}

/* A message of each type in which every value is good. */
static inline struct wire_message make(enum wire_type type)
{
	struct wire_message msg = { .type = type, .seq = 0xfffffffe };

	if (type == WIRE_HELLO)
		return make_hello();
	if (type == WIRE_SAMPLE)
		return make_sample();
	if (wire_from_host(type))
		msg.command = (struct wire_command){ .nonce = 9, .lifetime_ms = 500, .sent_us = 3 };
	if (type == WIRE_PRESSURE)
		msg.pressure = (struct wire_pressure){ 1, WIRE_PSI_FULL, 2, 3, 4, 5 };
	if (type == WIRE_RESULT)
		msg.result = (struct wire_result){ 1, WIRE_SHED, ETIME, 2, 3, 4, 5 };
	if (type == WIRE_BYE)
		msg.bye = (struct wire_bye){ WIRE_BYE_STOP, 7 };
	if (type == WIRE_WELCOME)
		msg.welcome.lease_ms = WIRE_LEASE_MAX_MS;
	if (type == WIRE_PROFILE)
		knob_put(&msg.profile, KNOB_LAZYFREE_FIRST, 2);
	if (type == WIRE_SHED)
		msg.shed = (struct wire_shed){ 1 << 20, 200, WIRE_SHED_FILE };
	if (type == WIRE_RATE)
		msg.rate.interval_ms = WIRE_INTERVAL_MIN_MS;
	return msg;
}

static inline bool same(const struct wire_message *a, const struct wire_message *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static inline size_t encode(const struct wire_message *msg, uint8_t *buf)
{
	ssize_t n = wire_encode(msg, buf, WIRE_FRAME_MAX);

	CU_ASSERT_FATAL(n >= WIRE_HEADER_SIZE);
	return (size_t)n;
}

#endif
