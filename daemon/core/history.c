// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/core/history.h"

#include <errno.h>
#include <stdlib.h>

/* A balloon within this of its target is there: drivers round to pages and huge pages. */
#define TARGET_TOLERANCE (UINT64_C(2) << 20)
/* What was not done this long after it was decided is not coming. */
#define PATIENCE_US UINT64_C(30000000)
#define RING_FIRST  8 /* entries; doubled as needed up to HISTORY_DEPTH */

struct ring {
	struct history_entry *entries;
	uint32_t size, used, next;
};

struct history {
	size_t capacity;
	struct ring rings[];
};

int history_new(struct history **ret_history, size_t capacity)
{
	struct history *history = calloc(1, sizeof(*history) + capacity * sizeof(struct ring));

	if (!history)
		return -ENOMEM;
	history->capacity = capacity;
	*ret_history = history;
	return 0;
}

struct history *history_free(struct history *history)
{
	for (size_t i = 0; history && i < history->capacity; i++)
		free(history->rings[i].entries);
	free(history);
	return NULL;
}

void history_forget(struct history *history, uint32_t slot)
{
	if (slot >= history->capacity)
		return;
	free(history->rings[slot].entries);
	history->rings[slot] = (struct ring){ 0 };
}

/* A ring grows only while it has never wrapped, so its entries are in order from 0. */
static int ring_grow(struct ring *ring)
{
	uint32_t size = ring->size ? ring->size * 2 : RING_FIRST;
	struct history_entry *entries;

	if (ring->used < ring->size || ring->size == HISTORY_DEPTH)
		return 0;
	entries = reallocarray(ring->entries, size, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	ring->entries = entries;
	ring->size = size;
	ring->next = ring->used;
	return 0;
}

static struct history_entry *ring_at(const struct ring *ring, size_t i)
{
	if (i >= ring->used)
		return NULL;
	return &ring->entries[(ring->next + ring->size - 1 - i) % ring->size];
}

static void settle(struct history_entry *entry, const struct guest_snapshot *guest,
		   enum outcome outcome, uint64_t now_us)
{
	entry->outcome = outcome;
	entry->settled_us = now_us;
	entry->actual_after = guest->balloon.at_us ? guest->balloon.actual : 0;
	entry->footprint_after = guest->cost.at_us ? guest->cost.footprint : 0;
}

static void supersede(struct ring *ring, const struct guest_snapshot *guest,
		      const struct decision *decision)
{
	for (size_t i = 0; i < ring->used; i++) {
		struct history_entry *entry = ring_at(ring, i);

		if (entry->outcome == OUTCOME_PENDING && entry->decision.action == decision->action)
			settle(entry, guest, entry->done_us ? OUTCOME_DONE : OUTCOME_SUPERSEDED,
			       decision->at_us);
	}
}

int history_add(struct history *history, const struct guest_snapshot *guest,
		const struct decision *decision, bool carried_out,
		const struct history_entry **ret_entry)
{
	struct history_entry *entry;
	struct ring *ring;
	int r;

	if (guest->slot >= history->capacity)
		return -ERANGE;
	if (ret_entry)
		*ret_entry = NULL;
	if (decision->action == ACTION_NONE || decision->action == ACTION_SAMPLE)
		return 0;
	ring = &history->rings[guest->slot];
	r = ring_grow(ring);
	if (r < 0)
		return r;
	supersede(ring, guest, decision);
	entry = &ring->entries[ring->next];
	*entry = (struct history_entry){
		.decision = *decision,
		.actual = guest->balloon.at_us ? guest->balloon.actual : 0,
		.footprint = guest->cost.at_us ? guest->cost.footprint : 0,
		.outcome = carried_out ? OUTCOME_PENDING : OUTCOME_OBSERVED,
	};
	entry->psi_known = agent_psi_some(&guest->agent, &entry->psi_some);
	ring->next = (ring->next + 1) % ring->size;
	if (ring->used < ring->size)
		ring->used++;
	if (ret_entry)
		*ret_entry = entry;
	return 0;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static enum outcome overdue_balloon(const struct history_entry *entry,
				    const struct guest_snapshot *guest)
{
	uint64_t before = distance(entry->decision.old_target, entry->decision.new_target);
	uint64_t after = distance(guest->balloon.actual, entry->decision.new_target);

	if (guest->balloon.at_us <= entry->decision.at_us)
		return OUTCOME_NO_EFFECT;
	return after + TARGET_TOLERANCE < before ? OUTCOME_PARTIAL : OUTCOME_NO_EFFECT;
}

/* Each of these says what is known by now of an action; OUTCOME_PENDING: not enough. */
static enum outcome see_balloon(struct history_entry *entry, const struct guest_snapshot *guest,
				uint64_t now_us, uint64_t dead_time_us)
{
	const struct decision *decision = &entry->decision;
	const struct request_part *request = &guest->request;

	if (request->at_us >= decision->at_us && request->done_us && request->status < 0) {
		entry->status = request->status;
		return OUTCOME_FAILED;
	}
	if (!entry->done_us && guest->balloon.at_us > decision->at_us &&
	    distance(guest->balloon.actual, decision->new_target) <= TARGET_TOLERANCE)
		entry->done_us = guest->balloon.at_us;
	if (entry->done_us)
		return now_us - entry->done_us >= dead_time_us ? OUTCOME_DONE : OUTCOME_PENDING;
	if (now_us - decision->at_us < PATIENCE_US)
		return OUTCOME_PENDING;
	return overdue_balloon(entry, guest);
}

static enum outcome see_shed(struct history_entry *entry, const struct guest_snapshot *guest,
			     uint64_t now_us, uint64_t dead_time_us)
{
	const struct agent_part *agent = &guest->agent;
	const struct decision *decision = &entry->decision;

	if (!entry->done_us && agent->shed_done_at_us > decision->at_us) {
		entry->done_us = agent->shed_done_at_us;
		entry->freed = agent->shed_freed;
		entry->status = agent->shed_status;
	}
	if (!entry->done_us)
		return now_us - decision->at_us < PATIENCE_US + decision->lifetime_us
			       ? OUTCOME_PENDING
			       : OUTCOME_NO_EFFECT;
	if (entry->status < 0 && !entry->freed)
		return OUTCOME_FAILED;
	if (now_us - entry->done_us < dead_time_us)
		return OUTCOME_PENDING;
	if (entry->freed >= decision->bytes / 10 * 9)
		return OUTCOME_DONE;
	return entry->freed ? OUTCOME_PARTIAL : OUTCOME_NO_EFFECT;
}

static enum outcome see_profile(struct history_entry *entry, const struct guest_snapshot *guest,
				uint64_t now_us)
{
	if (guest->agent.profile_set && guest->agent.profile_level == entry->decision.level) {
		entry->done_us = now_us;
		return guest->agent.profile_void ? OUTCOME_NO_EFFECT : OUTCOME_DONE;
	}
	return now_us - entry->decision.at_us < PATIENCE_US ? OUTCOME_PENDING : OUTCOME_NO_EFFECT;
}

void history_observe(struct history *history, const struct guest_snapshot *guest, uint64_t now_us,
		     uint64_t dead_time_us)
{
	const struct ring *ring;

	if (guest->slot >= history->capacity)
		return;
	ring = &history->rings[guest->slot];
	for (size_t i = 0; i < ring->used; i++) {
		struct history_entry *entry = ring_at(ring, i);
		enum outcome outcome = OUTCOME_PENDING;

		if (entry->outcome != OUTCOME_PENDING || now_us < entry->decision.at_us)
			continue;
		if (entry->decision.action == ACTION_BALLOON)
			outcome = see_balloon(entry, guest, now_us, dead_time_us);
		else if (entry->decision.action == ACTION_SHED)
			outcome = see_shed(entry, guest, now_us, dead_time_us);
		else if (entry->decision.action == ACTION_PROFILE)
			outcome = see_profile(entry, guest, now_us);
		if (outcome != OUTCOME_PENDING)
			settle(entry, guest, outcome, now_us);
	}
}

size_t history_count(const struct history *history, uint32_t slot)
{
	return slot < history->capacity ? history->rings[slot].used : 0;
}

const struct history_entry *history_get(const struct history *history, uint32_t slot, size_t i)
{
	return slot < history->capacity ? ring_at(&history->rings[slot], i) : NULL;
}

const char *outcome_name(enum outcome outcome)
{
	static const char *const names[OUTCOME_MAX_ID] = {
		[OUTCOME_PENDING] = "pending",	   [OUTCOME_OBSERVED] = "observed",
		[OUTCOME_DONE] = "done",	   [OUTCOME_PARTIAL] = "partial",
		[OUTCOME_NO_EFFECT] = "no-effect", [OUTCOME_SUPERSEDED] = "superseded",
		[OUTCOME_FAILED] = "failed",
	};

	return names[outcome];
}
