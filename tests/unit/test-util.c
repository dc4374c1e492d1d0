// SPDX-License-Identifier: GPL-2.0-or-later
/* Numbers, small files and log lines. */
#include "tests/unit/harness.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/util/fs.h"
#include "daemon/util/log.h"
#include "daemon/util/parse.h"
#include "tests/unit/fake-root.h"

/* --- Numbers ---------------------------------------------------------------------------------- */

static void a_number_that_does_not_fit_is_absent(void)
{
	const char *text = "18446744073709551616";
	uint64_t value = 5;

	CU_ASSERT_FALSE(parse_u64(&text, &value));
	CU_ASSERT_EQUAL(value, 5);
	text = "99999999999999999999";
	CU_ASSERT_FALSE(parse_u64(&text, &value));
	text = "18446744073709551615x";
	CU_ASSERT_TRUE(parse_u64(&text, &value));
	CU_ASSERT_EQUAL(value, UINT64_MAX);
	CU_ASSERT_EQUAL(*text, 'x');
	text = "-1";
	CU_ASSERT_FALSE(parse_u64(&text, &value));
	text = "";
	CU_ASSERT_FALSE(parse_u64(&text, &value));
}

static void fields_are_found_by_their_whole_key(void)
{
	struct parse_field fields[] = { { .key = "Free" }, { .key = "Total" }, { .key = "None" } };

	CU_ASSERT_EQUAL(parse_fields("FreeX: 1 kB\nXFree: 2 kB\nFree:  3 kB\nTotal 4\nFree: 5 kB\n",
				     fields, 3),
			2);
	CU_ASSERT_TRUE(fields[0].found);
	CU_ASSERT_EQUAL(fields[0].value, KIB(3));
	CU_ASSERT_EQUAL(fields[1].value, 4);
	CU_ASSERT_FALSE(fields[2].found);
}

static void a_malformed_field_is_absent(void)
{
	static const char *const texts[] = { "Free: \n",
					     "Free: x kB\n",
					     "Free: 1 kB more\n",
					     "Free: 1x\n",
					     "Free\n",
					     "Free:",
					     "Free: 18446744073709551615 kB\n" };
	struct parse_field field = { .key = "Free" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		CU_ASSERT_EQUAL(parse_fields(texts[i], &field, 1), 0);
	CU_ASSERT_EQUAL(parse_fields("Free: 7 kB", &field, 1), 1);
	CU_ASSERT_EQUAL(field.value, KIB(7));
}

static void hundredths_are_read_with_two_decimals(void)
{
	const char *text = "12.3";
	uint32_t value = 0;

	CU_ASSERT_TRUE(parse_hundredths(&text, &value));
	CU_ASSERT_EQUAL(value, 1230);
	text = "0.059 ";
	CU_ASSERT_TRUE(parse_hundredths(&text, &value));
	CU_ASSERT_EQUAL(value, 5);
	CU_ASSERT_EQUAL(*text, ' ');
	text = "99999999999";
	CU_ASSERT_FALSE(parse_hundredths(&text, &value));
}

static void sizes_are_written_for_people(void)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{ 0, "0" },
		{ 1, "1 KiB" },
		{ KIB(1) + 512, "2 KiB" },
		{ MIB(1) - 1, "1024 KiB" },
		{ MIB(3) / 2, "1.5 MiB" },
		{ MIB(128), "128 MiB" },
		{ MIB(1800), "1800 MiB" },
		{ MIB(11776), "11.5 GiB" },
		{ UINT64_MAX, "17179869184.0 GiB" },
	};
	char buf[FORMAT_SIZE_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		CU_ASSERT_STRING_EQUAL(format_size(buf, sizeof(buf), cases[i].bytes),
				       cases[i].text);
}

/* --- Files ------------------------------------------------------------------------------------ */

static void a_file_longer_than_the_buffer_is_cut_and_terminated(void)
{
	struct fake_root root;
	char buf[8];

	fake_root_make(&root);
	fake_write(&root, "/long", "0123456789");
	CU_ASSERT_EQUAL(fs_read(fake_path(&root, "/long"), buf, sizeof(buf)), 7);
	CU_ASSERT_STRING_EQUAL(buf, "0123456");
	CU_ASSERT_EQUAL(fs_read(fake_path(&root, "/none"), buf, sizeof(buf)), -ENOENT);
	CU_ASSERT_STRING_EQUAL(buf, "");
	fake_root_remove(&root);
}

static void a_file_is_replaced_as_a_whole(void)
{
	struct fake_root root;
	char buf[32];

	fake_root_make(&root);
	fake_write(&root, "/file", "old");
	CU_ASSERT_EQUAL(fs_write_atomic(fake_path(&root, "/file"), "new text", 8), 0);
	CU_ASSERT_EQUAL(fs_read(fake_path(&root, "/file"), buf, sizeof(buf)), 8);
	CU_ASSERT_STRING_EQUAL(buf, "new text");
	fake_root_remove(&root);
}

static void a_write_that_fails_leaves_the_old_file(void)
{
	struct rlimit old, none = { 0 };
	struct fake_root root;
	char buf[32];

	fake_root_make(&root);
	fake_write(&root, "/file", "old");
	(void)getrlimit(RLIMIT_FSIZE, &old);
	none.rlim_max = old.rlim_max;
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)setrlimit(RLIMIT_FSIZE, &none);
	CU_ASSERT_EQUAL(fs_write_atomic(fake_path(&root, "/file"), "new", 3), -EFBIG);
	(void)setrlimit(RLIMIT_FSIZE, &old);
	CU_ASSERT_TRUE(fs_read(fake_path(&root, "/file"), buf, sizeof(buf)) == 3);
	CU_ASSERT_STRING_EQUAL(buf, "old");
	CU_ASSERT_EQUAL(access(fake_path(&root, "/file.new"), F_OK), -1);
	fake_root_remove(&root);
}

/* --- Lines ------------------------------------------------------------------------------------ */

static char last_line[2048];
static int last_priority, n_lines;
static const char *first_field;

static void keep_line(int priority, const char *const *fields, const char *text)
{
	(void)snprintf(last_line, sizeof(last_line), "%s", text);
	last_priority = priority;
	first_field = fields ? fields[0] : NULL;
	n_lines++;
}

static void a_line_reaches_the_sink_with_its_fields(void)
{
	static const char *const fields[] = { "ACTION=shed", NULL };

	log_set_sink(keep_line);
	log_fields(LOG_NOTICE, fields, "guest %s", "web");
	CU_ASSERT_STRING_EQUAL(last_line, "guest web");
	CU_ASSERT_EQUAL(last_priority, LOG_NOTICE);
	CU_ASSERT_STRING_EQUAL(first_field, "ACTION=shed");
	log_set_sink(NULL);
}

static void what_is_below_the_level_is_dropped(void)
{
	log_set_sink(keep_line);
	n_lines = 0;
	log_debug("not shown");
	CU_ASSERT_EQUAL(n_lines, 0);
	log_set_level(log_level_by_name("debug"));
	log_debug("shown");
	CU_ASSERT_EQUAL(n_lines, 1);
	log_set_level(LOG_INFO);
	CU_ASSERT_EQUAL(log_level_by_name("loud"), -EINVAL);
	log_set_sink(NULL);
}

static void a_line_cannot_fake_another(void)
{
	log_set_sink(keep_line);
	log_info("%s", "web\nballastd: all is well\x1b[2J");
	CU_ASSERT_STRING_EQUAL(last_line, "web\\x0aballastd: all is well\\x1b[2J");
	/* The other form of the same control, the end of a line, and a turn of direction. */
	log_info("%s", "\xc2\x9b"
		       "2J \xe2\x80\xa8 \xe2\x80\xae");
	CU_ASSERT_STRING_EQUAL(last_line, "\\xc2\\x9b2J \\xe2\\x80\\xa8 \\xe2\\x80\\xae");
	log_info("%s", "gr\xc3\xbc\xc3\x9f"
		       "e");
	CU_ASSERT_STRING_EQUAL(last_line, "gr\xc3\xbc\xc3\x9f"
					  "e");
	log_set_sink(NULL);
}

static void a_line_without_end_is_cut(void)
{
	static char text[4096];

	memset(text, 'x', sizeof(text) - 1);
	log_set_sink(keep_line);
	log_info("%s", text);
	CU_ASSERT_EQUAL(strlen(last_line), 1023);
	log_set_sink(NULL);
}

static const struct unit_test tests[] = {
	TEST(a_number_that_does_not_fit_is_absent),
	TEST(fields_are_found_by_their_whole_key),
	TEST(a_malformed_field_is_absent),
	TEST(hundredths_are_read_with_two_decimals),
	TEST(sizes_are_written_for_people),
	TEST(a_file_longer_than_the_buffer_is_cut_and_terminated),
	TEST(a_file_is_replaced_as_a_whole),
	TEST(a_write_that_fails_leaves_the_old_file),
	TEST(a_line_reaches_the_sink_with_its_fields),
	TEST(what_is_below_the_level_is_dropped),
	TEST(a_line_cannot_fake_another),
	TEST(a_line_without_end_is_cut),
};

HARNESS_MAIN("util", tests)
