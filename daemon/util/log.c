// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/util/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "daemon/util/text.h"

#define LINE_SIZE 1024

/* The process's log; the one piece of state that isn't handed down, for it has no owner but main. */
static atomic_int log_level = LOG_INFO;
static _Atomic(log_sink_fn) log_sink;

static const struct {
	const char *name;
	int priority;
} level_names[] = {
	{ "error", LOG_ERR }, { "warning", LOG_WARNING }, { "notice", LOG_NOTICE },
	{ "info", LOG_INFO }, { "debug", LOG_DEBUG },
};

void log_set_level(int priority)
{
	atomic_store(&log_level, priority);
}

int log_get_level(void)
{
	return atomic_load(&log_level);
}

int log_level_by_name(const char *name)
{
	for (size_t i = 0; i < sizeof(level_names) / sizeof(*level_names); i++)
		if (strcmp(level_names[i].name, name) == 0)
			return level_names[i].priority;
	return -EINVAL;
}

void log_set_sink(log_sink_fn sink)
{
	atomic_store(&log_sink, sink);
}

void log_fields(int priority, const char *const *fields, const char *format, ...)
{
	log_sink_fn sink = atomic_load(&log_sink);
	int saved_errno = errno;
	char text[LINE_SIZE], safe[2 * LINE_SIZE];
	va_list args;

	if (priority > log_get_level())
		return;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* There may be a guest's name in it, and somebody will read it on a terminal. */
	text_to_terminal(text, true, safe, sizeof(safe));
	if (sink)
		sink(priority, fields, safe);
	else
		(void)fprintf(stderr, "%s: %s\n", program_invocation_short_name, safe);
	errno = saved_errno;
}
