// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>

#include "guest-agent/config.h"
#include "tests/unit/fake-root.h"
#include "tests/unit/harness.h"

#define ALL (WIRE_CAP_SAMPLE | WIRE_CAP_PROFILE | WIRE_CAP_SHED)

static int parse(const char *text, struct agent_config *config, char error[256])
{
	*config = AGENT_CONFIG_DEFAULT;
	*error = '\0';
	return agent_config_parse(text, "agent.conf", config, error, 256);
}

static void empty_configuration_permits_everything(void)
{
	struct agent_config c;
	char error[256];

	CU_ASSERT_EQUAL(parse("", &c, error), 0);
	CU_ASSERT_EQUAL(parse("\n  \n# nothing\n\t# more", &c, error), 0);
	CU_ASSERT_EQUAL(c.allow, ALL);
	CU_ASSERT_STRING_EQUAL(c.port, "");
}

static void owner_has_the_last_word(void)
{
	static const struct {
		const char *text;
		uint64_t want;
	} cases[] = {
		{ "allow = sample\n", WIRE_CAP_SAMPLE },
		{ "allow=sample,shed", WIRE_CAP_SAMPLE | WIRE_CAP_SHED },
		{ "  allow =\tprofile ,  sample # both\r\n", WIRE_CAP_SAMPLE | WIRE_CAP_PROFILE },
		{ "allow = sample, profile, shed", ALL },
		{ "allow =\n", 0 },
		{ "allow = # nothing\n", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct agent_config c;
		char error[256];

		CU_ASSERT_EQUAL(parse(cases[i].text, &c, error), 0);
		CU_ASSERT_EQUAL(c.allow, cases[i].want);
	}
}

static void owner_keeps_single_settings(void)
{
	struct agent_config c;
	char error[256];

	CU_ASSERT_EQUAL(parse("", &c, error), 0);
	CU_ASSERT_EQUAL(c.keep, 0);
	CU_ASSERT_EQUAL(parse("keep = swappiness , percpu_pagelist_high_fraction\n", &c, error), 0);
	CU_ASSERT_EQUAL(c.keep, 1U << KNOB_SWAPPINESS | 1U << KNOB_PCP_HIGH_FRACTION);
	CU_ASSERT_EQUAL(c.allow, ALL);
	CU_ASSERT_EQUAL(parse("keep =\n", &c, error), 0);
	CU_ASSERT_EQUAL(c.keep, 0);
}

static void every_mistake_is_one_line_with_its_place(void)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "alow = sample\n",
		  "agent.conf:1: unknown key 'alow'; known are allow, keep and port" },
		{ "\n# x\nallow = sampel\n",
		  "agent.conf:3: allow: 'sampel' is none of sample, profile, shed" },
		{ "allow = sample,,shed\n",
		  "agent.conf:1: allow: '' is none of sample, profile, shed" },
		{ "allow = sample shed\n",
		  "agent.conf:1: allow: 'sample shed' is none of sample, profile, shed" },
		{ "allow\n", "agent.conf:1: 'allow' has no '='; write key = value" },
		{ "allow = shed\nallow = shed\n", "agent.conf:2: key 'allow' is set twice" },
		{ "port = here\n", "agent.conf:1: port: 'here' is no absolute path" },
		{ "port =\n", "agent.conf:1: port: '' is no absolute path" },
		{ "= x\n", "agent.conf:1: unknown key ''; known are allow, keep and port" },
		{ "keep = swapiness\n", "agent.conf:1: keep: 'swapiness' is no setting; "
					"ballast-agent --once lists them" },
		{ "keep = swappiness,\t,exec_protect\n",
		  "agent.conf:1: keep: '' is no setting; ballast-agent --once lists them" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct agent_config c;
		char error[256];

		CU_ASSERT_EQUAL(parse(cases[i].text, &c, error), -EINVAL);
		if (strcmp(error, cases[i].want) != 0)
			printf("got: %s\n", error);
		CU_ASSERT_STRING_EQUAL(error, cases[i].want);
	}
}

static void port_is_a_path_that_fits(void)
{
	char text[512] = "port = /dev/a b\n", error[256];
	struct agent_config c;

	CU_ASSERT_EQUAL(parse(text, &c, error), 0);
	CU_ASSERT_STRING_EQUAL(c.port, "/dev/a b");
	memset(text + 7, '/', 300);
	text[307] = '\0';
	CU_ASSERT_EQUAL(parse(text, &c, error), -EINVAL);
}

static void file_that_is_absent_too_long_or_binary_is_told_apart(void)
{
	static char big[AGENT_CONFIG_MAX + 10];
	struct agent_config c = AGENT_CONFIG_DEFAULT;
	struct fake_root root;
	char error[256] = "";
	FILE *f;

	fake_root_make(&root);
	CU_ASSERT_EQUAL(agent_config_load(root.dir, "/a.conf", &c, error, sizeof(error)), -ENOENT);
	memset(big, '#', sizeof(big) - 1);
	fake_write(&root, "/a.conf", big);
	CU_ASSERT_EQUAL(agent_config_load(root.dir, "/a.conf", &c, error, sizeof(error)), -EFBIG);
	f = fopen(fake_path(&root, "/a.conf"), "w");
	(void)fwrite("allow =\0\n", 1, 9, f);
	(void)fclose(f);
	CU_ASSERT_EQUAL(agent_config_load(root.dir, "/a.conf", &c, error, sizeof(error)), -EINVAL);
	CU_ASSERT_EQUAL(c.allow, ALL);
	fake_write(&root, "/a.conf", "allow = shed");
	CU_ASSERT_EQUAL(agent_config_load(root.dir, "/a.conf", &c, error, sizeof(error)), 0);
	CU_ASSERT_EQUAL(c.allow, WIRE_CAP_SHED);
	fake_root_remove(&root);
}

static const struct unit_test tests[] = {
	TEST(empty_configuration_permits_everything),
	TEST(owner_has_the_last_word),
	TEST(owner_keeps_single_settings),
	TEST(every_mistake_is_one_line_with_its_place),
	TEST(port_is_a_path_that_fits),
	TEST(file_that_is_absent_too_long_or_binary_is_told_apart),
};

HARNESS_MAIN("agent-config", tests)
