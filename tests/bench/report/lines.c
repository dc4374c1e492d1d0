// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/bench/report/lines.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/util/cleanup.h"

int lines_each(const char *path, lines_take *take, void *arg, char *problem, size_t size)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	_cleanup_free_ char *line = NULL;
	char why[512] = "";
	size_t room = 0;
	ssize_t n;
	int number = 0, r;

	if (!file) {
		r = -errno;
		snprintf(problem, size, "%s: %s", path, strerror(errno));
		return r;
	}
	while ((n = getline(&line, &room, file)) > 0) {
		number++;
		while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == ' '))
			line[--n] = '\0';
		r = line[0] && line[0] != '#' ? take(arg, line, why, sizeof(why)) : 0;
		if (r < 0) {
			snprintf(problem, size, "%s:%d: %s", path, number, why);
			return r;
		}
	}
	return 0;
}
