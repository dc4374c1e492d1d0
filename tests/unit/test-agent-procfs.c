// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>

#include "guest-agent/procfs.h"
#include "tests/unit/fake-root.h"
#include "tests/unit/harness.h"

#define KIB UINT64_C(1024)

static uint64_t value_of(const struct numbers *numbers, enum stat_id id)
{
	uint64_t value = 0;

	CU_ASSERT_FATAL(stat_get(&numbers->stats, id, &value));
	return value;
}

static void meminfo_is_in_bytes(void)
{
	struct numbers n = { 0 };

	procfs_meminfo(fake_meminfo, &n);
	CU_ASSERT_EQUAL(value_of(&n, STAT_TOTAL), 524288 * KIB);
	CU_ASSERT_EQUAL(value_of(&n, STAT_INACTIVE_FILE), 81920 * KIB);
	CU_ASSERT_EQUAL(value_of(&n, STAT_SLAB_UNRECLAIMABLE), 8192 * KIB);
	CU_ASSERT_EQUAL(value_of(&n, STAT_UNEVICTABLE), 0);
}

static void free_pages_of_all_cpus_and_zones_are_summed(void)
{
	struct numbers n = { 0 }, none = { 0 };

	procfs_zoneinfo("Node 0, zone      DMA\n  pages free     3840\n  pagesets\n    cpu: 0\n"
			"              count:    12\n              high:     14\n"
			"    cpu: 1\n              count:    30\n              high:     900\n"
			"Node 0, zone    DMA32\n    cpu: 0\n              count:    1000\n"
			"              count:    junk\n              count:    77",
			4096, &n);
	CU_ASSERT_EQUAL(value_of(&n, STAT_FREE_PCP), 1042 * 4096);
	procfs_zoneinfo("Node 0, zone DMA\n", 4096, &none);
	CU_ASSERT_FALSE(stat_has(&none.stats, STAT_FREE_PCP));
}

static void active_is_not_taken_for_active_file(void)
{
	struct numbers n = { 0 };

	procfs_meminfo("Active:  7 kB\nActive(anon): 5 kB\n", &n);
	CU_ASSERT_FALSE(stat_has(&n.stats, STAT_ACTIVE_FILE));
	CU_ASSERT_EQUAL(value_of(&n, STAT_ACTIVE_ANON), 5 * KIB);
}

static void absent_number_is_never_zero(void)
{
	static const char *const texts[] = {
		"",
		"MemFree:",
		"MemFree:\n",
		"MemFree: kB\n",
		"MemFree: -5 kB\n",
		"MemFree: 0x10 kB\n",
		"MemFree: 5 MB\n",
		"MemFree: 5 kB",
		"MemFree: 5 kB trailing\n",
		"MemFree: 99999999999999999999 kB\n",
		"MemFree: 18446744073709551615 kB\n",
		"MemFreee: 5 kB\n",
		"emFree: 5 kB\n",
		"MemFre: 5 kB\n",
		" : 5 kB\n",
		"\n\n\n: \n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct numbers n = { 0 };

		procfs_meminfo(texts[i], &n);
		if (stat_has(&n.stats, STAT_FREE))
			printf("taken: %s\n", texts[i]);
		CU_ASSERT_FALSE(stat_has(&n.stats, STAT_FREE));
	}
}

static void line_that_is_cut_is_not_a_smaller_number(void)
{
	struct numbers n = { 0 };

	procfs_vmstat("pswpin 11\npswpout 1", 4096, &n);
	CU_ASSERT_EQUAL(value_of(&n, STAT_SWAP_IN), 11);
	CU_ASSERT_FALSE(stat_has(&n.stats, STAT_SWAP_OUT));
}

static void vmstat_gauges_become_bytes_and_counters_stay(void)
{
	struct numbers n = { 0 };

	procfs_vmstat("nr_lazyfree 10\nnr_exec_mapped 3\npgsteal_exec 4\npgmajfault 5\n", 4096, &n);
	CU_ASSERT_EQUAL(value_of(&n, STAT_LAZYFREE), 40960);
	CU_ASSERT_EQUAL(value_of(&n, STAT_EXEC_MAPPED), 12288);
	CU_ASSERT_EQUAL(value_of(&n, STAT_STEAL_EXEC), 4);
	CU_ASSERT_EQUAL(value_of(&n, STAT_MAJFAULT), 5);
}

static void gauge_too_large_for_bytes_is_absent(void)
{
	struct numbers n = { 0 };

	procfs_vmstat("nr_lazyfree 18446744073709551615\n", 4096, &n);
	CU_ASSERT_FALSE(stat_has(&n.stats, STAT_LAZYFREE));
}

static void stalls_of_all_zones_are_added(void)
{
	struct numbers n = { 0 };

	procfs_vmstat(fake_vmstat, 4096, &n);
	CU_ASSERT_EQUAL(value_of(&n, STAT_ALLOC_STALL), 10);
	n = (struct numbers){ 0 };
	procfs_vmstat("pswpin 1\n", 4096, &n);
	CU_ASSERT_FALSE(stat_has(&n.stats, STAT_ALLOC_STALL));
}

static void psi_totals_go_to_their_own_file_and_line(void)
{
	struct numbers n = { 0 };

	procfs_psi(fake_psi, "memory", &n);
	CU_ASSERT_EQUAL(value_of(&n, STAT_PSI_SOME), 123456);
	CU_ASSERT_EQUAL(value_of(&n, STAT_PSI_FULL), 6543);
	CU_ASSERT_FALSE(stat_has(&n.stats, STAT_PSI_IO_SOME));
	procfs_psi(fake_psi, "io", &n);
	CU_ASSERT_EQUAL(value_of(&n, STAT_PSI_IO_SOME), 123456);
}

static void odd_psi_is_absent(void)
{
	static const char *const texts[] = {
		"",
		"some\n",
		"some total=\n",
		"some total=x\n",
		"some total=5",
		"total=5\n",
		"some\ntotal=5\n",
		"some total=5 more\n",
		"somewhat total=5\n",
		"som total=5\n",
		"some total=99999999999999999999\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct numbers n = { 0 };

		procfs_psi(texts[i], "memory", &n);
		if (n.stats.present)
			printf("taken: %s\n", texts[i]);
		CU_ASSERT_EQUAL(n.stats.present, 0);
	}
}

/* By the fake guest's numbers: 131072 on the file lists, 99328 of them page cache. */
static void lazyfree_is_estimated_and_marked_where_the_kernel_has_no_gauge(void)
{
	struct numbers n = { 0 };

	procfs_meminfo(fake_meminfo, &n);
	procfs_vmstat(fake_vmstat, 4096, &n);
	procfs_approximate(&n);
	/* by file: 131072 - (99328 + 1024 - 1024); by anon: 80896 + 1024 - 51200 */
	CU_ASSERT_EQUAL(value_of(&n, STAT_LAZYFREE), 30720 * KIB);
	CU_ASSERT_EQUAL(value_of(&n, STAT_EXEC_MAPPED), 20480 * KIB);
	CU_ASSERT_EQUAL(n.approximate, UINT64_C(1) << STAT_LAZYFREE | UINT64_C(1)
									      << STAT_EXEC_MAPPED);
}

static void counted_number_is_not_replaced_by_an_estimate(void)
{
	struct numbers n = { 0 };

	procfs_meminfo(fake_meminfo, &n);
	procfs_vmstat("nr_lazyfree 1\nnr_exec_mapped 0\n", 4096, &n);
	procfs_approximate(&n);
	CU_ASSERT_EQUAL(value_of(&n, STAT_LAZYFREE), 4096);
	CU_ASSERT_EQUAL(value_of(&n, STAT_EXEC_MAPPED), 0);
	CU_ASSERT_EQUAL(n.approximate, 0);
}

static void estimate_needs_all_its_numbers(void)
{
	struct numbers n = { 0 };

	procfs_meminfo("Active(file): 5 kB\nInactive(file): 5 kB\n", &n);
	procfs_approximate(&n);
	CU_ASSERT_FALSE(stat_has(&n.stats, STAT_LAZYFREE));
	CU_ASSERT_FALSE(stat_has(&n.stats, STAT_EXEC_MAPPED));
}

static void locked_memory_lowers_the_estimate_and_never_wraps(void)
{
	struct numbers n = { 0 };

	procfs_meminfo("Active(file): 5 kB\nInactive(file): 5 kB\nActive(anon): 5 kB\n"
		       "Inactive(anon): 5 kB\nCached: 500 kB\nBuffers: 0 kB\nShmem: 0 kB\n"
		       "AnonPages: 400 kB\n",
		       &n);
	procfs_approximate(&n);
	CU_ASSERT_EQUAL(value_of(&n, STAT_LAZYFREE), 0);
}

static void status_gives_swap_of_a_process(void)
{
	struct process_status s;

	CU_ASSERT(procfs_status("Name:\ta\nState:\tS\nPPid:\t7\nVmSwap:\t      12 kB\n", &s));
	CU_ASSERT(s.has_mm);
	CU_ASSERT_EQUAL(s.swap, 12 * KIB);
	CU_ASSERT_EQUAL(s.parent, 7);
}

static void kernel_thread_has_no_memory(void)
{
	struct process_status s;

	CU_ASSERT(procfs_status("Name:\tkswapd0\nState:\tS\nPPid:\t2\n", &s));
	CU_ASSERT_FALSE(s.has_mm);
}

/* A name's line break is escaped by the kernel, so it can't begin a line of its own. */
static void name_of_a_process_is_not_taken_for_its_memory(void)
{
	struct process_status s;

	CU_ASSERT(procfs_status("Name:\tVmSwap:\\n 99 kB\nState:\tS\nVmSwap:\t 1 kB\n", &s));
	CU_ASSERT_EQUAL(s.swap, KIB);
	CU_ASSERT_FALSE(procfs_status("", &s));
	CU_ASSERT_FALSE(procfs_status("Name:\ta\n", &s));
	CU_ASSERT(procfs_status("State:\tS\nVmSwap:\t 18446744073709551615 kB\n", &s));
	CU_ASSERT_FALSE(s.has_mm);
}

static void cgroup2_is_found_among_mounts(void)
{
	char path[32];

	CU_ASSERT_EQUAL(procfs_cgroup2("a /x ext4 rw 0 0\ncg /sys/fs/cgroup cgroup2 rw 0 0\n", path,
				       sizeof(path)),
			0);
	CU_ASSERT_STRING_EQUAL(path, "/sys/fs/cgroup");
	CU_ASSERT_EQUAL(procfs_cgroup2("cg /a\\040b cgroup2 rw 0 0\n", path, sizeof(path)), 0);
	CU_ASSERT_STRING_EQUAL(path, "/a b");
	CU_ASSERT_EQUAL(procfs_cgroup2("cg /cg cgroup rw 0 0\n", path, sizeof(path)), -ENOENT);
	CU_ASSERT_EQUAL(procfs_cgroup2("cgroup2\n\n \n  \n", path, sizeof(path)), -ENOENT);
	CU_ASSERT_EQUAL(procfs_cgroup2("cg /0123456789012345678901234567890 cgroup2 rw 0 0\n", path,
				       sizeof(path)),
			-ENAMETOOLONG);
}

static const struct unit_test tests[] = {
	TEST(meminfo_is_in_bytes),
	TEST(free_pages_of_all_cpus_and_zones_are_summed),
	TEST(active_is_not_taken_for_active_file),
	TEST(absent_number_is_never_zero),
	TEST(line_that_is_cut_is_not_a_smaller_number),
	TEST(vmstat_gauges_become_bytes_and_counters_stay),
	TEST(gauge_too_large_for_bytes_is_absent),
	TEST(stalls_of_all_zones_are_added),
	TEST(psi_totals_go_to_their_own_file_and_line),
	TEST(odd_psi_is_absent),
	TEST(lazyfree_is_estimated_and_marked_where_the_kernel_has_no_gauge),
	TEST(counted_number_is_not_replaced_by_an_estimate),
	TEST(estimate_needs_all_its_numbers),
	TEST(locked_memory_lowers_the_estimate_and_never_wraps),
	TEST(status_gives_swap_of_a_process),
	TEST(kernel_thread_has_no_memory),
	TEST(name_of_a_process_is_not_taken_for_its_memory),
	TEST(cgroup2_is_found_among_mounts),
};

HARNESS_MAIN("agent-procfs", tests)
