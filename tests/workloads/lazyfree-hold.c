/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Much memory that was given up with MADV_FREE, as an allocator would leave it. Every round a few of
 * its pages are written again and must keep what was written, while the oldest of those are given up
 * once more.
 *
 *	lazyfree-hold [--lazyfree MIB] [--cache MIB] [--anon MIB] [--kept PAGES] [--period MS]
 *		      [--seed N]
 */
#include "tests/workloads/work.h"

enum { LAZYFREE, CACHE, ANON, KEPT, PERIOD, SEED, N_OPTIONS };

static const char cold_file[] = "/data/cold";

/* Pages of the region that were written again, oldest first: a ring. */
struct kept {
	uint32_t *page;
	uint64_t *tag;
	uint32_t n, size, first;
};

struct hold {
	unsigned char *region;
	uint32_t pages;
	bool *is_kept;
	struct kept kept;
	uint64_t random, next_tag, wrong;
};

static void give_up(struct hold *hold, uint32_t page, uint32_t n)
{
	if (madvise(hold->region + (size_t)page * WORK_PAGE, (size_t)n * WORK_PAGE, MADV_FREE) < 0)
		work_die("MADV_FREE: %s", strerror(errno));
}

static void keep_one(struct hold *hold)
{
	struct kept *kept = &hold->kept;
	uint32_t slot = (kept->first + kept->n) % kept->size, page;

	do
		page = (uint32_t)(work_random(&hold->random) % hold->pages);
	while (hold->is_kept[page]);
	work_fill_page(hold->region + (size_t)page * WORK_PAGE, hold->next_tag);
	hold->is_kept[page] = true;
	kept->page[slot] = page;
	kept->tag[slot] = hold->next_tag++;
	kept->n++;
}

static void forget_one(struct hold *hold)
{
	struct kept *kept = &hold->kept;
	uint32_t page = kept->page[kept->first];

	hold->is_kept[page] = false;
	give_up(hold, page, 1);
	kept->first = (kept->first + 1) % kept->size;
	kept->n--;
}

static void check_all(struct hold *hold)
{
	const struct kept *kept = &hold->kept;

	for (uint32_t i = 0; i < kept->n; i++) {
		uint32_t slot = (kept->first + i) % kept->size;

		if (!work_check_page(hold->region + (size_t)kept->page[slot] * WORK_PAGE,
				     kept->tag[slot]))
			hold->wrong++;
	}
}

static void prepare(struct hold *hold, const struct work_option *options)
{
	uint64_t size = options[LAZYFREE].value * WORK_MIB;

	hold->pages = (uint32_t)(size / WORK_PAGE);
	hold->random = options[SEED].value + 1;
	hold->kept.size = (uint32_t)options[KEPT].value;
	if (hold->kept.size == 0 || hold->kept.size * 2 > hold->pages)
		work_die("lazyfree-hold: --kept must be above 0 and below half of the pages");
	hold->kept.page = calloc(hold->kept.size, sizeof(*hold->kept.page));
	hold->kept.tag = calloc(hold->kept.size, sizeof(*hold->kept.tag));
	hold->is_kept = calloc(hold->pages, sizeof(*hold->is_kept));
	if (!hold->kept.page || !hold->kept.tag || !hold->is_kept)
		work_die("lazyfree-hold: no memory");
	hold->region = work_cold_anon(size, options[SEED].value);
	give_up(hold, 0, hold->pages);
	while (hold->kept.n < hold->kept.size)
		keep_one(hold);
}

int main(int argc, char **argv)
{
	struct work_option options[N_OPTIONS] = {
		[LAZYFREE] = { "--lazyfree", 128 }, [CACHE] = { "--cache", 0 },
		[ANON] = { "--anon", 0 },	    [KEPT] = { "--kept", 256 },
		[PERIOD] = { "--period", 1000 },    [SEED] = { "--seed", 1 },
	};
	struct hold hold = { 0 };
	uint64_t next;

	work_options(argc, argv, options, N_OPTIONS, NULL);
	work_read_file(cold_file, 0, options[CACHE].value * WORK_MIB);
	work_cold_anon(options[ANON].value * WORK_MIB, options[SEED].value + 7);
	prepare(&hold, options);
	work_say("ready lazyfree-hold");
	next = work_now_usec();
	for (uint64_t round = 0;; round++) {
		check_all(&hold);
		work_say("lazyfree round=%llu kept=%u written=%llu wrong=%llu",
			 (unsigned long long)round, hold.kept.n, (unsigned long long)hold.next_tag,
			 (unsigned long long)hold.wrong);
		for (uint32_t i = 0; i < hold.kept.size / 16 + 1; i++) {
			forget_one(&hold);
			keep_one(&hold);
		}
		next += options[PERIOD].value * 1000;
		work_sleep_until(next);
	}
}
