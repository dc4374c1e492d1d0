/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A host with guests of every kind, without any behind it: what the tests of the bus, the record
 * and ballastctl serve, render and show. Fill a struct fake with fake_init(); it must not move.
 */
#ifndef BALLAST_TESTS_FAKE_VIEW_H
#define BALLAST_TESTS_FAKE_VIEW_H

#include <stdlib.h>
#include <string.h>

#include "daemon/core/history.h"
#include "daemon/ipc/bus.h"

#define FAKE_MIB    (UINT64_C(1) << 20)
#define FAKE_SEC    UINT64_C(1000000)
#define FAKE_NOW    (1000 * FAKE_SEC)
#define FAKE_GUESTS 5
/* 2026-01-02 03:04:05 UTC at FAKE_NOW */
#define FAKE_REALTIME_OFFSET (INT64_C(1767323045000000) - (int64_t)FAKE_NOW)

/* Everything that a name can do to a terminal: a title, colours, a line break, bad UTF-8, RTL. */
#define FAKE_HOSTILE                                                                               \
	"evil\033]0;owned\a\033[31m\n\xff\xe2\x80\xae"                                             \
	"fdp"
#define FAKE_UUID "00112233-4455-6677-8899-aabbccddee01"

enum { FAKE_WEB, FAKE_STALE, FAKE_BARE, FAKE_LONG, FAKE_EVIL };

struct fake {
	struct bus_view view;
	struct snapshot snapshot;
	struct guest_snapshot guests[FAKE_GUESTS];
	struct plan plan;
	struct verdict verdicts[FAKE_GUESTS];
	struct settings settings;
	struct history *history;
};

static inline void fake_agent(struct agent_part *agent, uint64_t age_us)
{
	static const struct {
		enum stat_id id;
		uint64_t value;
	} stats[] = {
		{ STAT_TOTAL, 2000 * FAKE_MIB },      { STAT_FREE, 90 * FAKE_MIB },
		{ STAT_LAZYFREE, 300 * FAKE_MIB },    { STAT_EXEC_MAPPED, 50 * FAKE_MIB },
		{ STAT_SWAP_ENTRIES, 12 * FAKE_MIB }, { STAT_MAJFAULT, 1234 },
		{ STAT_PSI_SOME, 5 * FAKE_SEC },
	};

	*agent = (struct agent_part){
		.link = AGENT_UP,
		.capabilities =
			AGENT_MAY_SAMPLE | AGENT_MAY_PROFILE | AGENT_MAY_SHED | AGENT_HAS_RECLAIM,
		.at_us = FAKE_NOW - age_us,
		.previous_at_us = FAKE_NOW - age_us - FAKE_SEC,
	};
	for (size_t i = 0; i < sizeof(stats) / sizeof(stats[0]); i++)
		stat_put(&agent->stats, stats[i].id, stats[i].value);
	agent->previous = agent->stats;
	stat_put(&agent->previous, STAT_PSI_SOME, 5 * FAKE_SEC - FAKE_SEC / 400);
}

/* As a kernel with few levels of one setting, without two others, whose owner keeps one. */
static inline void fake_settings(struct agent_part *agent)
{
	static const struct {
		enum knob_id id;
		uint64_t in_force, own, asked;
	} knobs[] = {
		{ KNOB_EXEC_PROTECT, 1, 1, 2 },
		{ KNOB_LAZYFREE_FIRST, 2, 0, 2 },
		{ KNOB_SWAPPINESS, 60, 60, 10 },
		{ KNOB_REPORTING_DELAY_MS, 500, 2000, 500 },
		{ KNOB_REPORTING_ORDER, UINT64_MAX, UINT64_MAX, 2 },
	};

	for (size_t i = 0; i < sizeof(knobs) / sizeof(knobs[0]); i++) {
		knob_put(&agent->in_force, knobs[i].id, knobs[i].in_force);
		knob_put(&agent->own, knobs[i].id, knobs[i].own);
		knob_put(&agent->asked, knobs[i].id, knobs[i].asked);
		agent->settable |= UINT32_C(1) << knobs[i].id;
	}
	knob_drop(&agent->asked, KNOB_REPORTING_ORDER);
	knob_put(&agent->asked, KNOB_REPORTING_BUDGET, 4);
	agent->settable &= ~(UINT32_C(1) << KNOB_SWAPPINESS);
	agent->profile_set = true;
	agent->profile_level = LEVEL_TIGHT;
	agent->capabilities |=
		AGENT_HAS_REPORTING | AGENT_HAS_LAZYFREE_FIRST | AGENT_HAS_EXEC_PROTECT;
}

static inline void fake_guest(struct fake *fake, int i, const char *name)
{
	struct guest_snapshot *guest = &fake->guests[i];
	struct verdict *verdict = &fake->verdicts[i];

	guest->slot = (uint32_t)i;
	strncpy(guest->name, name, sizeof(guest->name) - 1);
	for (int k = 0; k < 16; k++)
		guest->uuid[k] = (uint8_t)(k * 0x11);
	guest->uuid[15] = (uint8_t)(i + 1);
	guest->phase = PHASE_RUNNING;
	guest->phase_since_us = FAKE_NOW - 500 * FAKE_SEC;
	guest->settings = fake->settings.defaults;
	guest->rule = -1;
	guest->balloon = (struct balloon_part){ .at_us = FAKE_NOW - FAKE_SEC / 2,
						.actual = 2048 * FAKE_MIB,
						.maximum = 2048 * FAKE_MIB };
	guest->cost = (struct cost_part){ .at_us = FAKE_NOW - FAKE_SEC / 2,
					  .resident = 1860 * FAKE_MIB,
					  .overhead = 60 * FAKE_MIB,
					  .footprint = 1800 * FAKE_MIB };
	verdict->slot = (uint32_t)i;
	verdict->state = STATE_IDLE;
	verdict->reason = REASON_SETTLED;
	verdict->target = 2048 * FAKE_MIB;
	verdict->entitlement = 1024 * FAKE_MIB;
}

static inline void fake_verdicts(struct fake *fake)
{
	struct verdict *web = &fake->verdicts[FAKE_WEB], *bare = &fake->verdicts[FAKE_BARE];

	web->state = STATE_GIVING;
	web->reason = REASON_SHED_LAZYFREE;
	web->operand[0] = 512 * FAKE_MIB;
	web->operand[1] = 300 * FAKE_MIB;
	web->wants = ACTION_SHED;
	web->tiers_known = true;
	web->tiers[1] = 300 * FAKE_MIB;
	web->tiers[4] = 50 * FAKE_MIB;
	web->dead_time_us = 1200000;
	fake->verdicts[FAKE_STALE].state = STATE_BLIND;
	fake->verdicts[FAKE_STALE].reason = REASON_NO_NUMBERS;
	bare->state = STATE_EXCLUDED;
	bare->reason = REASON_NO_BALLOON;
}

static inline void fake_decide(struct fake *fake, int i, uint64_t at_us, enum action action)
{
	struct decision decision = { .at_us = at_us,
				     .slot = (uint32_t)i,
				     .action = action,
				     .reason = action == ACTION_SHED ? REASON_SHED_LAZYFREE
								     : REASON_LOCK,
				     .operand = { 512 * FAKE_MIB, 300 * FAKE_MIB },
				     .old_target = 2048 * FAKE_MIB,
				     .new_target = 1900 * FAKE_MIB,
				     .bytes = 150 * FAKE_MIB };

	if (history_add(fake->history, &fake->guests[i], &decision, true, NULL) < 0)
		abort();
}

static inline void fake_history(struct fake *fake)
{
	struct guest_snapshot *web = &fake->guests[FAKE_WEB];

	fake_decide(fake, FAKE_WEB, FAKE_NOW - 60 * FAKE_SEC, ACTION_BALLOON);
	history_observe(fake->history, web, FAKE_NOW - 20 * FAKE_SEC, FAKE_SEC);
	fake_decide(fake, FAKE_WEB, FAKE_NOW - 4 * FAKE_SEC, ACTION_SHED);
	web->agent.shed_done_at_us = FAKE_NOW - 3 * FAKE_SEC;
	web->agent.shed_freed = 148 * FAKE_MIB;
	history_observe(fake->history, web, FAKE_NOW, FAKE_SEC);
	fake_decide(fake, FAKE_WEB, FAKE_NOW - FAKE_SEC / 10, ACTION_SHED);
}

static inline void fake_init(struct fake *fake)
{
	static const char *const names[FAKE_GUESTS] = {
		"web1", "stale-agent", "b\xc3\xbcro-\xe6\x97\xa5\xe6\x9c\xac",
		"a-name-of-a-hundred-characters-that-is-far-too-long-for-any-table-and-must-not-"
		"push-the-other-columns-out",
		FAKE_HOSTILE
	};

	*fake = (struct fake){ .snapshot = { .now_us = FAKE_NOW, .hypervisor_ready = true } };
	settings_init_defaults(&fake->settings);
	if (history_new(&fake->history, FAKE_GUESTS) < 0)
		abort();
	for (int i = 0; i < FAKE_GUESTS; i++)
		fake_guest(fake, i, names[i]);
	fake_agent(&fake->guests[FAKE_WEB].agent, FAKE_SEC / 2);
	fake_settings(&fake->guests[FAKE_WEB].agent);
	fake_agent(&fake->guests[FAKE_STALE].agent, 42 * FAKE_SEC);
	fake_agent(&fake->guests[FAKE_EVIL].agent, FAKE_SEC / 2);
	fake->guests[FAKE_EVIL].agent.approximate =
		UINT64_C(1) << STAT_LAZYFREE | UINT64_C(1) << STAT_EXEC_MAPPED;
	fake->guests[FAKE_BARE].balloon.at_us = 0;
	fake->guests[FAKE_BARE].cost.at_us = 0;
	fake->guests[FAKE_BARE].obstacles = OBSTACLE_NO_BALLOON;
	fake_verdicts(fake);
	fake_history(fake);
	fake->snapshot.host = (struct host_snapshot){ .at_us = FAKE_NOW - FAKE_SEC,
						      .total = 8192 * FAKE_MIB,
						      .free = 700 * FAKE_MIB,
						      .available = 900 * FAKE_MIB };
	fake->snapshot.guests = fake->guests;
	fake->snapshot.n_guests = FAKE_GUESTS;
	fake->plan = (struct plan){ .at_us = FAKE_NOW - FAKE_SEC / 10,
				    .level = LEVEL_TIGHT,
				    .budget = 6800 * FAKE_MIB,
				    .footprint = 7200 * FAKE_MIB,
				    .headroom = 112 * FAKE_MIB,
				    .need = 512 * FAKE_MIB,
				    .dead_time_us = 1200000,
				    .verdicts = fake->verdicts,
				    .n_verdicts = FAKE_GUESTS,
				    .capacity = FAKE_GUESTS };
	fake->view = (struct bus_view){ .snapshot = &fake->snapshot,
					.plan = &fake->plan,
					.settings = &fake->settings,
					.history = fake->history,
					.realtime_offset_us = FAKE_REALTIME_OFFSET };
}

static inline void fake_done(struct fake *fake)
{
	fake->history = history_free(fake->history);
}

#endif
