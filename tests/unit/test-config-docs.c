// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The example and the manual page against the schema: every key is in both, nothing else is, and
 * the defaults that they name are the defaults.
 */
#include "tests/unit/harness.h"

#include <dirent.h>

#include "daemon/config/schema.h"
#include "daemon/config/tree.h"
#include "tests/unit/config-files.h"

#define EXAMPLE "conf/ballast.yaml"
#define MANUAL	"daemon/man/ballast.yaml.5.scd"

static void missing(const char *where, const char *what)
{
	printf("\n%s: missing: %s\n", where, what);
	CU_FAIL("missing");
}

/* A comment has a space after its #; a key that is commented out has its name, or its indent. */
static char *uncommented(const char *text)
{
	char *out = calloc(1, strlen(text) + 1), *to = out;

	if (!out)
		abort();
	while (*text) {
		size_t n = strcspn(text, "\n"), indent = strspn(text, " ");
		const char *hash = text + indent;

		if (*hash == '#' && hash[1] != '#' && hash[1] != '\n' &&
		    (hash[1] != ' ' || hash[2] == ' ')) {
			memcpy(to, text, indent);
			memcpy(to + indent, hash + 1, n - indent - 1);
			to += n - 1;
		} else {
			memcpy(to, text, n);
			to += n;
		}
		text += n;
		if (*text)
			*to++ = *text++;
	}
	return out;
}

static void expect_defaults(const char *text)
{
	struct settings built_in;
	struct files files;
	char *expected, *found;

	files_make(&files, text);
	if (files_load(&files) != 0)
		printf("\n%s\n", files_message(&files, 0));
	CU_ASSERT_EQUAL_FATAL(files.r, 0);
	CU_ASSERT_EQUAL(files.diag.n_messages, 0);
	files.settings->n_rules = 0;
	settings_init_defaults(&built_in);
	expected = files_dump(&built_in);
	found = files_dump(files.settings);
	CU_ASSERT_STRING_EQUAL(found, expected);
	free(expected);
	free(found);
	files_end(&files);
}

static void example_changes_nothing_as_it_is(void)
{
	char *text = slurp(EXAMPLE);

	expect_defaults(text);
	free(text);
}

static void example_names_the_defaults(void)
{
	char *text = slurp(EXAMPLE), *all = uncommented(text);

	expect_defaults(all);
	free(text);
	free(all);
}

static void expect_keys(const struct key *keys, const struct node *map, const char *text)
{
	for (; keys->name; keys++) {
		const struct node *node = map ? tree_find(map, keys->name) : NULL;

		if (keys->type == KEY_CGROUP ? !strstr(text, "cgroup:") : !node)
			missing(EXAMPLE, keys->name);
		if (keys->type == KEY_PROFILE && keys->words[0][0] == 'g')
			for (int i = 0; node && i < KNOB_MAX_ID; i++)
				if (!tree_find(node, knob_infos[i].name))
					missing(EXAMPLE, knob_infos[i].name);
		if (keys->keys && keys->type != KEY_RULES)
			expect_keys(keys->keys, node, text);
	}
}

static bool some_rule_has(const struct node *rules, const char *key)
{
	for (const struct node *rule = rules->first; rule; rule = rule->next) {
		const struct node *match = tree_find(rule, "match");

		if (match && tree_find(match, key))
			return true;
	}
	return false;
}

static void example_has_every_key(void)
{
	struct config_diag diag = CONFIG_DIAG_INIT;
	char *text = slurp(EXAMPLE), *all = uncommented(text);
	struct node *root = NULL;

	CU_ASSERT_EQUAL_FATAL(tree_parse(EXAMPLE, all, strlen(all), &diag, &root), 0);
	expect_keys(schema_root, root, text);
	for (const struct key *key = schema_match; key->name; key++)
		if (!some_rule_has(tree_find(root, "guests"), key->name))
			missing(EXAMPLE, key->name);
	tree_free(root);
	config_diag_clear(&diag);
	free(text);
	free(all);
}

static int is_yaml(const struct dirent *entry)
{
	return strstr(entry->d_name, ".yaml") != NULL;
}

static void further_examples_are_good_without_a_warning(void)
{
	struct dirent **names;
	int n = scandir("conf/examples", &names, is_yaml, alphasort);

	CU_ASSERT(n >= 3);
	for (int i = 0; i < n; i++) {
		struct config_diag diag = CONFIG_DIAG_INIT;
		struct settings *settings = NULL;
		char path[300];

		(void)snprintf(path, sizeof(path), "conf/examples/%s", names[i]->d_name);
		CU_ASSERT_EQUAL(config_load(path, &settings, &diag), 0);
		CU_ASSERT_EQUAL(diag.n_messages, 0);
		config_free(settings);
		config_diag_clear(&diag);
		free(names[i]);
	}
	free(names);
}

/* The default of a key as the manual writes it. */
static void default_text(const struct key *key, const struct node *node, size_t size, char *ret)
{
	if (key->type == KEY_PROFILE && node->n_children > 0)
		*ret = '\0';
	else if (key->type == KEY_PROFILE || node->text[0] == '\0')
		(void)snprintf(ret, size, " (default empty)");
	else
		(void)snprintf(ret, size, " (default _%s_)", node->text);
}

static void expect_in_manual(const struct key *keys, const struct node *map, const char *path,
			     const char *manual)
{
	for (; keys->name; keys++) {
		const struct node *node = tree_find(map, keys->name);
		char here[128], value[96] = "", want[256];

		(void)snprintf(here, sizeof(here), "%s%s%s", path, *path ? "." : "", keys->name);
		if (keys->keys && keys->type != KEY_RULES) {
			expect_in_manual(keys->keys, node, here, manual);
			continue;
		}
		if (keys->type == KEY_RULES)
			continue;
		if (keys->type != KEY_CGROUP)
			default_text(keys, node, sizeof(value), value);
		(void)snprintf(want, sizeof(want), "\n*%s*%s", here, value);
		if (!strstr(manual, want))
			missing(MANUAL, want + 1);
	}
}

static void manual_has_every_key_with_its_default(void)
{
	struct config_diag diag = CONFIG_DIAG_INIT;
	struct settings built_in;
	struct node *root = NULL;
	char *manual = slurp(MANUAL), *dump;

	settings_init_defaults(&built_in);
	dump = files_dump(&built_in);
	CU_ASSERT_EQUAL_FATAL(tree_parse("dump", dump, strlen(dump), &diag, &root), 0);
	expect_in_manual(schema_root, root, "", manual);
	for (const struct key *key = schema_match; key->name; key++) {
		char want[64];

		(void)snprintf(want, sizeof(want), "\n*guests.match.%s*", key->name);
		if (!strstr(manual, want))
			missing(MANUAL, want + 1);
	}
	tree_free(root);
	config_diag_clear(&diag);
	free(dump);
	free(manual);
}

static const struct key *find_path(char *path)
{
	const struct key *keys = schema_root, *key = NULL;
	char *save = NULL;

	for (char *part = strtok_r(path, ".", &save); part; part = strtok_r(NULL, ".", &save)) {
		if (strcmp(part, "match") == 0) {
			keys = schema_match;
			continue;
		}
		key = keys ? schema_find(keys, part) : NULL;
		if (!key)
			return NULL;
		keys = key->keys;
	}
	return key;
}

static void manual_has_no_key_that_is_not_there(void)
{
	char *manual = slurp(MANUAL);
	size_t n = 0;

	for (char *p = strstr(manual, "\n*"); p; p = strstr(p, "\n*")) {
		char path[128];

		p += 2;
		if (*p == '.' || sscanf(p, "%127[a-z_.]*", path) != 1 || !strchr(path, '.'))
			continue;
		n++;
		if (!find_path(path)) {
			printf("\n%.40s\n", p);
			CU_FAIL("not in the schema");
		}
	}
	CU_ASSERT(n > 30);
	free(manual);
}

static void level_value(const struct settings *settings, int knob, size_t size, char *ret)
{
	const struct profile *profiles = settings->host.profiles;
	size_t used = 0;

	for (int i = 0; i < LEVEL_MAX_ID; i++) {
		used += (size_t)snprintf(ret + used, size - used, i ? ", " : "");
		if (knob_has(&profiles[i], (enum knob_id)knob))
			used += (size_t)snprintf(ret + used, size - used, "%llu",
						 (unsigned long long)profiles[i].value[knob]);
		else
			used += (size_t)snprintf(ret + used, size - used, "guest");
	}
	if (strcmp(ret, "guest, guest, guest") == 0)
		(void)snprintf(ret, size, "guest");
}

static void manual_has_every_kernel_setting(void)
{
	char *manual = slurp(MANUAL);
	struct settings built_in;

	settings_init_defaults(&built_in);
	for (int i = 0; i < KNOB_MAX_ID; i++) {
		const struct knob_info *knob = &knob_infos[i];
		char want[256], values[64];
		const char *row;

		level_value(&built_in, i, sizeof(values), values);
		(void)snprintf(want, sizeof(want), "|  *%s*\n", knob->name);
		row = strstr(manual, want);
		(void)snprintf(want, sizeof(want), "\n:  %llu-%llu\n:  %s\n",
			       (unsigned long long)knob->min, (unsigned long long)knob->max,
			       values);
		if (!row || !strstr(row, want) || strstr(row, want) > strstr(row + 1, "\n\n"))
			missing(MANUAL, knob->name);
	}
	free(manual);
}

static void every_key_has_help(const struct key *keys)
{
	for (; keys->name; keys++) {
		if (!keys->help || strlen(keys->help) < 8)
			missing("schema", keys->name);
		if (keys->keys)
			every_key_has_help(keys->keys);
	}
}

static void schema_says_what_each_key_is_for(void)
{
	every_key_has_help(schema_root);
	every_key_has_help(schema_match);
}

static const struct unit_test tests[] = {
	TEST(example_changes_nothing_as_it_is),
	TEST(example_names_the_defaults),
	TEST(example_has_every_key),
	TEST(further_examples_are_good_without_a_warning),
	TEST(manual_has_every_key_with_its_default),
	TEST(manual_has_no_key_that_is_not_there),
	TEST(manual_has_every_kernel_setting),
	TEST(schema_says_what_each_key_is_for),
};

HARNESS_MAIN("config-docs", tests)
