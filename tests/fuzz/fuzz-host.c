// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The daemon's parsers on any text: files of /proc, and /proc/net/unix. The first byte chooses the
 * parser.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/guest/internal.h"
#include "daemon/host/internal.h"
#include "daemon/util/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
	if (!condition)
		abort();
}

/* What is said to be found must be what a second look finds, too. */
static void check_fields(const char *text)
{
	struct parse_field fields[] = { { .key = "a" }, { .key = "MemFree" }, { .key = "" } };
	struct parse_field again = { .key = "MemFree" };
	size_t n = parse_fields(text, fields, 3);

	must(n == (size_t)(fields[0].found + fields[1].found + fields[2].found));
	must(parse_fields(text, &again, 1) == again.found);
	must(again.found == fields[1].found);
	must(!again.found || again.value == fields[1].value);
}

static void check_pressure(const char *text)
{
	uint32_t avg10 = 1;

	if (!pressure_parse(text, "some", &avg10))
		must(avg10 == 1);
}

static void check_maps(char *text)
{
	struct ram_look look = { .maximum = MIB(512) };
	struct mapping mapping;
	char *line;

	while ((line = strsep(&text, "\n"))) {
		if (!mapping_parse(line, &mapping))
			continue;
		must(mapping.start <= mapping.end);
		ram_look(&look, &mapping);
		(void)mapping_is_own(&look, &mapping);
	}
	(void)ram_found(&look);
}

static void check_size(const char *text)
{
	char buf[FORMAT_SIZE_MAX];
	uint64_t value;

	if (parse_u64(&text, &value))
		must(strlen(format_size(buf, sizeof(buf), value)) < sizeof(buf) - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size < 1)
		return 0;
	text = strndup((const char *)data + 1, size - 1);
	if (!text)
		abort();
	switch (data[0] % 5) {
	case 0:
		check_fields(text);
		break;
	case 1:
		check_pressure(text);
		break;
	case 2:
		check_maps(text);
		break;
	case 3:
		check_size(text);
		break;
	default:
		(void)socket_clients_parse(text, "/a");
	}
	free(text);
	return 0;
}
