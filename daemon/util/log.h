/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Log lines of the daemon: one clear line each, that says what, where and what to do. Lines go to
 * standard error; after log_use_journal() (daemon/util/log-journal.c, the only part that needs
 * libsystemd) they go to the journal with their fields where standard error is the journal.
 *
 * Only daemon/app and the mains log. The library modules return errors with a reason, and whoever
 * acts on the error prints it once. The level and the sink are the process's own, set by main
 * before threads start; log_line() itself may be called from any thread.
 *
 *	log_info("watching %zu guests", n);
 *	log_error("config: %s: %s", path, strerror(-r));
 *	log_fields(LOG_INFO, (const char *const[]){ "ACTION=shed", uuid_field, NULL }, "%s", text);
 */
#ifndef BALLAST_UTIL_LOG_H
#define BALLAST_UTIL_LOG_H

#include <stddef.h>
#include <syslog.h>

/*
 * Where lines go instead of standard error.
 * @fields: "NAME=value" strings up to a NULL, or NULL. @text: one line without its newline.
 */
typedef void (*log_sink_fn)(int priority, const char *const *fields, const char *text);

/**
 * log_set_level() - drop what is less urgent than @priority (LOG_ERR .. LOG_DEBUG); at start
 * LOG_INFO.
 */
void log_set_level(int priority);

int log_get_level(void);

/**
 * log_level_by_name() - "error", "warning", "notice", "info" or "debug".
 *
 * Return: the priority, or -EINVAL.
 */
int log_level_by_name(const char *name);

/** log_set_sink() - send lines to @sink, or to standard error again (NULL). */
void log_set_sink(log_sink_fn sink);

/**
 * log_use_journal() - send lines to the journal where standard error is connected to it, as
 * under systemd; else nothing changes. Needs -lsystemd.
 *
 * Return: 1 where the journal is used now, else 0.
 */
int log_use_journal(void);

/**
 * log_fields() - a line with structured fields.
 * @fields: "NAME=value" strings up to a NULL, or NULL; standard error doesn't show them.
 *
 * Longer lines are cut off at 1 KiB. What a terminal would obey, which may come from a guest's
 * name, is written out as text_to_terminal() does.
 */
void log_fields(int priority, const char *const *fields, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define log_error(...)	 log_fields(LOG_ERR, NULL, __VA_ARGS__)
#define log_warning(...) log_fields(LOG_WARNING, NULL, __VA_ARGS__)
#define log_notice(...)	 log_fields(LOG_NOTICE, NULL, __VA_ARGS__)
#define log_info(...)	 log_fields(LOG_INFO, NULL, __VA_ARGS__)
#define log_debug(...)	 log_fields(LOG_DEBUG, NULL, __VA_ARGS__)

#endif
