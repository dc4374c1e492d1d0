// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The configuration reader with any bytes as its file. Whatever they are: no crash, an error or
 * settings and never both or neither, every message with a place that exists, and what loads is
 * written so that it loads again to the same. Seeds: tests/data/config/bad and conf/.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *dump(const struct settings *settings)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f || config_dump(f, settings) < 0 || fclose(f) != 0)
		abort();
	return text;
}

static void check_messages(const struct config_diag *diag, size_t lines)
{
	char text[128];

	if (diag->n_messages > CONFIG_DIAG_MAX)
		abort();
	for (size_t i = 0; i < diag->n_messages; i++) {
		const struct config_message *message = &diag->messages[i];

		if (message->line > lines + 1 || (message->line > 0 && message->column == 0))
			abort();
		config_diag_format(message, sizeof(text), text);
		if (strchr(text, '\n') || strchr(text, '\x1b'))
			abort();
	}
}

static char *load(const void *data, size_t size, size_t lines)
{
	struct config_diag diag = CONFIG_DIAG_INIT;
	struct settings *settings = NULL;
	char path[32], *text = NULL;
	int fd = memfd_create("fuzz", 0), r;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = config_load(path, &settings, &diag);
	(void)close(fd);
	if ((r == 0) != (settings != NULL) || (r < 0) != (diag.n_errors > 0))
		abort();
	check_messages(&diag, lines);
	config_diag_clear(&diag);
	if (settings)
		text = dump(settings);
	config_free(settings);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *first, *second;
	size_t lines = 1;

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n' || data[i] == '\r';
	first = load(data, size, lines);
	if (!first)
		return 0;
	second = load(first, strlen(first), strlen(first));
	if (!second || strcmp(first, second) != 0)
		abort();
	free(first);
	free(second);
	return 0;
}
