// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/util/text.h"

#include <stdio.h>
#include <string.h>

size_t text_utf8_length(const char *text, size_t left, uint32_t *ret_point)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *u = (const unsigned char *)text;
	size_t n;
	uint32_t point;

	if (left == 0)
		return 0;
	n = u[0] < 0x80 ? 1 : u[0] < 0xc0 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
	if (n == 0 || n > left || u[0] >= 0xf8)
		return 0;
	point = n == 1 ? u[0] : u[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (u[i] & 0x3fu);
	}
	if (point < least[n] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
		return 0;
	*ret_point = point;
	return n;
}

static bool append(char *buf, size_t size, size_t *used, const char *piece, size_t n)
{
	if (n >= size - *used)
		return false;
	memcpy(buf + *used, piece, n);
	*used += n;
	buf[*used] = '\0';
	return true;
}

void text_to_utf8(const char *text, char *buf, size_t size)
{
	const char *end = text + strlen(text);
	size_t used = 0;

	buf[0] = '\0';
	while (text < end) {
		uint32_t point;
		size_t n = text_utf8_length(text, (size_t)(end - text), &point);

		if (!append(buf, size, &used, n ? text : "\xef\xbf\xbd", n ? n : 3))
			return;
		text += n ? n : 1;
	}
}

static bool is_harmless(uint32_t point)
{
	if (point < 0x20 || (point >= 0x7f && point < 0xa0))
		return false;
	/* Line and paragraph separators, marks, embeddings, overrides and isolates of direction. */
	if ((point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
	    (point >= 0x2060 && point <= 0x206f) || point == 0x61c || point == 0xfeff)
		return false;
	return true;
}

void text_to_terminal(const char *text, bool utf8, char *buf, size_t size)
{
	const char *end = text + strlen(text);
	size_t used = 0;

	buf[0] = '\0';
	while (text < end) {
		uint32_t point = 0;
		size_t n = text_utf8_length(text, (size_t)(end - text), &point);
		char escaped[5];

		if (n && is_harmless(point) && (utf8 || point < 0x80)) {
			if (!append(buf, size, &used, text, n))
				return;
			text += n;
			continue;
		}
		for (size_t i = n ? n : 1; i > 0; i--) {
			snprintf(escaped, sizeof(escaped), "\\x%02x", (unsigned char)*text++);
			if (!append(buf, size, &used, escaped, 4))
				return;
		}
	}
}
