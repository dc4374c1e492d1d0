/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What does it cost to map a file, touch each of its pages and unmap it? The loop that a gauge of
 * executable memory makes dearer most. The file is in the page cache before the clock starts. Prints
 * the time per page of each round in ns; under QEMU's -icount shift=0 that is the number of
 * instructions.
 *
 *	exec-map-loop [--mib N] [--loops N] [--rounds N] [--exec 0|1] FILE
 */
#include "tests/workloads/work.h"

enum { MIB, LOOPS, ROUNDS, EXEC, N_OPTIONS };

static void loop(int fd, uint64_t size, int prot)
{
	volatile unsigned char *p = mmap(NULL, size, prot, MAP_PRIVATE, fd, 0);

	if (p == MAP_FAILED)
		work_die("mmap: %s", strerror(errno));
	for (uint64_t at = 0; at < size; at += WORK_PAGE)
		(void)p[at];
	if (munmap((void *)(uintptr_t)p, size) < 0)
		work_die("munmap: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	struct work_option options[N_OPTIONS] = {
		[MIB] = { "--mib", 16 },
		[LOOPS] = { "--loops", 8 },
		[ROUNDS] = { "--rounds", 1 },
		[EXEC] = { "--exec", 1 },
	};
	const char *path = NULL;
	uint64_t size, begin, ns;
	int fd, prot;

	work_options(argc, argv, options, N_OPTIONS, &path);
	if (!path)
		work_die("exec-map-loop: which file?");
	size = options[MIB].value * WORK_MIB;
	prot = options[EXEC].value ? PROT_READ | PROT_EXEC : PROT_READ;
	work_read_file(path, 0, size);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		work_die("%s: %s", path, strerror(errno));
	loop(fd, size, prot);
	for (uint64_t round = 0; round < options[ROUNDS].value; round++) {
		begin = work_now_usec();
		for (uint64_t i = 0; i < options[LOOPS].value; i++)
			loop(fd, size, prot);
		ns = (work_now_usec() - begin) * 1000 / (options[LOOPS].value * size / WORK_PAGE);
		work_say("exec-map-loop exec=%llu ns_per_page=%llu",
			 (unsigned long long)options[EXEC].value, (unsigned long long)ns);
	}
	return 0;
}
