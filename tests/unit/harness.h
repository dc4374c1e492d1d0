/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What every unit test program shares: a table of named tests run by CUnit, and an exit status
 * that says whether all of them held. A name on the command line runs that test alone.
 */
#ifndef BALLAST_TESTS_HARNESS_H
#define BALLAST_TESTS_HARNESS_H

#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit_test {
	const char *name; /* what must hold */
	void (*run)(void);
};

#define TEST(name)                                                                                 \
	{                                                                                          \
#name, name                                                                        \
	}

static inline int harness_run(const char *suite_name, const struct unit_test *tests, size_t n,
			      int argc, char **argv)
{
	unsigned int failed;
	CU_pSuite suite;
	size_t added = 0;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return EXIT_FAILURE;
	suite = CU_add_suite(suite_name, NULL, NULL);
	for (size_t i = 0; suite && i < n; i++) {
		if (argc > 1 && strcmp(argv[1], tests[i].name) != 0)
			continue;
		if (CU_add_test(suite, tests[i].name, tests[i].run))
			added++;
	}
	if (added == 0) {
		fprintf(stderr, "%s: no test of that name\n", suite_name);
		return EXIT_FAILURE;
	}
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#define HARNESS_MAIN(suite, tests)                                                                 \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		return harness_run(suite, tests, sizeof(tests) / sizeof((tests)[0]), argc, argv);  \
	}

#endif
