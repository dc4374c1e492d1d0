/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One sample for a person or a script, printed in the way that `ballast-agent --once` does.
 */
#ifndef BALLAST_AGENT_ONCE_H
#define BALLAST_AGENT_ONCE_H

#include <stdbool.h>
#include <stddef.h>

#include "guest-agent/config.h"

/**
 * once_print() - take one sample and print it to a descriptor.
 * @json: one JSON object instead of a table; absent numbers are null.
 * @ret_error: on failure, the one line to show.
 *
 * Return: 0, or a negative errno.
 */
int once_print(const char *root, const struct agent_config *config, bool json, int fd,
	       char *ret_error, size_t error_size);

/**
 * once_reason() - why a statistic is absent on this kernel, for a person.
 */
void once_reason(int stat_id, char *buf, size_t size);

#endif
