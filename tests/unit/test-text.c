// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/util/text.h"

#include "tests/unit/harness.h"

static char out[64];

static const char *utf8(const char *text)
{
	text_to_utf8(text, out, sizeof(out));
	return out;
}

static const char *safe(const char *text)
{
	text_to_terminal(text, true, out, sizeof(out));
	return out;
}

static void good_text_stays_as_it_is(void)
{
	CU_ASSERT_STRING_EQUAL(utf8("web1 b\xc3\xbcro \xf0\x9f\x90\x8b"),
			       "web1 b\xc3\xbcro \xf0\x9f\x90\x8b");
	CU_ASSERT_STRING_EQUAL(safe("web1 b\xc3\xbcro \\ \xe6\x97\xa5"),
			       "web1 b\xc3\xbcro \\ \xe6\x97\xa5");
	CU_ASSERT_STRING_EQUAL(safe(""), "");
}

static void each_bad_byte_is_replaced_alone(void)
{
	CU_ASSERT_STRING_EQUAL(utf8("a\xff"
				    "b"),
			       "a\xef\xbf\xbd"
			       "b");
	CU_ASSERT_STRING_EQUAL(utf8("\xc3"), "\xef\xbf\xbd"); /* cut short */
	CU_ASSERT_STRING_EQUAL(utf8("\xc3(x"), "\xef\xbf\xbd(x");
}

static void overlong_forms_and_surrogates_are_bad(void)
{
	uint32_t point;

	CU_ASSERT_EQUAL(text_utf8_length("\xc0\xaf", 2, &point), 0);
	CU_ASSERT_EQUAL(text_utf8_length("\xe0\x80\xaf", 3, &point), 0);
	CU_ASSERT_EQUAL(text_utf8_length("\xed\xa0\x80", 3, &point), 0);
	CU_ASSERT_EQUAL(text_utf8_length("\xf4\x90\x80\x80", 4, &point), 0);
	CU_ASSERT_EQUAL(text_utf8_length("\xf8\x88\x80\x80\x80", 5, &point), 0);
	CU_ASSERT_EQUAL(text_utf8_length("\xe6\x97\xa5", 2, &point), 0);
	CU_ASSERT_EQUAL(text_utf8_length("\xe6\x97\xa5", 3, &point), 3);
	CU_ASSERT_EQUAL(point, 0x65e5);
}

static void a_terminal_gets_nothing_to_obey(void)
{
	CU_ASSERT_STRING_EQUAL(safe("\033[31m"), "\\x1b[31m");
	CU_ASSERT_STRING_EQUAL(safe("a\nb\tc\x7f"), "a\\x0ab\\x09c\\x7f");
	CU_ASSERT_STRING_EQUAL(safe("\xc2\x9b"
				    "31m"),
			       "\\xc2\\x9b31m"); /* CSI in one byte */
	CU_ASSERT_STRING_EQUAL(safe("\xe2\x80\xae"), "\\xe2\\x80\\xae"); /* right to left */
	CU_ASSERT_STRING_EQUAL(safe("\xff"), "\\xff");
}

static void without_utf8_only_ascii_is_left(void)
{
	text_to_terminal("b\xc3\xbcro", false, out, sizeof(out));
	CU_ASSERT_STRING_EQUAL(out, "b\\xc3\\xbcro");
}

static void what_is_too_long_is_cut_at_a_whole_character(void)
{
	char small[6];

	text_to_utf8("abcd\xc3\xbc", small, sizeof(small));
	CU_ASSERT_STRING_EQUAL(small, "abcd");
	text_to_terminal("ab\033", true, small, sizeof(small));
	CU_ASSERT_STRING_EQUAL(small, "ab");
	text_to_utf8("abcdefgh", small, 1);
	CU_ASSERT_STRING_EQUAL(small, "");
}

static const struct unit_test tests[] = {
	TEST(good_text_stays_as_it_is),
	TEST(each_bad_byte_is_replaced_alone),
	TEST(overlong_forms_and_surrogates_are_bad),
	TEST(a_terminal_gets_nothing_to_obey),
	TEST(without_utf8_only_ascii_is_left),
	TEST(what_is_too_long_is_cut_at_a_whole_character),
};

HARNESS_MAIN("text", tests)
