/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the policy decided in one round: numbers of the whole, one verdict a guest, and the actions
 * to carry out. A decision is the one record that explain, the journal, the metrics, the bus and
 * the tests all render. Plain data; the arrays belong to whoever made the plan with plan_init().
 */
#ifndef BALLAST_CORE_PLAN_H
#define BALLAST_CORE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/snapshot.h"

enum reason {
#define REASON(id, name, text, a, b, c, d) REASON_##id,
#include "daemon/core/reason.def"
#undef REASON
	REASON_MAX_ID,
};

struct reason_info {
	const char *name;
	const char *text;
	const char *operand[4];
};

extern const struct reason_info reason_infos[REASON_MAX_ID];

enum action {
	ACTION_NONE, /* a verdict only */
	ACTION_SHED, /* ask the agent to reclaim .bytes and report them */
	ACTION_BALLOON, /* set the target from .old_target to .new_target */
	ACTION_PROFILE, /* apply the profile of .level in the guest */
	ACTION_SAMPLE, /* ask the agent for a sample now */
	ACTION_MAX_ID,
};

/* What a shed may take beside lazyfree memory, which it always may; 1:1 on the wire. */
enum shed_flag {
	SHED_FILE = 1 << 0, /* cold page cache */
	SHED_ANON = 1 << 1, /* anonymous memory; without it swappiness is 0 */
};

struct decision {
	uint64_t at_us;
	uint32_t slot;
	enum action action;
	enum reason reason;
	uint64_t operand[4];
	uint64_t old_target, new_target; /* of the balloon, bytes */
	uint64_t bytes; /* to shed */
	uint32_t shed_flags;
	uint64_t lifetime_us; /* a shed not begun by then is void */
	enum level level;
};

/* What a guest is to the policy at present; one a guest and round. */
enum guest_state {
	STATE_IDLE, /* settled */
	STATE_OBSERVED, /* not acted on by configuration or mode */
	STATE_EXCLUDED, /* can't be acted on */
	STATE_GIVING, /* memory is being taken from it */
	STATE_RELIEVED, /* memory is being given to it */
	STATE_LOCKED, /* its cap follows its footprint */
	STATE_WAITING, /* an action is under way or is being observed */
	STATE_BACKOFF, /* stuck, disbelieved or foreign */
	STATE_BLIND, /* numbers are missing */
	STATE_MAX_ID,
};

struct verdict {
	uint32_t slot;
	enum guest_state state;
	enum reason reason;
	uint64_t operand[4];
	enum action wants; /* what it does, or, while it only observes, would do */
	uint64_t target; /* of the balloon, as the policy wants it now */
	uint64_t in_flight; /* asked for and not seen on the host yet */
	uint64_t tiers[5]; /* backed free, lazyfree, file, anonymous, text: bytes */
	bool tiers_known;
	uint64_t entitlement;
	uint64_t dead_time_us; /* from an action to its effect on the footprint, as measured */
};

struct plan {
	uint64_t at_us;
	enum level level;
	uint64_t budget, footprint, headroom, grant_pool, in_flight;
	uint64_t need, shortfall, slack;
	uint64_t floor; /* sum of the minima and R; above the budget: infeasible */
	uint64_t dead_time_us; /* the longest of the guests' */
	struct verdict *verdicts; /* one a guest of the snapshot, in its order */
	size_t n_verdicts;
	struct decision *decisions; /* to be carried out, all of them and nothing else */
	size_t n_decisions;
	struct decision *observed; /* never to be carried out: what it would have done, once each */
	size_t n_observed;
	size_t capacity; /* guests that the arrays were made for */
};

#define PLAN_DECISIONS_PER_GUEST 4

/**
 * plan_init() - allocate a plan for up to @capacity guests.
 *
 * Return: 0 or -ENOMEM.
 */
int plan_init(struct plan *plan, size_t capacity);

/** plan_done() - release what plan_init() allocated; @plan may be all zero. */
void plan_done(struct plan *plan);

const char *action_name(enum action action);
const char *guest_state_name(enum guest_state state);

/**
 * decision_text() - one line for a person: action, amounts, reason with its operands.
 * @buf, @size: where to write, always terminated.
 */
void decision_text(const struct decision *decision, char *buf, size_t size);

#endif
