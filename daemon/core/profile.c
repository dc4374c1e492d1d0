// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/core/profile.h"

/* A run of few pages makes up to 2^order of them resident. */
static void fit_prefault(const struct guest_snapshot *guest, struct profile *profile)
{
	uint64_t *order = &profile->value[KNOB_ANON_PREFAULT_MAX_ORDER];

	if (!knob_has(profile, KNOB_ANON_PREFAULT_MAX_ORDER))
		return;
	if (guest->balloon.maximum >= PROFILE_SMALL_GUEST)
		return;
	if (*order > PROFILE_SMALL_PREFAULT_MAX)
		*order = PROFILE_SMALL_PREFAULT_MAX;
}

void profile_for(const struct settings *settings, const struct host_snapshot *host,
		 const struct guest_snapshot *guest, enum level level, struct profile *ret)
{
	const struct profile *own = &guest->settings.sysctl;
	struct profile profile = settings->host.profiles[level];

	fit_prefault(guest, &profile);
	if (host->thp_always && guest->cost.thp && !knob_has(&profile, KNOB_REPORTING_ORDER))
		knob_put(&profile, KNOB_REPORTING_ORDER, PROFILE_HUGE_PAGE_ORDER);
	for (int i = 0; i < KNOB_MAX_ID; i++)
		if (knob_has(own, i))
			knob_put(&profile, i, own->value[i]);
	*ret = profile;
}
