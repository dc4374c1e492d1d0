/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * watch: what a run in the lab was like, as seen from outside of the daemon. Every 250 ms it writes
 * one line of JSON: what each guest's QEMU costs (its RAM mapping in smaps, and the sums of
 * /proc/PID/status), its balloon as libvirt has it, what ballastctl says, and what ballastd itself
 * costs. The lines of the guests' workloads are added as they come, and marks that the script sets.
 * On a terminal it shows the same as a table that is redrawn in place.
 *
 *	watch --record FILE --lab DIR --ballastctl "COMMAND" [--pid-file FILE] [--table] GUEST...
 *	watch --mark FILE NAME [KEY=NUMBER]...
 *	watch --explain FILE GUEST <JSON	add what `ballastctl explain GUEST --json` says
 *
 * --lab is a folder with log/GUEST.work, what the workload said, and phase, a line to show.
 */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lab/table.h"

#define PERIOD_NS  250000000L
#define GUESTS_MAX 16

struct guest {
	const char *name;
	FILE *work;
	char line[1024]; /* the end of the workload's output, until it is a whole line */
	size_t line_len;
};

struct watch {
	struct guest guests[GUESTS_MAX];
	size_t n_guests;
	const char *record_path, *lab, *ballastctl, *pid_file;
	int record_fd;
	bool table, is_tty;
	virConnectPtr libvirt;
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static double now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void put_bytes(struct json_object *object, const char *key, uint64_t bytes)
{
	json_object_object_add(object, key, json_object_new_uint64(bytes));
}

static void put_time(struct json_object *line)
{
	json_object_object_add(line, "t", json_object_new_double(now(CLOCK_MONOTONIC)));
	json_object_object_add(line, "rt", json_object_new_double(now(CLOCK_REALTIME)));
}

static struct json_object *new_line(void)
{
	struct json_object *line = json_object_new_object();

	put_time(line);
	return line;
}

/* One write a line: other processes append to the same file. */
static int append_line(int fd, struct json_object *line)
{
	const char *text = json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN);
	size_t len = strlen(text);
	char *copy = malloc(len + 1);
	ssize_t n;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, len);
	copy[len] = '\n';
	n = write(fd, copy, len + 1);
	free(copy);
	if (n == (ssize_t)len + 1)
		return 0;
	return n < 0 ? -errno : -ENOSPC;
}

/* A number in kB of a file like /proc/PID/status. */
static uint64_t status_bytes(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) * 1024 : 0;
}

static bool read_text(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;

	buf[0] = '\0';
	if (fd < 0)
		return false;
	while (len + 1 < size && (n = read(fd, buf + len, size - 1 - len)) > 0)
		len += (size_t)n;
	buf[len] = '\0';
	close(fd);
	return len > 0;
}

/* Resident and swapped bytes of the one mapping that is the guest's RAM. */
static uint64_t ram_bytes(int pid, uint64_t size)
{
	char path[64], line[256];
	uint64_t sum = 0;
	bool is_ram = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/smaps", pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, "Size:", 5) == 0) {
			uint64_t of = strtoull(line + 5, NULL, 10) * 1024;

			/* The kernel may have joined a small neighbour to it. */
			is_ram = of >= size && of < size + size / 8;
		} else if (is_ram && strncmp(line, "Rss:", 4) == 0) {
			sum += strtoull(line + 4, NULL, 10) * 1024;
		} else if (is_ram && strncmp(line, "Swap:", 5) == 0) {
			sum += strtoull(line + 5, NULL, 10) * 1024;
		}
	}
	fclose(file);
	return sum;
}

/* Seconds of CPU time of a process. */
static double cpu_seconds(int pid)
{
	unsigned long user = 0, system = 0;
	char path[64], text[1024], *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (!read_text(path, text, sizeof(text)))
		return 0;
	at = strrchr(text, ')');
	if (!at || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
			  &system) != 2)
		return 0;
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static void put_process(struct json_object *object, int pid)
{
	char path[64], text[4096];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (!read_text(path, text, sizeof(text)))
		return;
	json_object_object_add(object, "pid", json_object_new_int(pid));
	put_bytes(object, "rss_anon", status_bytes(text, "RssAnon:"));
	put_bytes(object, "resident",
		  status_bytes(text, "RssAnon:") + status_bytes(text, "RssShmem:") +
			  status_bytes(text, "VmSwap:"));
	json_object_object_add(object, "cpu", json_object_new_double(cpu_seconds(pid)));
}

static int pid_from(const char *path)
{
	char text[32];

	return read_text(path, text, sizeof(text)) ? atoi(text) : 0;
}

static void put_balloon(struct watch *watch, const char *name, struct json_object *object,
			uint64_t *ret_maximum)
{
	virDomainMemoryStatStruct stats[VIR_DOMAIN_MEMORY_STAT_NR];
	virDomainPtr domain = virDomainLookupByName(watch->libvirt, name);
	double at;
	int n;

	*ret_maximum = 0;
	if (!domain)
		return;
	*ret_maximum = (uint64_t)virDomainGetMaxMemory(domain) * 1024;
	put_bytes(object, "maximum", *ret_maximum);
	n = virDomainMemoryStats(domain, stats, VIR_DOMAIN_MEMORY_STAT_NR, 0);
	at = now(CLOCK_MONOTONIC);
	for (int i = 0; i < n; i++) {
		if (stats[i].tag != VIR_DOMAIN_MEMORY_STAT_ACTUAL_BALLOON)
			continue;
		/* Of its own, since what the sample reads after it may take long. */
		json_object_object_add(object, "actual_at", json_object_new_double(at));
		put_bytes(object, "actual", stats[i].val * 1024);
	}
	virDomainFree(domain);
}

static struct json_object *sample_guest(struct watch *watch, const char *name)
{
	struct json_object *object = json_object_new_object();
	uint64_t maximum;
	char path[256];
	int pid;

	snprintf(path, sizeof(path), "/run/libvirt/qemu/%s.pid", name);
	pid = pid_from(path);
	if (pid)
		put_process(object, pid);
	put_balloon(watch, name, object, &maximum);
	if (pid && maximum)
		put_bytes(object, "ram", ram_bytes(pid, maximum));
	return object;
}

/* What ballastctl says, or NULL while no daemon answers. */
static struct json_object *sample_ballast(struct watch *watch)
{
	struct json_object *status = NULL;
	FILE *pipe = popen(watch->ballastctl, "re");
	struct json_tokener *tokener;
	char buf[65536];
	size_t n;

	if (!pipe)
		return NULL;
	tokener = json_tokener_new();
	while ((n = fread(buf, 1, sizeof(buf), pipe)) > 0)
		if (!status)
			status = json_tokener_parse_ex(tokener, buf, (int)n);
	json_tokener_free(tokener);
	pclose(pipe);
	return status;
}

/* Put each guest of the status beside what was measured of it. */
static void merge_status(struct json_object *guests, struct json_object *status)
{
	struct json_object *list, *name, *ours;

	if (!json_object_object_get_ex(status, "guests", &list) ||
	    json_object_get_type(list) != json_type_array)
		return;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *guest = json_object_array_get_idx(list, i);

		if (json_object_object_get_ex(guest, "name", &name) &&
		    json_object_object_get_ex(guests, json_object_get_string(name), &ours))
			json_object_object_add(ours, "ballast", json_object_get(guest));
	}
}

static struct json_object *sample(struct watch *watch)
{
	struct json_object *line = new_line(), *guests = json_object_new_object();
	struct json_object *daemon = json_object_new_object(), *status;

	for (size_t i = 0; i < watch->n_guests; i++)
		json_object_object_add(guests, watch->guests[i].name,
				       sample_guest(watch, watch->guests[i].name));
	json_object_object_add(line, "guests", guests);
	if (watch->pid_file && pid_from(watch->pid_file))
		put_process(daemon, pid_from(watch->pid_file));
	json_object_object_add(line, "daemon", daemon);
	status = watch->ballastctl ? sample_ballast(watch) : NULL;
	if (status) {
		merge_status(guests, status);
		json_object_object_del(status, "guests");
		json_object_object_add(line, "host", status);
	}
	/* Of when all was seen: what is said to be in time was. */
	put_time(line);
	return line;
}

/* "exec round=3 cpu_us=17": the numbers of a round. */
static void record_work(struct watch *watch, const struct guest *guest, char *text)
{
	struct json_object *line, *work;
	char *save = NULL, *word = strtok_r(text, " ", &save);

	if (!word || word[0] == '@' || strcmp(word, "init:") == 0)
		return;
	line = new_line();
	work = json_object_new_object();
	json_object_object_add(line, "guest", json_object_new_string(guest->name));
	json_object_object_add(work, "kind", json_object_new_string(word));
	while ((word = strtok_r(NULL, " ", &save))) {
		char *value = strchr(word, '=');

		if (!value)
			continue;
		*value++ = '\0';
		json_object_object_add(work, word, json_object_new_int64(atoll(value)));
	}
	json_object_object_add(line, "work", work);
	append_line(watch->record_fd, line);
	json_object_put(line);
}

static void follow_work(struct watch *watch, struct guest *guest)
{
	char path[256];
	int c;

	if (!guest->work) {
		snprintf(path, sizeof(path), "%s/log/%s.work", watch->lab, guest->name);
		guest->work = fopen(path, "re");
		if (!guest->work)
			return;
	}
	clearerr(guest->work);
	while ((c = getc(guest->work)) != EOF) {
		if (c == '\n') {
			guest->line[guest->line_len] = '\0';
			guest->line_len = 0;
			record_work(watch, guest, guest->line);
		} else if (guest->line_len + 1 < sizeof(guest->line)) {
			guest->line[guest->line_len++] = (char)c;
		}
	}
}

static void show(struct watch *watch, struct json_object *line, unsigned int tick)
{
	char path[256], phase[160];

	if (!watch->table || tick % (watch->is_tty ? 2 : 20) != 0)
		return;
	snprintf(path, sizeof(path), "%s/phase", watch->lab);
	if (!read_text(path, phase, sizeof(phase)))
		phase[0] = '\0';
	phase[strcspn(phase, "\n")] = '\0';
	table_draw(line, phase, watch->is_tty);
}

static int run(struct watch *watch)
{
	struct timespec next;
	int r;

	clock_gettime(CLOCK_MONOTONIC, &next);
	for (unsigned int tick = 0; !stop; tick++) {
		struct json_object *line = sample(watch);

		r = append_line(watch->record_fd, line);
		if (r < 0) {
			fprintf(stderr, "watch: %s: %s\n", watch->record_path, strerror(-r));
			json_object_put(line);
			return 1;
		}
		for (size_t i = 0; i < watch->n_guests; i++)
			follow_work(watch, &watch->guests[i]);
		show(watch, line, tick);
		json_object_put(line);
		next.tv_nsec += PERIOD_NS;
		if (next.tv_nsec >= 1000000000L) {
			next.tv_nsec -= 1000000000L;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	return 0;
}

static int append_to(const char *path, struct json_object *line)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644), r;

	r = fd < 0 ? -errno : append_line(fd, line);
	if (r < 0)
		fprintf(stderr, "watch: %s: %s\n", path, strerror(-r));
	if (fd >= 0)
		close(fd);
	json_object_put(line);
	return r < 0;
}

static int mark(int argc, char **argv)
{
	struct json_object *line = new_line();

	json_object_object_add(line, "mark", json_object_new_string(argv[1]));
	for (int i = 2; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (!value)
			continue;
		*value++ = '\0';
		json_object_object_add(line, argv[i], json_object_new_double(atof(value)));
	}
	return append_to(argv[0], line);
}

static int explain(const char *path, const char *guest)
{
	struct json_object *line = new_line(), *explained = json_object_from_fd(STDIN_FILENO);

	if (!explained) {
		fprintf(stderr, "watch: what explains %s is no JSON\n", guest);
		json_object_put(line);
		return 1;
	}
	json_object_object_add(line, "guest", json_object_new_string(guest));
	json_object_object_add(line, "explain", explained);
	return append_to(path, line);
}

static bool parse(struct watch *watch, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(argv[i], "--table") == 0) {
			watch->table = true;
		} else if (argv[i][0] != '-') {
			if (watch->n_guests == GUESTS_MAX)
				return false;
			watch->guests[watch->n_guests++].name = argv[i];
		} else if (!value) {
			return false;
		} else if (strcmp(argv[i], "--record") == 0) {
			watch->record_path = argv[++i];
		} else if (strcmp(argv[i], "--lab") == 0) {
			watch->lab = argv[++i];
		} else if (strcmp(argv[i], "--ballastctl") == 0) {
			watch->ballastctl = argv[++i];
		} else if (strcmp(argv[i], "--pid-file") == 0) {
			watch->pid_file = argv[++i];
		} else {
			return false;
		}
	}
	return watch->record_path && watch->lab && watch->n_guests > 0;
}

static void ignore_libvirt_error(void *userdata, virErrorPtr error)
{
	(void)userdata;
	(void)error;
}

int main(int argc, char **argv)
{
	struct watch watch = { .is_tty = isatty(STDOUT_FILENO) };
	int r;

	if (argc >= 4 && strcmp(argv[1], "--mark") == 0)
		return mark(argc - 2, argv + 2);
	if (argc == 4 && strcmp(argv[1], "--explain") == 0)
		return explain(argv[2], argv[3]);
	if (!parse(&watch, argc, argv)) {
		fprintf(stderr, "usage: watch --record FILE --lab DIR [--ballastctl COMMAND] "
				"[--pid-file FILE] [--table] GUEST...\n");
		return 2;
	}
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	watch.record_fd = open(watch.record_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (watch.record_fd < 0) {
		fprintf(stderr, "watch: %s: %s\n", watch.record_path, strerror(errno));
		return 1;
	}
	virSetErrorFunc(NULL, ignore_libvirt_error);
	watch.libvirt = virConnectOpen(NULL);
	if (!watch.libvirt) {
		fprintf(stderr, "watch: no libvirt: %s\n", virGetLastErrorMessage());
		return 1;
	}
	r = run(&watch);
	virConnectClose(watch.libvirt);
	close(watch.record_fd);
	return r;
}
