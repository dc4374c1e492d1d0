// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>

#include "daemon/util/uuid.h"
#include "tests/unit/harness.h"

static void text_and_bytes_round_trip(void)
{
	static const char text[] = "01234567-89ab-cdef-0123-456789abcdef";
	char back[UUID_TEXT_SIZE];
	uint8_t uuid[16];

	CU_ASSERT_EQUAL(uuid_parse(text, uuid), 0);
	CU_ASSERT_EQUAL(uuid[0], 0x01);
	CU_ASSERT_EQUAL(uuid[15], 0xef);
	uuid_format(uuid, back);
	CU_ASSERT_STRING_EQUAL(back, text);
	CU_ASSERT_EQUAL(uuid_parse("01234567-89AB-CDEF-0123-456789ABCDEF", uuid), 0);
}

static void what_is_no_uuid_is_refused(void)
{
	static const char *const bad[] = {
		"",
		"0",
		"01234567",
		"01234567-89ab-cdef-0123-456789abcde",
		"01234567-89ab-cdef-0123-456789abcdef0",
		"0123456789abcdef0123456789abcdef",
		"01234567-89ab-cdef-0123-456789abcdeg",
		"01234567-89ab-cdef-0123_456789abcdef",
	};
	uint8_t uuid[16] = { 42 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(uuid_parse(bad[i], uuid), -EINVAL);
	CU_ASSERT_EQUAL(uuid[0], 42);
}

static const struct unit_test tests[] = {
	TEST(text_and_bytes_round_trip),
	TEST(what_is_no_uuid_is_refused),
};

HARNESS_MAIN("uuid", tests)
