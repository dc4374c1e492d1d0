// SPDX-License-Identifier: GPL-2.0-or-later
/* The host's numbers from a made-up /proc and /sys. */
#include "tests/unit/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/host/host.h"
#include "daemon/host/internal.h"
#include "daemon/util/parse.h"
#include "daemon/util/time.h"
#include "tests/unit/fake-root.h"

#define NOW	(1000 * USEC_PER_SEC)
#define STATUS	"/proc/42/status"
#define MAPS	"/proc/42/maps"
#define PAGEMAP "/proc/42/pagemap"

static void make_host(struct fake_root *root)
{
	fake_root_make(root);
	fake_write(root, "/proc/meminfo",
		   "MemTotal:        1000 kB\nMemFree:          100 kB\nMemAvailable:     200 kB\n"
		   "SwapTotal:        50 kB\nSwapFree:          40 kB\n");
	fake_write(root, "/proc/pressure/memory",
		   "some avg10=12.34 avg60=1.00 avg300=0.00 total=5678\n"
		   "full avg10=1.05 avg60=0.00 avg300=0.00 total=99\n");
	fake_write(root, "/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
}

static struct host *open_host(const struct fake_root *root, const char *cgroup)
{
	struct host *host = NULL;

	CU_ASSERT_EQUAL_FATAL(
		host_new(&host, &(struct host_options){ .root = root->dir, .cgroup = cgroup }), 0);
	return host;
}

static void read_host(const struct fake_root *root, const char *cgroup, struct host_snapshot *ret)
{
	struct host *host = open_host(root, cgroup);

	CU_ASSERT_EQUAL(host_read(host, NOW, ret), 0);
	(void)host_free(host);
}

/* --- The host --------------------------------------------------------------------------------- */

static void all_numbers_come_in_bytes_with_their_time(void)
{
	struct host_snapshot snapshot;
	struct fake_root root;

	make_host(&root);
	read_host(&root, NULL, &snapshot);
	CU_ASSERT_EQUAL(snapshot.at_us, NOW);
	CU_ASSERT_EQUAL(snapshot.total, KIB(1000));
	CU_ASSERT_EQUAL(snapshot.free, KIB(100));
	CU_ASSERT_EQUAL(snapshot.available, KIB(200));
	CU_ASSERT_EQUAL(snapshot.swap_total, KIB(50));
	CU_ASSERT_EQUAL(snapshot.swap_free, KIB(40));
	CU_ASSERT_EQUAL(snapshot.psi_at_us, NOW);
	CU_ASSERT_EQUAL(snapshot.psi_some_avg10, 1234);
	CU_ASSERT_EQUAL(snapshot.psi_full_avg10, 105);
	CU_ASSERT_EQUAL(snapshot.cgroup_at_us, 0);
	CU_ASSERT_FALSE(snapshot.thp_always);
	fake_root_remove(&root);
}

static void each_read_sees_what_is_there_then(void)
{
	struct host_snapshot snapshot;
	struct fake_root root;
	struct host *host;

	make_host(&root);
	host = open_host(&root, NULL);
	CU_ASSERT_EQUAL(host_read(host, NOW, &snapshot), 0);
	fake_write(&root, "/proc/meminfo",
		   "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 2 kB\n");
	CU_ASSERT_EQUAL(host_read(host, NOW + 1, &snapshot), 0);
	CU_ASSERT_EQUAL(snapshot.free, KIB(1));
	CU_ASSERT_EQUAL(snapshot.swap_total, 0);
	(void)host_free(host);
	fake_root_remove(&root);
}

static void a_host_without_pressure_has_none_and_goes_on(void)
{
	struct host_snapshot snapshot;
	struct fake_root root;

	make_host(&root);
	(void)unlink(fake_path(&root, "/proc/pressure/memory"));
	read_host(&root, NULL, &snapshot);
	CU_ASSERT_EQUAL(snapshot.psi_at_us, 0);
	CU_ASSERT_EQUAL(snapshot.at_us, NOW);
	fake_root_remove(&root);
}

static void a_host_without_meminfo_is_refused(void)
{
	struct fake_root root;
	struct host *host = NULL;

	fake_root_make(&root);
	(void)unlink(fake_path(&root, "/proc/meminfo"));
	CU_ASSERT_EQUAL(host_new(&host, &(struct host_options){ .root = root.dir }), -ENOENT);
	fake_root_remove(&root);
}

static void a_meminfo_that_makes_no_sense_is_absent_and_not_zero(void)
{
	struct host_snapshot snapshot;
	struct fake_root root;
	struct host *host;

	make_host(&root);
	host = open_host(&root, NULL);
	fake_write(&root, "/proc/meminfo",
		   "MemTotal: 99999999999999999999 kB\nMemFree: x kB\nMemAvailable: -1 kB\n");
	CU_ASSERT_EQUAL(host_read(host, NOW, &snapshot), -EBADMSG);
	CU_ASSERT_EQUAL(snapshot.at_us, 0);
	(void)host_free(host);
	fake_root_remove(&root);
}

static void huge_pages_on_request_count_since_qemu_requests_them(void)
{
	struct host_snapshot snapshot;
	struct fake_root root;

	make_host(&root);
	fake_write(&root, "/sys/kernel/mm/transparent_hugepage/enabled",
		   "always [madvise] never\n");
	read_host(&root, NULL, &snapshot);
	CU_ASSERT_TRUE(snapshot.thp_always);
	fake_root_remove(&root);
}

/* --- Cgroups ---------------------------------------------------------------------------------- */

static void a_cgroup_of_version_2_is_read(void)
{
	struct host_snapshot snapshot;
	struct fake_root root;

	make_host(&root);
	fake_write(&root, "/sys/fs/cgroup/machine.slice/memory.current", "4096\n");
	fake_write(&root, "/sys/fs/cgroup/machine.slice/memory.max", "8192\n");
	read_host(&root, "machine.slice", &snapshot);
	CU_ASSERT_EQUAL(snapshot.cgroup_at_us, NOW);
	CU_ASSERT_EQUAL(snapshot.cgroup_usage, 4096);
	CU_ASSERT_EQUAL(snapshot.cgroup_limit, 8192);
	fake_write(&root, "/sys/fs/cgroup/machine.slice/memory.max", "max\n");
	read_host(&root, "/sys/fs/cgroup/machine.slice", &snapshot);
	CU_ASSERT_EQUAL(snapshot.cgroup_limit, UINT64_MAX);
	fake_root_remove(&root);
}

static void a_cgroup_of_version_1_is_read(void)
{
	struct host_snapshot snapshot;
	struct fake_root root;

	make_host(&root);
	fake_write(&root, "/sys/fs/cgroup/memory/machine/memory.usage_in_bytes", "4096\n");
	fake_write(&root, "/sys/fs/cgroup/memory/machine/memory.limit_in_bytes",
		   "9223372036854771712\n");
	read_host(&root, "/machine", &snapshot);
	CU_ASSERT_EQUAL(snapshot.cgroup_usage, 4096);
	CU_ASSERT_EQUAL(snapshot.cgroup_limit, UINT64_MAX);
	fake_write(&root, "/sys/fs/cgroup/memory/machine/memory.limit_in_bytes", "8192\n");
	read_host(&root, "/sys/fs/cgroup/memory/machine", &snapshot);
	CU_ASSERT_EQUAL(snapshot.cgroup_limit, 8192);
	fake_root_remove(&root);
}

static void a_cgroup_that_is_not_there_is_refused(void)
{
	struct fake_root root;
	struct host *host = NULL;

	make_host(&root);
	CU_ASSERT_EQUAL(
		host_new(&host, &(struct host_options){ .root = root.dir, .cgroup = "none" }),
		-ENOENT);
	fake_root_remove(&root);
}

/* --- Pressure --------------------------------------------------------------------------------- */

static void a_malformed_pressure_line_changes_nothing(void)
{
	static const char *const texts[] = {
		"",
		"some",
		"some avg10=",
		"some avg10=x total=5\n",
		"xsome avg10=1.00 total=5\n",
		"some avg10=99999999999.00 total=5\n",
	};
	uint32_t avg10 = 3;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		CU_ASSERT_FALSE(pressure_parse(texts[i], "some", &avg10));
	CU_ASSERT_EQUAL(avg10, 3);
}

/* --- What a QEMU costs ------------------------------------------------------------------------ */

/* A guest of 200 MiB, a heap of 16 MiB, a translation buffer of 1 GiB, and a program. */
static const char maps_of_one_block[] =
	"55d000000000-55d001000000 rw-p 00000000 00:00 0                          [heap]\n"
	"7f0000000000-7f000c800000 rw-p 00000000 00:00 0 \n"
	"7f1000000000-7f1040000000 rwxp 00000000 00:00 0 \n"
	"7f2000000000-7f2000001000 r-xp 00000000 00:01 12    /usr/bin/qemu-system-x86_64\n";

#define PRESENT (UINT64_C(1) << 63)
#define SWAPPED (UINT64_C(1) << 62)
#define OF_FILE (UINT64_C(1) << 61)

/* Have @n pages from @address on in @state. */
static void set_pages(const struct fake_root *root, uint64_t address, size_t n, uint64_t state)
{
	int fd = open(fake_path(root, PAGEMAP), O_WRONLY | O_CREAT, 0644);

	for (size_t i = 0; i < n; i++)
		CU_ASSERT_EQUAL(pwrite(fd, &state, sizeof(state),
				       (off_t)((address / 4096 + i) * sizeof(state))),
				sizeof(state));
	(void)close(fd);
}

/* 120 MiB resident and 10 swapped, of which QEMU's own: 6 MiB heap, 3 swapped, 1 translated. */
static void make_qemu(struct fake_root *root, const char *maps)
{
	make_host(root);
	fake_write(
		root, STATUS,
		"Name:\tqemu\nVmRSS:\t  126976 kB\nRssAnon:\t  122880 kB\nRssFile:\t    4096 kB\n"
		"RssShmem:\t       0 kB\nVmSwap:\t   10240 kB\n");
	if (!maps)
		return;
	fake_write(root, MAPS, maps);
	set_pages(root, 0x55d000000000, 1536, PRESENT);
	set_pages(root, 0x55d000600000, 768, SWAPPED);
	set_pages(root, 0x55d000900000, 256, PRESENT | OF_FILE);
	set_pages(root, 0x7f0000000000, 4096, PRESENT);
	set_pages(root, 0x7f1000000000, 256, PRESENT);
	set_pages(root, 0x7f2000000000, 1, PRESENT);
}

/* A made-up QEMU that is watched. */
struct watched {
	struct fake_root root;
	struct host *host;
	struct host_guest *guest;
};

static struct watched watch_qemu(const char *maps, uint64_t maximum, bool tcg)
{
	struct watched w = { .guest = NULL };

	make_qemu(&w.root, maps);
	w.host = open_host(&w.root, NULL);
	CU_ASSERT_EQUAL_FATAL(host_guest_open(w.host, 42, maximum, tcg, &w.guest), 0);
	return w;
}

static void unwatch(struct watched *w)
{
	(void)host_guest_close(w->guest);
	(void)host_free(w->host);
	fake_root_remove(&w->root);
}

static struct cost_part cost_at(const struct watched *w, uint64_t now)
{
	struct cost_part cost = { 0 };

	CU_ASSERT_EQUAL(host_guest_read(w->guest, now, &cost), 0);
	return cost;
}

static void the_footprint_is_the_ram_resident_or_swapped(void)
{
	struct watched w = watch_qemu(maps_of_one_block, MIB(200), true);
	struct cost_part cost;

	cost = cost_at(&w, NOW);
	CU_ASSERT_TRUE(host_guest_overhead_measured(w.guest));
	CU_ASSERT_EQUAL(cost.at_us, NOW);
	CU_ASSERT_EQUAL(cost.resident, MIB(120));
	CU_ASSERT_EQUAL(cost.swapped, MIB(10));
	CU_ASSERT_EQUAL(cost.overhead, MIB(10));
	CU_ASSERT_EQUAL(cost.footprint, MIB(120));
	unwatch(&w);
}

static void look_at(struct ram_look *look, const char *line, struct mapping *ret)
{
	CU_ASSERT_TRUE_FATAL(mapping_parse(line, ret));
	ram_look(look, ret);
}

static void ram_of_several_blocks_is_told_from_the_rest(void)
{
	struct ram_look look = { .maximum = MIB(400) };
	struct mapping first, second, heap;

	look_at(&look, "7f0000000000-7f000c800000 rw-p 00000000 00:00 0", &first);
	CU_ASSERT_FALSE(ram_found(&look));
	look_at(&look, "7f1000000000-7f100c800000 rw-p 00000000 00:00 0", &second);
	look_at(&look, "7f2000000000-7f2004000000 rw-p 00000000 00:00 0", &heap);
	CU_ASSERT_TRUE(ram_found(&look));
	CU_ASSERT_FALSE(mapping_is_own(&look, &first));
	CU_ASSERT_FALSE(mapping_is_own(&look, &second));
	CU_ASSERT_TRUE(mapping_is_own(&look, &heap));
}

static void ram_that_cannot_be_told_is_not_guessed(void)
{
	struct watched w = watch_qemu(maps_of_one_block, MIB(300), true);

	(void)cost_at(&w, NOW);
	CU_ASSERT_FALSE(host_guest_overhead_measured(w.guest));
	unwatch(&w);
}

static void a_line_that_is_no_mapping_is_none(void)
{
	static const char *const lines[] = {
		"",
		"Rss: 5 kB",
		"7f0000000000",
		"7f00-7e00 rw-p 00000000 00:00 0",
		"7f00-7f10 rw 00000000 00:00 0",
		"7f00-7f10 rw-p",
	};
	struct mapping mapping = { .start = 7 };

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		CU_ASSERT_FALSE(mapping_parse(lines[i], &mapping));
	CU_ASSERT_EQUAL(mapping.start, 7);
}

#ifndef __SANITIZE_ADDRESS__ /* which would map terabytes in the child */
/* The kernel's own view: a child with RAM in use and some memory of its own. */
static void the_overhead_of_a_real_process_is_its_own_memory(void)
{
	struct host_guest *guest = NULL;
	struct cost_part cost = { 0 };
	struct host *host;
	int ready[2];
	pid_t child;
	char byte;

	CU_ASSERT_EQUAL_FATAL(pipe(ready), 0);
	CU_ASSERT_EQUAL_FATAL(host_new(&host, &(struct host_options){ 0 }), 0);
	child = fork();
	if (child == 0) {
		char *ram = mmap(NULL, MIB(160), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		char *apart = mmap(NULL, MIB(1), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		char *own = mmap(NULL, MIB(16), PROT_READ | PROT_WRITE | PROT_EXEC,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		memset(ram, 1, MIB(50));
		memset(own, 1, MIB(16));
		(void)!write(ready[1], apart == MAP_FAILED ? "x" : ".", 1);
		(void)pause();
		_exit(0);
	}
	CU_ASSERT_EQUAL(read(ready[0], &byte, 1), 1);
	CU_ASSERT_EQUAL_FATAL(host_guest_open(host, child, MIB(160), false, &guest), 0);
	CU_ASSERT_EQUAL(host_guest_read(guest, NOW, &cost), 0);
	CU_ASSERT_TRUE(host_guest_overhead_measured(guest));
	/* The kernel's counters of RssAnon lag a little behind the pages. */
	CU_ASSERT_TRUE(cost.footprint > MIB(49) && cost.footprint < MIB(53));
	CU_ASSERT_TRUE(cost.overhead >= MIB(16));
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	(void)host_guest_close(guest);
	(void)host_free(host);
	(void)close(ready[0]);
	(void)close(ready[1]);
}

#endif

static void without_privilege_the_overhead_is_an_estimate(void)
{
	struct watched w = watch_qemu(NULL, MIB(200), false);
	struct cost_part cost;

	cost = cost_at(&w, NOW);
	CU_ASSERT_FALSE(host_guest_overhead_measured(w.guest));
	CU_ASSERT_TRUE(cost.overhead > 0 && cost.overhead < MIB(100));
	CU_ASSERT_EQUAL(cost.footprint, MIB(130) - cost.overhead);
	unwatch(&w);
}

static void a_footprint_is_never_above_the_maximum_nor_below_zero(void)
{
	struct watched w = watch_qemu(NULL, MIB(50), false);
	struct cost_part cost;

	cost = cost_at(&w, NOW);
	CU_ASSERT_EQUAL(cost.footprint, MIB(50));
	fake_write(&w.root, STATUS, "RssAnon:\t 4 kB\nRssShmem:\t 0 kB\nVmSwap:\t 0 kB\n");
	cost = cost_at(&w, NOW);
	CU_ASSERT_EQUAL(cost.footprint, 0);
	unwatch(&w);
}

static void the_overhead_is_measured_again_after_a_while_only(void)
{
	struct watched w = watch_qemu(maps_of_one_block, MIB(200), true);
	uint64_t at = NOW;
	struct cost_part cost;

	for (int i = 0; i < 8; i++)
		cost = cost_at(&w, at += 40 * USEC_PER_SEC);
	fake_write(&w.root, MAPS, "7f0000000000-7f000c800000 rw-p 00000000 00:00 0 \n");
	cost = cost_at(&w, at + 20 * USEC_PER_SEC);
	CU_ASSERT_EQUAL(cost.overhead, MIB(10));
	cost = cost_at(&w, at + 31 * USEC_PER_SEC);
	CU_ASSERT_EQUAL(cost.overhead, 0);
	unwatch(&w);
}

static void the_overhead_of_a_young_process_is_measured_sooner(void)
{
	struct watched w = watch_qemu(maps_of_one_block, MIB(200), true);
	struct cost_part cost;

	cost = cost_at(&w, NOW);
	fake_write(&w.root, MAPS, "7f0000000000-7f000c800000 rw-p 00000000 00:00 0 \n");
	cost = cost_at(&w, NOW + USEC_PER_SEC / 2);
	CU_ASSERT_EQUAL(cost.overhead, MIB(10));
	cost = cost_at(&w, NOW + 10 * USEC_PER_SEC);
	CU_ASSERT_EQUAL(cost.overhead, 0);
	unwatch(&w);
}

static void a_process_that_is_not_there_is_refused(void)
{
	struct host_guest *guest = NULL;
	struct fake_root root;
	struct host *host;

	make_host(&root);
	host = open_host(&root, NULL);
	CU_ASSERT_EQUAL(host_guest_open(host, 43, MIB(1), false, &guest), -ESRCH);
	(void)host_free(host);
	fake_root_remove(&root);
}

/* On the real /proc: a zombie has no memory, and a process that is gone no file. */
static void a_process_that_ends_is_noticed(void)
{
	struct host_guest *guest = NULL;
	struct cost_part cost;
	struct host *host;
	siginfo_t ended;
	pid_t child;

	CU_ASSERT_EQUAL_FATAL(host_new(&host, &(struct host_options){ 0 }), 0);
	child = fork();
	if (child == 0) {
		(void)pause();
		_exit(0);
	}
	CU_ASSERT_EQUAL_FATAL(host_guest_open(host, child, MIB(1), false, &guest), 0);
	CU_ASSERT_EQUAL(host_guest_read(guest, NOW, &cost), 0);
	(void)kill(child, SIGKILL);
	(void)waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT);
	CU_ASSERT_EQUAL(host_guest_read(guest, NOW, &cost), -ESRCH);
	(void)waitpid(child, NULL, 0);
	CU_ASSERT_EQUAL(host_guest_read(guest, NOW, &cost), -ESRCH);
	(void)host_guest_close(guest);
	(void)host_free(host);
}

static const struct unit_test tests[] = {
	TEST(all_numbers_come_in_bytes_with_their_time),
	TEST(each_read_sees_what_is_there_then),
	TEST(a_host_without_pressure_has_none_and_goes_on),
	TEST(a_host_without_meminfo_is_refused),
	TEST(a_meminfo_that_makes_no_sense_is_absent_and_not_zero),
	TEST(huge_pages_on_request_count_since_qemu_requests_them),
	TEST(a_cgroup_of_version_2_is_read),
	TEST(a_cgroup_of_version_1_is_read),
	TEST(a_cgroup_that_is_not_there_is_refused),
	TEST(a_malformed_pressure_line_changes_nothing),
	TEST(the_footprint_is_the_ram_resident_or_swapped),
	TEST(ram_of_several_blocks_is_told_from_the_rest),
	TEST(a_line_that_is_no_mapping_is_none),
#ifndef __SANITIZE_ADDRESS__
	TEST(the_overhead_of_a_real_process_is_its_own_memory),
#endif
	TEST(ram_that_cannot_be_told_is_not_guessed),
	TEST(without_privilege_the_overhead_is_an_estimate),
	TEST(a_footprint_is_never_above_the_maximum_nor_below_zero),
	TEST(the_overhead_is_measured_again_after_a_while_only),
	TEST(the_overhead_of_a_young_process_is_measured_sooner),
	TEST(a_process_that_is_not_there_is_refused),
	TEST(a_process_that_ends_is_noticed),
};

HARNESS_MAIN("host", tests)
