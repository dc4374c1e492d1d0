/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What must hold between values, each of which is good by itself. Says nothing of values that were
 * said to be wrong already, nor of built-in defaults. Internal to daemon/config.
 */
#ifndef BALLAST_CONFIG_VALIDATE_H
#define BALLAST_CONFIG_VALIDATE_H

#include "daemon/config/apply.h"

/**
 * validate() - host and defaults, when all files have been applied.
 */
void validate(struct loader *loader);

/**
 * validate_guest() - the settings of one guest.
 * @place: where to say so.
 * @path: of the rule or the defaults.
 */
void validate_guest(struct loader *loader, const struct guest_settings *guest, struct place place,
		    const struct key_path *path);

#endif
