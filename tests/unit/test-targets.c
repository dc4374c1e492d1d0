// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <unistd.h>

#include "daemon/app/targets.h"
#include "tests/unit/harness.h"

static char path[64];

static void new_path(void)
{
	int fd;

	(void)snprintf(path, sizeof(path), "/tmp/test-targets-XXXXXX");
	fd = mkstemp(path);
	CU_ASSERT_FATAL(fd >= 0);
	(void)close(fd);
}

static void write_text(const char *text)
{
	FILE *file = fopen(path, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	(void)fputs(text, file);
	(void)fclose(file);
}

static void what_is_stored_is_loaded(void)
{
	struct target_entry entries[5], *loaded;
	size_t n;

	new_path();
	for (uint8_t i = 0; i < 5; i++)
		entries[i] = (struct target_entry){ .uuid = { i }, .target = UINT64_MAX - i };
	CU_ASSERT_EQUAL(targets_store(path, entries, 5), 0);
	CU_ASSERT_EQUAL(targets_load(path, &loaded, &n), 0);
	CU_ASSERT_EQUAL_FATAL(n, 5);
	CU_ASSERT_EQUAL(memcmp(loaded, entries, sizeof(entries)), 0);
	CU_ASSERT_EQUAL(targets_find(loaded, n, entries[3].uuid), UINT64_MAX - 3);
	CU_ASSERT_EQUAL(targets_find(loaded, n, (const uint8_t[16]){ 99 }), 0);
	free(loaded);
	(void)unlink(path);
}

static void no_file_is_no_targets(void)
{
	struct target_entry *loaded;
	size_t n = 1;

	CU_ASSERT_EQUAL(targets_load("/nonexistent/targets", &loaded, &n), 0);
	CU_ASSERT_EQUAL(n, 0);
}

static void a_damaged_file_is_refused_whole(void)
{
	static const char *const bad[] = {
		"",
		"something else\n",
		"ballast-targets 1\nnot-a-uuid 12\n",
		"ballast-targets 1\n01234567-89ab-cdef-0123-456789abcdef\n",
		"ballast-targets 1\n01234567-89ab-cdef-0123-456789abcdef 12",
		"ballast-targets 1\n01234567-89ab-cdef-0123-456789abcdef 12 13\n",
	};
	struct target_entry *loaded;
	size_t n;

	new_path();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_text(bad[i]);
		CU_ASSERT_EQUAL(targets_load(path, &loaded, &n), -EBADMSG);
		CU_ASSERT_PTR_NULL(loaded);
	}
	(void)unlink(path);
}

static void a_store_that_fails_keeps_the_old_file(void)
{
	struct target_entry entry = { .target = 1 };

	CU_ASSERT_EQUAL(targets_store("/nonexistent/targets", &entry, 1), -ENOENT);
}

static const struct unit_test tests[] = {
	TEST(what_is_stored_is_loaded),
	TEST(no_file_is_no_targets),
	TEST(a_damaged_file_is_refused_whole),
	TEST(a_store_that_fails_keeps_the_old_file),
};

HARNESS_MAIN("targets", tests)
