/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The demo's live table, drawn from one line of the record. Stateless but for the number of rows
 * that the terminal has to go up before the next drawing.
 */
#ifndef BALLAST_LAB_TABLE_H
#define BALLAST_LAB_TABLE_H

#include <inttypes.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TABLE_MISSING UINT64_MAX
#define TABLE_BAR     24

/* A number at a path like "ballast.stats.lazyfree"; TABLE_MISSING where there is none. */
static inline uint64_t table_number(struct json_object *object, const char *path)
{
	char copy[128], *save = NULL;

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *key = strtok_r(copy, ".", &save); key; key = strtok_r(NULL, ".", &save))
		if (!json_object_object_get_ex(object, key, &object))
			return TABLE_MISSING;
	return json_object_get_uint64(object);
}

static inline const char *table_text(struct json_object *object, const char *key,
				     const char *otherwise)
{
	struct json_object *ballast, *value;

	if (!json_object_object_get_ex(object, "ballast", &ballast) ||
	    !json_object_object_get_ex(ballast, key, &value))
		return otherwise;
	return json_object_get_string(value);
}

static inline const char *table_mib(uint64_t bytes, char buf[16])
{
	if (bytes == TABLE_MISSING)
		snprintf(buf, 16, "-");
	else
		snprintf(buf, 16, "%.0f", (double)bytes / 1048576.0);
	return buf;
}

/* How far the footprint fills the budget, as a bar. */
static inline void table_bar(uint64_t footprint, uint64_t budget, bool colour)
{
	unsigned int full = budget ? (unsigned int)(footprint * TABLE_BAR / budget) : 0;
	const char *shade = footprint > budget ? "\033[31m" : "\033[32m";

	printf("%s[", colour ? shade : "");
	for (unsigned int i = 0; i < TABLE_BAR; i++)
		putchar(i < full ? '#' : '.');
	printf("]%s", colour ? "\033[0m" : "");
}

static inline const char *table_level(struct json_object *line)
{
	struct json_object *host, *level;

	if (!json_object_object_get_ex(line, "host", &host) ||
	    !json_object_object_get_ex(host, "level", &level))
		return "-";
	return json_object_get_string(level);
}

static inline void table_head(struct json_object *line, const char *phase, bool tty)
{
	uint64_t budget = table_number(line, "host.budget"), footprint = 0;
	struct json_object *guests;
	const char *eol = tty ? "\033[K\n" : "\n";
	char a[16], b[16];

	if (json_object_object_get_ex(line, "guests", &guests)) {
		json_object_object_foreach(guests, name, guest)
		{
			uint64_t ram = table_number(guest, "ram");

			(void)name;
			footprint += ram == TABLE_MISSING ? 0 : ram;
		}
	}
	printf("%s%s%s%s", tty ? "\033[1m" : "", phase, tty ? "\033[0m" : "", eol);
	printf("budget %s MiB, footprint %s MiB ", table_mib(budget, a), table_mib(footprint, b));
	if (budget != TABLE_MISSING && budget > 0)
		table_bar(footprint, budget, tty);
	printf("  level %s%s", table_level(line), eol);
	printf("%sMiB; protect, first: vm.exec_protect, vm.lazyfree_first in force in the "
	       "guest%s%s",
	       tty ? "\033[2m" : "", tty ? "\033[0m" : "", eol);
}

/* The columns of numbers, in MiB but for the settings. */
static const struct table_column {
	const char *path, *title;
	int width;
	bool plain;
} table_columns[] = {
	{ "actual", "actual", 7, false },
	{ "ballast.target", "target", 7, false },
	{ "ram", "footprint", 10, false },
	{ "ballast.stats.exec_mapped", "text", 6, false },
	{ "ballast.stats.lazyfree", "lazyfree", 9, false },
	{ "ballast.stats.swap_entries", "swap", 6, false },
	{ "ballast.settings.exec_protect", "protect", 8, true },
	{ "ballast.settings.lazyfree_first", "first", 6, true },
};

#define TABLE_COLUMNS (sizeof(table_columns) / sizeof(table_columns[0]))

static inline void table_titles(const char *eol)
{
	printf("%-8s %-9s", "guest", "state");
	for (size_t i = 0; i < TABLE_COLUMNS; i++)
		printf("%*s", table_columns[i].width, table_columns[i].title);
	printf("  reason%s", eol);
}

/* What fits beside the numbers, with the last column free for what ends the line. */
static inline void table_reason(const char *text, bool tty)
{
	int left = 1 << 10, used = 8 + 1 + 9 + 2;
	struct winsize size;

	for (size_t i = 0; i < TABLE_COLUMNS; i++)
		used += table_columns[i].width;
	if (tty && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > used + 4)
		left = size.ws_col - used - 1;
	if (strlen(text) > (size_t)left)
		printf("  %.*s...", left - 3, text);
	else
		printf("  %s", text);
}

static inline void table_row(const char *name, struct json_object *guest, bool tty)
{
	char buf[16];

	printf("%-8.8s %-9.9s", name, table_text(guest, "state", "-"));
	for (size_t i = 0; i < TABLE_COLUMNS; i++) {
		const struct table_column *column = &table_columns[i];
		uint64_t number = table_number(guest, column->path);

		if (column->plain && number != TABLE_MISSING)
			printf("%*" PRIu64, column->width, number);
		else
			printf("%*s", column->width, table_mib(number, buf));
	}
	table_reason(table_text(guest, "text", table_text(guest, "reason", "-")), tty);
	printf("%s", tty ? "\033[K\n" : "\n");
}

/**
 * table_draw() - print the table, on a terminal over the one before.
 * @line: a sample of the record.
 */
static inline void table_draw(struct json_object *line, const char *phase, bool tty)
{
	static int rows;
	const char *eol = tty ? "\033[K\n" : "\n";
	struct json_object *guests;

	/* Lines that are too long for the terminal are cut, not wrapped. */
	if (tty)
		printf("\033[?7l");
	if (tty && rows)
		printf("\033[%dA", rows);
	rows = 4;
	table_head(line, phase, tty);
	table_titles(eol);
	if (json_object_object_get_ex(line, "guests", &guests)) {
		json_object_object_foreach(guests, name, guest)
		{
			table_row(name, guest, tty);
			rows++;
		}
	}
	printf("%s", tty ? "\033[?7h" : "\n");
	fflush(stdout);
}

#endif
