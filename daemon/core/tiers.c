// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/core/tiers.h"

#include <string.h>

#include "daemon/util/num.h"

#define MIB (UINT64_C(1) << 20)

static bool has_agent(const struct guest_snapshot *guest)
{
	return guest->agent.link == AGENT_UP || guest->agent.at_us > 0;
}

uint64_t tiers_oldest(const struct guest_snapshot *guest)
{
	uint64_t numbers = has_agent(guest) ? guest->agent.at_us : guest->driver.at_us;

	return min_u64(numbers, min_u64(guest->balloon.at_us, guest->cost.at_us));
}

/* Takes up to @claim out of what is left of the footprint: claims can't add up to more. */
static uint64_t claim(uint64_t *left, uint64_t amount)
{
	amount = min_u64(amount, *left);
	*left -= amount;
	return amount;
}

/*
 * What Linux reclaims up to when it gets low: its high watermark, which it raises up to two and a
 * half times when page blocks have to be shared. Measured: with 7 MiB free a guest of 512 MiB began
 * to reclaim page cache.
 */
static uint64_t reserve_of(const struct guest_snapshot *guest)
{
	return 4 * MIB + guest->balloon.maximum / 64;
}

static void split_free(const struct guest_snapshot *guest, uint64_t unused, struct tiers *t,
		       uint64_t *left)
{
	uint64_t footprint = guest->cost.footprint;

	unused = min_u64(unused, guest->balloon.actual);
	t->used = guest->balloon.actual - unused;
	t->amount[TIER_FREE] = min_u64(less(footprint, t->used), unused);
	*left = footprint - t->amount[TIER_FREE];
}

/* Text where the kernel doesn't count it: mapped page cache, or the active half of all. */
static uint64_t text_of(const struct stat_set *s, uint64_t active_file)
{
	uint64_t text = active_file;

	if (!stat_get(s, STAT_EXEC_MAPPED, &text))
		(void)stat_get(s, STAT_MAPPED, &text);
	return text;
}

static uint64_t anon_of(const struct stat_set *s, uint64_t maximum)
{
	uint64_t active, inactive;

	if (!stat_get(s, STAT_ACTIVE_ANON, &active) || !stat_get(s, STAT_INACTIVE_ANON, &inactive))
		return maximum;
	return min_u64(active, maximum) + min_u64(inactive, maximum);
}

/* The tiers of memory in use, claimed out of @left. */
static void claim_used(const uint64_t want[TIER_MAX_ID], uint64_t left,
		       uint64_t ret_amount[TIER_MAX_ID])
{
	ret_amount[TIER_LAZYFREE] = claim(&left, want[TIER_LAZYFREE]);
	ret_amount[TIER_TEXT] = claim(&left, want[TIER_TEXT]);
	ret_amount[TIER_FILE] = claim(&left, want[TIER_FILE]);
	ret_amount[TIER_ANON] = claim(&left, want[TIER_ANON]);
}

static bool from_agent(const struct guest_snapshot *guest, struct tiers *t)
{
	const struct stat_set *s = &guest->agent.stats;
	uint64_t unused, held = 0, active, inactive, dirty = 0, left, want[TIER_MAX_ID] = { 0 };

	if (!stat_get(s, STAT_FREE, &unused) || !stat_get(s, STAT_ACTIVE_FILE, &active) ||
	    !stat_get(s, STAT_INACTIVE_FILE, &inactive))
		return false;
	/* Free pages that CPUs hold ready: after a shed most of it is there. */
	(void)stat_get(s, STAT_FREE_PCP, &held);
	t->held = min_u64(held, guest->balloon.actual);
	unused = min_u64(unused, guest->balloon.maximum) + t->held;
	(void)stat_get(s, STAT_LAZYFREE, &want[TIER_LAZYFREE]);
	(void)stat_get(s, STAT_DIRTY, &dirty);
	want[TIER_TEXT] = text_of(s, active);
	want[TIER_ANON] = anon_of(s, guest->balloon.maximum);
	/* Each alone first, so that sums of hostile numbers can't overflow. */
	active = min_u64(active, guest->balloon.maximum);
	inactive = min_u64(inactive, guest->balloon.maximum);
	/* The inactive list of page cache holds the lazyfree memory, too. */
	want[TIER_FILE] =
		less(less(less(active + inactive, want[TIER_LAZYFREE]), want[TIER_TEXT]), dirty);
	split_free(guest, unused, t, &left);
	claim_used(want, left, t->amount);
	claim_used(want, guest->cost.footprint, t->moving);
	t->from_agent = t->free_known = true;
	t->at_us = guest->agent.at_us;
	return true;
}

/* Without an agent: usable memory that isn't free counts as page cache, the rest is unknown. Some
 * of it is left, because the guest's estimate takes text and cache in use for usable. */
static bool from_driver(const struct guest_snapshot *guest, struct tiers *t)
{
	const struct driver_part *d = &guest->driver;
	uint64_t left, spare;

	if (!d->has_usable)
		return false;
	split_free(guest, d->has_unused ? d->unused : 0, t, &left);
	t->free_known = d->has_unused;
	t->usable = min_u64(d->usable, guest->balloon.actual);
	spare = (d->has_unused ? d->unused : 0) + guest->balloon.actual / 8;
	t->amount[TIER_FILE] = claim(&left, less(t->usable, spare));
	t->amount[TIER_ANON] = left;
	memcpy(t->moving, t->amount, sizeof(t->moving));
	t->at_us = d->at_us;
	return true;
}

void tiers_read(const struct guest_snapshot *guest, uint64_t now_us, uint64_t fresh_us,
		struct tiers *ret_tiers)
{
	struct tiers t = { .reserve = reserve_of(guest) };

	*ret_tiers = t;
	if (freshness(tiers_oldest(guest), now_us, fresh_us) != NUMBER_FRESH)
		return;
	t.known = has_agent(guest) ? from_agent(guest, &t) : from_driver(guest, &t);
	*ret_tiers = t;
}
