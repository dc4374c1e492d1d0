// SPDX-License-Identifier: GPL-2.0-or-later
/* What is too much: each limit is named, and neither memory nor time runs away. */
#include "tests/unit/harness.h"

#include <time.h>

#include "tests/unit/config-files.h"

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* @head, then @unit again and again up to @size bytes. */
static char *repeat(const char *head, const char *unit, size_t size)
{
	size_t at = strlen(head), n = strlen(unit);
	char *text = malloc(size + 1);

	if (!text)
		abort();
	memcpy(text, head, at);
	for (; at + n <= size; at += n)
		memcpy(text + at, unit, n);
	memset(text + at, '\n', size - at);
	text[size] = '\0';
	return text;
}

static int load_repeated(struct files *files, const char *head, const char *unit, size_t size)
{
	char *text = repeat(head, unit, size);

	files_make(files, "");
	files_write(files, "ballast.yaml", text, size);
	free(text);
	return files_load(files);
}

static void file_of_one_mebibyte_is_read(void)
{
	struct files files;

	CU_ASSERT_EQUAL(
		load_repeated(&files, "host: {mode: act}\n", "# a comment\n", CONFIG_FILE_MAX), 0);
	files_end(&files);
}

static void larger_file_is_a_mistake(void)
{
	struct files files;

	CU_ASSERT_EQUAL(load_repeated(&files, "", "# a comment\n", CONFIG_FILE_MAX + 1), -EINVAL);
	CU_ASSERT_STRING_EQUAL(files_message(&files, 0),
			       "ballast.yaml: larger than 1 MiB: split it into drop-ins");
	files_end(&files);
}

static void endless_file_is_not_read_to_its_end(void)
{
	struct config_diag diag = CONFIG_DIAG_INIT;
	struct settings *settings = NULL;

	CU_ASSERT_EQUAL(config_load("/dev/zero", &settings, &diag), -ENXIO);
	CU_ASSERT_PTR_NULL(settings);
	config_diag_clear(&diag);
}

static char *numbered(size_t from, size_t n, const char *format)
{
	size_t size, i;
	char *text = NULL;
	FILE *f = open_memstream(&text, &size);

	(void)fputs("guests:\n", f);
	for (i = from; i < from + n; i++)
		(void)fprintf(f, "  - name: %s%zu\n", format, i);
	(void)fclose(f);
	return text;
}

static void as_many_rules_as_allowed_load_in_time(void)
{
	char *text = numbered(10000, CONFIG_RULES_MAX, "a*");
	struct files files;
	double start = now();

	files_make(&files, text);
	CU_ASSERT_EQUAL_FATAL(files_load(&files), 0);
	CU_ASSERT_EQUAL(files.settings->n_rules, CONFIG_RULES_MAX);
	CU_ASSERT_EQUAL(files.diag.n_warnings, 0);
	CU_ASSERT(now() - start < 60); /* under valgrind; half a second as it is */
	files_end(&files);
	free(text);
}

static void more_rules_in_one_file_are_a_mistake(void)
{
	char *text = numbered(0, CONFIG_RULES_MAX + 1, "a");
	struct files files;

	files_make(&files, text);
	CU_ASSERT_EQUAL(files_load(&files), -EINVAL);
	CU_ASSERT_EQUAL(files.diag.n_errors, 1);
	CU_ASSERT_STRING_EQUAL(files_message(&files, 0),
			       "ballast.yaml:4098:5: guests: the list is too long: 4096 entries "
			       "are the most");
	files_end(&files);
	free(text);
}

static void more_rules_in_all_files_are_a_mistake(void)
{
	char *text = numbered(0, CONFIG_RULES_MAX, "a");
	struct files files;

	files_make(&files, text);
	files_text(&files, "ballast.d/a.yaml", "guests: [{name: one more}]\n");
	CU_ASSERT_EQUAL(files_load(&files), -EINVAL);
	CU_ASSERT_EQUAL(files.diag.n_errors, 1);
	files_end(&files);
	free(text);
}

static void too_many_dropins_are_a_mistake(void)
{
	struct files files;
	char name[64];

	files_make(&files, "");
	for (int i = 0; i < CONFIG_DROPINS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "ballast.d/%d.yaml", i);
		files_text(&files, name, "");
	}
	CU_ASSERT_EQUAL_FATAL(files_load(&files), 0);
	files_text(&files, "ballast.d/more.yaml", "");
	CU_ASSERT_EQUAL(files_load(&files), -EINVAL);
	CU_ASSERT_STRING_EQUAL(files_message(&files, 0),
			       "ballast.d: 257 drop-ins are too many: 256 are the most");
	files_end(&files);
}

static void messages_are_bounded_and_all_are_counted(void)
{
	struct files files;

	CU_ASSERT_EQUAL(load_repeated(&files, "guests:\n", "  - {zebra: 1}\n", 30008), -EINVAL);
	CU_ASSERT_EQUAL(files.diag.n_messages, CONFIG_DIAG_MAX);
	CU_ASSERT_EQUAL(files.diag.n_errors, 4000);
	files_end(&files);
}

static void more_keys_than_there_are_end_the_reading(void)
{
	size_t size;
	char *text = NULL;
	FILE *f = open_memstream(&text, &size);
	struct files files;

	for (int i = 0; i < 100000; i++)
		(void)fprintf(f, "k%d: 1\n", i);
	(void)fclose(f);
	files_make(&files, text);
	CU_ASSERT_EQUAL(files_load(&files), -EINVAL);
	CU_ASSERT(files.diag.n_errors < 200);
	files_end(&files);
	free(text);
}

/* Shapes that make parsers slow or deep: all end soon, with a message. */
static void hostile_shapes_end_soon(void)
{
	static const char *const shapes[][2] = {
		{ "", "[" },
		{ "", "{a: " },
		{ "", "- " },
		{ "", "? " },
		{ "", "{?" },
		{ "guests: [", "a," },
		{ "guests: [", "[]," },
		{ "", "a" },
		{ "\"", "\\\n" },
		{ "a: &a ", "*a " },
		{ "", "--- \n" },
		{ "", "%TAG ! a\n" },
		{ "guests:\n", " - - - - a\n" },
		{ "host: {", "a: 1, " },
		{ "", "! " },
		{ "a: |\n", "  x\n" },
		{ "", "'" },
		{ "guests: [", "!a &a b," },
	};

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct files files;
		double start = now();

		CU_ASSERT_EQUAL(load_repeated(&files, shapes[i][0], shapes[i][1], CONFIG_FILE_MAX),
				-EINVAL);
		CU_ASSERT(files.diag.n_messages > 0);
		if (now() - start > 10) {
			printf("\n%s%s...: %.1f s\n", shapes[i][0], shapes[i][1], now() - start);
			CU_FAIL("too slow");
		}
		files_end(&files);
	}
}

static const struct unit_test tests[] = {
	TEST(file_of_one_mebibyte_is_read),
	TEST(larger_file_is_a_mistake),
	TEST(endless_file_is_not_read_to_its_end),
	TEST(as_many_rules_as_allowed_load_in_time),
	TEST(more_rules_in_one_file_are_a_mistake),
	TEST(more_rules_in_all_files_are_a_mistake),
	TEST(too_many_dropins_are_a_mistake),
	TEST(messages_are_bounded_and_all_are_counted),
	TEST(more_keys_than_there_are_end_the_reading),
	TEST(hostile_shapes_end_soon),
};

HARNESS_MAIN("config-limits", tests)
