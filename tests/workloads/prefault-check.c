/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Does mapping pages ahead of a fault leave alone what is there? In 2004 it didn't: Akinobu Mita saw
 * processes crash, because a fault had also set the entries of the pages that follow, and some of
 * them were in use. Here each page has a stamp that says what it must hold, and faults are made
 * beside it in all ways:
 *
 *	patterns	all mixtures of pages that are untouched, written, read, and swapped out, behind
 *			a row of faults, in the middle of a page table, across two, and at the end of
 *			a mapping with another one behind it
 *	threads		several threads race through the same pages, each of which belongs to one of
 *			them; they give up pages meanwhile, swap them out, and the process is forked
 *	too much	never is more than twice what was touched resident
 *	left alone	MADV_RANDOM, as Tony Luck had it, locked memory, stacks, and, where the kernel
 *			has it, userfaultfd: nothing is mapped there but what was touched
 *
 *	prefault-check [--threads N] [--rounds N] [--seed N]
 *
 * Prints "ok" and "not ok" lines, for the value of vm.anon_prefault_max_order that it finds.
 */
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/workloads/gauges.h"
#include "tests/workloads/stamps.h"
#include "tests/workloads/tlb.h"
#include "tests/workloads/vmstat.h"

#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

enum { THREADS, ROUNDS, SEED, N_OPTIONS };

enum {
	TABLE = 512, /* pages of a page table */
	WINDOW = 6, /* pages of a pattern */
	SWAP_WINDOW = 4, /* of one with pages that are swapped out */
	ROW = 16, /* pages of the longest row before it */
	AHEAD = 32, /* pages behind it that are watched */
	STRETCH = 200, /* pages of a round of the threads */
	MAX_THREADS = 16,
};

enum { UNTOUCHED, WRITTEN, READ, SWAPPED };

enum place { MIDDLE, BOUNDARY, END, N_PLACES };

static char order[8];

static void read_page(const struct stamps *area, uint32_t page)
{
	(void)*(const volatile uint64_t *)stamps_page(area, page);
}

/* --- Patterns ---------------------------------------------------------------------------------- */

/* Backwards, so that this itself is no row. */
static void prepare_window(struct stamps *area, uint32_t first, uint32_t n, const uint8_t *states)
{
	for (uint32_t i = n; i-- > 0;) {
		switch (states[i]) {
		case READ:
			read_page(area, first + i);
			break;
		case SWAPPED:
		case WRITTEN:
			stamps_write(area, first + i, 1 + stamps_pick(&area->random, 1u << 30));
			break;
		default:
			break;
		}
		if (states[i] == SWAPPED)
			stamps_advise(area, first + i, 1, MADV_PAGEOUT);
	}
}

/*
 * The translation buffer still knows pages whose entries have been overwritten; without it, what the
 * page table says is what counts.
 */
static uint32_t count_wrong(const struct stamps *area, struct tlb *tlb, uint32_t first, uint32_t n)
{
	tlb_forget(tlb);
	return stamps_count_wrong(area, first, n);
}

/* A row of faults up to the window, then into it; returns how many pages hold something wrong. */
static uint32_t try_window(struct stamps *area, struct tlb *tlb, uint32_t first, uint32_t n,
			   const uint8_t *states)
{
	uint32_t row = 1 + stamps_pick(&area->random, ROW), begin = first - row, wrong;
	bool reading = stamps_pick(&area->random, 4) == 0;

	stamps_drop(area, begin, row + n);
	prepare_window(area, first, n, states);
	for (uint32_t i = 0; i < row; i++) {
		if (reading)
			read_page(area, begin + i);
		else
			stamps_write(area, begin + i, 2 + i);
	}
	wrong = count_wrong(area, tlb, begin, row + n + AHEAD);
	for (uint32_t i = 0; i < n; i++)
		if (states[i] == UNTOUCHED)
			stamps_write(area, first + i, 3 + i);
	wrong += count_wrong(area, tlb, begin, row + n + AHEAD);
	return wrong;
}

/* Where a window of n pages begins. The area has three tables, the mapping ends AHEAD before its end. */
static uint32_t window_at(struct stamps *area, enum place place, uint32_t n)
{
	switch (place) {
	case BOUNDARY:
		return TABLE * 2 - stamps_pick(&area->random, n + 1);
	case END:
		return area->pages - AHEAD - n;
	default:
		return TABLE + ROW + stamps_pick(&area->random, TABLE / 2);
	}
}

/* What is behind a window has been mapped ahead, or read to be checked. */
static void forget_behind(struct stamps *area, enum place place)
{
	if (place != END)
		stamps_drop(area, TABLE, area->pages - AHEAD - TABLE);
}

struct pattern_sums {
	uint32_t patterns, wrong, swapped;
};

static void try_all(struct stamps *area, struct tlb *tlb, uint32_t n, uint32_t n_states,
		    struct pattern_sums *sums)
{
	uint8_t states[WINDOW];
	uint32_t all = 1;

	for (uint32_t i = 0; i < n; i++)
		all *= n_states;
	for (uint32_t number = 0; number < all * N_PLACES; number++) {
		enum place place = (enum place)(number % N_PLACES);
		uint32_t left = number / N_PLACES;

		for (uint32_t i = 0; i < n; i++, left /= n_states)
			states[i] = (uint8_t)(left % n_states);
		if (n_states > SWAPPED && !memchr(states, SWAPPED, n))
			continue;
		sums->patterns++;
		sums->wrong += try_window(area, tlb, window_at(area, place, n), n, states);
		forget_behind(area, place);
	}
}

static void check_patterns(uint64_t seed)
{
	struct stamps area = { .random = seed * 2 + 1 };
	struct pattern_sums sums = { 0 };
	struct vmstat before, after;
	struct tlb tlb;

	tlb_init(&tlb);
	stamps_map(&area, TABLE * 3, TABLE * WORK_PAGE);
	/* Another mapping behind the end, in use. */
	for (uint32_t i = area.pages - AHEAD; i < area.pages; i++)
		stamps_write(&area, i, 7 + i);
	if (mprotect(stamps_page(&area, area.pages - AHEAD), AHEAD * WORK_PAGE, PROT_READ) < 0)
		work_die("mprotect: %s", strerror(errno));
	try_all(&area, &tlb, WINDOW, SWAPPED, &sums);
	gauges_check(sums.wrong == 0, "faults_leave_their_neighbours_alone",
		     "order %s, %u patterns, %u pages wrong", order, sums.patterns, sums.wrong);
	sums = (struct pattern_sums){ 0 };
	vmstat_read(&before);
	try_all(&area, &tlb, SWAP_WINDOW, SWAPPED + 1, &sums);
	vmstat_read(&after);
	gauges_check(sums.wrong == 0 && vmstat_diff(&before, &after, "pswpout") > 0,
		     "faults_leave_swapped_neighbours_alone",
		     "order %s, %u patterns, %u pages wrong, %lld swapped out", order,
		     sums.patterns, sums.wrong, (long long)vmstat_diff(&before, &after, "pswpout"));
}

/* --- Threads ----------------------------------------------------------------------------------- */

/* What a round is like. */
struct round {
	uint32_t first; /* page of the stretch */
	uint32_t block; /* pages in a row that belong to the same thread, 0: at random */
	uint32_t untouched; /* of 100 pages */
	bool last;
};

struct team {
	struct stamps area;
	struct tlb tlb;
	struct round round;
	uint32_t n;
	uint64_t seed;
	pthread_barrier_t begin, end;
};

struct member {
	struct team *team;
	uint32_t number;
	uint32_t next_stamp, wrong;
	uint64_t random;
	pthread_t thread;
};

static uint32_t owner_of(const struct team *team, uint32_t page)
{
	if (team->round.block)
		return page / team->round.block % team->n;
	return (uint32_t)(stamps_word(page, (uint32_t)team->seed | 1) >> 40) % team->n;
}

static void change_own_page(struct member *member, uint32_t page)
{
	struct stamps *area = &member->team->area;
	uint32_t what = stamps_pick(&member->random, 100);

	if (what < member->team->round.untouched)
		return;
	if (what % 16 == 0) {
		member->wrong += !stamps_right(area, page);
		return;
	}
	stamps_write(area, page, ++member->next_stamp);
	if (what % 16 == 1)
		stamps_drop(area, page, 1);
	if (what % 16 == 2) {
		stamps_advise(area, page, 1, MADV_FREE);
		stamps_write(area, page, ++member->next_stamp);
	}
}

static void check_own_pages(struct member *member)
{
	struct team *team = member->team;

	for (uint32_t i = 0; i < STRETCH; i++)
		if (owner_of(team, team->round.first + i) == member->number)
			member->wrong += !stamps_right(&team->area, team->round.first + i);
}

static void run_through(struct member *member)
{
	struct team *team = member->team;

	for (uint32_t i = 0; i < STRETCH; i++) {
		uint32_t page = team->round.first + i, chance = stamps_pick(&member->random, 256);

		if (owner_of(team, page) == member->number)
			change_own_page(member, page);
		else if (chance < 8)
			read_page(&team->area, page);
		if (chance == 255)
			stamps_advise(&team->area, team->round.first + i / 2, 8, MADV_PAGEOUT);
	}
	check_own_pages(member);
}

static void *run_member(void *data)
{
	struct member *member = data;

	for (;;) {
		pthread_barrier_wait(&member->team->begin);
		if (member->team->round.last)
			return NULL;
		run_through(member);
		pthread_barrier_wait(&member->team->end);
	}
}

/* In a child: it has all as it was, and may change it while the parent goes on. */
static void check_copy(struct team *team)
{
	uint32_t first = team->round.first, wrong = stamps_count_wrong(&team->area, first, STRETCH);

	for (uint32_t i = 0; i < STRETCH; i++)
		if (i % 3)
			stamps_write(&team->area, first + i, 0x40000000 + i);
	wrong += stamps_count_wrong(&team->area, first, STRETCH);
	_exit(wrong ? 1 : 0);
}

static void run_round(struct team *team)
{
	pthread_barrier_wait(&team->begin);
	pthread_barrier_wait(&team->end);
}

/* A stretch from the beginning, then once more, perhaps beside a forked child. */
static uint32_t run_stretch(struct team *team)
{
	bool forked = stamps_pick(&team->area.random, 4) == 0;
	int status = 0;
	pid_t child = 0;

	team->round.first = stamps_pick(&team->area.random, team->area.pages - STRETCH);
	team->round.block = stamps_pick(&team->area.random, 4) * 3;
	team->round.untouched = stamps_pick(&team->area.random, 3) * 25;
	team->seed++;
	stamps_drop(&team->area, 0, team->area.pages);
	run_round(team);
	if (forked)
		child = fork();
	if (child < 0)
		work_die("fork: %s", strerror(errno));
	if (forked && child == 0)
		check_copy(team);
	run_round(team);
	if (forked && (waitpid(child, &status, 0) != child || status != 0))
		return 1;
	return count_wrong(&team->area, &team->tlb, team->round.first, STRETCH);
}

static void check_threads(const struct work_option *options)
{
	static struct member members[MAX_THREADS];
	struct team team = { .n = (uint32_t)options[THREADS].value, .seed = options[SEED].value };
	uint32_t wrong = 0;

	team.area.random = team.seed + 99;
	tlb_init(&team.tlb);
	stamps_map(&team.area, TABLE * 2, TABLE * WORK_PAGE);
	pthread_barrier_init(&team.begin, NULL, team.n + 1);
	pthread_barrier_init(&team.end, NULL, team.n + 1);
	for (uint32_t i = 0; i < team.n; i++) {
		members[i].team = &team;
		members[i].number = i;
		members[i].random = team.seed * MAX_THREADS + i + 1;
		if (pthread_create(&members[i].thread, NULL, run_member, &members[i]) != 0)
			work_die("no thread");
	}
	for (uint64_t i = 0; i < options[ROUNDS].value; i++)
		wrong += run_stretch(&team);
	team.round.last = true;
	pthread_barrier_wait(&team.begin);
	for (uint32_t i = 0; i < team.n; i++) {
		pthread_join(members[i].thread, NULL);
		wrong += members[i].wrong;
	}
	gauges_check(wrong == 0, "racing_threads_keep_their_pages",
		     "order %s, %u threads, %llu rounds, %u pages wrong", order, team.n,
		     (unsigned long long)options[ROUNDS].value, wrong);
}

/* --- Left alone -------------------------------------------------------------------------------- */

/* Write a row that is shorter than what follows; returns how much more than that is there. */
static uint32_t resident_beyond(struct stamps *area)
{
	enum { TOUCHED = 26 };

	for (uint32_t i = 0; i < TOUCHED; i++)
		stamps_write(area, i, 1 + i);
	return stamps_resident(area, 0, area->pages) - TOUCHED;
}

static void check_plain(void)
{
	bool off = strcmp(order, "0") == 0;
	struct stamps area = { 0 };
	uint32_t n;

	stamps_map(&area, 64, WORK_PAGE);
	n = resident_beyond(&area);
	gauges_check(off ? n == 0 : n > 0,
		     off ? "nothing_is_mapped_ahead" : "pages_are_mapped_ahead",
		     "order %s, %u pages after 26 in a row", order, n);
}

/* Touch what is just behind that which is there, again and again: if pages that were mapped ahead
 * counted as touched, the rows would grow by themselves.
 */
static void check_pursuit(void)
{
	struct stamps area = { 0 };
	uint32_t touched = 0, resident = 0;

	stamps_map(&area, 2048, WORK_PAGE);
	while (resident < area.pages) {
		stamps_write(&area, resident, ++touched);
		while (resident < area.pages && stamps_resident(&area, resident, 1))
			resident++;
	}
	gauges_check(resident <= 2 * touched, "what_was_mapped_ahead_is_no_row",
		     "order %s, %u resident, %u touched", order, resident, touched);
}

/* Rows of all lengths with gaps of all lengths. */
static void check_resident(uint64_t seed)
{
	struct stamps area = { .random = seed + 77 };
	uint32_t at = 0, touched = 0, resident;

	stamps_map(&area, 4096, WORK_PAGE);
	for (;;) {
		uint32_t row = 1 + stamps_pick(&area.random, 40);
		uint32_t gap = stamps_pick(&area.random, 40);

		if (at + row > area.pages)
			break;
		for (uint32_t i = 0; i < row; i++)
			stamps_write(&area, at + i, ++touched);
		at += row + gap;
	}
	resident = stamps_resident(&area, 0, area.pages);
	gauges_check(resident <= 2 * touched, "resident_is_at_most_twice_what_was_touched",
		     "order %s, %u resident, %u touched", order, resident, touched);
}

static void check_random(void)
{
	struct stamps area = { 0 };
	uint32_t n;

	stamps_map(&area, 64, WORK_PAGE);
	stamps_advise(&area, 0, area.pages, MADV_RANDOM);
	n = resident_beyond(&area);
	gauges_check(n == 0, "madv_random_is_left_alone", "order %s, %u pages more", order, n);
}

static void check_locked(void)
{
	struct stamps area = { 0 };
	uint32_t n;

	stamps_map(&area, 64, WORK_PAGE);
	if (syscall(SYS_mlock2, area.base, (size_t)area.pages * WORK_PAGE, MLOCK_ONFAULT) < 0)
		work_die("mlock2: %s", strerror(errno));
	n = resident_beyond(&area);
	gauges_check(n == 0, "locked_memory_is_left_alone", "order %s, %u pages more", order, n);
}

static void check_stack(void)
{
	uint32_t pages = 64, stamp[64], n;
	struct stamps area = { .pages = pages, .stamp = stamp };

	area.base = mmap(NULL, pages * WORK_PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
	if (area.base == MAP_FAILED)
		work_die("MAP_GROWSDOWN: %s", strerror(errno));
	n = resident_beyond(&area);
	gauges_check(n == 0, "stacks_are_left_alone", "order %s, %u pages more", order, n);
}

/* Answer faults with pages of zeros until the pipe is closed; the result is their number. */
struct missing {
	int fd, stop;
	uintptr_t served;
};

static void *serve_missing(void *data)
{
	struct missing *missing = data;
	struct pollfd polled[] = { { .fd = missing->fd, .events = POLLIN },
				   { .fd = missing->stop, .events = POLLIN } };
	struct uffd_msg message;

	while (poll(polled, 2, -1) > 0 && !polled[1].revents) {
		struct uffdio_zeropage zero = { .range.len = WORK_PAGE };

		if (read(missing->fd, &message, sizeof(message)) != sizeof(message))
			continue;
		zero.range.start = message.arg.pagefault.address & ~(uint64_t)(WORK_PAGE - 1);
		if (ioctl(missing->fd, UFFDIO_ZEROPAGE, &zero) < 0 && errno != EEXIST)
			work_die("UFFDIO_ZEROPAGE: %s", strerror(errno));
		missing->served++;
	}
	return NULL;
}

static void check_userfaultfd(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct stamps area = { 0 };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct missing missing = { 0 };
	int ends[2];
	pthread_t server;
	uint32_t n;

	missing.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (missing.fd < 0 && errno == ENOSYS) {
		work_say("userfaultfd: this kernel has none");
		return;
	}
	stamps_map(&area, 64, WORK_PAGE);
	reg.range.start = (uintptr_t)area.base;
	reg.range.len = (uint64_t)area.pages * WORK_PAGE;
	if (missing.fd < 0 || ioctl(missing.fd, UFFDIO_API, &api) < 0 ||
	    ioctl(missing.fd, UFFDIO_REGISTER, &reg) < 0 || pipe(ends) < 0)
		work_die("userfaultfd: %s", strerror(errno));
	missing.stop = ends[0];
	if (pthread_create(&server, NULL, serve_missing, &missing) != 0)
		work_die("no thread");
	n = resident_beyond(&area);
	close(ends[1]);
	pthread_join(server, NULL);
	gauges_check(n == 0 && missing.served == 26, "userfaultfd_is_told_of_each_page",
		     "order %s, %u pages more, %lu of 26 faults", order, n,
		     (unsigned long)missing.served);
}

static void read_order(void)
{
	int fd = open("/proc/sys/vm/anon_prefault_max_order", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, order, sizeof(order) - 1);

	if (n <= 0)
		work_die("there is no vm.anon_prefault_max_order: is this the patched kernel?");
	order[strcspn(order, "\n")] = '\0';
	close(fd);
}

int main(int argc, char **argv)
{
	struct work_option options[N_OPTIONS] = {
		[THREADS] = { "--threads", 4 },
		[ROUNDS] = { "--rounds", 300 },
		[SEED] = { "--seed", 1 },
	};
	struct vmstat before, after;

	work_options(argc, argv, options, N_OPTIONS, NULL);
	if (options[THREADS].value < 1 || options[THREADS].value > MAX_THREADS)
		work_die("prefault-check: 1 to %d threads", MAX_THREADS);
	read_order();
	vmstat_read(&before);
	check_patterns(options[SEED].value);
	check_threads(options);
	vmstat_read(&after);
	gauges_check((strcmp(order, "0") == 0) ==
			     (vmstat_diff(&before, &after, "pgprefault_anon") == 0),
		     "pages_mapped_ahead_are_counted", "order %s, %lld pages", order,
		     (long long)vmstat_diff(&before, &after, "pgprefault_anon"));
	check_plain();
	check_pursuit();
	check_resident(options[SEED].value);
	check_random();
	check_locked();
	check_stack();
	check_userfaultfd();
	return 0;
}
