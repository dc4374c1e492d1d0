/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the guest's owner lets the host do: lines of `key = value`, # for comments. Plain data.
 */
#ifndef BALLAST_AGENT_CONFIG_H
#define BALLAST_AGENT_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "guest-agent/proto/wire.h"

#define AGENT_CONFIG_FILE "/etc/ballast/agent.conf"
#define AGENT_CONFIG_MAX  4096 /* bytes of the file */
#define AGENT_PORT_MAX	  256

struct agent_config {
	uint64_t allow; /* WIRE_CAP_SAMPLE, _PROFILE, _SHED */
	uint32_t keep; /* bit a knob_id: settings that the host may not change */
	char port[AGENT_PORT_MAX]; /* "" looks for the port by its name */
};

/* Without a configuration the host may do everything that the agent can. */
#define AGENT_CONFIG_DEFAULT                                                                       \
	(struct agent_config)                                                                      \
	{                                                                                          \
		.allow = WIRE_CAP_SAMPLE | WIRE_CAP_PROFILE | WIRE_CAP_SHED                        \
	}

/**
 * agent_config_parse() - read a configuration's text.
 * @file: its name, for the message.
 * @config: has the defaults; what the text says replaces them.
 * @ret_error: on failure the one line to show, "file:line: what is wrong".
 *
 * Return: 0, or -EINVAL for the first mistake.
 */
int agent_config_parse(const char *text, const char *file, struct agent_config *config,
		       char *ret_error, size_t error_size);

/**
 * agent_config_load() - agent_config_parse() of a file.
 *
 * Return: 0, -ENOENT where there is none, or another negative errno; @ret_error is set for all
 * but -ENOENT.
 */
int agent_config_load(const char *root, const char *file, struct agent_config *config,
		      char *ret_error, size_t error_size);

#endif
