/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which kernel settings are asked of a guest. Pure; used by the policy, which decides when, and by
 * whoever sends them. One thread.
 */
#ifndef BALLAST_CORE_PROFILE_H
#define BALLAST_CORE_PROFILE_H

#include "daemon/core/snapshot.h"

/* A guest with less memory is small: what was mapped ahead and isn't used weighs more there. */
#define PROFILE_SMALL_GUEST	   (UINT64_C(1) << 30)
#define PROFILE_SMALL_PREFAULT_MAX 2
/* A finer order of reporting would split the host's huge pages. */
#define PROFILE_HUGE_PAGE_ORDER 9

/**
 * profile_for() - what is asked of a guest at a level of the host: the level's profile, fitted to
 * the guest and to the host's pages, and over it what the configuration says of this guest.
 * @ret: settings that aren't in it stay the guest's own.
 */
void profile_for(const struct settings *settings, const struct host_snapshot *host,
		 const struct guest_snapshot *guest, enum level level, struct profile *ret);

#endif
