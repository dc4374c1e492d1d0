// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/guest/internal.h"

#include <stdio.h>
#include <string.h>

/* As the kernel shows a connection that was accepted, and one that waits for it. */
#define STATE_CONNECTED	 3
#define STATE_CONNECTING 2

struct count {
	bool listed;
	unsigned int accepted, waiting;
};

/* "0000000000000000: 00000003 00000000 00000000 0001 03 12345 /path" */
static void count_line(const char *line, const char *path, struct count *count)
{
	size_t path_size = strlen(path);
	unsigned int state;
	int end = 0;

	if (sscanf(line, "%*x: %*x %*x %*x %*x %x %*u %n", &state, &end) != 1 || !end)
		return;
	if (strncmp(line + end, path, path_size) != 0 ||
	    (line[end + (int)path_size] != '\n' && line[end + (int)path_size] != '\0'))
		return;
	count->listed = true;
	count->accepted += state == STATE_CONNECTED;
	count->waiting += state == STATE_CONNECTING;
}

enum socket_clients socket_clients_parse(const char *text, const char *path)
{
	struct count count = { 0 };

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		count_line(line, path, &count);
	}
	if (!count.listed)
		return SOCKET_UNKNOWN;
	return count.accepted && count.waiting ? SOCKET_OTHERS : SOCKET_OURS;
}
