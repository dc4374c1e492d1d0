// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/ipc/record.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>

#include "daemon/ipc/journal.h"
#include "daemon/util/log.h"
#include "tests/unit/fake-view.h"
#include "tests/unit/harness.h"

/* Renders as lines "KEY=VALUE", those of a group as "GROUP.KEY=VALUE". */
static char lines[16384];
static const char *group = "";
static int fail_after = -1; /* values until the sink fails, -1: never */

static int line(const char *key, const char *value)
{
	size_t used = strlen(lines);

	if (fail_after == 0)
		return -EIO;
	if (fail_after > 0)
		fail_after--;
	(void)snprintf(lines + used, sizeof(lines) - used, "%s%s%s=%s\n", group, *group ? "." : "",
		       key, value);
	return 0;
}

static int text(void *to, const char *key, const char *value)
{
	(void)to;
	return line(key, value);
}

static int flag(void *to, const char *key, bool value)
{
	(void)to;
	return line(key, value ? "true" : "false");
}

static int number(void *to, const char *key, uint64_t value)
{
	char buf[24];

	(void)to;
	(void)snprintf(buf, sizeof(buf), "%" PRIu64, value);
	return line(key, buf);
}

static int words(void *to, const char *key, const char *const *list, size_t n)
{
	char buf[512] = "";

	(void)to;
	for (size_t i = 0; i < n; i++) {
		strcat(buf, i ? "," : "");
		strcat(buf, list[i]);
	}
	return line(key, buf);
}

static int open_group(void *to, const char *key)
{
	(void)to;
	CU_ASSERT_STRING_EQUAL(group, "");
	group = key;
	return 0;
}

static int close_group(void *to)
{
	(void)to;
	group = "";
	return 0;
}

static const struct record_sink sink = { text, flag, number, words, open_group, close_group };

static bool has(const char *expected)
{
	size_t n = strlen(expected);

	for (const char *at = lines; (at = strstr(at, expected)); at++)
		if ((at == lines || at[-1] == '\n') && at[n] == '\n')
			return true;
	return false;
}

static bool has_key(const char *key)
{
	char expected[64];

	(void)snprintf(expected, sizeof(expected), "\n%s=", key);
	return strstr(lines, expected);
}

static struct fake fake;

static void render_guest(size_t i)
{
	lines[0] = '\0';
	CU_ASSERT_EQUAL(record_guest(&fake.view, i, &sink, NULL), 0);
}

static void start(void)
{
	fake_done(&fake);
	fake_init(&fake);
	fail_after = -1;
}

static void a_guest_is_rendered_with_all_that_is_known(void)
{
	start();
	render_guest(FAKE_WEB);
	CU_ASSERT(has("name=web1"));
	CU_ASSERT(has("uuid=" FAKE_UUID));
	CU_ASSERT(has("state=giving"));
	CU_ASSERT(has("reason=shed-lazyfree"));
	CU_ASSERT(has("operands.need=536870912"));
	CU_ASSERT(has("operands.lazyfree=314572800"));
	CU_ASSERT(has("actual=2147483648"));
	CU_ASSERT(has("minimum=536870912"));
	CU_ASSERT(has("footprint=1887436800"));
	CU_ASSERT(has("tiers.text=52428800"));
	CU_ASSERT(has("stats.exec_mapped=52428800"));
	CU_ASSERT(has("ages.stats_us=500000"));
	CU_ASSERT(has("psi_some_pct=25"));
	CU_ASSERT(has("capabilities=sample,profile,shed,reclaim,reporting,"
		      "lazyfree_first,exec_protect"));
	CU_ASSERT(has("stale="));
}

static void settings_are_rendered_as_they_are_were_and_should_be(void)
{
	start();
	render_guest(FAKE_WEB);
	CU_ASSERT(has("settings.exec_protect=1"));
	CU_ASSERT(has("own_settings.exec_protect=1"));
	CU_ASSERT(has("asked_settings.exec_protect=2"));
	CU_ASSERT(has("settings.lazyfree_first=2"));
	CU_ASSERT(has("own_settings.lazyfree_first=0"));
	/* The kernel hasn't got it, though it is asked for. */
	CU_ASSERT_FALSE(has_key("settings.reporting_budget"));
	CU_ASSERT_FALSE(has_key("own_settings.reporting_budget"));
	CU_ASSERT(has("asked_settings.reporting_budget=4"));
	CU_ASSERT_FALSE(has_key("asked_settings.reporting_order"));
	CU_ASSERT(has("own_settings.reporting_order=18446744073709551615"));
	CU_ASSERT(has("settable=exec_protect,lazyfree_first,reporting_delay_ms,reporting_order"));
	fake.guests[FAKE_WEB].agent.profile_set = false;
	render_guest(FAKE_WEB);
	CU_ASSERT_FALSE(has_key("asked_settings.exec_protect"));
}

static void settings_of_an_agent_that_does_not_say_are_left_out(void)
{
	start();
	render_guest(FAKE_STALE);
	CU_ASSERT_FALSE(has_key("settings.swappiness") || has_key("own_settings.swappiness"));
	CU_ASSERT(has("settable="));
}

static void every_setting_has_its_name_from_the_table(void)
{
	struct agent_part *agent;
	char expected[96];

	start();
	agent = &fake.guests[FAKE_WEB].agent;
	agent->settable = UINT32_MAX;
	for (int i = 0; i < KNOB_MAX_ID; i++)
		knob_put(&agent->in_force, (enum knob_id)i, (uint64_t)i + 1000);
	render_guest(FAKE_WEB);
	for (int i = 0; i < KNOB_MAX_ID; i++) {
		(void)snprintf(expected, sizeof(expected), "settings.%s=%d", knob_infos[i].name,
			       i + 1000);
		CU_ASSERT(has(expected));
	}
}

static void estimated_statistics_are_named(void)
{
	start();
	render_guest(FAKE_WEB);
	CU_ASSERT(has("approximate="));
	render_guest(FAKE_EVIL);
	CU_ASSERT(has("approximate=lazyfree,exec_mapped"));
	/* Bits without a number, or beyond the table, are of no statistic. */
	fake.guests[FAKE_EVIL].agent.approximate = UINT64_MAX;
	fake.guests[FAKE_EVIL].agent.stats.present = UINT64_C(1) << STAT_FREE;
	render_guest(FAKE_EVIL);
	CU_ASSERT(has("approximate=free"));
}

static void every_statistic_has_its_name_from_the_table(void)
{
	char expected[64];

	start();
	for (int i = 0; i < STAT_MAX_ID; i++)
		stat_put(&fake.guests[FAKE_WEB].agent.stats, (enum stat_id)i, (uint64_t)i + 1000);
	render_guest(FAKE_WEB);
	for (int i = 0; i < STAT_MAX_ID; i++) {
		(void)snprintf(expected, sizeof(expected), "stats.%s=%d", stat_infos[i].name,
			       i + 1000);
		CU_ASSERT(has(expected));
	}
}

static void every_reason_is_rendered_with_its_operands(void)
{
	char expected[64];

	start();
	for (int reason = 0; reason < REASON_MAX_ID; reason++) {
		const struct reason_info *info = &reason_infos[reason];

		fake.verdicts[FAKE_WEB].reason = (enum reason)reason;
		render_guest(FAKE_WEB);
		(void)snprintf(expected, sizeof(expected), "reason=%s", info->name);
		CU_ASSERT(has(expected));
		for (int i = 0; i < 4 && info->operand[i][0]; i++) {
			(void)snprintf(expected, sizeof(expected), "operands.%s=%" PRIu64,
				       info->operand[i], fake.verdicts[FAKE_WEB].operand[i]);
			CU_ASSERT(has(expected));
		}
	}
}

static void absent_numbers_are_left_out(void)
{
	static const char *const keys[] = { "actual",	     "maximum",	    "footprint",
					    "usable",	     "tiers.text",  "stats.free",
					    "ages.stats_us", "psi_some_pct" };

	start();
	render_guest(FAKE_BARE);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		CU_ASSERT_FALSE(has_key(keys[i]));
	CU_ASSERT(has("obstacles=no-balloon"));
	CU_ASSERT(has("agent=none"));
}

static void zero_is_rendered_where_it_is_known(void)
{
	start();
	stat_put(&fake.guests[FAKE_WEB].agent.stats, STAT_LAZYFREE, 0);
	render_guest(FAKE_WEB);
	CU_ASSERT(has("stats.lazyfree=0"));
	CU_ASSERT(has("swapped=0"));
}

static void stale_parts_are_named(void)
{
	start();
	render_guest(FAKE_STALE);
	CU_ASSERT(has("stale=stats"));
	CU_ASSERT(has("ages.stats_us=42000000"));
	fake.guests[FAKE_STALE].cost.at_us = FAKE_NOW - 60 * FAKE_SEC;
	render_guest(FAKE_STALE);
	CU_ASSERT(has("stale=cost,stats"));
}

static uint64_t later(void)
{
	return FAKE_NOW + 30 * FAKE_SEC;
}

static void ages_grow_between_rounds(void)
{
	start();
	fake.view.now_us = later;
	render_guest(FAKE_WEB);
	CU_ASSERT(has("ages.stats_us=30500000"));
	CU_ASSERT(has("stale=balloon,cost,stats"));
	lines[0] = '\0';
	CU_ASSERT_EQUAL(record_host(&fake.view, &sink, NULL), 0);
	CU_ASSERT(has("round_age_us=30100000"));
}

static void a_verdict_is_found_by_slot_when_guests_have_moved(void)
{
	struct guest_snapshot moved;

	start();
	moved = fake.guests[0];
	fake.guests[0] = fake.guests[FAKE_BARE];
	fake.guests[FAKE_BARE] = moved;
	render_guest(0);
	CU_ASSERT(has("state=excluded"));
	render_guest(FAKE_BARE);
	CU_ASSERT(has("state=giving"));
}

static void a_guest_that_no_round_has_seen_is_undecided(void)
{
	start();
	fake.guests[0].slot = 99;
	render_guest(0);
	CU_ASSERT(has("state=undecided"));
	CU_ASSERT_FALSE(has_key("target"));
	fake.plan.at_us = 0;
	render_guest(FAKE_STALE);
	CU_ASSERT(has("state=undecided"));
	fake.view.plan = NULL;
	render_guest(FAKE_STALE);
	CU_ASSERT(has("state=undecided"));
}

static void the_host_is_rendered_and_before_the_first_round_without_sums(void)
{
	start();
	lines[0] = '\0';
	CU_ASSERT_EQUAL(record_host(&fake.view, &sink, NULL), 0);
	CU_ASSERT(has("mode=observe"));
	CU_ASSERT(has("level=tight"));
	CU_ASSERT(has("need=536870912"));
	CU_ASSERT(has("time_us=1767323045000000"));
	CU_ASSERT_FALSE(has_key("host_psi_some_pct"));
	fake.view.plan = NULL;
	lines[0] = '\0';
	CU_ASSERT_EQUAL(record_host(&fake.view, &sink, NULL), 0);
	CU_ASSERT_FALSE(has_key("need"));
	CU_ASSERT_FALSE(has_key("level"));
}

static void render_decision(size_t i)
{
	lines[0] = '\0';
	CU_ASSERT_EQUAL(record_decision(&fake.guests[FAKE_WEB],
					history_get(fake.history, FAKE_WEB, i),
					FAKE_REALTIME_OFFSET, &sink, NULL),
			0);
}

static void a_decision_is_rendered_with_what_came_of_it(void)
{
	start();
	render_decision(1);
	CU_ASSERT(has("action=shed"));
	CU_ASSERT(has("bytes=157286400"));
	CU_ASSERT(has("outcome=done"));
	CU_ASSERT(has("done_after_us=1000000"));
	CU_ASSERT(has("freed=155189248"));
	CU_ASSERT(has("footprint_after=1887436800"));
	CU_ASSERT(has("time_us=1767323041000000"));
	CU_ASSERT_FALSE(has_key("old"));
	render_decision(0);
	CU_ASSERT(has("outcome=pending"));
	CU_ASSERT_FALSE(has_key("freed"));
	CU_ASSERT_FALSE(has_key("actual_after"));
	render_decision(2);
	CU_ASSERT(has("old=2147483648"));
	CU_ASSERT(has("new=1992294400"));
	CU_ASSERT_FALSE(has_key("bytes"));
}

static void an_error_of_the_sink_ends_the_rendering(void)
{
	start();
	fail_after = 3;
	lines[0] = '\0';
	CU_ASSERT_EQUAL(record_guest(&fake.view, FAKE_WEB, &sink, NULL), -EIO);
	CU_ASSERT(has("state=giving"));
	CU_ASSERT_FALSE(has_key("reason"));
}

static char journal[8192];

static void take_journal(int priority, const char *const *fields, const char *message)
{
	size_t used = 0;

	(void)priority;
	used += (size_t)snprintf(journal + used, sizeof(journal) - used, "MESSAGE=%s\n", message);
	for (; *fields; fields++)
		used += (size_t)snprintf(journal + used, sizeof(journal) - used, "%s\n", *fields);
}

static void a_decision_in_the_journal_has_its_fields(void)
{
	static const char *const expected[] = {
		"\nMESSAGE_ID=",
		"\nVM_NAME=web1\n",
		"\nVM_UUID=" FAKE_UUID "\n",
		"\nACTION=balloon\n",
		"\nREASON=lock\n",
		"\nOLD_BYTES=2147483648\n",
		"\nNEW_BYTES=1992294400\n",
		"\nACTUAL_BYTES=2147483648\n",
		"\nPSI_SOME_PCT=25\n",
	};

	start();
	log_set_sink(take_journal);
	journal_decision(&fake.guests[FAKE_WEB], history_get(fake.history, FAKE_WEB, 2));
	log_set_sink(NULL);
	CU_ASSERT(strncmp(journal, "MESSAGE=web1: balloon 2048.0 -> 1900.0 MiB", 42) == 0);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		CU_ASSERT_PTR_NOT_NULL(strstr(journal, expected[i]));
}

/* The journal takes A-Z, 0-9 and _, not first and not twice the same. */
static void every_field_of_the_journal_has_a_name_that_it_takes(void)
{
	struct history_entry entry;

	start();
	log_set_sink(take_journal);
	for (int reason = 0; reason < REASON_MAX_ID; reason++) {
		entry = *history_get(fake.history, FAKE_WEB, 1);
		entry.decision.reason = (enum reason)reason;
		journal_decision(&fake.guests[FAKE_WEB], &entry);
		for (char *at = journal, *end; (end = strchr(at, '\n')); at = end + 1) {
			CU_ASSERT(isupper((unsigned char)*at));
			for (; *at != '=' && at < end; at++)
				CU_ASSERT(isupper((unsigned char)*at) ||
					  isdigit((unsigned char)*at) || *at == '_');
		}
		CU_ASSERT_PTR_NOT_NULL(strstr(journal, "\nFOOTPRINT_AFTER_BYTES="));
	}
	log_set_sink(NULL);
}

static const struct unit_test tests[] = {
	TEST(a_guest_is_rendered_with_all_that_is_known),
	TEST(settings_are_rendered_as_they_are_were_and_should_be),
	TEST(settings_of_an_agent_that_does_not_say_are_left_out),
	TEST(every_setting_has_its_name_from_the_table),
	TEST(estimated_statistics_are_named),
	TEST(every_statistic_has_its_name_from_the_table),
	TEST(every_reason_is_rendered_with_its_operands),
	TEST(absent_numbers_are_left_out),
	TEST(zero_is_rendered_where_it_is_known),
	TEST(stale_parts_are_named),
	TEST(ages_grow_between_rounds),
	TEST(a_verdict_is_found_by_slot_when_guests_have_moved),
	TEST(a_guest_that_no_round_has_seen_is_undecided),
	TEST(the_host_is_rendered_and_before_the_first_round_without_sums),
	TEST(a_decision_is_rendered_with_what_came_of_it),
	TEST(an_error_of_the_sink_ends_the_rendering),
	TEST(a_decision_in_the_journal_has_its_fields),
	TEST(every_field_of_the_journal_has_a_name_that_it_takes),
};

int main(int argc, char **argv)
{
	int status = harness_run("record", tests, sizeof(tests) / sizeof(tests[0]), argc, argv);

	fake_done(&fake);
	return status;
}
