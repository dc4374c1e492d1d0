// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/unit/harness.h"

#include "tests/unit/config-files.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static bool amount_is(const struct amount *amount, enum amount_kind kind, uint64_t value)
{
	return amount->kind == kind && amount->value == value;
}

static void expect_defaults(struct files *files)
{
	struct settings built_in;
	char *expected, *found;

	settings_init_defaults(&built_in);
	CU_ASSERT_EQUAL_FATAL(files_load(files), 0);
	CU_ASSERT_EQUAL(files->diag.n_messages, 0);
	expected = files_dump(&built_in);
	found = files_dump(files->settings);
	CU_ASSERT_STRING_EQUAL(found, expected);
	free(expected);
	free(found);
}

static void empty_file_is_all_defaults(void)
{
	static const char *const texts[] = {
		"",
		"\n\n",
		"# nothing\n",
		"---\n",
		"---\n...\n",
		"~\n",
		"\xef\xbb\xbf",
		"{}",
		"host:\ndefaults:\nguests:\n",
		"host: {levels: , profiles: {tight: }}\nguests: []\n",
		"%YAML 1.1\n---\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct files files;

		files_make(&files, texts[i]);
		expect_defaults(&files);
		files_end(&files);
	}
}

static void defaults_only_observe(void)
{
	struct files files;

	files_make(&files, "");
	CU_ASSERT_EQUAL_FATAL(files_load(&files), 0);
	CU_ASSERT_EQUAL(files.settings->host.mode, MODE_OBSERVE);
	CU_ASSERT(amount_is(&files.settings->defaults.max, AMOUNT_PERCENT, 10000));
	files_end(&files);
}

static const char every_key[] =
	"host:\n"
	"  mode: act\n"
	"  uri: test:///default\n"
	"  budget: {size: 12.5%, hard: yes}\n"
	"  headroom: 256MiB\n"
	"  grant_pool: 0.75%\n"
	"  levels: {tight_below: 8.25%, critical_below: 2%, min_stay: 1.5min}\n"
	"  pressure: {low: 0, high: 12%}\n"
	"  intervals: {round: 500ms, statistics: 2s, lock_after: 0}\n"
	"  profiles:\n"
	"    relaxed: {exec_protect: guest, swappiness: 77}\n"
	"    tight: {reporting_order: 9}\n"
	"    critical: {reporting_delay_ms: 10, lazyfree_first: 1}\n"
	"  shortfall_hook: /bin/true\n"
	"defaults:\n"
	"  manage: observe\n"
	"  min: 512MiB\n"
	"  max: 1.5GiB\n"
	"  burst: 4096B\n"
	"  shares: 77\n"
	"  swap: allowed\n"
	"  proactive: on\n"
	"  stale: hold\n"
	"  stale_grace: 2h\n"
	"  boot_grace: 250us\n"
	"  on_stop: release\n"
	"  on_migrate: release\n"
	"  sysctl: {exec_protect: 1, swappiness: 5}\n"
	"guests:\n"
	"  - match: {name: 'web \"*'}\n"
	"    manage: act\n"
	"    sysctl: {swappiness: level, lazyfree_first: 2}\n"
	"  - uuid: ABCDEF00-0000-0000-0000-000000000001\n"
	"    shares: 10000\n"
	"  - metadata: 'g\\ld'\n"
	"    manage: no\n";

static void every_key_reaches_the_host(void)
{
	const struct host_settings *host;
	struct files files;

	files_make(&files, every_key);
	CU_ASSERT_EQUAL_FATAL(files_load(&files), 0);
	CU_ASSERT_EQUAL(files.diag.n_messages, 0);
	host = &files.settings->host;
	CU_ASSERT_EQUAL(host->mode, MODE_ACT);
	CU_ASSERT_STRING_EQUAL(host->uri, "test:///default");
	CU_ASSERT_EQUAL(host->budget_kind, BUDGET_AMOUNT);
	CU_ASSERT(amount_is(&host->budget, AMOUNT_PERCENT, 1250));
	CU_ASSERT_TRUE(host->budget_hard);
	CU_ASSERT(amount_is(&host->headroom, AMOUNT_BYTES, 256 * MIB));
	CU_ASSERT(amount_is(&host->grant_pool, AMOUNT_PERCENT, 75));
	CU_ASSERT_EQUAL(host->tight_below, 825);
	CU_ASSERT_EQUAL(host->critical_below, 200);
	CU_ASSERT_EQUAL(host->level_min_stay_us, 90000000);
	CU_ASSERT_EQUAL(host->psi_low, 0);
	CU_ASSERT_EQUAL(host->psi_high, 1200);
	CU_ASSERT_EQUAL(host->interval_us, 500000);
	CU_ASSERT_EQUAL(host->stats_interval_us, 2000000);
	CU_ASSERT_EQUAL(host->lock_after_us, 0);
	CU_ASSERT_STRING_EQUAL(host->shortfall_hook, "/bin/true");
	CU_ASSERT_FALSE(knob_has(&host->profiles[LEVEL_RELAXED], KNOB_EXEC_PROTECT));
	CU_ASSERT_EQUAL(host->profiles[LEVEL_RELAXED].value[KNOB_SWAPPINESS], 77);
	CU_ASSERT_EQUAL(host->profiles[LEVEL_RELAXED].value[KNOB_REPORTING_DELAY_MS], 2000);
	CU_ASSERT_EQUAL(host->profiles[LEVEL_TIGHT].value[KNOB_REPORTING_ORDER], 9);
	CU_ASSERT_EQUAL(host->profiles[LEVEL_CRITICAL].value[KNOB_REPORTING_DELAY_MS], 10);
	files_end(&files);
}

static void every_key_reaches_the_guests(void)
{
	const struct guest_settings *guest;
	struct files files;

	files_make(&files, every_key);
	CU_ASSERT_EQUAL_FATAL(files_load(&files), 0);
	guest = &files.settings->defaults;
	CU_ASSERT_EQUAL(guest->manage, MANAGE_OBSERVE);
	CU_ASSERT(amount_is(&guest->min, AMOUNT_BYTES, 512 * MIB));
	CU_ASSERT(amount_is(&guest->max, AMOUNT_BYTES, 3 * GIB / 2));
	CU_ASSERT(amount_is(&guest->burst, AMOUNT_BYTES, 4096));
	CU_ASSERT_EQUAL(guest->shares, 77);
	CU_ASSERT_EQUAL(guest->swap, SWAP_ALLOWED);
	CU_ASSERT_TRUE(guest->proactive);
	CU_ASSERT_EQUAL(guest->stale, STALE_HOLD);
	CU_ASSERT_EQUAL(guest->stale_grace_us, UINT64_C(7200000000));
	CU_ASSERT_EQUAL(guest->boot_grace_us, 250);
	CU_ASSERT_EQUAL(guest->on_stop, LEAVE_RELEASE);
	CU_ASSERT_EQUAL(guest->on_migrate, LEAVE_RELEASE);
	CU_ASSERT_EQUAL(guest->sysctl.present, 1 << KNOB_EXEC_PROTECT | 1 << KNOB_SWAPPINESS);
	files_end(&files);
}

static void what_a_rule_leaves_out_comes_from_defaults(void)
{
	const struct guest_rule *rules;
	struct files files;

	files_make(&files, every_key);
	CU_ASSERT_EQUAL_FATAL(files_load(&files), 0);
	CU_ASSERT_EQUAL_FATAL(files.settings->n_rules, 3);
	rules = files.settings->rules;
	CU_ASSERT_EQUAL(rules[0].kind, MATCH_NAME);
	CU_ASSERT_STRING_EQUAL(rules[0].pattern, "web \"*");
	CU_ASSERT_EQUAL(rules[0].guest.manage, MANAGE_ACT);
	CU_ASSERT_EQUAL(rules[0].guest.shares, 77);
	CU_ASSERT_EQUAL(rules[0].guest.sysctl.present,
			1 << KNOB_EXEC_PROTECT | 1 << KNOB_LAZYFREE_FIRST);
	CU_ASSERT_EQUAL(rules[1].kind, MATCH_UUID);
	CU_ASSERT_STRING_EQUAL(rules[1].pattern, "abcdef00-0000-0000-0000-000000000001");
	CU_ASSERT_EQUAL(rules[1].guest.shares, 10000);
	CU_ASSERT_EQUAL(rules[1].guest.manage, MANAGE_OBSERVE);
	CU_ASSERT_EQUAL(rules[2].kind, MATCH_METADATA);
	CU_ASSERT_EQUAL(rules[2].guest.manage, MANAGE_NO);
	files_end(&files);
}

static void defaults_given_after_the_rules_count_too(void)
{
	struct files files;

	files_make(&files, "guests:\n  - name: a\ndefaults:\n  shares: 5\n");
	CU_ASSERT_EQUAL_FATAL(files_load(&files), 0);
	CU_ASSERT_EQUAL(files.settings->rules[0].guest.shares, 5);
	files_end(&files);
}

static void dump_loads_to_the_same_settings(void)
{
	static const char *const texts[] = {
		"",
		every_key,
		"host:\n  budget: {cgroup: /sys/fs/cgroup/machine.slice}\n",
		"host:\n  budget: 24GiB\n",
		"host: {budget: host}\n",
		"defaults: {min: 1073741825B, burst: 0, boot_grace: 0.000001s}\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct files files;
		char *first, *second;

		files_make(&files, texts[i]);
		CU_ASSERT_EQUAL_FATAL(files_load(&files), 0);
		first = files_dump(files.settings);
		files_text(&files, "ballast.yaml", first);
		CU_ASSERT_EQUAL_FATAL(files_load(&files), 0);
		CU_ASSERT_EQUAL(files.diag.n_messages, 0);
		second = files_dump(files.settings);
		CU_ASSERT_STRING_EQUAL(first, second);
		free(first);
		free(second);
		files_end(&files);
	}
}

/* The dump says all, so two settings that differ in one value have different dumps. */
static void dump_holds_every_value(void)
{
	struct settings a, b;
	char *first, *second;

	settings_init_defaults(&a);
	b = a;
	first = files_dump(&a);
	for (size_t i = 0; i < sizeof(b.host.profiles) / sizeof(b.host.profiles[0]); i++)
		knob_put(&b.host.profiles[i], KNOB_SWAPPINESS, 3);
	b.defaults.on_migrate = LEAVE_RELEASE;
	b.host.budget_hard = true;
	second = files_dump(&b);
	CU_ASSERT_PTR_NOT_NULL(strstr(second, "on_migrate: release"));
	CU_ASSERT_PTR_NOT_NULL(strstr(second, "hard: true"));
	CU_ASSERT_PTR_NOT_NULL(strstr(second, "swappiness: 3"));
	CU_ASSERT_STRING_NOT_EQUAL(first, second);
	free(first);
	free(second);
}

static void dump_reports_a_full_disk(void)
{
	struct settings settings;
	FILE *full = fopen("/dev/full", "we");

	settings_init_defaults(&settings);
	CU_ASSERT_PTR_NOT_NULL_FATAL(full);
	CU_ASSERT_EQUAL(config_dump(full, &settings), -EIO);
	(void)fclose(full);
}

static void budget_shorthand_is_its_size(void)
{
	struct files files;

	files_make(&files, "host: {budget: 24GiB}\n");
	CU_ASSERT_EQUAL_FATAL(files_load(&files), 0);
	CU_ASSERT_EQUAL(files.settings->host.budget_kind, BUDGET_AMOUNT);
	CU_ASSERT(amount_is(&files.settings->host.budget, AMOUNT_BYTES, 24 * GIB));
	files_end(&files);
}

static void cgroup_is_the_budget(void)
{
	struct files files;

	files_make(&files, "host: {budget: {cgroup: /sys/fs/cgroup/machine.slice}}\n");
	CU_ASSERT_EQUAL_FATAL(files_load(&files), 0);
	CU_ASSERT_EQUAL(files.settings->host.budget_kind, BUDGET_CGROUP);
	CU_ASSERT_STRING_EQUAL(files.settings->host.budget_cgroup, "/machine.slice");
	files_end(&files);
}

static void dropins_override_by_name(void)
{
	struct files files;

	files_make(&files, "host: {mode: observe, headroom: 1%, grant_pool: 1%}\n"
			   "defaults: {shares: 1}\n");
	files_text(&files, "ballast.d/20-b.yaml", "host: {headroom: 3%}\ndefaults: {shares: 3}\n");
	files_text(&files, "ballast.d/10-a.yaml",
		   "host: {mode: act, headroom: 2%}\ndefaults: {shares: 2, swap: never}\n");
	CU_ASSERT_EQUAL_FATAL(files_load(&files), 0);
	CU_ASSERT_EQUAL(files.settings->host.mode, MODE_ACT);
	CU_ASSERT(amount_is(&files.settings->host.headroom, AMOUNT_PERCENT, 300));
	CU_ASSERT(amount_is(&files.settings->host.grant_pool, AMOUNT_PERCENT, 100));
	CU_ASSERT_EQUAL(files.settings->defaults.shares, 3);
	CU_ASSERT_EQUAL(files.settings->defaults.swap, SWAP_NEVER);
	files_end(&files);
}

static void rules_of_later_files_are_tried_first(void)
{
	static const char *const order[] = { "c1", "c2", "b1", "a1", "a2" };
	struct files files;

	files_make(&files, "guests: [{name: a1}, {name: a2}]\ndefaults: {shares: 1}\n");
	files_text(&files, "ballast.d/10.yaml", "guests: [{name: b1}]\n");
	files_text(&files, "ballast.d/20.yaml",
		   "guests: [{name: c1}, {name: c2}]\ndefaults: {shares: 9}\n");
	CU_ASSERT_EQUAL_FATAL(files_load(&files), 0);
	CU_ASSERT_EQUAL_FATAL(files.settings->n_rules, 5);
	for (size_t i = 0; i < 5; i++) {
		CU_ASSERT_STRING_EQUAL(files.settings->rules[i].pattern, order[i]);
		CU_ASSERT_EQUAL(files.settings->rules[i].guest.shares, 9);
	}
	files_end(&files);
}

static void budget_of_a_dropin_replaces_its_kind(void)
{
	struct files files;

	files_make(&files, "host: {budget: {cgroup: /machine.slice, hard: true}}\n");
	files_text(&files, "ballast.d/a.yaml", "host: {budget: 50%}\n");
	CU_ASSERT_EQUAL_FATAL(files_load(&files), 0);
	CU_ASSERT_EQUAL(files.settings->host.budget_kind, BUDGET_AMOUNT);
	CU_ASSERT_TRUE(files.settings->host.budget_hard);
	files_text(&files, "ballast.d/b.yaml", "host: {budget: {cgroup: /vm, hard: no}}\n");
	CU_ASSERT_EQUAL_FATAL(files_load(&files), 0);
	CU_ASSERT_EQUAL(files.settings->host.budget_kind, BUDGET_CGROUP);
	CU_ASSERT_FALSE(files.settings->host.budget_hard);
	files_text(&files, "ballast.d/c.yaml", "host: {budget: host}\n");
	CU_ASSERT_EQUAL_FATAL(files_load(&files), 0);
	CU_ASSERT_EQUAL(files.settings->host.budget_kind, BUDGET_HOST);
	files_end(&files);
}

static void mistakes_of_all_files_are_said_in_order(void)
{
	struct files files;

	files_make(&files, "guests: [{name: a, min: 5}]\nhost: {mode: x}\n");
	files_text(&files, "ballast.d/20.yaml", "a: 1\n");
	files_text(&files, "ballast.d/10.yaml", "guests: [{name: b, max: 1}]\nhost: [\n");
	CU_ASSERT_EQUAL(files_load(&files), -EINVAL);
	CU_ASSERT_PTR_NULL(files.settings);
	CU_ASSERT_EQUAL(files.diag.n_errors, 5);
	CU_ASSERT_STRING_EQUAL(files_message(&files, 0),
			       "ballast.yaml:1:25: guests[0].min: \"5\" has no unit: expected a "
			       "size such as 512MiB or a percentage such as 25%");
	CU_ASSERT_STRING_EQUAL(files_message(&files, 1),
			       "ballast.yaml:2:14: host.mode: \"x\" isn't one of observe, act");
	CU_ASSERT_EQUAL(strncmp(files_message(&files, 2), "ballast.d/10.yaml:1:25:", 23), 0);
	CU_ASSERT_EQUAL(strncmp(files_message(&files, 3), "ballast.d/10.yaml:3:1:", 22), 0);
	CU_ASSERT_EQUAL(strncmp(files_message(&files, 4), "ballast.d/20.yaml:1:1:", 22), 0);
	files_end(&files);
}

static void order_is_checked_across_files(void)
{
	struct files files;

	files_make(&files, "host: {levels: {critical_below: 5%}}\n");
	files_text(&files, "ballast.d/a.yaml", "host: {levels: {tight_below: 4%}}\n");
	CU_ASSERT_EQUAL(files_load(&files), -EINVAL);
	CU_ASSERT_STRING_EQUAL(files_message(&files, 0),
			       "ballast.d/a.yaml:1:30: host.levels: critical_below must be less "
			       "than tight_below");
	files_text(&files, "ballast.d/b.yaml", "host: {levels: {critical_below: 3%}}\n");
	CU_ASSERT_EQUAL(files_load(&files), 0);
	files_end(&files);
}

static void rule_hidden_by_a_dropin_is_a_warning(void)
{
	struct files files;

	files_make(&files, "guests: [{name: web-1}]\n");
	files_text(&files, "ballast.d/a.yaml", "guests: [{name: web-*}]\n");
	CU_ASSERT_EQUAL(files_load(&files), 0);
	CU_ASSERT_EQUAL(files.diag.n_warnings, 1);
	CU_ASSERT_STRING_EQUAL(files_message(&files, 0),
			       "ballast.yaml:1:17: warning: guests: never used: the rule at "
			       "ballast.d/a.yaml:1 comes first and matches all that this one does; "
			       "put this one before it");
	files_end(&files);
}

static void rule_that_can_be_reached_has_no_warning(void)
{
	static const char *const pairs[][2] = {
		{ "a?*", "a*" },  { "*b]", "[ab]" }, { "web-?", "web-*" }, { "a*", "A*" },
		{ "*[1]", "*1" }, { "\\*", "\\a" },  { "db", "db*" },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct files files;
		char text[128];

		(void)snprintf(text, sizeof(text), "guests: [{name: '%s'}, {name: '%s'}]\n",
			       pairs[i][0], pairs[i][1]);
		files_make(&files, text);
		CU_ASSERT_EQUAL(files_load(&files), 0);
		if (files.diag.n_messages > 0)
			printf("\n%s\n", files_message(&files, 0));
		CU_ASSERT_EQUAL(files.diag.n_messages, 0);
		files_end(&files);
	}
}

static void only_names_that_end_in_yaml_are_dropins(void)
{
	struct files files;

	files_make(&files, "");
	files_text(&files, "ballast.d/.hidden.yaml", "bad\n");
	files_text(&files, "ballast.d/a.yaml~", "bad\n");
	files_text(&files, "ballast.d/a.yaml.dpkg-old", "bad\n");
	files_text(&files, "ballast.d/README", "bad\n");
	files_text(&files, "ballast.d/b.yml", "bad\n");
	CU_ASSERT_EQUAL(files_load(&files), 0);
	CU_ASSERT_EQUAL(files.diag.n_messages, 1);
	CU_ASSERT_STRING_EQUAL(files_message(&files, 0), "ballast.d/b.yml: warning: not read: the "
							 "name of a drop-in ends in .yaml");
	files_end(&files);
}

static void missing_dropin_folder_is_fine(void)
{
	struct files files;
	char folder[96];

	files_make(&files, "");
	(void)snprintf(folder, sizeof(folder), "%s/ballast.d", files.folder);
	CU_ASSERT_EQUAL(rmdir(folder), 0);
	expect_defaults(&files);
	files_end(&files);
}

static void missing_file_is_said_with_its_reason(void)
{
	struct files files;

	files_make(&files, "");
	CU_ASSERT_EQUAL(unlink(files.path), 0);
	CU_ASSERT_EQUAL(files_load(&files), -ENOENT);
	CU_ASSERT_EQUAL(files.diag.n_errors, 1);
	CU_ASSERT_STRING_EQUAL(files_message(&files, 0),
			       "ballast.yaml: can't be read (No such file or directory): create "
			       "it, or name another file");
	files_end(&files);
}

static void folder_or_fifo_is_not_a_file(void)
{
	struct files files;

	files_make(&files, "");
	CU_ASSERT_EQUAL(unlink(files.path), 0);
	CU_ASSERT_EQUAL(mkfifo(files.path, 0600), 0);
	CU_ASSERT_EQUAL(files_load(&files), -ENXIO);
	CU_ASSERT_EQUAL(unlink(files.path), 0);
	CU_ASSERT_EQUAL(mkdir(files.path, 0700), 0);
	CU_ASSERT_EQUAL(files_load(&files), -EISDIR);
	CU_ASSERT_STRING_EQUAL(files_message(&files, 0), "ballast.yaml: can't be read (Is a "
							 "directory): it must be a plain file");
	files_end(&files);
}

static void dangling_dropin_is_a_mistake(void)
{
	struct files files;
	char path[128];

	files_make(&files, "");
	(void)snprintf(path, sizeof(path), "%s/ballast.d/a.yaml", files.folder);
	CU_ASSERT_EQUAL(symlink("nowhere", path), 0);
	CU_ASSERT_EQUAL(files_load(&files), -ENOENT);
	CU_ASSERT_EQUAL(files.diag.n_errors, 1);
	files_end(&files);
}

static const struct unit_test tests[] = {
	TEST(empty_file_is_all_defaults),
	TEST(defaults_only_observe),
	TEST(every_key_reaches_the_host),
	TEST(every_key_reaches_the_guests),
	TEST(what_a_rule_leaves_out_comes_from_defaults),
	TEST(defaults_given_after_the_rules_count_too),
	TEST(dump_loads_to_the_same_settings),
	TEST(dump_holds_every_value),
	TEST(dump_reports_a_full_disk),
	TEST(budget_shorthand_is_its_size),
	TEST(cgroup_is_the_budget),
	TEST(dropins_override_by_name),
	TEST(rules_of_later_files_are_tried_first),
	TEST(budget_of_a_dropin_replaces_its_kind),
	TEST(mistakes_of_all_files_are_said_in_order),
	TEST(order_is_checked_across_files),
	TEST(rule_hidden_by_a_dropin_is_a_warning),
	TEST(rule_that_can_be_reached_has_no_warning),
	TEST(only_names_that_end_in_yaml_are_dropins),
	TEST(missing_dropin_folder_is_fine),
	TEST(missing_file_is_said_with_its_reason),
	TEST(folder_or_fifo_is_not_a_file),
	TEST(dangling_dropin_is_a_mistake),
};

HARNESS_MAIN("config", tests)
