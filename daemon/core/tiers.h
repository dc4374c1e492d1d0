/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a guest's memory consists of, from numbers that the guest writes itself, held against what
 * the host knows. Pure; any thread.
 */
#ifndef BALLAST_CORE_TIERS_H
#define BALLAST_CORE_TIERS_H

#include <stdbool.h>

#include "daemon/core/snapshot.h"

enum tier { TIER_FREE, TIER_LAZYFREE, TIER_FILE, TIER_ANON, TIER_TEXT, TIER_MAX_ID };

struct tiers {
	bool known; /* otherwise nothing below means anything */
	bool from_agent; /* otherwise from the balloon driver's statistics */
	bool free_known; /* .used means something */
	uint64_t amount[TIER_MAX_ID]; /* disjoint, together at most the footprint */
	/* The same while the balloon moves, when what is free can't be told: [TIER_FREE] is 0. */
	uint64_t moving[TIER_MAX_ID];
	uint64_t held; /* of the free memory, by single CPUs: not at hand for all others */
	uint64_t used; /* what the guest doesn't count as free */
	uint64_t reserve; /* what has to stay free for the guest not to reclaim */
	uint64_t usable; /* by the driver, 0: not known */
	uint64_t at_us; /* of the guest's numbers */
};

/**
 * tiers_read() - the tiers of a guest.
 * @fresh_us: the age up to which a number counts.
 *
 * Needs a fresh footprint, a fresh balloon and a fresh sample of the agent, or, where there never
 * was an agent, fresh driver statistics.
 */
void tiers_read(const struct guest_snapshot *guest, uint64_t now_us, uint64_t fresh_us,
		struct tiers *ret_tiers);

/**
 * tiers_oldest() - when the oldest of the numbers that tiers_read() needs was seen, 0: one never
 * was.
 */
uint64_t tiers_oldest(const struct guest_snapshot *guest);

#endif
