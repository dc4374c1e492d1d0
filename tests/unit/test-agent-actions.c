// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <sys/stat.h>

#include "guest-agent/knobs.h"
#include "guest-agent/proto/wire.h"
#include "guest-agent/shed.h"
#include "tests/unit/fake-root.h"
#include "tests/unit/harness.h"

#define SWAPPINESS     FAKE_KNOB("swappiness")
#define LAZYFREE_FIRST FAKE_KNOB("lazyfree_first")
#define MIB	       (UINT64_C(1) << 20)

static struct profile profile_of(enum knob_id id, uint64_t value)
{
	struct profile profile = { 0 };

	knob_put(&profile, id, value);
	return profile;
}

static int apply(struct knobs *knobs, enum knob_id id, uint64_t value)
{
	struct profile profile = profile_of(id, value);
	uint64_t done;

	return knobs_apply(knobs, &profile, &done);
}

static void guests_own_value_comes_back(void)
{
	struct fake_root root;
	struct knobs knobs;
	struct profile own, now;

	fake_root_make(&root);
	CU_ASSERT_FALSE(knobs_load(&knobs, root.dir, 0));
	CU_ASSERT_EQUAL(apply(&knobs, KNOB_SWAPPINESS, 10), 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, SWAPPINESS), "10\n");
	knobs_values(&knobs, &own, &now);
	CU_ASSERT_EQUAL(own.value[KNOB_SWAPPINESS], 60);
	CU_ASSERT_EQUAL(now.value[KNOB_SWAPPINESS], 10);
	CU_ASSERT_FALSE(knob_has(&own, KNOB_EXEC_PROTECT) || knob_has(&now, KNOB_EXEC_PROTECT));
	CU_ASSERT_EQUAL(apply(&knobs, KNOB_SWAPPINESS, 20), 0);
	CU_ASSERT_EQUAL(knobs_restore(&knobs), 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, SWAPPINESS), "60\n");
	CU_ASSERT_FALSE(knobs_changed(&knobs));
	CU_ASSERT_NOT_EQUAL(access(fake_path(&root, KNOBS_STATE_FILE), F_OK), 0);
	fake_root_remove(&root);
}

static void setting_left_out_of_the_next_profile_comes_back(void)
{
	struct fake_root root;
	struct knobs knobs;

	fake_root_make(&root);
	(void)knobs_load(&knobs, root.dir, 0);
	CU_ASSERT_EQUAL(apply(&knobs, KNOB_SWAPPINESS, 10), 0);
	CU_ASSERT_EQUAL(apply(&knobs, KNOB_LAZYFREE_FIRST, 2), 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, SWAPPINESS), "60\n");
	CU_ASSERT_STRING_EQUAL(fake_read(&root, LAZYFREE_FIRST), "2\n");
	fake_root_remove(&root);
}

static void agent_after_a_crash_still_knows_the_own_value(void)
{
	struct fake_root root;
	struct knobs knobs, next;

	fake_root_make(&root);
	(void)knobs_load(&knobs, root.dir, 0);
	CU_ASSERT_EQUAL(apply(&knobs, KNOB_SWAPPINESS, 10), 0);
	CU_ASSERT(knobs_load(&next, root.dir, 0));
	CU_ASSERT_EQUAL(apply(&next, KNOB_SWAPPINESS, 30), 0);
	CU_ASSERT_EQUAL(knobs_restore(&next), 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, SWAPPINESS), "60\n");
	fake_root_remove(&root);
}

static void change_by_somebody_else_is_left_alone(void)
{
	struct fake_root root;
	struct knobs knobs;

	fake_root_make(&root);
	(void)knobs_load(&knobs, root.dir, 0);
	CU_ASSERT_EQUAL(apply(&knobs, KNOB_SWAPPINESS, 10), 0);
	fake_write(&root, SWAPPINESS, "99\n");
	CU_ASSERT_EQUAL(knobs_restore(&knobs), 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, SWAPPINESS), "99\n");
	/* ... and is the own value of what follows */
	CU_ASSERT_EQUAL(apply(&knobs, KNOB_SWAPPINESS, 10), 0);
	CU_ASSERT_EQUAL(knobs_restore(&knobs), 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, SWAPPINESS), "99\n");
	fake_root_remove(&root);
}

static void one_setting_that_fails_does_not_stop_the_others(void)
{
	struct profile profile = profile_of(KNOB_EXEC_PROTECT, 2);
	struct fake_root root;
	struct knobs knobs;
	uint64_t done;

	fake_root_make(&root);
	(void)knobs_load(&knobs, root.dir, 0);
	knob_put(&profile, KNOB_SWAPPINESS, 5);
	CU_ASSERT_EQUAL(knobs_apply(&knobs, &profile, &done), -ENOENT);
	CU_ASSERT_EQUAL(done, wire_knob_bit(KNOB_SWAPPINESS));
	CU_ASSERT_STRING_EQUAL(fake_read(&root, SWAPPINESS), "5\n");
	CU_ASSERT_EQUAL(knobs_writable(&knobs),
			wire_knob_bit(KNOB_SWAPPINESS) | wire_knob_bit(KNOB_LAZYFREE_FIRST));
	CU_ASSERT_EQUAL(knobs_restore(&knobs), 0);
	fake_root_remove(&root);
}

static void what_the_owner_keeps_is_not_changed(void)
{
	const uint32_t keep = 1U << KNOB_SWAPPINESS;
	struct profile profile = profile_of(KNOB_SWAPPINESS, 5);
	struct fake_root root;
	struct knobs knobs;
	uint64_t done;

	fake_root_make(&root);
	(void)knobs_load(&knobs, root.dir, keep);
	knob_put(&profile, KNOB_LAZYFREE_FIRST, 2);
	CU_ASSERT_EQUAL(knobs_apply(&knobs, &profile, &done), -EPERM);
	CU_ASSERT_EQUAL(done, wire_knob_bit(KNOB_LAZYFREE_FIRST));
	CU_ASSERT_STRING_EQUAL(fake_read(&root, SWAPPINESS), "60\n");
	CU_ASSERT_EQUAL(knobs_writable(&knobs), wire_knob_bit(KNOB_LAZYFREE_FIRST));
	/* What an earlier agent has changed of it comes back. */
	(void)knobs_load(&knobs, root.dir, 0);
	CU_ASSERT_EQUAL(apply(&knobs, KNOB_SWAPPINESS, 5), 0);
	(void)knobs_load(&knobs, root.dir, keep);
	CU_ASSERT_EQUAL(knobs_apply(&knobs, &profile, &done), -EPERM);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, SWAPPINESS), "60\n");
	fake_root_remove(&root);
}

/* A crash between the note and the change, or right behind it: both ways the own value comes back. */
static void change_that_a_crash_cut_short_comes_back(void)
{
	static const char *const in_force[] = { "10\n", "20\n" };

	for (size_t i = 0; i < 2; i++) {
		struct fake_root root;
		struct profile own, now;
		struct knobs knobs;

		fake_root_make(&root);
		fake_write(&root, KNOBS_STATE_FILE, "swappiness 60 20 10\n");
		fake_write(&root, SWAPPINESS, in_force[i]);
		CU_ASSERT(knobs_load(&knobs, root.dir, 0));
		knobs_values(&knobs, &own, &now);
		CU_ASSERT_EQUAL(own.value[KNOB_SWAPPINESS], 60);
		CU_ASSERT_EQUAL(knobs_restore(&knobs), 0);
		CU_ASSERT_STRING_EQUAL(fake_read(&root, SWAPPINESS), "60\n");
		fake_root_remove(&root);
	}
}

static void value_before_is_noted_only_while_it_changes(void)
{
	struct fake_root root;
	struct knobs knobs;

	fake_root_make(&root);
	(void)knobs_load(&knobs, root.dir, 0);
	CU_ASSERT_EQUAL(apply(&knobs, KNOB_SWAPPINESS, 10), 0);
	CU_ASSERT_EQUAL(apply(&knobs, KNOB_SWAPPINESS, 20), 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, KNOBS_STATE_FILE), "swappiness 60 20\n");
	/* Whoever sets it to what was ours means it. */
	fake_write(&root, SWAPPINESS, "10\n");
	CU_ASSERT_EQUAL(knobs_restore(&knobs), 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, SWAPPINESS), "10\n");
	fake_root_remove(&root);
}

static void every_setting_is_noted_and_comes_back(void)
{
	struct profile profile = { 0 }, own, now;
	struct fake_root root;
	struct knobs knobs;
	uint64_t done, all = 0;

	fake_root_make(&root);
	for (int i = 0; i < KNOB_MAX_ID; i++) {
		fake_write(&root, knob_infos[i].path, "18446744073709551615\n");
		knob_put(&profile, i, knob_infos[i].max);
		all |= wire_knob_bit(i);
	}
	(void)knobs_load(&knobs, root.dir, 0);
	CU_ASSERT_EQUAL(knobs_apply(&knobs, &profile, &done), 0);
	CU_ASSERT_EQUAL(done, all);
	knobs_values(&knobs, &own, &now);
	CU_ASSERT(profile_equal(&now, &profile));
	/* An agent after a crash. */
	CU_ASSERT(knobs_load(&knobs, root.dir, 0));
	CU_ASSERT_EQUAL(knobs_restore(&knobs), 0);
	for (int i = 0; i < KNOB_MAX_ID; i++)
		CU_ASSERT_STRING_EQUAL(fake_read(&root, knob_infos[i].path),
				       "18446744073709551615\n");
	fake_root_remove(&root);
}

static void nothing_is_set_that_could_not_be_noted_first(void)
{
	struct fake_root root;
	struct knobs knobs;

	fake_root_make(&root);
	fake_write(&root, "/run/ballast-agent", "a file where the folder should be");
	(void)knobs_load(&knobs, root.dir, 0);
	CU_ASSERT(apply(&knobs, KNOB_SWAPPINESS, 10) < 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, SWAPPINESS), "60\n");
	CU_ASSERT_FALSE(knobs_changed(&knobs));
	fake_root_remove(&root);
}

/* One setting that the kernel lacks stands before the one that has no room for its note. */
static void no_room_for_a_note_is_not_hidden_by_what_the_kernel_lacks(void)
{
	char full[1200];
	struct profile profile = profile_of(KNOB_EXEC_PROTECT, 2);
	struct fake_root root;
	struct knobs knobs;
	uint64_t done;

	fake_root_make(&root);
	(void)knobs_load(&knobs, root.dir, 0);
	fake_write(&root, KNOBS_STATE_DIR "/lock", "");
	(void)snprintf(full, sizeof(full), "%s", fake_path(&root, KNOBS_STATE_FILE ".new"));
	/* A device that takes nothing. */
	CU_ASSERT_EQUAL_FATAL(symlink("/dev/full", full), 0);
	knob_put(&profile, KNOB_SWAPPINESS, 5);
	CU_ASSERT_EQUAL(knobs_apply(&knobs, &profile, &done), -ENOSPC);
	CU_ASSERT_EQUAL(done, 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, SWAPPINESS), "60\n");
	fake_root_remove(&root);
}

/* A setting that can be read and not written stands for one that the kernel refuses. */
static void own_value_that_could_not_be_restored_is_not_forgotten(void)
{
	struct fake_root root;
	struct profile own, now;
	struct knobs knobs;

	fake_root_make(&root);
	(void)knobs_load(&knobs, root.dir, 0);
	CU_ASSERT_EQUAL(apply(&knobs, KNOB_SWAPPINESS, 10), 0);
	fake_break(&root, SWAPPINESS);
	CU_ASSERT_EQUAL(knobs_restore(&knobs), -EISDIR);
	CU_ASSERT(knobs_changed(&knobs));
	fake_mend(&root, SWAPPINESS);
	/* Also an agent that is started then. */
	CU_ASSERT(knobs_load(&knobs, root.dir, 0));
	knobs_values(&knobs, &own, &now);
	CU_ASSERT_EQUAL(own.value[KNOB_SWAPPINESS], 60);
	CU_ASSERT_EQUAL(knobs_restore(&knobs), 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, SWAPPINESS), "60\n");
	/* What isn't there any more has no value to get back. */
	CU_ASSERT_EQUAL(apply(&knobs, KNOB_SWAPPINESS, 10), 0);
	CU_ASSERT_EQUAL_FATAL(unlink(fake_path(&root, SWAPPINESS)), 0);
	(void)knobs_restore(&knobs);
	CU_ASSERT_FALSE(knobs_changed(&knobs));
	fake_root_remove(&root);
}

static void what_only_the_owner_keeps_comes_back_by_itself(void)
{
	struct profile profile = profile_of(KNOB_SWAPPINESS, 5);
	struct fake_root root;
	struct knobs knobs;
	uint64_t done;

	fake_root_make(&root);
	(void)knobs_load(&knobs, root.dir, 0);
	knob_put(&profile, KNOB_LAZYFREE_FIRST, 2);
	CU_ASSERT_EQUAL(knobs_apply(&knobs, &profile, &done), 0);
	CU_ASSERT(knobs_load(&knobs, root.dir, 1U << KNOB_SWAPPINESS));
	CU_ASSERT_EQUAL(knobs_restore_kept(&knobs), 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, SWAPPINESS), "60\n");
	CU_ASSERT_STRING_EQUAL(fake_read(&root, LAZYFREE_FIRST), "2\n");
	CU_ASSERT_EQUAL(knobs.set.present, UINT32_C(1) << KNOB_LAZYFREE_FIRST);
	fake_root_remove(&root);
}

static void note_can_be_read_by_everybody(void)
{
	mode_t mask = umask(0077);
	struct fake_root root;
	struct knobs knobs;
	struct stat st;

	fake_root_make(&root);
	(void)knobs_load(&knobs, root.dir, 0);
	CU_ASSERT_EQUAL(apply(&knobs, KNOB_SWAPPINESS, 10), 0);
	CU_ASSERT_EQUAL_FATAL(stat(fake_path(&root, KNOBS_STATE_FILE), &st), 0);
	CU_ASSERT_EQUAL(st.st_mode & 0777, 0644);
	fake_root_remove(&root);
	(void)umask(mask);
}

/* The order of page reporting in a kernel without a device for it. */
static void setting_that_reads_minus_one_is_not_there(void)
{
	struct profile own, now;
	struct fake_root root;
	struct knobs knobs;

	fake_root_make(&root);
	fake_write(&root, knob_infos[KNOB_REPORTING_ORDER].path, "-1\n");
	(void)knobs_load(&knobs, root.dir, 0);
	knobs_values(&knobs, &own, &now);
	CU_ASSERT_FALSE(knob_has(&now, KNOB_REPORTING_ORDER));
	CU_ASSERT_FALSE(knobs_writable(&knobs) & wire_knob_bit(KNOB_REPORTING_ORDER));
	fake_root_remove(&root);
}

static void odd_notes_are_passed_over(void)
{
	struct fake_root root;
	struct knobs knobs;

	fake_root_make(&root);
	fake_write(&root, KNOBS_STATE_FILE,
		   "nonsense 1 2\nswappiness 60\nswappiness 60 x\nswappiness  60 10\n"
		   "a-name-that-is-much-longer-than-any-setting-has 1 2\n\nlazyfree_first 0 2\n"
		   "swappiness 60 10");
	CU_ASSERT(knobs_load(&knobs, root.dir, 0));
	CU_ASSERT_EQUAL(knobs.set.present, UINT32_C(1) << KNOB_LAZYFREE_FIRST);
	fake_root_remove(&root);
}

/* Shed: what it may take. */

static struct numbers tiers(uint64_t lazyfree, uint64_t active, uint64_t inactive, uint64_t text)
{
	struct numbers n = { 0 };

	stat_put(&n.stats, STAT_LAZYFREE, lazyfree * MIB);
	stat_put(&n.stats, STAT_ACTIVE_FILE, active * MIB);
	stat_put(&n.stats, STAT_INACTIVE_FILE, inactive * MIB);
	stat_put(&n.stats, STAT_EXEC_MAPPED, text * MIB);
	stat_put(&n.stats, STAT_ACTIVE_ANON, 30 * MIB);
	stat_put(&n.stats, STAT_INACTIVE_ANON, 20 * MIB);
	return n;
}

static void shed_is_bounded_by_what_is_cold(void)
{
	static const struct {
		uint64_t lazyfree, active, inactive, text, flags, want;
	} cases[] = {
		{ 10, 50, 40, 20, 0, 10 },
		{ 10, 50, 40, 20, WIRE_SHED_FILE, 40 },
		{ 10, 5, 40, 20, WIRE_SHED_FILE, 25 }, /* text may be among the inactive */
		{ 10, 5, 40, 60, WIRE_SHED_FILE, 10 },
		{ 0, 0, 0, 0, WIRE_SHED_FILE, 0 },
		{ 50, 5, 40, 0, WIRE_SHED_FILE, 50 }, /* gauges a moment apart */
		{ 10, 50, 40, 20, WIRE_SHED_FILE | WIRE_SHED_ANON, 90 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct numbers n =
			tiers(cases[i].lazyfree, cases[i].active, cases[i].inactive, cases[i].text);

		CU_ASSERT_EQUAL(shed_limit(&n, cases[i].flags), cases[i].want * MIB);
	}
}

static void absent_numbers_are_nothing_to_take(void)
{
	struct numbers n = { 0 };

	CU_ASSERT_EQUAL(shed_limit(&n, WIRE_SHED_FILE | WIRE_SHED_ANON), 0);
	stat_put(&n.stats, STAT_INACTIVE_FILE, 100 * MIB);
	/* without text known, cold cache isn't either */
	CU_ASSERT_EQUAL(shed_limit(&n, WIRE_SHED_FILE), 0);
}

static struct sampler sampler;

static int run_shed(const struct fake_root *root, const struct wire_shed *order, struct shed *shed)
{
	int r;

	*shed = (struct shed){ .root = root->dir };
	CU_ASSERT_EQUAL_FATAL(sampler_open(&sampler, root->dir), 0);
	r = shed_start(shed, order, 1, clock_us() + 1000000, &sampler);
	if (r == 0)
		do
			r = shed_step(shed, &sampler);
		while (r == -EINPROGRESS);
	sampler_close(&sampler);
	return r;
}

static void reclaim_is_asked_for_no_more_than_the_bound(void)
{
	struct wire_shed order = { 500 * MIB, 100, WIRE_SHED_FILE };
	struct fake_root root;
	struct shed shed;

	fake_root_make(&root);
	/* lazyfree is estimated as 30 MiB, cold as 50: the first step is 2 MiB; nothing is freed */
	CU_ASSERT_EQUAL(run_shed(&root, &order, &shed), 0);
	CU_ASSERT_EQUAL(shed.freed, 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, "/sys/fs/cgroup/memory.reclaim"),
			       "4194304 swappiness=0");
	order.bytes = MIB;
	(void)run_shed(&root, &order, &shed);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, "/sys/fs/cgroup/memory.reclaim"),
			       "1048576 swappiness=0");
	fake_root_remove(&root);
}

static void anonymous_memory_goes_last_and_only_where_it_is_permitted(void)
{
	struct wire_shed order = { MIB, 100, WIRE_SHED_FILE | WIRE_SHED_ANON };
	struct fake_root root;
	struct shed shed;

	fake_root_make(&root);
	(void)run_shed(&root, &order, &shed);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, "/sys/fs/cgroup/memory.reclaim"),
			       "1048576 swappiness=0");
	fake_write(&root, "/proc/vmstat", "nr_lazyfree 0\nnr_exec_mapped 99999\n");
	(void)run_shed(&root, &order, &shed);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, "/sys/fs/cgroup/memory.reclaim"),
			       "1048576 swappiness=100");
	fake_write(&root, "/sys/fs/cgroup/memory.reclaim", "");
	order.flags = WIRE_SHED_FILE;
	CU_ASSERT_EQUAL(run_shed(&root, &order, &shed), 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, "/sys/fs/cgroup/memory.reclaim"), "");
	fake_root_remove(&root);
}

static void lazyfree_alone_needs_a_kernel_that_takes_it_first(void)
{
	struct wire_shed order = { MIB, 0, 0 };
	struct fake_root root;
	struct shed shed;

	fake_root_make(&root);
	CU_ASSERT_EQUAL(run_shed(&root, &order, &shed), -EOPNOTSUPP);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, "/sys/fs/cgroup/memory.reclaim"), "");
	fake_write(&root, LAZYFREE_FIRST, "2\n");
	fake_write(&root, "/proc/vmstat", "nr_lazyfree 128\nnr_exec_mapped 0\n");
	CU_ASSERT_EQUAL(run_shed(&root, &order, &shed), 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, "/sys/fs/cgroup/memory.reclaim"),
			       "524288 swappiness=0");
	fake_root_remove(&root);
}

/* Lowered in the guest while a shed is under way: what reclaim took then would be page cache. */
static void lazyfree_alone_ends_when_it_does_not_go_first_any_more(void)
{
	struct wire_shed order = { 100 * MIB, 60, 0 };
	struct fake_root root;
	struct shed shed;

	fake_root_make(&root);
	fake_write(&root, LAZYFREE_FIRST, "2\n");
	shed = (struct shed){ .root = root.dir };
	CU_ASSERT_EQUAL_FATAL(sampler_open(&sampler, root.dir), 0);
	CU_ASSERT_EQUAL(shed_start(&shed, &order, 1, clock_us() + 1000000, &sampler), 0);
	fake_write(&root, LAZYFREE_FIRST, "1\n");
	CU_ASSERT_EQUAL(shed_step(&shed, &sampler), -EAGAIN);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, "/sys/fs/cgroup/memory.reclaim"), "");
	sampler_close(&sampler);
	fake_root_remove(&root);
}

static void shed_without_cgroup2_is_not_supported(void)
{
	struct wire_shed order = { MIB, 0, WIRE_SHED_FILE };
	struct fake_root root;
	struct shed shed;

	fake_root_make(&root);
	(void)unlink(fake_path(&root, "/sys/fs/cgroup/memory.reclaim"));
	CU_ASSERT_EQUAL(run_shed(&root, &order, &shed), -EOPNOTSUPP);
	fake_write(&root, "/proc/self/mounts", "proc /proc proc rw 0 0\n");
	CU_ASSERT_EQUAL(run_shed(&root, &order, &shed), -EOPNOTSUPP);
	fake_root_remove(&root);
}

static void shed_ends_with_its_lifetime_and_with_pressure(void)
{
	struct wire_shed order = { MIB, 0, WIRE_SHED_FILE };
	struct fake_root root;
	struct shed shed;

	fake_root_make(&root);
	shed = (struct shed){ .root = root.dir };
	CU_ASSERT_EQUAL_FATAL(sampler_open(&sampler, root.dir), 0);
	CU_ASSERT_EQUAL(shed_start(&shed, &order, 1, clock_us() + 1000000, &sampler), 0);
	CU_ASSERT_EQUAL(shed_start(&shed, &order, 2, clock_us(), &sampler), -EBUSY);
	shed.stop = true;
	CU_ASSERT_EQUAL(shed_step(&shed, &sampler), -EAGAIN);
	CU_ASSERT_FALSE(shed.active);
	CU_ASSERT_EQUAL(shed_start(&shed, &order, 3, clock_us(), &sampler), 0);
	CU_ASSERT_EQUAL(shed_step(&shed, &sampler), -ETIME);
	CU_ASSERT_STRING_EQUAL(fake_read(&root, "/sys/fs/cgroup/memory.reclaim"), "");
	sampler_close(&sampler);
	fake_root_remove(&root);
}

static void shed_that_takes_text_is_stopped(void)
{
	struct wire_shed order = { 100 * MIB, 0, WIRE_SHED_FILE };
	struct fake_root root;
	struct shed shed;

	fake_root_make(&root);
	fake_write(&root, "/proc/vmstat", "pgsteal_file 0\npgsteal_anon 0\npgsteal_exec 100\n");
	shed = (struct shed){ .root = root.dir };
	CU_ASSERT_EQUAL_FATAL(sampler_open(&sampler, root.dir), 0);
	CU_ASSERT_EQUAL(shed_start(&shed, &order, 1, clock_us() + 1000000, &sampler), 0);
	fake_write(&root, "/proc/vmstat", "pgsteal_file 512\npgsteal_anon 0\npgsteal_exec 165\n");
	/* the file was written anew under the same name and inode, as O_TRUNC does */
	CU_ASSERT_EQUAL(shed_step(&shed, &sampler), -EAGAIN);
	sampler_close(&sampler);
	fake_root_remove(&root);
}

static const struct unit_test tests[] = {
	TEST(guests_own_value_comes_back),
	TEST(setting_left_out_of_the_next_profile_comes_back),
	TEST(what_the_owner_keeps_is_not_changed),
	TEST(change_that_a_crash_cut_short_comes_back),
	TEST(value_before_is_noted_only_while_it_changes),
	TEST(every_setting_is_noted_and_comes_back),
	TEST(agent_after_a_crash_still_knows_the_own_value),
	TEST(change_by_somebody_else_is_left_alone),
	TEST(one_setting_that_fails_does_not_stop_the_others),
	TEST(nothing_is_set_that_could_not_be_noted_first),
	TEST(no_room_for_a_note_is_not_hidden_by_what_the_kernel_lacks),
	TEST(own_value_that_could_not_be_restored_is_not_forgotten),
	TEST(what_only_the_owner_keeps_comes_back_by_itself),
	TEST(note_can_be_read_by_everybody),
	TEST(setting_that_reads_minus_one_is_not_there),
	TEST(odd_notes_are_passed_over),
	TEST(shed_is_bounded_by_what_is_cold),
	TEST(absent_numbers_are_nothing_to_take),
	TEST(reclaim_is_asked_for_no_more_than_the_bound),
	TEST(anonymous_memory_goes_last_and_only_where_it_is_permitted),
	TEST(lazyfree_alone_needs_a_kernel_that_takes_it_first),
	TEST(lazyfree_alone_ends_when_it_does_not_go_first_any_more),
	TEST(shed_without_cgroup2_is_not_supported),
	TEST(shed_ends_with_its_lifetime_and_with_pressure),
	TEST(shed_that_takes_text_is_stopped),
};

HARNESS_MAIN("agent-actions", tests)
