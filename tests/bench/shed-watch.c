// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a host sees of a guest that gives memory back: the anonymous memory of its QEMU, from the
 * moment when the guest says that it begins.
 *
 *	shed-watch --pid FILE --out FILE --seconds N [--qmp SOCKET --balloon BYTES]
 *
 * Waits for a line "mark" in the guest's output, sends the balloon's size to QEMU where one is given,
 * samples every 5 ms for N seconds, and prints one line: MB (10^6 bytes) that the guest had, that
 * came back within some times and in all, and the milliseconds until the first MB and 90 % of all.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "daemon/util/cleanup.h"

#define SAMPLE_MS    5
#define MARK_SECONDS 900
#define MB	     1e6

struct watch {
	const char *pid_file, *out, *qmp, *balloon;
	long seconds;
	int pid;
	double *samples; /* MB, every SAMPLE_MS or later */
	double *times; /* ms since the mark */
	size_t n, size;
};

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void pause_ms(long ms)
{
	const struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

/* A number behind a word that begins a line of a file; -1 without it. */
static long number_in(const char *path, const char *word)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	char line[512];

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, word, strlen(word)) == 0)
			return strtol(line + strlen(word), NULL, 10);
	return -1;
}

static double held_mb(const struct watch *watch)
{
	char path[64];
	long kib;

	snprintf(path, sizeof(path), "/proc/%d/status", watch->pid);
	kib = number_in(path, "RssAnon:");
	return kib < 0 ? -1 : (double)kib * 1024 / MB;
}

/* The guest's line "mark" must have been written in full. */
static bool wait_mark(struct watch *watch)
{
	const double end = now_ms() + MARK_SECONDS * 1e3;

	while (now_ms() < end) {
		if (number_in(watch->out, "mark\r\n") >= 0 ||
		    number_in(watch->out, "mark\n") >= 0) {
			watch->pid = (int)number_in(watch->pid_file, "");
			return watch->pid > 0;
		}
		pause_ms(SAMPLE_MS);
	}
	return false;
}

static int qmp_connect(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* Send a command and read on until its answer. */
static int qmp_do(int fd, const char *command)
{
	char answer[4096];
	ssize_t n;

	if (command && write(fd, command, strlen(command)) != (ssize_t)strlen(command))
		return -EIO;
	do {
		n = read(fd, answer, sizeof(answer) - 1);
		if (n <= 0)
			return -EIO;
		answer[n] = '\0';
		if (strstr(answer, "\"error\""))
			return -EPROTO;
	} while (!strstr(answer, command ? "\"return\"" : "\"QMP\""));
	return 0;
}

static int set_balloon(const struct watch *watch)
{
	_cleanup_close_ int fd = qmp_connect(watch->qmp);
	char command[128];
	int r;

	if (fd < 0)
		return fd;
	snprintf(command, sizeof(command),
		 "{\"execute\":\"balloon\",\"arguments\":{\"value\":%s}}\n", watch->balloon);
	r = qmp_do(fd, NULL);
	r = r < 0 ? r : qmp_do(fd, "{\"execute\":\"qmp_capabilities\"}\n");
	return r < 0 ? r : qmp_do(fd, command);
}

static int sample(struct watch *watch, double begin)
{
	const double end = begin + (double)watch->seconds * 1e3;

	while (watch->n < watch->size && now_ms() < end) {
		pause_ms(SAMPLE_MS);
		watch->times[watch->n] = now_ms() - begin;
		watch->samples[watch->n] = held_mb(watch);
		if (watch->samples[watch->n] < 0)
			return -ESRCH;
		watch->n++;
	}
	return 0;
}

/* MB that had come back at a time. */
static double back_at(const struct watch *watch, double before, double ms)
{
	double held = before;

	for (size_t i = 0; i < watch->n && watch->times[i] <= ms; i++)
		held = watch->samples[i];
	return before - held;
}

/* When so many MB had come back for the first time. */
static double when(const struct watch *watch, double before, double mb)
{
	size_t i = 0;

	while (i < watch->n && before - watch->samples[i] < mb)
		i++;
	return i < watch->n ? watch->times[i] : (double)watch->seconds * 1e3;
}

static void print(const struct watch *watch, double before)
{
	const double back = before - watch->samples[watch->n - 1];

	printf("host before_mb=%.1f back_mb=%.1f back_500ms_mb=%.1f back_1s_mb=%.1f "
	       "back_3s_mb=%.1f back_10s_mb=%.1f first_ms=%.0f most_ms=%.0f\n",
	       before, back, back_at(watch, before, 500), back_at(watch, before, 1000),
	       back_at(watch, before, 3000), back_at(watch, before, 10000), when(watch, before, 1),
	       when(watch, before, back * 0.9));
}

static int run(struct watch *watch)
{
	double before, begin;
	int r;

	if (!wait_mark(watch)) {
		fprintf(stderr, "shed-watch: the guest never said that it begins\n");
		return 1;
	}
	begin = now_ms();
	before = held_mb(watch);
	r = watch->balloon ? set_balloon(watch) : 0;
	if (r < 0) {
		fprintf(stderr, "shed-watch: %s: %s\n", watch->qmp, strerror(-r));
		return 1;
	}
	r = sample(watch, begin);
	if (r < 0 || watch->n == 0) {
		fprintf(stderr, "shed-watch: the guest's QEMU ended too early\n");
		return 1;
	}
	print(watch, before);
	return fflush(stdout) != 0;
}

static bool parse(struct watch *watch, int argc, char **argv)
{
	static const struct option options[] = { { "pid", required_argument, NULL, 'p' },
						 { "out", required_argument, NULL, 'o' },
						 { "seconds", required_argument, NULL, 's' },
						 { "qmp", required_argument, NULL, 'q' },
						 { "balloon", required_argument, NULL, 'b' },
						 { 0 } };
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
		switch (c) {
		case 'p':
			watch->pid_file = optarg;
			break;
		case 'o':
			watch->out = optarg;
			break;
		case 's':
			watch->seconds = strtol(optarg, NULL, 10);
			break;
		case 'q':
			watch->qmp = optarg;
			break;
		case 'b':
			watch->balloon = optarg;
			break;
		default:
			return false;
		}
	return watch->pid_file && watch->out && watch->seconds > 0 &&
	       !watch->qmp == !watch->balloon;
}

int main(int argc, char **argv)
{
	struct watch watch = { .pid_file = NULL };
	int r;

	if (!parse(&watch, argc, argv)) {
		fprintf(stderr, "usage: shed-watch --pid FILE --out FILE --seconds N "
				"[--qmp SOCKET --balloon BYTES]\n");
		return 2;
	}
	watch.size = (size_t)watch.seconds * 1000 / SAMPLE_MS + 1;
	watch.samples = calloc(watch.size, sizeof(*watch.samples));
	watch.times = calloc(watch.size, sizeof(*watch.times));
	r = watch.samples && watch.times ? run(&watch) : 1;
	free(watch.samples);
	free(watch.times);
	return r;
}
