/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's settings that a profile may change, and the guest's own values of them. Before the
 * first change of a setting its own value is written to a file under /run, so that an agent that
 * is started again after a crash still knows it. What somebody else has changed since is left.
 */
#ifndef BALLAST_AGENT_KNOBS_H
#define BALLAST_AGENT_KNOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "guest-agent/proto/profile.h"

#define KNOBS_STATE_DIR	 "/run/ballast-agent"
#define KNOBS_STATE_FILE KNOBS_STATE_DIR "/own-values"

struct knobs {
	const char *root;
	uint32_t keep; /* bit a knob_id: not to be changed, the guest's owner says */
	struct profile own; /* the guest's own value of each setting that is changed */
	struct profile set; /* what we have set instead */
	struct profile was; /* ... and while that is being changed, what was in force before */
};

/**
 * knobs_load() - learn from the state file what an earlier agent has changed.
 * @keep: bit a knob_id: what the guest's owner keeps.
 *
 * Return: whether there was something: the settings are changed now.
 */
bool knobs_load(struct knobs *knobs, const char *root, uint32_t keep);

/**
 * knobs_parse() - take the text of a state file; lines that aren't understood are passed over.
 */
void knobs_parse(struct knobs *knobs, const char *text);

/**
 * knobs_values() - of each setting that the kernel has.
 * @ret_own: the guest's own value: as it is now, or as it was before us.
 * @ret_now: the value in force.
 */
void knobs_values(const struct knobs *knobs, struct profile *ret_own, struct profile *ret_now);

/**
 * knobs_writable() - wire_knob_bit() of each setting that can be written and may be.
 */
uint64_t knobs_writable(const struct knobs *knobs);

/**
 * knobs_apply() - set a profile; settings that it doesn't name get their own values back.
 * @ret_done: wire_knob_bit() of each setting of the profile that is in force as it asks. A level
 *	that the kernel doesn't have is not, but the next lower that it has.
 *
 * Return: 0, or the negative errno of the first setting that failed (-EPERM for one that the
 * guest's owner keeps), but -ENOSPC where one had no room for its note; the others are set.
 */
int knobs_apply(struct knobs *knobs, const struct profile *profile, uint64_t *ret_done);

/**
 * knobs_restore() - give every setting its own value back.
 *
 * Return: 0, or the negative errno of the first that failed; it is still changed, but where the
 * setting isn't there any more (-ENOENT).
 */
int knobs_restore(struct knobs *knobs);

/**
 * knobs_restore_kept() - give those back that the guest's owner keeps; the others stay as they are.
 *
 * Return: 0, or the negative errno of the first that failed.
 */
int knobs_restore_kept(struct knobs *knobs);

/**
 * knobs_changed() - whether a setting is not at its own value because of us.
 */
static inline bool knobs_changed(const struct knobs *knobs)
{
	return knobs->set.present != 0;
}

#endif
