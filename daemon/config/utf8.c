// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/config/utf8.h"

#include <stdbool.h>
#include <stdint.h>

#include "daemon/util/text.h"

/* Beside C0 and C1 controls, of which YAML breaks lines at U+0085 unseen, also DEL. */
static bool is_control(uint32_t point)
{
	return (point < 0x20 && point != '\t' && point != '\n' && point != '\r') ||
	       (point >= 0x7f && point < 0xa0);
}

const char *utf8_check(const char *text, size_t size, struct place *place)
{
	const char *p = text, *end = p + size;
	uint32_t point = 0;

	place->line = 1;
	place->column = 1;
	while (p < end) {
		size_t length = text_utf8_length(p, (size_t)(end - p), &point);

		if (length == 0)
			return "this byte isn't UTF-8: save the file as UTF-8";
		if (is_control(point))
			return "a control character isn't allowed here: remove it";
		if (*p == '\n') {
			place->line++;
			place->column = 1;
		} else {
			place->column++;
		}
		p += length;
	}
	return NULL;
}
