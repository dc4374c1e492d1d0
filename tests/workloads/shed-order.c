/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What does reclaim take first? Cold page cache is read, younger memory is given up with MADV_FREE,
 * some of its pages are written again, and then a bounded amount is reclaimed: by memory.reclaim of
 * a cgroup, or by allocating more than is free. Prints one line: how much of what was taken had been
 * given up, what was swapped, and whether the pages written again are as they were.
 *
 *	shed-order [--cache MIB] [--lazyfree MIB] [--kept PAGES] [--shed MIB | --grow MIB] [--first N]
 *		   [--late 0|1] [--lru N] [--seed N] [RECLAIM_FILE]
 *
 * --first is vm.lazyfree_first, set before memory is given up or, with --late 1, only afterwards.
 * --lru is written to lru_gen/enabled. The cold file is /data/shed-cold, made when it is missing.
 */
#include "tests/workloads/gauges.h"

enum { CACHE, LAZYFREE, KEPT, SHED, GROW, FIRST, LATE, LRU, SEED, N_OPTIONS };

static const char cold_file[] = "/data/shed-cold";
static const char knob[] = "/proc/sys/vm/lazyfree_first";

struct counters {
	uint64_t stolen, lazyfreed, swapped, exec;
};

static void read_counters(struct counters *ret)
{
	gauges_set("/proc/sys/vm/stat_refresh", "1");
	ret->stolen = gauges_vmstat("pgsteal_file") + gauges_vmstat("pgsteal_anon");
	ret->lazyfreed = gauges_vmstat("pglazyfreed");
	ret->swapped = gauges_vmstat("pswpout");
	ret->exec = gauges_vmstat("pgsteal_exec");
}

static void set_number(const char *path, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	gauges_set(path, text);
}

static void make_cold_cache(uint64_t mib)
{
	static unsigned char block[WORK_MIB];
	int fd = open(cold_file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		work_die("%s: %s", cold_file, strerror(errno));
	if (lseek(fd, 0, SEEK_END) < (off_t)(mib * WORK_MIB)) {
		lseek(fd, 0, SEEK_SET);
		for (uint64_t i = 0; i < mib; i++) {
			memset(block, (int)i + 1, sizeof(block));
			if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
				work_die("%s: %s", cold_file, strerror(errno));
		}
		fsync(fd);
	}
	close(fd);
	gauges_set("/proc/sys/vm/drop_caches", "1");
	work_read_file(cold_file, 0, mib * WORK_MIB);
}

/* Give it all up, then write every n-th page again. */
static unsigned char *give_up(const struct work_option *options)
{
	uint64_t size = options[LAZYFREE].value * WORK_MIB, pages = size / WORK_PAGE;
	unsigned char *p = work_cold_anon(size, options[SEED].value);

	if (madvise(p, size, MADV_FREE) < 0)
		work_die("MADV_FREE: %s", strerror(errno));
	for (uint64_t i = 0; i < options[KEPT].value; i++) {
		uint64_t page = i * pages / options[KEPT].value;

		work_fill_page(p + page * WORK_PAGE, page + 12345);
	}
	return p;
}

static uint64_t count_wrong(const unsigned char *p, const struct work_option *options)
{
	uint64_t pages = options[LAZYFREE].value * WORK_MIB / WORK_PAGE, wrong = 0;

	for (uint64_t i = 0; i < options[KEPT].value; i++) {
		uint64_t page = i * pages / options[KEPT].value;

		wrong += !work_check_page(p + page * WORK_PAGE, page + 12345);
	}
	return wrong;
}

static void reclaim(const struct work_option *options, const char *file)
{
	char text[64];
	int r;

	if (options[GROW].value > 0) {
		work_cold_anon(options[GROW].value * WORK_MIB, options[SEED].value + 99);
		return;
	}
	snprintf(text, sizeof(text), "%lluM swappiness=0", (unsigned long long)options[SHED].value);
	r = gauges_write(file, text);
	if (r < 0 && r != -EAGAIN)
		work_die("%s: %s", file, strerror(-r));
}

int main(int argc, char **argv)
{
	struct work_option options[N_OPTIONS] = {
		[CACHE] = { "--cache", 64 }, [LAZYFREE] = { "--lazyfree", 64 },
		[KEPT] = { "--kept", 256 },  [SHED] = { "--shed", 48 },
		[GROW] = { "--grow", 0 },    [FIRST] = { "--first", 2 },
		[LATE] = { "--late", 0 },    [LRU] = { "--lru", 7 },
		[SEED] = { "--seed", 1 },
	};
	const char *file = "/sys/fs/cgroup/memory.reclaim";
	struct counters before, after;
	uint64_t stolen, lazyfreed, held, begin, usec;
	unsigned char *p;

	work_options(argc, argv, options, N_OPTIONS, &file);
	set_number("/sys/kernel/mm/lru_gen/enabled", options[LRU].value);
	set_number(knob, options[LATE].value ? 0 : options[FIRST].value);
	make_cold_cache(options[CACHE].value);
	p = give_up(options);
	set_number(knob, options[FIRST].value);
	read_counters(&before);
	held = gauges_vmstat("nr_lazyfree");
	begin = work_now_usec();
	reclaim(options, file);
	usec = work_now_usec() - begin;
	read_counters(&after);
	stolen = after.stolen - before.stolen;
	lazyfreed = after.lazyfreed - before.lazyfreed;
	work_say("shed-order lru=%llu first=%llu late=%llu held=%llu taken=%llu lazyfree=%llu "
		 "permille=%llu swapped=%llu exec=%llu wrong=%llu ms=%llu",
		 (unsigned long long)options[LRU].value, (unsigned long long)options[FIRST].value,
		 (unsigned long long)options[LATE].value, (unsigned long long)held,
		 (unsigned long long)stolen, (unsigned long long)lazyfreed,
		 (unsigned long long)(stolen ? lazyfreed * 1000 / stolen : 0),
		 (unsigned long long)(after.swapped - before.swapped),
		 (unsigned long long)(after.exec - before.exec),
		 (unsigned long long)count_wrong(p, options), (unsigned long long)(usec / 1000));
	set_number(knob, 0);
	return 0;
}
