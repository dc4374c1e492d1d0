// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/unit/harness.h"

#include "daemon/config/diag.h"
#include "daemon/config/utf8.h"
#include "daemon/config/value.h"

struct row {
	const char *text;
	enum value_problem problem;
	uint64_t value;
};

static void check(enum value_problem (*parse)(const char *, uint64_t *), const struct row *rows,
		  size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t value = 0;
		enum value_problem problem = parse(rows[i].text, &value);

		if (problem != rows[i].problem || (problem == VALUE_OK && value != rows[i].value)) {
			printf("\n\"%s\": problem %d value %llu\n", rows[i].text, problem,
			       (unsigned long long)value);
			CU_FAIL("unexpected");
		}
	}
}

#define CHECK(parse, rows) check(parse, rows, sizeof(rows) / sizeof((rows)[0]))

static void sizes_are_exact(void)
{
	static const struct row rows[] = {
		{ "0", VALUE_OK, 0 },
		{ "0.0", VALUE_OK, 0 },
		{ "0MiB", VALUE_OK, 0 },
		{ "1B", VALUE_OK, 1 },
		{ "1KiB", VALUE_OK, 1024 },
		{ "512MiB", VALUE_OK, 536870912 },
		{ "512 MiB", VALUE_OK, 536870912 },
		{ "1.5GiB", VALUE_OK, 1610612736 },
		{ "0.000001TiB", VALUE_TOO_FINE, 0 },
		{ "0.5B", VALUE_TOO_FINE, 0 },
		{ "0.015625TiB", VALUE_OK, UINT64_C(1) << 34 },
		{ "16777215TiB", VALUE_OK, UINT64_C(16777215) << 40 },
		{ "16777215.999999TiB", VALUE_TOO_FINE, 0 },
		{ "16777216TiB", VALUE_TOO_LARGE, 0 },
		{ "18446744073709551615B", VALUE_OK, UINT64_MAX },
		{ "18446744073709551616B", VALUE_TOO_LARGE, 0 },
		{ "1.5000000000GiB", VALUE_OK, 1610612736 },
		{ "", VALUE_NO_NUMBER, 0 },
		{ "MiB", VALUE_NO_NUMBER, 0 },
		{ "+1MiB", VALUE_NO_NUMBER, 0 },
		{ "-1MiB", VALUE_NO_NUMBER, 0 },
		{ " 1MiB", VALUE_NO_NUMBER, 0 },
		{ "1", VALUE_NO_UNIT, 0 },
		{ "1 ", VALUE_BAD_UNIT, 0 },
		{ "1  MiB", VALUE_BAD_UNIT, 0 },
		{ "1MiB ", VALUE_BAD_UNIT, 0 },
		{ "1mib", VALUE_BAD_UNIT, 0 },
		{ "1.MiB", VALUE_BAD_UNIT, 0 },
		{ "1.2.3MiB", VALUE_BAD_UNIT, 0 },
		{ "5%", VALUE_BAD_UNIT, 0 },
	};

	CHECK(value_size, rows);
}

static void percentages_are_exact(void)
{
	static const struct row rows[] = {
		{ "25%", VALUE_OK, 2500 },	    { "12.5%", VALUE_OK, 1250 },
		{ "0.01%", VALUE_OK, 1 },	    { "0.001%", VALUE_TOO_FINE, 0 },
		{ "25.00000000%", VALUE_OK, 2500 }, { "25", VALUE_NO_UNIT, 0 },
		{ "25MiB", VALUE_BAD_UNIT, 0 },	    { "%", VALUE_NO_NUMBER, 0 },
	};

	CHECK(value_percent, rows);
}

static void durations_are_exact(void)
{
	static const struct row rows[] = {
		{ "5s", VALUE_OK, 5000000 },
		{ "500ms", VALUE_OK, 500000 },
		{ "2min", VALUE_OK, 120000000 },
		{ "1h", VALUE_OK, UINT64_C(3600000000) },
		{ "1us", VALUE_OK, 1 },
		{ "0.5us", VALUE_TOO_FINE, 0 },
		{ "1.5s", VALUE_OK, 1500000 },
		{ "0.0005ms", VALUE_TOO_FINE, 0 },
		{ "5124095577h", VALUE_TOO_LARGE, 0 },
		{ "5m", VALUE_BAD_UNIT, 0 },
		{ "5", VALUE_NO_UNIT, 0 },
		{ "0", VALUE_OK, 0 },
	};

	CHECK(value_duration, rows);
}

static void counts_are_whole(void)
{
	static const struct row rows[] = {
		{ "0", VALUE_OK, 0 },	      { "10000", VALUE_OK, 10000 },
		{ "007", VALUE_OK, 7 },	      { "1.0", VALUE_BAD_UNIT, 0 },
		{ "1e3", VALUE_BAD_UNIT, 0 }, { "0x10", VALUE_BAD_UNIT, 0 },
		{ "-1", VALUE_NO_NUMBER, 0 }, { "99999999999999999999", VALUE_TOO_LARGE, 0 },
	};

	CHECK(value_count, rows);
}

/* Seeded, so that a failure can be seen again. */
static void formatted_values_parse_to_the_same(void)
{
	uint64_t state = 42;

	for (int i = 0; i < 20000; i++) {
		char text[VALUE_TEXT_MAX];
		uint64_t value, found;

		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		value = state >> (i % 64);
		if (i % 3 == 0)
			value &= ~UINT64_C(0) << (i % 40);
		value_format_size(value, text);
		CU_ASSERT(value_size(text, &found) == VALUE_OK && found == value);
		value_format_duration(value, text);
		CU_ASSERT(value_duration(text, &found) == VALUE_OK && found == value);
		value_format_percent(value % 1000000, text);
		CU_ASSERT(value_percent(text, &found) == VALUE_OK && found == value % 1000000);
	}
}

static void nearest_word_is_near(void)
{
	static const char *const words[] = { "min", "max", "stale", "stale_grace", "sysctl", NULL };

	CU_ASSERT_STRING_EQUAL(nearest_word("mim", words), "min");
	CU_ASSERT_STRING_EQUAL(nearest_word("mni", words), "min");
	CU_ASSERT_STRING_EQUAL(nearest_word("Stale-Grace", words), "stale_grace");
	CU_ASSERT_STRING_EQUAL(nearest_word("maximum", words), "max");
	CU_ASSERT_STRING_EQUAL(nearest_word("sysctls", words), "sysctl");
	CU_ASSERT_PTR_NULL(nearest_word("mux_of_it", words));
	CU_ASSERT_PTR_NULL(nearest_word("", words));
	CU_ASSERT_PTR_NULL(nearest_word("x", words));
}

static void long_words_have_no_neighbours(void)
{
	static const char *const words[] = { "min", NULL };
	char text[5000];

	memset(text, 'm', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	CU_ASSERT_PTR_NULL(nearest_word(text, words));
}

static void messages_show_no_control_characters(void)
{
	char shown[16];

	printable("a\x1b[31m\nb\x7f", sizeof(shown), shown);
	CU_ASSERT_STRING_EQUAL(shown, "a?[31m?b?");
}

static void long_text_is_cut_between_characters(void)
{
	char shown[9];

	printable("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", sizeof(shown), shown);
	CU_ASSERT_STRING_EQUAL(shown, "\xc3\xa4\xc3\xa4...");
}

static void first_bad_byte_is_found(void)
{
	struct place place = { 0 };

	CU_ASSERT_PTR_NULL(utf8_check("a\n\xf0\x9f\x98\x80", 6, &place));
	CU_ASSERT_PTR_NOT_NULL(utf8_check("a\n\xf0\x9f\x98", 5, &place));
	CU_ASSERT_EQUAL(place.line, 2);
	CU_ASSERT_EQUAL(place.column, 1);
	CU_ASSERT_PTR_NOT_NULL(utf8_check("\xc3\xa4\xf4\x90\x80\x80", 6, &place));
	CU_ASSERT_EQUAL(place.column, 2);
	CU_ASSERT_PTR_NOT_NULL(utf8_check("\xc2\x85", 2, &place));
}

static const struct unit_test tests[] = {
	TEST(sizes_are_exact),
	TEST(percentages_are_exact),
	TEST(durations_are_exact),
	TEST(counts_are_whole),
	TEST(formatted_values_parse_to_the_same),
	TEST(nearest_word_is_near),
	TEST(long_words_have_no_neighbours),
	TEST(messages_show_no_control_characters),
	TEST(long_text_is_cut_between_characters),
	TEST(first_bad_byte_is_found),
};

HARNESS_MAIN("config-value", tests)
