/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A folder with a made-up /proc and /sys, which the agent's code takes for a guest's by its root
 * parameter. Made by fake_root_make(), removed with all that is in it by fake_root_remove().
 */
#ifndef BALLAST_TESTS_FAKE_ROOT_H
#define BALLAST_TESTS_FAKE_ROOT_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAKE_KNOB(name) "/proc/sys/vm/" name

struct fake_root {
	char dir[64];
};

static inline int fake_root_unlink(const char *path, const struct stat *st, int type,
				   struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void fake_root_remove(const struct fake_root *root)
{
	(void)nftw(root->dir, fake_root_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

/* The path of a file below the root, in one of a few static buffers. */
static inline const char *fake_path(const struct fake_root *root, const char *path)
{
	static char buf[4][512];
	static unsigned int turn;
	char *p = buf[turn++ % 4];

	(void)snprintf(p, sizeof(buf[0]), "%s%s", root->dir, path);
	return p;
}

/* Write a file, and make the folders that it is in. */
static inline void fake_write(const struct fake_root *root, const char *path, const char *text)
{
	char full[512];
	FILE *f;

	(void)snprintf(full, sizeof(full), "%s%s", root->dir, path);
	for (char *p = full + strlen(root->dir) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		(void)mkdir(full, 0755);
		*p = '/';
	}
	f = fopen(full, "w");
	if (!f) {
		perror(full);
		abort();
	}
	(void)fputs(text, f);
	(void)fclose(f);
}

/* What a file holds, in a static buffer; "" where there is none. */
static inline const char *fake_read(const struct fake_root *root, const char *path)
{
	static char buf[4096];
	FILE *f = fopen(fake_path(root, path), "r");
	size_t n = 0;

	if (f) {
		n = fread(buf, 1, sizeof(buf) - 1, f);
		(void)fclose(f);
	}
	buf[n] = '\0';
	return buf;
}

static inline void fake_move(const struct fake_root *root, const char *from, const char *to)
{
	if (rename(fake_path(root, from), fake_path(root, to)) < 0) {
		perror(from);
		abort();
	}
}

/*
 * A file that can't be opened, by anybody, until fake_mend(): a folder stands there. One at a time.
 */
static inline void fake_break(const struct fake_root *root, const char *path)
{
	fake_move(root, path, "/aside");
	if (mkdir(fake_path(root, path), 0755) < 0) {
		perror(path);
		abort();
	}
}

static inline void fake_mend(const struct fake_root *root, const char *path)
{
	(void)rmdir(fake_path(root, path));
	fake_move(root, "/aside", path);
}

static const char fake_meminfo[] = "MemTotal:         524288 kB\n"
				   "MemFree:          102400 kB\n"
				   "MemAvailable:     204800 kB\n"
				   "Buffers:            1024 kB\n"
				   "Cached:            99328 kB\n"
				   "SwapCached:         2048 kB\n"
				   "Active:            90112 kB\n"
				   "Inactive:         131072 kB\n"
				   "Active(anon):      40960 kB\n"
				   "Inactive(anon):    10240 kB\n"
				   "Active(file):      49152 kB\n"
				   "Inactive(file):    81920 kB\n"
				   "Unevictable:           0 kB\n"
				   "SwapTotal:        262144 kB\n"
				   "SwapFree:         251904 kB\n"
				   "Dirty:               128 kB\n"
				   "AnonPages:         80896 kB\n"
				   "Mapped:            20480 kB\n"
				   "Shmem:              1024 kB\n"
				   "SUnreclaim:         8192 kB\n"
				   "HugePages_Total:       0\n";

static const char fake_vmstat[] = "nr_free_pages 25600\n"
				  "nr_mapped 5120\n"
				  "pswpin 11\n"
				  "pswpout 12\n"
				  "allocstall_dma 1\n"
				  "allocstall_dma32 2\n"
				  "allocstall_normal 3\n"
				  "allocstall_movable 4\n"
				  "pgmajfault 77\n"
				  "pgsteal_anon 5\n"
				  "pgsteal_file 500\n"
				  "oom_kill 0\n"
				  "pglazyfreed 9\n";

static const char fake_psi[] = "some avg10=1.00 avg60=0.50 avg300=0.10 total=123456\n"
			       "full avg10=0.00 avg60=0.00 avg300=0.00 total=6543\n";

/* A guest with an unpatched kernel and two settings, 2 processes and a kernel thread. */
static inline void fake_root_make(struct fake_root *root)
{
	(void)snprintf(root->dir, sizeof(root->dir), "/tmp/ballast-root.XXXXXX");
	if (!mkdtemp(root->dir)) {
		perror(root->dir);
		abort();
	}
	fake_write(root, "/proc/meminfo", fake_meminfo);
	fake_write(root, "/proc/vmstat", fake_vmstat);
	fake_write(root, "/proc/pressure/memory", fake_psi);
	fake_write(root, "/proc/pressure/io", fake_psi);
	fake_write(root, FAKE_KNOB("swappiness"), "60\n");
	fake_write(root, FAKE_KNOB("lazyfree_first"), "0\n");
	fake_write(root, "/proc/sys/kernel/osrelease", "6.12.117-fake\n");
	fake_write(root, "/proc/sys/kernel/random/boot_id",
		   "01234567-89ab-cdef-fedc-ba9876543210\n");
	fake_write(root, "/proc/self/mounts",
		   "proc /proc proc rw 0 0\ncgroup /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n");
	fake_write(root, "/sys/fs/cgroup/memory.reclaim", "");
	fake_write(root, "/proc/1/status",
		   "Name:\tinit\nState:\tS (sleeping)\nPPid:\t0\nVmSize:\t  4000 kB\n"
		   "VmSwap:\t    1024 kB\n");
	fake_write(root, "/proc/2/status", "Name:\tkthreadd\nState:\tS (sleeping)\nPPid:\t0\n");
	fake_write(root, "/proc/300/status",
		   "Name:\tapp\nState:\tR (running)\nPPid:\t1\nVmSize:\t  9000 kB\n"
		   "VmSwap:\t    8192 kB\n");
	fake_write(root, "/run/.keep", "");
}

#endif
