/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A PSI trigger on the guest's memory: the kernel wakes us when its tasks have waited for memory
 * longer than a threshold within a window.
 */
#ifndef BALLAST_AGENT_TRIGGER_H
#define BALLAST_AGENT_TRIGGER_H

#include <stdint.h>

struct trigger {
	int fd; /* EPOLLPRI when it fires; -1 where it isn't armed */
	uint64_t threshold_us, window_us;
	int error; /* why it isn't armed, a negative errno */
};

/**
 * trigger_arm() - arm the trigger with the shortest window that the kernel grants.
 *
 * Return: 0, or a negative errno: there is no PSI, or no right to a trigger.
 */
int trigger_arm(struct trigger *trigger, const char *root);

void trigger_close(struct trigger *trigger);

#endif
