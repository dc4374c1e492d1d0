/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A mixed load that goes on for long, to find faults of the kernel: processes and threads do what
 * there is to do with memory, some of them in memory cgroups that are too small for them, while
 * memory is reclaimed, swapped and compacted, and all that can be set is set again and again, most
 * of the time to its strongest. Each page that is touched is checked (see soak.h). Every now and
 * then all of them are stopped, and the gauges must be what counting gives; there must have been
 * progress. At last all are killed, and the gauges must be back where they started. Prints "ok" and
 * "not ok" lines; whether the kernel has complained is for its console to say.
 *
 *	soak [--seed N] [--seconds N] [--workers N] FOLDER
 *	soak --linger MS		(what is executed by the processes)
 *
 * FOLDER is on a disk that can be written, with the program in it. The choice of what is done is
 * the seed's, the order of what processes do at the same time is not.
 */
#include "tests/workloads/gauges.h"
#include "tests/workloads/soak-acts.h"
#include "tests/workloads/vmstat.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/wait.h>

enum { SEED, SECONDS, WORKERS, LINGER, N_OPTIONS };

enum {
	MAX_WORKERS = 16,
	N_CAGES = 3,
	QUIET_SECONDS = 20, /* between two looks at the gauges */
	PATIENCE_USEC = 120000000, /* for what must come to its end */
};

/* --- The one that disturbs ------------------------------------------------------------------------ */

struct lever {
	const char *path, *strong, *others[3];
};

static const struct lever levers[] = {
	{ "/proc/sys/vm/exec_protect", "3", { "0", "1", "2" } },
	{ "/proc/sys/vm/lazyfree_first", "2", { "0", "1", "0" } },
	{ "/proc/sys/vm/anon_prefault_max_order", "4", { "0", "1", "3" } },
	{ "/proc/sys/vm/madvise_free_swap", "1", { "0", "0", "0" } },
	{ "/sys/module/page_reporting/parameters/page_reporting_delay_ms",
	  "10",
	  { "20", "100", "2000" } },
	{ "/sys/module/page_reporting/parameters/page_reporting_budget", "16", { "0", "1", "4" } },
	{ "/sys/module/page_reporting/parameters/page_reporting_order", "2", { "0", "5", "9" } },
	{ "/sys/kernel/mm/lru_gen/enabled", "7", { "0", "0", "3" } },
	{ "/sys/kernel/mm/transparent_hugepage/enabled",
	  "madvise",
	  { "always", "never", "never" } },
	{ "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled",
	  "never",
	  { "always", "inherit", "madvise" } },
	{ "/proc/sys/vm/swappiness", "60", { "0", "100", "200" } },
	{ "/proc/sys/vm/percpu_pagelist_high_fraction", "0", { "8", "1000", "100" } },
};

enum { N_LEVERS = sizeof(levers) / sizeof(levers[0]) };

static void set_lever(struct soak_worker *w, const struct lever *lever)
{
	const char *value = soak_pick(w, 3) ? lever->strong : lever->others[soak_pick(w, 3)];
	int r = gauges_write(lever->path, value);

	/* Whoever is being stopped tries again another time. */
	if (r < 0 && r != -EINTR)
		soak_fault("%s does not take %s: %s", lever->path, value, strerror(-r));
}

static void reclaim(struct soak_worker *w, const char *group)
{
	static const char *const amounts[] = { "1M", "4M", "12M", "20M swappiness=0" };
	char path[100];

	/* It says EAGAIN when there was less, and a group may be gone. */
	snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/memory.reclaim", group);
	gauges_write(path, amounts[soak_pick(w, 4)]);
}

static void empty_swap(void)
{
	/* It doesn't succeed when there is no room; then swap is on as before. */
	if (swapoff("/dev/vdb") == 0 && swapon("/dev/vdb", 0) < 0)
		soak_fault("swapon: %s", strerror(errno));
}

static void disturb(struct soak_worker *w)
{
	char cage[20];

	switch (soak_pick(w, 40)) {
	case 0 ... 15:
		set_lever(w, &levers[soak_pick(w, N_LEVERS)]);
		break;
	case 16 ... 21:
		gauges_write("/proc/sys/vm/compact_memory", "1");
		break;
	case 22 ... 29:
		reclaim(w, ".");
		break;
	case 30 ... 37:
		snprintf(cage, sizeof(cage), "cage-%u", soak_pick(w, N_CAGES));
		reclaim(w, cage);
		break;
	case 38:
		gauges_write("/proc/sys/vm/drop_caches", soak_pick(w, 2) ? "1" : "3");
		break;
	default:
		if (soak_pick(w, 6) == 0)
			empty_swap();
	}
	usleep(soak_pick(w, 100000));
}

/* --- Cages: memory cgroups that are too small ------------------------------------------------------ */

enum cage_kind { CAGE_TEXT, CAGE_GROW, CAGE_MIXED, N_CAGE_KINDS };

struct cage {
	char path[64];
	pid_t pid;
	enum cage_kind kind;
	uint64_t until, executed;
};

static void cage_write(const struct cage *cage, const char *file, const char *text)
{
	char path[100];
	int r;

	snprintf(path, sizeof(path), "%s/%s", cage->path, file);
	r = gauges_write(path, text);
	if (r < 0)
		work_die("not ok soak-cages - '%s' to %s: %s", text, path, strerror(-r));
}

static uint64_t cage_event(const struct cage *cage, const char *name)
{
	char path[100];
	uint64_t value = 0;

	snprintf(path, sizeof(path), "%s/memory.events", cage->path);
	gauges_line(path, name, &value);
	return value;
}

/* Write ever more memory, until it is too much. */
static void grow(struct soak_worker *w)
{
	for (;;) {
		unsigned char *p = work_map(WORK_MIB);
		uint64_t tag = soak_new_tag(w);

		for (uint32_t i = 0; i < WORK_MIB / WORK_PAGE; i++)
			work_fill_page(p + (size_t)i * WORK_PAGE, tag + i);
		for (uint32_t i = 0; i < WORK_MIB / WORK_PAGE; i++)
			if (!work_check_page(p + (size_t)i * WORK_PAGE, tag + i))
				soak_fault("page %u of a row has changed", i);
		__atomic_add_fetch(&soak_shared->steps, 1, __ATOMIC_RELAXED);
	}
}

/* Execute more text than there is memory for. */
static void run_text(struct soak_worker *w, uint64_t *ret_executed)
{
	for (uint32_t i = 0; i < SOAK_REGIONS; i++)
		soak_map(w, &w->regions[i], SOAK_TEXT, PROT_READ | PROT_EXEC);
	for (;;) {
		struct soak_region *r = soak_region(w);

		if (r)
			soak_touch(w, r, soak_pick(w, r->pages), false);
		__atomic_add_fetch(ret_executed, 1, __ATOMIC_RELAXED);
	}
}

static void cage_run(struct cage *cage, struct soak_worker *w, uint32_t number)
{
	soak_catch_signals();
	signal(SIGCHLD, SIG_IGN);
	cage_write(cage, "cgroup.procs", "0");
	gauges_set("/proc/self/oom_score_adj", "600");
	if (cage->kind == CAGE_TEXT)
		run_text(w, &soak_shared->caged[number]);
	if (cage->kind == CAGE_GROW)
		grow(w);
	acts_work(w);
}

static void cage_start(struct cage *cage, struct soak_worker *me, uint32_t number, pid_t group)
{
	struct soak_worker w = { .random = work_random(&me->random) | 1 };
	char limit[20], high[20];
	uint32_t mib = 2 + soak_pick(me, 14);

	*cage = (struct cage){ .kind = (enum cage_kind)soak_pick(me, N_CAGE_KINDS) };
	snprintf(cage->path, sizeof(cage->path), "/sys/fs/cgroup/cage-%u", number);
	if (mkdir(cage->path, 0755) < 0)
		work_die("not ok soak-cages - %s: %s", cage->path, strerror(errno));
	snprintf(limit, sizeof(limit), "%uM", mib);
	snprintf(high, sizeof(high), "%uM", mib - 1);
	cage_write(cage, "memory.max", limit);
	cage_write(cage, "memory.high", soak_pick(me, 4) ? "max" : high);
	cage_write(cage, "memory.swap.max", soak_pick(me, 2) ? "max" : "0");
	cage_write(cage, "memory.oom.group", soak_pick(me, 3) ? "0" : "1");
	cage->executed = soak_shared->caged[number];
	cage->until = work_now_usec() + 2000000 + soak_pick(me, 4000000);
	cage->pid = fork();
	if (cage->pid < 0)
		work_die("not ok soak-cages - fork: %s", strerror(errno));
	if (cage->pid == 0) {
		setpgid(0, group);
		cage_run(cage, &w, number);
	}
	setpgid(cage->pid, group);
}

static bool cage_is_empty(const struct cage *cage)
{
	char path[100];
	uint64_t populated = 1;

	snprintf(path, sizeof(path), "%s/cgroup.events", cage->path);
	return gauges_line(path, "populated", &populated) && !populated;
}

/* Its time is over; text that has not been executed yet gets more, as the machine may be slow. */
static bool cage_is_over(const struct cage *cage, uint32_t number)
{
	uint64_t now = work_now_usec();

	if (now < cage->until)
		return false;
	return cage->kind != CAGE_TEXT || soak_shared->caged[number] != cage->executed ||
	       cage_event(cage, "oom_kill") || now > cage->until + PATIENCE_USEC;
}

/* End what is in it; whatever it is at, it must come to its end. */
static void cage_end(struct cage *cage, uint32_t number, struct acts_sum *sum)
{
	uint64_t until = work_now_usec() + PATIENCE_USEC;
	uint64_t kills = cage_event(cage, "oom_kill");
	uint64_t executed = soak_shared->caged[number] - cage->executed;
	bool over = cage_is_over(cage, number);

	cage_write(cage, "cgroup.kill", "1");
	waitpid(cage->pid, NULL, 0);
	while (!cage_is_empty(cage) || rmdir(cage->path) < 0) {
		if (work_now_usec() > until)
			work_die("not ok soak-cages - %s does not end", cage->path);
		usleep(10000);
	}
	sum->cages++;
	sum->cage_kills += kills;
	if (cage->kind != CAGE_TEXT || !over)
		return;
	sum->text_cages++;
	sum->text_kills += kills;
	sum->text_stuck += executed == 0 && kills == 0;
	if (executed < sum->text_least)
		sum->text_least = executed;
}

/* --- The one that watches -------------------------------------------------------------------------- */

struct soak {
	struct soak_worker me;
	struct cage cages[N_CAGES];
	struct acts_sum sum;
	pid_t workers[MAX_WORKERS], group;
	uint32_t n_workers, rounds, exec_wrong, lazyfree_wrong, rollup_wrong, stuck;
	uint64_t most_exec, most_lazyfree, last_steps;
	char settle_file[300];
};

static pid_t start_worker(struct soak *s, bool is_disturber)
{
	struct soak_worker w = { .random = work_random(&s->me.random) | 1 };
	pid_t pid = fork();

	if (pid < 0)
		work_die("not ok soak - fork: %s", strerror(errno));
	if (pid != 0) {
		setpgid(pid, s->group);
		return pid;
	}
	setpgid(0, s->group);
	soak_catch_signals();
	signal(SIGCHLD, SIG_IGN);
	if (is_disturber)
		for (;;)
			disturb(&w);
	gauges_set("/proc/self/oom_score_adj", "200");
	acts_work(&w);
}

/* Workers that were killed for want of memory are replaced; nobody else may end. */
static void reap(struct soak *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		bool oom = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

		for (uint32_t i = 0; i < s->n_workers; i++) {
			if (s->workers[i] != pid)
				continue;
			if (!oom) {
				__atomic_add_fetch(&soak_shared->faults, 1, __ATOMIC_SEQ_CST);
				work_say("not ok soak-workers - one ended with status %x", status);
			}
			s->sum.kills++;
			s->workers[i] = start_worker(s, false);
		}
		if (pid == s->group)
			work_die("not ok soak - the disturber ended with status %x", status);
	}
}

static void watch(struct soak *s, uint64_t until)
{
	while (work_now_usec() < until) {
		reap(s);
		for (uint32_t i = 0; i < N_CAGES; i++) {
			if (s->cages[i].pid && !cage_is_over(&s->cages[i], i))
				continue;
			if (s->cages[i].pid)
				cage_end(&s->cages[i], i, &s->sum);
			cage_start(&s->cages[i], &s->me, i, s->group);
		}
		usleep(50000);
	}
}

/* How many processes are in the group; those that were killed have not counted themselves down. */
static int count_group(pid_t group)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc");
	int n = 0;

	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			n += getpgid((pid_t)strtol(entry->d_name, NULL, 10)) == group;
	if (dir)
		closedir(dir);
	return n;
}

static void quiet_point(struct soak *s)
{
	struct gauges_seen now;
	uint64_t steps, started = work_now_usec();

	gauges_stop(s->group);
	gauges_look(s->settle_file, &now);
	s->rounds++;
	s->exec_wrong += now.exec != now.counted.exec;
	s->lazyfree_wrong += now.lazyfree != now.counted.lazyfree;
	s->rollup_wrong += now.counted.pss_wrong != 0;
	if (now.counted.exec > s->most_exec)
		s->most_exec = now.counted.exec;
	if (now.counted.lazyfree > s->most_lazyfree)
		s->most_lazyfree = now.counted.lazyfree;
	steps = __atomic_load_n(&soak_shared->steps, __ATOMIC_SEQ_CST);
	s->stuck += steps == s->last_steps;
	work_say("quiet %u: nr_exec_mapped %llu counted %llu, nr_lazyfree %llu counted %llu, "
		 "%llu wrong Pss_Exec, %llu processes, %llu steps, %llu executed, %llu kills, "
		 "%llu ms",
		 s->rounds, (unsigned long long)now.exec, (unsigned long long)now.counted.exec,
		 (unsigned long long)now.lazyfree, (unsigned long long)now.counted.lazyfree,
		 (unsigned long long)now.counted.pss_wrong,
		 (unsigned long long)now.counted.processes,
		 (unsigned long long)(steps - s->last_steps),
		 (unsigned long long)soak_shared->executed, (unsigned long long)s->sum.kills,
		 (unsigned long long)(work_now_usec() - started) / 1000);
	s->last_steps = steps;
	soak_shared->processes = count_group(s->group);
	kill(-s->group, SIGCONT);
}

static void end_all(struct soak *s)
{
	uint64_t until = work_now_usec() + PATIENCE_USEC;

	kill(-s->group, SIGKILL);
	for (uint32_t i = 0; i < N_CAGES; i++)
		if (s->cages[i].pid)
			cage_end(&s->cages[i], i, &s->sum);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
	while (kill(-s->group, 0) == 0) {
		if (work_now_usec() > until)
			work_die("not ok soak - some processes do not end");
		usleep(10000);
	}
	for (size_t i = 0; i < N_LEVERS; i++)
		gauges_write(levers[i].path, levers[i].strong);
}

static bool report(const struct soak *s, const struct gauges_seen *start,
		   const struct gauges_seen *end)
{
	const struct acts_sum *sum = &s->sum;
	bool good = true;

	good &= gauges_check(s->exec_wrong == 0, "soak-nr_exec_mapped-is-exact",
			     "wrong in %u of %u quiet points, up to %llu pages", s->exec_wrong,
			     s->rounds, (unsigned long long)s->most_exec);
	good &= gauges_check(s->lazyfree_wrong == 0, "soak-nr_lazyfree-is-exact",
			     "wrong in %u of %u quiet points, up to %llu pages", s->lazyfree_wrong,
			     s->rounds, (unsigned long long)s->most_lazyfree);
	good &= gauges_check(s->rollup_wrong == 0, "soak-Pss_Exec-is-exact",
			     "wrong in %u of %u quiet points", s->rollup_wrong, s->rounds);
	good &= gauges_check(end->exec == start->exec && end->lazyfree == start->lazyfree,
			     "soak-gauges-are-back-when-all-have-exited",
			     "exec %llu to %llu, lazyfree %llu to %llu",
			     (unsigned long long)start->exec, (unsigned long long)end->exec,
			     (unsigned long long)start->lazyfree,
			     (unsigned long long)end->lazyfree);
	good &= gauges_check(s->stuck == 0, "soak-goes-on",
			     "%u of %u times nothing was done, %llu steps, %llu pages executed",
			     s->stuck, s->rounds, (unsigned long long)soak_shared->steps,
			     (unsigned long long)soak_shared->executed);
	good &= gauges_check(
		sum->text_stuck == 0, "soak-text-in-a-small-cgroup-makes-progress",
		"%llu of %llu stuck, %llu pages executed at least, %llu killed",
		(unsigned long long)sum->text_stuck, (unsigned long long)sum->text_cages,
		(unsigned long long)sum->text_least, (unsigned long long)sum->text_kills);
	good &= gauges_check(soak_shared->faults == 0, "soak-pages-keep-what-was-written",
			     "%llu faults, %llu processes killed for want of memory in the guest, "
			     "%llu in %llu cgroups",
			     (unsigned long long)soak_shared->faults,
			     (unsigned long long)sum->kills, (unsigned long long)sum->cage_kills,
			     (unsigned long long)sum->cages);
	return good;
}

static void say_load(const struct vmstat *before)
{
	static const char keys[] =
		"pgfault pgmajfault pswpin pswpout pgprefault_anon pglazyfree pglazyfreed "
		"pglazyfree_swap pgrotate_exec pgsteal_exec pgrefault_exec pgmigrate_success "
		"compact_isolated thp_fault_alloc thp_collapse_alloc thp_split_page "
		"balloon_inflate "
		"balloon_deflate oom_kill";
	struct vmstat after;
	char text[450];

	vmstat_read(&after);
	work_say("soak%s", vmstat_text(before, &after, keys, text, sizeof(text)));
}

static void prepare(struct soak *s, const char *folder)
{
	snprintf(s->settle_file, sizeof(s->settle_file), "%s/settle", folder);
	acts_prepare(folder);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	gauges_set("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	gauges_set("/proc/self/oom_score_adj", "-1000");
	s->sum.text_least = UINT64_MAX;
	for (size_t i = 0; i < N_LEVERS; i++)
		gauges_set(levers[i].path, levers[i].strong);
}

int main(int argc, char **argv)
{
	struct work_option options[N_OPTIONS] = {
		[SEED] = { "--seed", 1 },
		[SECONDS] = { "--seconds", 60 },
		[WORKERS] = { "--workers", 4 },
		[LINGER] = { "--linger", 0 },
	};
	static struct soak soak;
	static struct vmstat before;
	struct gauges_seen start, end;
	const char *folder = NULL;
	uint64_t until;
	bool good;

	work_options(argc, argv, options, N_OPTIONS, &folder);
	if (options[LINGER].value > 0) {
		usleep((useconds_t)options[LINGER].value * 1000);
		return 0;
	}
	if (!folder || options[WORKERS].value > MAX_WORKERS)
		work_die("soak: which folder, and at most %d workers", MAX_WORKERS);
	soak.me.random = options[SEED].value * 7919 + 1;
	prepare(&soak, folder);
	vmstat_read(&before);
	gauges_look(soak.settle_file, &start);
	until = work_now_usec() + options[SECONDS].value * 1000000;
	soak.group = start_worker(&soak, true);
	soak.n_workers = (uint32_t)options[WORKERS].value;
	for (uint32_t i = 0; i < soak.n_workers; i++)
		soak.workers[i] = start_worker(&soak, false);
	while (work_now_usec() < until) {
		watch(&soak, work_now_usec() + QUIET_SECONDS * UINT64_C(1000000));
		quiet_point(&soak);
	}
	end_all(&soak);
	gauges_look(soak.settle_file, &end);
	good = report(&soak, &start, &end);
	say_load(&before);
	return good ? 0 : 1;
}
