// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * status-server DIR [system] [short] [empty] [undecided]: serves the status of a fake host on
 * DIR/bus, until its standard input ends. It prints "ready" once it does, and what it was told of
 * the system bus.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tests/unit/fake-view.h"

static int on_stdin(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	char byte;

	(void)revents;
	(void)userdata;
	if (read(fd, &byte, 1) <= 0)
		return sd_event_exit(sd_event_source_get_event(source), 0);
	return 0;
}

static int reload(void *userdata, char *problem, size_t size)
{
	(void)userdata;
	(void)snprintf(problem, size, "ballast.yaml:3:1: host.moed: unknown key");
	return -EINVAL;
}

static void notice(void *userdata, const char *text)
{
	(void)userdata;
	puts(text);
	(void)fflush(stdout);
}

int main(int argc, char **argv)
{
	struct bus_config config = { .reload = reload, .notice = notice };
	sd_event *event = NULL;
	struct bus *bus = NULL;
	struct fake fake;
	int r;

	if (argc < 2)
		return 2;
	config.runtime_dir = argv[1];
	fake_init(&fake);
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "system") == 0)
			config.system_bus = true;
		else if (strcmp(argv[i], "short") == 0)
			fake.plan.shortfall = 200 * FAKE_MIB;
		else if (strcmp(argv[i], "empty") == 0)
			fake.snapshot.n_guests = 0;
		else if (strcmp(argv[i], "undecided") == 0)
			fake.view.plan = NULL;
	}
	r = sd_event_new(&event);
	if (r >= 0)
		r = sd_event_add_io(event, NULL, STDIN_FILENO, EPOLLIN, on_stdin, NULL);
	if (r >= 0)
		r = bus_new(&bus, event, &config, &fake.view);
	if (r >= 0) {
		puts("ready");
		(void)fflush(stdout);
		r = sd_event_loop(event);
	}
	if (r < 0)
		fprintf(stderr, "status-server: %s\n", strerror(-r));
	bus_free(bus);
	sd_event_unref(event);
	fake_done(&fake);
	return r < 0;
}
