// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bad configurations: each tests/data/config/bad/NAME.yaml gives exactly the messages in
 * NAME.expected, and NAME says what must hold. RECORD=1 writes them anew, to be read in the diff.
 */
#include "tests/unit/harness.h"

#include <dirent.h>

#include "daemon/config/config.h"
#include "tests/unit/config-files.h"

#define FOLDER	    "tests/data/config/bad"
#define CASES_MAX   200
#define CASES_LEAST 64 /* as many as there were: none gets lost unnoticed */

/* All messages, one a line, with F for the file's name. */
static char *messages_of(const char *path)
{
	struct config_diag diag = CONFIG_DIAG_INIT;
	struct settings *settings = NULL;
	char line[1024], *text = NULL;
	size_t size, n = strlen(path);
	FILE *f = open_memstream(&text, &size);
	int r = config_load(path, &settings, &diag);

	CU_ASSERT_EQUAL(r, diag.n_errors ? -22 : 0);
	CU_ASSERT_EQUAL(settings != NULL, r == 0);
	for (size_t i = 0; i < diag.n_messages; i++) {
		config_diag_format(&diag.messages[i], sizeof(line), line);
		for (char *p = line, *q; *p; p = q) {
			q = strstr(p, path);
			(void)fprintf(f, "%.*s%s", q ? (int)(q - p) : -1, p, q ? "F" : "");
			q = q ? q + n : p + strlen(p);
		}
		(void)fputc('\n', f);
	}
	(void)fclose(f);
	config_diag_clear(&diag);
	config_free(settings);
	return text;
}

static void one(void)
{
	const char *name = CU_get_current_test()->pName;
	char *path = NULL, *expected_path = NULL, *found, *expected;

	if (asprintf(&path, FOLDER "/%s.yaml", name) < 0 ||
	    asprintf(&expected_path, FOLDER "/%s.expected", name) < 0)
		abort();
	found = messages_of(path);
	if (getenv("RECORD")) {
		FILE *f = fopen(expected_path, "we");

		(void)fputs(found, f);
		(void)fclose(f);
	}
	expected = slurp(expected_path);
	CU_ASSERT_NOT_EQUAL(found[0], '\0');
	CU_ASSERT_STRING_EQUAL(found, expected);
	if (strcmp(found, expected) != 0)
		printf("\n--- expected\n%s--- found\n%s", expected, found);
	free(path);
	free(expected_path);
	free(found);
	free(expected);
}

static int is_case(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return n > 5 && strcmp(entry->d_name + n - 5, ".yaml") == 0;
}

int main(int argc, char **argv)
{
	static struct unit_test tests[CASES_MAX];
	struct dirent **names;
	int n = scandir(FOLDER, &names, is_case, alphasort), r;

	if (n < CASES_LEAST || n > CASES_MAX) {
		fprintf(stderr, "%d cases in " FOLDER ", at least %d were expected\n", n,
			CASES_LEAST);
		return EXIT_FAILURE;
	}
	for (int i = 0; i < n; i++) {
		names[i]->d_name[strlen(names[i]->d_name) - 5] = '\0';
		tests[i] = (struct unit_test){ names[i]->d_name, one };
	}
	r = harness_run("config-bad", tests, (size_t)n, argc, argv);
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return r;
}
