/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Text from elsewhere (a guest's name can be any bytes) made fit for where it goes. Pure, any
 * thread; the results are always terminated and cut at a whole character.
 */
#ifndef BALLAST_UTIL_TEXT_H
#define BALLAST_UTIL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/**
 * text_utf8_length() - the valid UTF-8 character at @text.
 * @left: bytes at @text.
 * @ret_point: its code point; untouched where there is none.
 *
 * Return: its length in bytes, 0 where there is none (overlong forms and surrogates are bad).
 */
size_t text_utf8_length(const char *text, size_t left, uint32_t *ret_point);

/** text_ends_with() - whether the last bytes of @text are @end. */
static inline bool text_ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && memcmp(text + n - m, end, m) == 0;
}

/**
 * text_to_utf8() - copy @text; each byte that is not part of valid UTF-8 becomes U+FFFD.
 */
void text_to_utf8(const char *text, char *buf, size_t size);

/**
 * text_to_terminal() - copy @text with everything that a terminal could obey written out: control
 * characters, characters that turn the direction of writing, and bytes that are not valid UTF-8
 * become \xNN, byte by byte, and so does everything beyond ASCII unless @utf8. A backslash stays.
 */
void text_to_terminal(const char *text, bool utf8, char *buf, size_t size);

#endif
