/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The configuration: one YAML file and its drop-ins become a struct settings, or a list of all
 * mistakes. Nothing here prints, keeps state, or changes what the caller has: a reload that fails
 * leaves the settings in use as they were. Any thread, each with its own diag.
 *
 * For /etc/ballast/ballast.yaml the drop-ins are /etc/ballast/ballast.d/(name).yaml, read in the
 * order of their names. What is read later wins: its values of `host` and `defaults` replace
 * those read before, and its guest rules are tried before theirs.
 */
#ifndef BALLAST_CONFIG_CONFIG_H
#define BALLAST_CONFIG_CONFIG_H

#include <stddef.h>
#include <stdio.h>

#include "daemon/core/settings.h"
#include "daemon/util/cleanup.h"

#define CONFIG_PATH	   "/etc/ballast/ballast.yaml"
#define CONFIG_FILE_MAX	   (1 << 20) /* bytes of one file */
#define CONFIG_DROPINS_MAX 256
#define CONFIG_RULES_MAX   4096
#define CONFIG_DEPTH_MAX   8 /* of nesting; the schema needs 4 */
#define CONFIG_DIAG_MAX	   100 /* messages that are kept; the rest is counted */

enum config_severity { CONFIG_WARNING, CONFIG_ERROR };

struct config_message {
	enum config_severity severity;
	char *file;
	unsigned int line, column; /* from 1; 0: the file as a whole */
	char *key; /* "host.levels.min_stay", "guests[2].min" or NULL */
	char *text; /* what is wrong and what to do */
};

/* Every mistake of one load, in the order of files and places. Start with CONFIG_DIAG_INIT. */
struct config_diag {
	struct config_message *messages;
	size_t n_messages, capacity;
	size_t n_errors, n_warnings; /* those that were not kept are counted, too */
};

#define CONFIG_DIAG_INIT                                                                           \
	{                                                                                          \
		NULL, 0, 0, 0, 0                                                                   \
	}

/**
 * config_load() - read, check and merge a file and its drop-ins.
 * @path: of the main file. An empty file is good: it means all defaults.
 * @ret_settings: set on success, to be given to config_free().
 * @diag: messages are added; warnings come with success, too.
 *
 * Return: 0; -EINVAL with at least one error in @diag; the errno of a file that can't be read,
 * also said in @diag; -ENOMEM.
 */
int config_load(const char *path, struct settings **ret_settings, struct config_diag *diag);

/**
 * config_free() - release settings from config_load(). NULL is fine.
 */
void config_free(struct settings *settings);
DEFINE_CLEANUP(struct settings *, config_free);

/**
 * config_dump() - write the effective configuration as YAML that loads to the same settings.
 *
 * Return: 0 or -EIO.
 */
int config_dump(FILE *to, const struct settings *settings);

/**
 * config_diag_format() - one message as `file:line:column: key: text`, warnings marked as such.
 * @ret_text: @size bytes, always terminated, cut if too long.
 */
void config_diag_format(const struct config_message *message, size_t size, char *ret_text);

/**
 * config_diag_clear() - release the messages; @diag can be used again.
 */
void config_diag_clear(struct config_diag *diag);

#endif
