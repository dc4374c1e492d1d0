/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bus as clients see it: a thread serves a fake host on a socket in a folder of its own, and
 * the tests connect to it. A byte written to the thread has it do something meanwhile. One server
 * a program.
 */
#ifndef BALLAST_TESTS_UNIT_BUS_SERVER_H
#define BALLAST_TESTS_UNIT_BUS_SERVER_H

#include "daemon/ipc/bus.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "tests/unit/fake-view.h"
#include "tests/unit/harness.h"

#define TIMEOUT_US (5 * FAKE_SEC)
#define NOBODY	   65534

static struct fake fake;
static char folder[64];
static struct sockaddr_un address;
static pthread_t server;
static int orders[2]; /* to the thread: 'd' emits a decision; closed: it ends */
static int answers[2]; /* from the thread: a byte when it serves, and after each order */
static int reloads;

static inline int reload(void *userdata, char *problem, size_t size)
{
	(void)userdata;
	reloads++;
	if (reloads % 2)
		return 0;
	(void)snprintf(problem, size, "ballast.yaml:3:1: host.moed: unknown key");
	return -EINVAL;
}

struct serving {
	sd_event *event;
	struct bus *bus;
};

static inline int on_order(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct serving *serving = userdata;
	char order;

	(void)source;
	(void)revents;
	if (read(fd, &order, 1) != 1)
		return sd_event_exit(serving->event, 0);
	bus_emit_decision(serving->bus, &fake.guests[FAKE_WEB],
			  history_get(fake.history, FAKE_WEB, 1));
	return write(answers[1], "d", 1) == 1 ? 0 : -EIO;
}

static inline void *serve(void *arg)
{
	const struct bus_config config = { .runtime_dir = folder, .reload = reload };
	struct serving serving = { 0 };
	char status = 'n';

	(void)arg;
	if (sd_event_new(&serving.event) >= 0 &&
	    sd_event_add_io(serving.event, NULL, orders[0], EPOLLIN, on_order, &serving) >= 0 &&
	    bus_new(&serving.bus, serving.event, &config, &fake.view) >= 0)
		status = 'y';
	if (write(answers[1], &status, 1) == 1 && status == 'y')
		(void)sd_event_loop(serving.event);
	bus_free(serving.bus);
	sd_event_unref(serving.event);
	return NULL;
}

static inline void await(char expected)
{
	char byte = 0;

	CU_ASSERT_EQUAL_FATAL(read(answers[0], &byte, 1), 1);
	CU_ASSERT_EQUAL_FATAL(byte, expected);
}

static inline void start(void)
{
	fake_init(&fake);
	reloads = 0;
	strcpy(folder, "/tmp/test-bus-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	CU_ASSERT_EQUAL_FATAL(bus_address(folder, &address), 0);
	CU_ASSERT_EQUAL_FATAL(pipe2(orders, O_CLOEXEC), 0);
	CU_ASSERT_EQUAL_FATAL(pipe2(answers, O_CLOEXEC), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&server, NULL, serve, NULL), 0);
	await('y');
}

static inline void stop(void)
{
	(void)close(orders[1]);
	(void)pthread_join(server, NULL);
	(void)close(orders[0]);
	(void)close(answers[0]);
	(void)close(answers[1]);
	CU_ASSERT_EQUAL(access(address.sun_path, F_OK), -1);
	CU_ASSERT_EQUAL(rmdir(folder), 0);
	fake_done(&fake);
}

static inline int connect_raw(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL_FATAL(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static inline sd_bus *connect_client(void)
{
	int fd = connect_raw();
	sd_bus *client = NULL;

	CU_ASSERT_FATAL(sd_bus_new(&client) >= 0);
	CU_ASSERT_FATAL(sd_bus_set_fd(client, fd, fd) >= 0);
	CU_ASSERT_FATAL(sd_bus_start(client) >= 0);
	return client;
}

static inline int call(sd_bus *client, const char *method, const char *guest, sd_bus_error *error,
		       sd_bus_message **ret_answer)
{
	sd_bus_message *m = NULL;
	int r;

	CU_ASSERT_FATAL(sd_bus_message_new_method_call(client, &m, NULL, BUS_PATH, BUS_INTERFACE,
						       method) >= 0);
	if (guest)
		CU_ASSERT_FATAL(sd_bus_message_append(m, "s", guest) >= 0);
	r = sd_bus_call(client, m, TIMEOUT_US, error, ret_answer);
	sd_bus_message_unref(m);
	return r;
}

/* The text or number at @key of the a{sv} that comes next; the message goes behind it. */
static const char *take_text(sd_bus_message *m, const char *wanted)
{
	const char *found = NULL, *key, *contents;
	int r;

	CU_ASSERT_FATAL(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
	while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
		CU_ASSERT_FATAL(sd_bus_message_read(m, "s", &key) > 0);
		CU_ASSERT_FATAL(sd_bus_message_peek_type(m, NULL, &contents) > 0);
		if (strcmp(key, wanted) == 0 && strcmp(contents, "s") == 0)
			r = sd_bus_message_read(m, "v", "s", &found);
		else
			r = sd_bus_message_skip(m, "v");
		CU_ASSERT_FATAL(r > 0);
		CU_ASSERT_FATAL(sd_bus_message_exit_container(m) >= 0);
	}
	CU_ASSERT_FATAL(sd_bus_message_exit_container(m) >= 0);
	return found ? found : "";
}

static inline size_t count_dicts(sd_bus_message *m)
{
	size_t n = 0;

	CU_ASSERT_FATAL(sd_bus_message_enter_container(m, 'a', "a{sv}") > 0);
	while (sd_bus_message_at_end(m, 0) == 0) {
		CU_ASSERT_FATAL(sd_bus_message_skip(m, "a{sv}") > 0);
		n++;
	}
	CU_ASSERT_FATAL(sd_bus_message_exit_container(m) >= 0);
	return n;
}

static inline bool answers_at_all(sd_bus *client)
{
	sd_bus_message *m = NULL;
	int r = call(client, "ListGuests", NULL, NULL, &m);

	sd_bus_message_unref(m);
	return r >= 0;
}

#endif
