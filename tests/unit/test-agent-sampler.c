// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>

#include "guest-agent/facts.h"
#include "guest-agent/port.h"
#include "guest-agent/sampler.h"
#include "guest-agent/util.h"
#include "tests/unit/fake-root.h"
#include "tests/unit/harness.h"

#define KIB UINT64_C(1024)

static struct sampler sampler;

static struct numbers sample(const struct fake_root *root)
{
	struct numbers numbers;

	CU_ASSERT_EQUAL_FATAL(sampler_open(&sampler, root->dir), 0);
	while (sampler_step(&sampler, clock_us()))
		;
	sampler_read(&sampler, &numbers);
	return numbers;
}

static void swap_entries_are_summed_over_processes(void)
{
	struct fake_root root;
	struct numbers n;

	fake_root_make(&root);
	n = sample(&root);
	CU_ASSERT_EQUAL(n.stats.value[STAT_SWAP_ENTRIES], (1024 + 8192) * KIB);
	CU_ASSERT_EQUAL(n.stats.value[STAT_PROCESSES], 2);
	sampler_close(&sampler);
	fake_root_remove(&root);
}

static void process_that_shares_its_parents_memory_counts_once(void)
{
	struct fake_root root;
	struct numbers n;

	fake_root_make(&root);
	fake_write(&root, "/proc/301/status",
		   "Name:\tapp\nState:\tR (running)\nPPid:\t300\nVmSize:\t  9000 kB\n"
		   "VmSwap:\t    8192 kB\n");
	n = sample(&root);
	CU_ASSERT_EQUAL(n.stats.value[STAT_SWAP_ENTRIES], (1024 + 8192) * KIB);
	CU_ASSERT_EQUAL(n.stats.value[STAT_PROCESSES], 2);
	sampler_close(&sampler);
	fake_root_remove(&root);
}

static void odd_entries_of_proc_are_passed_over(void)
{
	struct fake_root root;
	struct numbers n;

	fake_root_make(&root);
	fake_write(&root, "/proc/12abc/status", "State:\tS\nVmSwap:\t 5 kB\n");
	fake_write(&root, "/proc/99999999999999999999/status", "State:\tS\nVmSwap:\t 5 kB\n");
	fake_write(&root, "/proc/400/other", "this process has just gone");
	fake_write(&root, "/proc/401/status", "");
	n = sample(&root);
	CU_ASSERT_EQUAL(n.stats.value[STAT_SWAP_ENTRIES], (1024 + 8192) * KIB);
	sampler_close(&sampler);
	fake_root_remove(&root);
}

static void without_swap_in_use_there_are_no_entries(void)
{
	struct fake_root root;
	struct wire_sample s;

	fake_root_make(&root);
	fake_write(&root, "/proc/meminfo", "MemTotal: 9 kB\nSwapTotal: 5 kB\nSwapFree: 5 kB\n");
	CU_ASSERT_EQUAL_FATAL(sampler_open(&sampler, root.dir), 0);
	sampler_sample(&sampler, &s);
	CU_ASSERT(stat_has(&s.stats, STAT_SWAP_ENTRIES));
	CU_ASSERT_EQUAL(s.stats.value[STAT_SWAP_ENTRIES], 0);
	CU_ASSERT_EQUAL(s.slow_age_us, 0);
	CU_ASSERT_FALSE(stat_has(&s.stats, STAT_PROCESSES));
	sampler_close(&sampler);
	fake_root_remove(&root);
}

static void entries_are_absent_before_the_first_walk_and_have_their_age_after(void)
{
	struct fake_root root;
	struct wire_sample s;

	fake_root_make(&root);
	CU_ASSERT_EQUAL_FATAL(sampler_open(&sampler, root.dir), 0);
	sampler_sample(&sampler, &s);
	CU_ASSERT_FALSE(stat_has(&s.stats, STAT_SWAP_ENTRIES));
	while (sampler_step(&sampler, clock_us()))
		;
	(void)usleep(20000);
	sampler_sample(&sampler, &s);
	CU_ASSERT(stat_has(&s.stats, STAT_SWAP_ENTRIES));
	CU_ASSERT(s.slow_age_us >= 20000);
	CU_ASSERT(s.slow_age_us < 10000000);
	sampler_close(&sampler);
	fake_root_remove(&root);
}

static void dear_walk_is_made_seldom(void)
{
	struct fake_root root;

	fake_root_make(&root);
	(void)sample(&root);
	sampler.walk.entries = 1;
	sampler.walk.cost_us = 50000;
	sampler.walk.next_us = sampler.walk.at_us + 50000 * WALK_SHARE;
	(void)sampler_step(&sampler, sampler.walk.at_us + 4999999);
	CU_ASSERT_EQUAL(sampler.walk.cost_us, 50000);
	(void)sampler_step(&sampler, sampler.walk.at_us + 5000000);
	CU_ASSERT_NOT_EQUAL(sampler.walk.cost_us, 50000);
	sampler_close(&sampler);
	fake_root_remove(&root);
}

static void without_meminfo_the_sampler_says_so(void)
{
	struct fake_root root;

	fake_root_make(&root);
	(void)unlink(fake_path(&root, "/proc/meminfo"));
	CU_ASSERT_EQUAL(sampler_open(&sampler, root.dir), -ENOENT);
	sampler_close(&sampler);
	fake_root_remove(&root);
}

static void without_psi_the_rest_is_there(void)
{
	struct fake_root root;
	struct numbers n;

	fake_root_make(&root);
	(void)unlink(fake_path(&root, "/proc/pressure/memory"));
	(void)unlink(fake_path(&root, "/proc/vmstat"));
	n = sample(&root);
	CU_ASSERT_FALSE(stat_has(&n.stats, STAT_PSI_SOME));
	CU_ASSERT_FALSE(stat_has(&n.stats, STAT_MAJFAULT));
	CU_ASSERT(stat_has(&n.stats, STAT_TOTAL));
	CU_ASSERT(stat_has(&n.stats, STAT_PSI_IO_SOME));
	sampler_close(&sampler);
	fake_root_remove(&root);
}

static void collect(const struct fake_root *root, struct wire_hello *hello)
{
	struct trigger trigger = { .fd = -1 };
	struct numbers n = sample(root);
	struct knobs knobs;

	(void)knobs_load(&knobs, root->dir, 0);
	facts_collect(root->dir, WIRE_CAP_SAMPLE | WIRE_CAP_PROFILE, &n, &knobs, &trigger, hello);
	sampler_close(&sampler);
}

static void hello_names_what_an_unpatched_kernel_lacks(void)
{
	struct fake_root root;
	struct wire_hello hello;

	fake_root_make(&root);
	collect(&root, &hello);
	CU_ASSERT_EQUAL(hello.capabilities,
			WIRE_CAP_SAMPLE | WIRE_CAP_PROFILE | WIRE_CAP_PSI | WIRE_CAP_RECLAIM);
	CU_ASSERT_EQUAL(hello.knobs_writable,
			wire_knob_bit(KNOB_SWAPPINESS) | wire_knob_bit(KNOB_LAZYFREE_FIRST));
	CU_ASSERT_EQUAL(hello.kernel_major, 6);
	CU_ASSERT_EQUAL(hello.kernel_minor, 12);
	CU_ASSERT_EQUAL(hello.kernel_patch, 117);
	CU_ASSERT_EQUAL(hello.boot_id_hi, UINT64_C(0x0123456789abcdef));
	CU_ASSERT_EQUAL(hello.boot_id_lo, UINT64_C(0xfedcba9876543210));
	CU_ASSERT_EQUAL(hello.own.value[KNOB_SWAPPINESS], 60);
	CU_ASSERT_FALSE(knob_has(&hello.own, KNOB_EXEC_PROTECT));
	CU_ASSERT_STRING_EQUAL(hello.release, "6.12.117-fake");
	fake_root_remove(&root);
}

static void balloons_features_are_read_from_the_bus(void)
{
	struct fake_root root;
	struct wire_hello hello;

	fake_root_make(&root);
	fake_write(&root, "/sys/bus/virtio/devices/virtio0/device", "0x0003\n");
	fake_write(&root, "/sys/bus/virtio/devices/virtio0/features", "111111\n");
	fake_write(&root, "/sys/bus/virtio/devices/virtio0/driver/x", "");
	fake_write(&root, "/sys/bus/virtio/devices/virtio1/device", "0x0005\n");
	fake_write(&root, "/sys/bus/virtio/devices/virtio1/features", "010001000000\n");
	collect(&root, &hello);
	CU_ASSERT_EQUAL(hello.capabilities & (WIRE_CAP_BALLOON | WIRE_CAP_REPORTING), 0);
	fake_write(&root, "/sys/bus/virtio/devices/virtio1/driver/x", "");
	fake_write(&root, "/sys/kernel/mm/lru_gen/enabled", "0x0007\n");
	collect(&root, &hello);
	CU_ASSERT(hello.capabilities & WIRE_CAP_BALLOON);
	CU_ASSERT(hello.capabilities & WIRE_CAP_REPORTING);
	CU_ASSERT_FALSE(hello.capabilities & WIRE_CAP_AUTODEFLATE);
	CU_ASSERT(hello.capabilities & WIRE_CAP_MGLRU);
	fake_root_remove(&root);
}

static void release_with_odd_bytes_still_makes_a_hello(void)
{
	struct wire_message msg = { .type = WIRE_HELLO };
	uint8_t frame[WIRE_FRAME_MAX];
	struct fake_root root;

	fake_root_make(&root);
	fake_write(&root, "/proc/sys/kernel/osrelease", "x\x1b[31m\xff 99999999999.y\n");
	collect(&root, &msg.hello);
	msg.hello.interval_ms = 1000;
	CU_ASSERT_EQUAL(msg.hello.kernel_major, 0);
	CU_ASSERT(wire_encode(&msg, frame, sizeof(frame)) > 0);
	fake_root_remove(&root);
}

static void port_is_found_by_its_name_without_udev(void)
{
	char path[AGENT_PORT_MAX];
	struct fake_root root;

	fake_root_make(&root);
	CU_ASSERT_EQUAL(port_find(root.dir, path), -ENOENT);
	fake_write(&root, "/sys/class/virtio-ports/vport1p1/name", "org.qemu.guest_agent.0\n");
	fake_write(&root, "/sys/class/virtio-ports/vport1p2/other", "");
	CU_ASSERT_EQUAL(port_find(root.dir, path), -ENOENT);
	fake_write(&root, "/sys/class/virtio-ports/vport1p3/name", WIRE_PORT_NAME "\n");
	CU_ASSERT_EQUAL(port_find(root.dir, path), 0);
	CU_ASSERT_STRING_EQUAL(path, "/dev/vport1p3");
	fake_write(&root, "/dev/virtio-ports/" WIRE_PORT_NAME, "");
	CU_ASSERT_EQUAL(port_find(root.dir, path), 0);
	CU_ASSERT_STRING_EQUAL(path, "/dev/virtio-ports/" WIRE_PORT_NAME);
	fake_root_remove(&root);
}

static const struct unit_test tests[] = {
	TEST(swap_entries_are_summed_over_processes),
	TEST(process_that_shares_its_parents_memory_counts_once),
	TEST(odd_entries_of_proc_are_passed_over),
	TEST(without_swap_in_use_there_are_no_entries),
	TEST(entries_are_absent_before_the_first_walk_and_have_their_age_after),
	TEST(dear_walk_is_made_seldom),
	TEST(without_meminfo_the_sampler_says_so),
	TEST(without_psi_the_rest_is_there),
	TEST(hello_names_what_an_unpatched_kernel_lacks),
	TEST(balloons_features_are_read_from_the_bus),
	TEST(release_with_odd_bytes_still_makes_a_hello),
	TEST(port_is_found_by_its_name_without_udev),
};

HARNESS_MAIN("agent-sampler", tests)
