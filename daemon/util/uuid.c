// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/util/uuid.h"

#include <errno.h>
#include <string.h>

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* A dash stands before these bytes. */
static int dash_before(int byte)
{
	return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

void uuid_format(const uint8_t uuid[16], char text[UUID_TEXT_SIZE])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < 16; i++) {
		if (dash_before(i))
			*text++ = '-';
		*text++ = digits[uuid[i] >> 4];
		*text++ = digits[uuid[i] & 15];
	}
	*text = '\0';
}

int uuid_parse(const char *text, uint8_t ret_uuid[16])
{
	uint8_t uuid[16];

	for (int i = 0; i < 16; i++) {
		int high, low;

		if (dash_before(i) && *text++ != '-')
			return -EINVAL;
		high = hex_digit(text[0]);
		low = high < 0 ? -1 : hex_digit(text[1]);
		if (low < 0)
			return -EINVAL;
		uuid[i] = (uint8_t)(high << 4 | low);
		text += 2;
	}
	if (*text != '\0')
		return -EINVAL;
	memcpy(ret_uuid, uuid, sizeof(uuid));
	return 0;
}
