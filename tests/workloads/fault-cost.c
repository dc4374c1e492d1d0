/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What do faults, fork and exec cost? Loops through the paths of the kernel that the series changes,
 * for runs under QEMU's -icount shift=0 with one processor, where a nanosecond of the guest's clock
 * is one executed instruction, of kernel and program together. Only the loops are between two
 * readings of the clock: the file is in the page cache before, and each loop has run once. Prints a
 * line with the median of the rounds for each kind, and one with the distance from the least to the
 * greatest, in ns for each page or process:
 *
 *	fault-cost anon=N.NN read=N.NN ...
 *	fault-cost-spread anon=N.NN read=N.NN ...
 *
 *	anon	map anonymous memory, write a byte of each page, unmap (pft's loop)
 *	read	map a cached file r--, read a byte of each page, unmap
 *	exec	the same r-x
 *	write	the same rw- and shared, write a byte of each page
 *	cow	the same rw- and private, write a byte of each page
 *	free	map anonymous memory, write each page, MADV_FREE, unmap
 *	fork	fork a child that exits, with --fork-mib of anonymous and of private file memory each
 *	spawn	fork a child that executes this program, which exits at once
 *
 *	fault-cost [--mib N] [--loops N] [--rounds N] [--kinds MASK] [--fork-mib N] FILE
 *
 * --kinds has a bit for each kind, in the order above (all). FILE is --mib long, and can be written.
 */
#include "tests/workloads/work.h"

#include <sys/wait.h>

enum { MIB, LOOPS, ROUNDS, KINDS, FORK_MIB, N_OPTIONS };

enum { MAX_ROUNDS = 31, PROCESSES = 64 };

struct loop {
	const char *path;
	int fd;
	uint64_t size, fork_size;
};

static unsigned char *map_file(const struct loop *l, uint64_t size, int prot, int flags)
{
	void *p = mmap(NULL, size, prot, flags, l->fd, 0);

	if (p == MAP_FAILED)
		work_die("mmap: %s", strerror(errno));
	return p;
}

static void unmap(unsigned char *p, uint64_t size)
{
	if (munmap(p, size) < 0)
		work_die("munmap: %s", strerror(errno));
}

static void read_pages(const volatile unsigned char *p, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += WORK_PAGE)
		(void)p[at];
}

static void write_pages(volatile unsigned char *p, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += WORK_PAGE)
		p[at] = 1;
}

static void loop_anon(const struct loop *l)
{
	unsigned char *p = work_map(l->size);

	write_pages(p, l->size);
	unmap(p, l->size);
}

static void loop_free(const struct loop *l)
{
	unsigned char *p = work_map(l->size);

	write_pages(p, l->size);
	if (madvise(p, l->size, MADV_FREE) < 0)
		work_die("MADV_FREE: %s", strerror(errno));
	unmap(p, l->size);
}

static void loop_read(const struct loop *l)
{
	unsigned char *p = map_file(l, l->size, PROT_READ, MAP_PRIVATE);

	read_pages(p, l->size);
	unmap(p, l->size);
}

static void loop_exec(const struct loop *l)
{
	unsigned char *p = map_file(l, l->size, PROT_READ | PROT_EXEC, MAP_PRIVATE);

	read_pages(p, l->size);
	unmap(p, l->size);
}

static void loop_write(const struct loop *l)
{
	unsigned char *p = map_file(l, l->size, PROT_READ | PROT_WRITE, MAP_SHARED);

	write_pages(p, l->size);
	unmap(p, l->size);
}

static void loop_cow(const struct loop *l)
{
	unsigned char *p = map_file(l, l->size, PROT_READ | PROT_WRITE, MAP_PRIVATE);

	write_pages(p, l->size);
	unmap(p, l->size);
}

static void children(const char *program)
{
	for (int i = 0; i < PROCESSES; i++) {
		pid_t pid = fork();
		int status;

		if (pid < 0)
			work_die("fork: %s", strerror(errno));
		if (pid == 0) {
			if (program)
				execl(program, program, "--rounds", "0", (char *)NULL);
			_exit(program ? 1 : 0);
		}
		if (waitpid(pid, &status, 0) != pid || status != 0)
			work_die("the child ended with status %d", status);
	}
}

/* A fork copies the entries of a file's mapping only where one of its pages was written. */
static void loop_fork(const struct loop *l)
{
	static unsigned char *anon, *file;

	if (!anon) {
		anon = work_map(l->fork_size);
		write_pages(anon, l->fork_size);
		file = map_file(l, l->fork_size, PROT_READ | PROT_WRITE, MAP_PRIVATE);
		read_pages(file, l->fork_size);
		write_pages(file, WORK_PAGE);
	}
	children(NULL);
}

static void loop_spawn(const struct loop *l)
{
	(void)l;
	children("/proc/self/exe");
}

struct kind {
	const char *name;
	void (*run)(const struct loop *l);
	bool processes;
};

static const struct kind kinds[] = {
	{ "anon", loop_anon, false },	{ "read", loop_read, false },  { "exec", loop_exec, false },
	{ "write", loop_write, false }, { "cow", loop_cow, false },    { "free", loop_free, false },
	{ "fork", loop_fork, true },	{ "spawn", loop_spawn, true },
};

enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t once(const struct kind *kind, const struct loop *l, uint64_t loops)
{
	uint64_t begin = work_now_usec();

	for (uint64_t i = 0; i < loops; i++)
		kind->run(l);
	return work_now_usec() - begin;
}

/* The median of the rounds, and from the least to the greatest, in hundredths of a nanosecond. */
static void measure(const struct kind *kind, const struct loop *l, uint64_t loops, uint64_t rounds,
		    uint64_t *ret_median, uint64_t *ret_spread)
{
	uint64_t each[MAX_ROUNDS], n;

	n = loops * (kind->processes ? PROCESSES : l->size / WORK_PAGE);
	kind->run(l);
	for (uint64_t round = 0; round < rounds; round++)
		each[round] = once(kind, l, loops) * 100000 / n;
	qsort(each, rounds, sizeof(each[0]), compare);
	*ret_median = each[rounds / 2];
	*ret_spread = each[rounds - 1] - each[0];
}

/* One line for the host. */
static void say(const char *name, const uint64_t *values, uint64_t mask)
{
	char line[300];
	int n = 0;

	for (size_t i = 0; i < N_KINDS; i++)
		if (mask & UINT64_C(1) << i)
			n += snprintf(line + n, sizeof(line) - (size_t)n, " %s=%llu.%02llu",
				      kinds[i].name, (unsigned long long)(values[i] / 100),
				      (unsigned long long)(values[i] % 100));
	work_say("%s%s", name, n ? line : "");
}

int main(int argc, char **argv)
{
	struct work_option options[N_OPTIONS] = {
		[MIB] = { "--mib", 16 },	  [LOOPS] = { "--loops", 4 },
		[ROUNDS] = { "--rounds", 5 },	  [KINDS] = { "--kinds", 255 },
		[FORK_MIB] = { "--fork-mib", 2 },
	};
	uint64_t median[N_KINDS] = { 0 }, spread[N_KINDS] = { 0 }, rounds;
	struct loop l = { 0 };

	work_options(argc, argv, options, N_OPTIONS, &l.path);
	rounds = options[ROUNDS].value;
	if (rounds == 0)
		return 0; /* executed by itself */
	if (!l.path || rounds > MAX_ROUNDS)
		work_die("fault-cost: a file, and 0 to %d rounds", MAX_ROUNDS);
	l.size = options[MIB].value * WORK_MIB;
	l.fork_size = options[FORK_MIB].value * WORK_MIB;
	work_read_file(l.path, 0, l.size);
	l.fd = open(l.path, O_RDWR | O_CLOEXEC);
	if (l.fd < 0)
		work_die("%s: %s", l.path, strerror(errno));
	for (size_t i = 0; i < N_KINDS; i++)
		if (options[KINDS].value & UINT64_C(1) << i)
			measure(&kinds[i], &l, options[LOOPS].value, rounds, &median[i],
				&spread[i]);
	say("fault-cost", median, options[KINDS].value);
	say("fault-cost-spread", spread, options[KINDS].value);
	return 0;
}
