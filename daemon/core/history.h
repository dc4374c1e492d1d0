/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The last decisions of each guest and what came of them. What came of one is read back from later
 * snapshots and never assumed: a balloon has to be seen at its target, a shed has to be answered
 * by the agent. Pure: time is in the arguments. Owned by the application, used in one thread.
 */
#ifndef BALLAST_CORE_HISTORY_H
#define BALLAST_CORE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/plan.h"
#include "daemon/core/snapshot.h"

#define HISTORY_DEPTH 64 /* decisions that are kept a guest */

enum outcome {
	OUTCOME_PENDING, /* not known yet */
	OUTCOME_OBSERVED, /* decided but not carried out: observe mode */
	OUTCOME_DONE,
	OUTCOME_PARTIAL, /* some of it, and no more in its time */
	OUTCOME_NO_EFFECT, /* nothing in its time */
	OUTCOME_SUPERSEDED, /* a newer decision of its kind came before it was done */
	OUTCOME_FAILED, /* refused, see .status */
	OUTCOME_MAX_ID,
};

struct history_entry {
	struct decision decision;
	uint64_t actual, footprint; /* bytes when it was decided, 0: not known */
	bool psi_known;
	uint64_t psi_some; /* of the guest when it was decided, hundredths of a percent */
	enum outcome outcome;
	int status; /* OUTCOME_FAILED: negative errno */
	uint64_t done_us; /* when the hypervisor or the agent was seen to have done it, 0: not */
	uint64_t settled_us; /* when the outcome was known, 0: not yet */
	uint64_t actual_after, footprint_after; /* bytes then, 0: not known */
	uint64_t freed; /* by a shed, bytes, as the guest says */
};

struct history;

/**
 * history_new() - make a history for guests in slots 0..@capacity-1. Memory for a guest's
 * decisions is taken when it has some.
 *
 * Return: 0 or -ENOMEM.
 */
int history_new(struct history **ret_history, size_t capacity);
struct history *history_free(struct history *history);

/**
 * history_forget() - a guest is gone: its slot starts afresh.
 */
void history_forget(struct history *history, uint32_t slot);

/**
 * history_add() - remember a decision.
 * @guest: the guest, as the snapshot had it when the decision was made.
 * @carried_out: false where it was only observed.
 * @ret_entry: the new entry, valid until the next call for the same slot; NULL for a decision that
 *             is not kept because it changes nothing (ACTION_NONE, ACTION_SAMPLE). The argument
 *             may be NULL.
 *
 * Return: 0, -ENOMEM, or -ERANGE for a slot out of range.
 */
int history_add(struct history *history, const struct guest_snapshot *guest,
		const struct decision *decision, bool carried_out,
		const struct history_entry **ret_entry);

/**
 * history_observe() - read back what came of the guest's decisions, once a round.
 * @dead_time_us: from an action to its effect on the footprint; footprint_after is what is seen
 *                then.
 */
void history_observe(struct history *history, const struct guest_snapshot *guest, uint64_t now_us,
		     uint64_t dead_time_us);

/**
 * history_count() - how many decisions are kept of a slot.
 */
size_t history_count(const struct history *history, uint32_t slot);

/**
 * history_get() - one of them.
 * @i: 0 is the newest.
 *
 * Return: the entry, valid until the next history_add() or history_forget() of the slot; NULL where
 * there is none.
 */
const struct history_entry *history_get(const struct history *history, uint32_t slot, size_t i);

/* The names that status, journal and JSON use. */
const char *outcome_name(enum outcome outcome);

#endif
