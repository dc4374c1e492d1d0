/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A desktop whose memory is tight, as in Wu Fengguang's test of 2009: programs with large text and
 * anonymous memory are started one after another, and after each start all that run are visited, as
 * one who switches between windows does. A start calls a function in every page of the program's own
 * text and fills its memory; a visit comes back to a part of both, the same one each time, in random
 * order. Each program is a file of its own that is executed, a copy of this one with functions of
 * its own (app.h), and each function has an answer that it alone gives.
 *
 *	wu-apps [--apps N] [--text MIB] [--anon MIB] [--hot PERCENT] [--pause MS] [--seed N] [FOLDER]
 *
 * Prints for each start a line "wu-start-N ..." with the milliseconds that had passed after it and its
 * visits, the major faults of all, and what was swapped, and "wu-apps ..." at the end. Pauses don't
 * count.
 */
#include <signal.h>
#include <sys/wait.h>

#include "tests/workloads/app.h"
#include "tests/workloads/vmstat.h"

/* APP is what the desktop tells a program: its number, counted from 1. */
enum { APPS, TEXT, ANON, HOT, PAUSE, SEED, APP, N_OPTIONS };

#define APPS_MAX 64

/* A part of an app's memory: pages that a visit touches, in an order of its own each time. */
struct part {
	uint32_t pages, hot;
	uint32_t *chosen; /* all pages, the hot ones first */
	uint32_t *order; /* of the hot ones */
};

struct app {
	struct part text, anon;
	uint32_t first; /* function of its text */
	unsigned char *memory;
	uint64_t random, visits, wrong;
};

/*
 * How the desktop speaks to an app, which has it as its standard input and output: a byte there is a
 * visit, the answer is what was wrong.
 */
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
	unsigned char *end = app->memory + ((size_t)page + 1) * WORK_PAGE;
	uint64_t last;

	memcpy(&last, end - sizeof(last), sizeof(last));
	app->wrong += last != expected;
	memcpy(end - sizeof(last), &app->visits, sizeof(last));
}

static void visit_text_page(struct app *app, uint32_t page)
{
	app->wrong += text_call(app_text(), page) != text_answer(app->first + page);
}

static uint32_t text_pages(const struct work_option *options)
{
	return (uint32_t)(options[TEXT].value * WORK_MIB / WORK_PAGE);
}

/* No function is in the text of two apps. */
static uint32_t first_function(uint64_t number, const struct work_option *options)
{
	return (uint32_t)number * text_pages(options);
}

static void app_start(struct app *app, const struct work_option *options)
{
	uint64_t anon = options[ANON].value * WORK_MIB;

	part_init(&app->text, text_pages(options), options[HOT].value, &app->random);
	part_init(&app->anon, (uint32_t)(anon / WORK_PAGE), options[HOT].value, &app->random);
	for (uint32_t i = 0; i < app->text.pages; i++)
		visit_text_page(app, app->text.chosen[i]);
	app->memory = work_map(anon);
	for (uint32_t i = 0; i < app->anon.pages; i++) {
		unsigned char *page = app->memory + (size_t)i * WORK_PAGE;

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
static int app_main(const struct work_option *options)
{
	struct app app = {
		.first = first_function(options[APP].value, options),
		.random = options[SEED].value * 1000 + options[APP].value,
	};
	char byte;

	app_start(&app, options);
	do {
		if (write(STDOUT_FILENO, &app.wrong, sizeof(app.wrong)) != sizeof(app.wrong))
			return 1;
		if (read(STDIN_FILENO, &byte, 1) != 1)
			return 0;
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

/* Start the program with the options of this one; returns only when it can't. */
static void exec_app(const char *path, uint64_t number, const struct work_option *options)
{
	char values[N_OPTIONS][24], names[N_OPTIONS][24], program[300];
	char *argv[2 * N_OPTIONS + 2];
	size_t n = 0;

	snprintf(program, sizeof(program), "%s", path);
	argv[n++] = program;
	for (size_t i = 0; i < N_OPTIONS; i++) {
		snprintf(names[i], sizeof(names[i]), "%s", options[i].name);
		snprintf(values[i], sizeof(values[i]), "%llu",
			 (unsigned long long)(i == APP ? number : options[i].value));
		argv[n++] = names[i];
		argv[n++] = values[i];
	}
	argv[n] = NULL;
	execv(path, argv);
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
		dup2(to_app[0], STDIN_FILENO);
		dup2(from_app[1], STDOUT_FILENO);
		exec_app(path, number, options);
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		_exit(1);
	}
	close(to_app[0]);
	close(from_app[1]);
	return (struct window){ .to = to_app[1], .from = from_app[0] };
}

/* From 1. */
static void make_apps(const char *folder, const struct work_option *options)
{
	struct app_image image;
	char path[300];

	app_image_read(&image);
	app_image_add_text(&image, options[TEXT].value * WORK_MIB);
	for (uint64_t i = 1; i <= options[APPS].value; i++) {
		path_of(folder, i, path, sizeof(path));
		app_write(&image, path, first_function(i, options), text_pages(options));
	}
	munmap(image.bytes, image.size);
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

/* Start an app and visit all; returns how many pages were wrong so far. */
static uint64_t start_and_visit(const char *folder, struct window *windows, uint64_t number,
				const struct work_option *options)
{
	windows[number - 1] = start_app(folder, number, options);
	answer_of(&windows[number - 1]);
	return visit_all(windows, number);
}

int main(int argc, char **argv)
{
	struct work_option options[N_OPTIONS] = {
		[APPS] = { "--apps", 14 }, [TEXT] = { "--text", 6 },   [ANON] = { "--anon", 8 },
		[HOT] = { "--hot", 50 },   [PAUSE] = { "--pause", 0 }, [SEED] = { "--seed", 1 },
		[APP] = { "--app", 0 },
	};
	static struct vmstat before, after;
	static struct window windows[APPS_MAX];
	uint64_t usec = 0, wrong = 0;
	const char *folder = "/data";
	char changes[200];

	work_options(argc, argv, options, N_OPTIONS, &folder);
	if (options[APP].value > 0)
		return app_main(options);
	if (options[APPS].value > APPS_MAX || options[HOT].value > 100)
		work_die("wu-apps: at most %d apps and 100 percent", APPS_MAX);
	signal(SIGPIPE, SIG_IGN);
	make_apps(folder, options);
	sync();
	drop_caches();
	vmstat_read(&before);
	for (uint64_t i = 1; i <= options[APPS].value; i++) {
		uint64_t from = work_now_usec();

		wrong = start_and_visit(folder, windows, i, options);
		usec += work_now_usec() - from;
		vmstat_read(&after);
		work_say("wu-start-%llu ms=%llu%s", (unsigned long long)i,
			 (unsigned long long)usec / 1000,
			 vmstat_text(&before, &after, "majflt=pgmajfault pswpin pswpout", changes,
				     sizeof(changes)));
		work_sleep_until(work_now_usec() + options[PAUSE].value * 1000);
	}
	say_result(options, usec, wrong, &before, &after);
	return 0;
}
