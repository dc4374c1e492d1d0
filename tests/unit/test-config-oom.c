// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Loading when memory runs out at each allocation in turn, libyaml's and libc's among them. The
 * allocator of this program counts, and fails on demand. AddressSanitizer and valgrind put theirs
 * in its place; with them the same loads run without failures.
 */
#include "tests/unit/harness.h"

#include "tests/unit/config-files.h"

#if defined(__SANITIZE_ADDRESS__)
#define OWN_ALLOCATOR 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OWN_ALLOCATOR 0
#endif
#endif
#ifndef OWN_ALLOCATOR
#define OWN_ALLOCATOR 1
#endif

static long live, calls, fail_at = -1;

#if OWN_ALLOCATOR
void *__libc_malloc(size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_calloc(size_t n, size_t size);
void __libc_free(void *p);

static bool denied(void)
{
	bool deny = calls++ == fail_at;

	if (deny)
		errno = ENOMEM;
	return deny;
}

void *malloc(size_t size)
{
	void *p = denied() ? NULL : __libc_malloc(size);

	live += p != NULL;
	return p;
}

void *calloc(size_t n, size_t size)
{
	void *p = denied() ? NULL : __libc_calloc(n, size);

	live += p != NULL;
	return p;
}

void *realloc(void *old, size_t size)
{
	void *p = denied() ? NULL : __libc_realloc(old, size);

	live += p != NULL && !old;
	return p;
}

void free(void *p)
{
	live -= p != NULL;
	__libc_free(p);
}
#endif

static const char text[] =
	"host: {mode: act, budget: {size: 80%}, levels: {min_stay: 5s}, profiles: {tight: "
	"{swappiness: 5}}}\n"
	"defaults: {min: 5%, sysctl: {swappiness: 6}}\n"
	"guests: [{name: web-*}, {name: web-1}, {match: {metadata: gold}, shares: 5}]\n";

/* How many allocations must have failed at least, if any can. */
static long at_least(long n)
{
	const char *preload = getenv("LD_PRELOAD");

	return OWN_ALLOCATOR && !(preload && strstr(preload, "vgpreload")) ? n : 0;
}

/* Fails the n-th allocation of a load, then the next, until one load ran without; gives n. */
static long fail_each(struct files *files, int expected)
{
	long n = 0;
	int r;

	do {
		struct settings *settings = NULL;
		struct config_diag diag = CONFIG_DIAG_INIT;
		long before = live;
		bool failed;

		calls = 0;
		fail_at = n++;
		r = config_load(files->path, &settings, &diag);
		failed = calls > fail_at;
		fail_at = -1;
		/* Never half a result, and never good news about a bad file. */
		CU_ASSERT_EQUAL(r == 0, settings != NULL);
		CU_ASSERT(r == expected || r == -ENOMEM);
		config_diag_clear(&diag);
		config_free(settings);
		CU_ASSERT_EQUAL(live, before);
		if (!failed)
			break;
	} while (n < 100000);
	CU_ASSERT_EQUAL(r, expected);
	return n;
}

static void lack_of_memory_is_an_error_and_leaks_nothing(void)
{
	struct files files;

	files_make(&files, text);
	files_text(&files, "ballast.d/a.yaml", "guests: [{name: db-?, min: 2GiB}]\n");
	CU_ASSERT(fail_each(&files, 0) > at_least(100));
	files_end(&files);
}

static void mistakes_count_without_memory_to_say_them(void)
{
	struct files files;

	files_make(&files, "host: {mode: x, heardoom: 5}\nguests: [{nam: b}, {uuid: 5}]\n");
	CU_ASSERT(fail_each(&files, -EINVAL) > at_least(60));
	files_end(&files);
}

static const struct unit_test tests[] = {
	TEST(lack_of_memory_is_an_error_and_leaks_nothing),
	TEST(mistakes_count_without_memory_to_say_them),
};

HARNESS_MAIN("config-oom", tests)
