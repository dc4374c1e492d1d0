// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/config/utf8.h"

#include <stdbool.h>
#include <stdint.h>

/* Length of the valid sequence at @p, 0 if there is none. Overlong forms and surrogates are bad. */
static size_t sequence(const unsigned char *p, size_t left)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t length = *p < 0x80	      ? 1
			: (*p & 0xe0) == 0xc0 ? 2
			: (*p & 0xf0) == 0xe0 ? 3
			: (*p & 0xf8) == 0xf0 ? 4
					      : 0;
	uint32_t code;

	if (length == 0 || length > left)
		return 0;
	if (length == 1)
		return 1;
	code = *p & (0x7fU >> length);
	for (size_t i = 1; i < length; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3fU);
	}
	if (code < smallest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return length;
}

static bool is_control(const unsigned char *p, size_t length)
{
	if (length == 1)
		return (*p < 0x20 && *p != '\t' && *p != '\n' && *p != '\r') || *p == 0x7f;
	/* U+0080..U+009F, of which YAML breaks lines at U+0085 unseen */
	return length == 2 && p[0] == 0xc2 && p[1] < 0xa0;
}

const char *utf8_check(const char *text, size_t size, struct place *place)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + size;

	place->line = 1;
	place->column = 1;
	while (p < end) {
		size_t length = sequence(p, (size_t)(end - p));

		if (length == 0)
			return "this byte isn't UTF-8: save the file as UTF-8";
		if (is_control(p, length))
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
