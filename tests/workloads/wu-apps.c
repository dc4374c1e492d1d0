/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A desktop whose memory is tight, as in Wu Fengguang's test of 2009: programs with large text and
 * anonymous memory are started one after another, and after each start all that run are visited, as
 * one who switches between windows does. A start goes through every page of the program's own text
 * and fills its memory; a visit comes back to a part of both, the same one each time, in random
 * order. Text is read through its executable mapping (exec-rounds.c says why it isn't called).
 *
 *	wu-apps [--apps N] [--text MIB] [--anon MIB] [--hot PERCENT] [--pause MS] [--seed N] [FOLDER]
 *
 * Prints for each start a line "wu-start-N ..." with the milliseconds that had passed after it and its
 * visits, and the major faults of all, and "wu-apps ..." at the end. Pauses don't count.
 */
#include <sys/wait.h>

#include "tests/workloads/text.h"
#include "tests/workloads/vmstat.h"

enum { APPS, TEXT, ANON, HOT, PAUSE, SEED, N_OPTIONS };

#define APPS_MAX 64

/* A part of an app's memory: pages that a visit touches, in an order of its own each time. */
struct part {
	unsigned char *start;
	uint32_t pages, hot;
	uint32_t *chosen; /* all pages, the hot ones first */
	uint32_t *order; /* of the hot ones */
};

struct app {
	struct part text, anon;
	uint64_t random, visits, wrong;
};

/* How the desktop speaks to an app: a byte there is a visit, the answer is what was wrong. */
struct window {
	int to, from;
};

static void path_of(const char *folder, uint64_t app, char *ret, size_t size)
{
	snprintf(ret, size, "%s/app-%02llu", folder, (unsigned long long)app);
}

static void part_init(struct part *part, uint32_t pages, uint64_t hot_percent, uint64_t *random)
{
	part->pages = pages;
	part->hot = (uint32_t)(pages * hot_percent / 100);
	part->chosen = (uint32_t *)(void *)work_map(pages * sizeof(uint32_t));
	part->order = (uint32_t *)(void *)work_map(pages * sizeof(uint32_t));
	work_shuffle(part->chosen, pages, random);
}

/* Each anonymous page ends with the number of the visit that wrote it last. */
static void visit_anon_page(struct app *app, uint32_t page, uint64_t expected)
{
	unsigned char *end = app->anon.start + ((size_t)page + 1) * WORK_PAGE;
	uint64_t last;

	memcpy(&last, end - sizeof(last), sizeof(last));
	app->wrong += last != expected;
	memcpy(end - sizeof(last), &app->visits, sizeof(last));
}

static void visit_text_page(struct app *app, uint32_t page)
{
	app->wrong += text_read(app->text.start, page) != text_answer(page);
}

static void app_start(struct app *app, const char *path, const struct work_option *options)
{
	uint64_t text = options[TEXT].value * WORK_MIB, anon = options[ANON].value * WORK_MIB;

	app->text.start = text_map(path, text, PROT_READ | PROT_EXEC);
	part_init(&app->text, (uint32_t)(text / WORK_PAGE), options[HOT].value, &app->random);
	part_init(&app->anon, (uint32_t)(anon / WORK_PAGE), options[HOT].value, &app->random);
	for (uint32_t i = 0; i < app->text.pages; i++)
		visit_text_page(app, app->text.chosen[i]);
	app->anon.start = work_map(anon);
	for (uint32_t i = 0; i < app->anon.pages; i++) {
		unsigned char *page = app->anon.start + (size_t)i * WORK_PAGE;

		work_fill_page(page, app->random + i);
		memset(page + WORK_PAGE - sizeof(app->visits), 0, sizeof(app->visits));
	}
}

static void app_visit(struct app *app)
{
	uint64_t last = app->visits++;

	work_shuffle(app->text.order, app->text.hot, &app->random);
	work_shuffle(app->anon.order, app->anon.hot, &app->random);
	for (uint32_t i = 0; i < app->text.hot; i++)
		visit_text_page(app, app->text.chosen[app->text.order[i]]);
	for (uint32_t i = 0; i < app->anon.hot; i++)
		visit_anon_page(app, app->anon.chosen[app->anon.order[i]], last);
}

/* The answer to the start and to each visit is the number of pages that were wrong so far. */
static void app_run(const char *path, uint64_t number, struct window window,
		    const struct work_option *options)
{
	struct app app = { .random = options[SEED].value * 1000 + number + 1 };
	char byte;

	app_start(&app, path, options);
	do {
		if (write(window.to, &app.wrong, sizeof(app.wrong)) != sizeof(app.wrong))
			return;
		if (read(window.from, &byte, 1) != 1)
			return;
		app_visit(&app);
	} while (true);
}

static uint64_t answer_of(const struct window *window)
{
	uint64_t wrong;

	if (read(window->from, &wrong, sizeof(wrong)) != sizeof(wrong))
		work_die("an app of wu-apps was killed");
	return wrong;
}

static struct window start_app(const char *folder, uint64_t number,
			       const struct work_option *options)
{
	int to_app[2], from_app[2];
	char path[300];
	pid_t pid;

	path_of(folder, number, path, sizeof(path));
	if (pipe2(to_app, O_CLOEXEC) < 0 || pipe2(from_app, O_CLOEXEC) < 0)
		work_die("no pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		work_die("fork: %s", strerror(errno));
	if (pid == 0) {
		close(to_app[1]);
		close(from_app[0]);
		app_run(path, number, (struct window){ .to = from_app[1], .from = to_app[0] },
			options);
		_exit(0);
	}
	close(to_app[0]);
	close(from_app[1]);
	return (struct window){ .to = to_app[1], .from = from_app[0] };
}

static uint64_t visit_all(const struct window *windows, uint64_t n)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < n; i++) {
		if (write(windows[i].to, "v", 1) != 1)
			work_die("an app of wu-apps was killed");
		wrong += answer_of(&windows[i]);
	}
	return wrong;
}

/* What was written is not what was run: begin with neither text nor other page cache in memory. */
static void drop_caches(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "3", 1) != 1)
		work_die("/proc/sys/vm/drop_caches: %s", strerror(errno));
	close(fd);
}

static void say_result(const struct work_option *options, uint64_t usec, uint64_t wrong,
		       const struct vmstat *before, const struct vmstat *after)
{
	static const char keys[] = "majflt=pgmajfault majflt_exec=pgmajfault_exec pswpin pswpout "
				   "pgpgin pgpgout nr_vmscan_write refault=workingset_refault_file "
				   "pgsteal_file pgsteal_exec pgsteal_anon pgrotate_exec oom_kill";
	char changes[400], gauges[60];

	work_say("wu-apps apps=%llu ms=%llu wrong=%llu%s%s",
		 (unsigned long long)options[APPS].value, (unsigned long long)usec / 1000,
		 (unsigned long long)wrong,
		 vmstat_text(before, after, keys, changes, sizeof(changes)),
		 vmstat_text(NULL, after, "nr_mapped", gauges, sizeof(gauges)));
}

int main(int argc, char **argv)
{
	struct work_option options[N_OPTIONS] = {
		[APPS] = { "--apps", 14 }, [TEXT] = { "--text", 6 },   [ANON] = { "--anon", 8 },
		[HOT] = { "--hot", 50 },   [PAUSE] = { "--pause", 0 }, [SEED] = { "--seed", 1 },
	};
	static struct vmstat before, after;
	static struct window windows[APPS_MAX];
	uint64_t usec = 0, wrong = 0;
	const char *folder = "/data";
	char path[300];

	work_options(argc, argv, options, N_OPTIONS, &folder);
	if (options[APPS].value > APPS_MAX || options[HOT].value > 100)
		work_die("wu-apps: at most %d apps and 100 percent", APPS_MAX);
	for (uint64_t i = 0; i < options[APPS].value; i++) {
		path_of(folder, i, path, sizeof(path));
		text_generate(path, options[TEXT].value * WORK_MIB);
	}
	sync();
	drop_caches();
	vmstat_read(&before);
	for (uint64_t i = 0; i < options[APPS].value; i++) {
		uint64_t from = work_now_usec();

		windows[i] = start_app(folder, i, options);
		answer_of(&windows[i]);
		wrong = visit_all(windows, i + 1);
		usec += work_now_usec() - from;
		vmstat_read(&after);
		work_say("wu-start-%llu ms=%llu majflt=%lld", (unsigned long long)i + 1,
			 (unsigned long long)usec / 1000,
			 (long long)vmstat_diff(&before, &after, "pgmajfault"));
		work_sleep_until(work_now_usec() + options[PAUSE].value * 1000);
	}
	say_result(options, usec, wrong, &before, &after);
	return 0;
}
