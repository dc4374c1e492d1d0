// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/core/snapshot.h"

uint64_t guest_max(const struct guest_snapshot *guest)
{
	uint64_t whole = guest->balloon.maximum;
	uint64_t max = amount_resolve(&guest->settings.max, whole, whole);

	return max < whole ? max : whole;
}

uint64_t guest_min(const struct guest_snapshot *guest)
{
	uint64_t max = guest_max(guest);
	uint64_t min = amount_resolve(&guest->settings.min, guest->balloon.maximum, 0);

	return min < max ? min : max;
}

bool agent_psi_some(const struct agent_part *agent, uint64_t *ret_share)
{
	uint64_t before, after, span, stalled;

	if (!agent->previous_at_us || agent->at_us <= agent->previous_at_us ||
	    !stat_get(&agent->previous, STAT_PSI_SOME, &before) ||
	    !stat_get(&agent->stats, STAT_PSI_SOME, &after) || after < before)
		return false;
	span = agent->at_us - agent->previous_at_us;
	stalled = after - before;
	/* Arrivals jitter, and a guest can claim anything. */
	*ret_share = stalled >= span ? 10000 : stalled * 10000 / span;
	return true;
}

const char *guest_phase_name(enum guest_phase phase)
{
	static const char *const names[PHASE_MAX_ID] = {
		[PHASE_RUNNING] = "running", [PHASE_BOOTING] = "booting",
		[PHASE_PAUSED] = "paused",   [PHASE_MIGRATING] = "migrating",
		[PHASE_SAVING] = "saving",   [PHASE_BLOCKED] = "blocked",
		[PHASE_STOPPED] = "stopped",
	};

	return names[phase];
}

const char *agent_link_name(enum agent_link link)
{
	static const char *const names[AGENT_LINK_MAX_ID] = {
		[AGENT_NONE] = "none",	   [AGENT_CONNECTING] = "connecting",
		[AGENT_SILENT] = "silent", [AGENT_BUSY] = "busy",
		[AGENT_UP] = "up",	   [AGENT_BROKEN] = "broken",
	};

	return names[link];
}

const char *level_name(enum level level)
{
	static const char *const names[LEVEL_MAX_ID] = {
		[LEVEL_RELAXED] = "relaxed",
		[LEVEL_TIGHT] = "tight",
		[LEVEL_CRITICAL] = "critical",
	};

	return names[level];
}
