// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The bus as clients see it: a thread serves a fake host on a socket in a folder of its own, and
 * the tests connect to it. A byte written to the thread has it do something meanwhile.
 */
#include "daemon/ipc/bus.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

static int reload(void *userdata, char *problem, size_t size)
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

static int on_order(sd_event_source *source, int fd, uint32_t revents, void *userdata)
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

static void *serve(void *arg)
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

static void await(char expected)
{
	char byte = 0;

	CU_ASSERT_EQUAL_FATAL(read(answers[0], &byte, 1), 1);
	CU_ASSERT_EQUAL_FATAL(byte, expected);
}

static void start(void)
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

static void stop(void)
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

static int connect_raw(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL_FATAL(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static sd_bus *connect_client(void)
{
	int fd = connect_raw();
	sd_bus *client = NULL;

	CU_ASSERT_FATAL(sd_bus_new(&client) >= 0);
	CU_ASSERT_FATAL(sd_bus_set_fd(client, fd, fd) >= 0);
	CU_ASSERT_FATAL(sd_bus_start(client) >= 0);
	return client;
}

static int call(sd_bus *client, const char *method, const char *guest, sd_bus_error *error,
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

static size_t count_dicts(sd_bus_message *m)
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

static bool answers_at_all(sd_bus *client)
{
	sd_bus_message *m = NULL;
	int r = call(client, "ListGuests", NULL, NULL, &m);

	sd_bus_message_unref(m);
	return r >= 0;
}

static void each_method_answers(void)
{
	sd_bus_message *m = NULL;
	sd_bus *client;

	start();
	client = connect_client();
	CU_ASSERT_FATAL(call(client, "GetStatus", NULL, NULL, &m) >= 0);
	CU_ASSERT_STRING_EQUAL(take_text(m, "level"), "tight");
	CU_ASSERT_EQUAL(count_dicts(m), FAKE_GUESTS);
	m = sd_bus_message_unref(m);
	CU_ASSERT_FATAL(call(client, "ListGuests", NULL, NULL, &m) >= 0);
	CU_ASSERT_EQUAL(count_dicts(m), FAKE_GUESTS);
	m = sd_bus_message_unref(m);
	CU_ASSERT_FATAL(call(client, "GetGuest", "web1", NULL, &m) >= 0);
	CU_ASSERT_STRING_EQUAL(take_text(m, "reason"), "shed-lazyfree");
	m = sd_bus_message_unref(m);
	CU_ASSERT_FATAL(call(client, "Explain", "web1", NULL, &m) >= 0);
	CU_ASSERT_STRING_EQUAL(take_text(m, "mode"), "observe");
	CU_ASSERT_STRING_EQUAL(take_text(m, "name"), "web1");
	CU_ASSERT_EQUAL(count_dicts(m), 3);
	m = sd_bus_message_unref(m);
	CU_ASSERT_FATAL(call(client, "History", "web1", NULL, &m) >= 0);
	CU_ASSERT_EQUAL(count_dicts(m), 3);
	sd_bus_message_unref(m);
	sd_bus_close_unref(client);
	stop();
}

static void a_guest_is_found_by_uuid_in_either_case(void)
{
	sd_bus_message *m = NULL;
	sd_bus *client;

	start();
	client = connect_client();
	CU_ASSERT_FATAL(call(client, "GetGuest", FAKE_UUID, NULL, &m) >= 0);
	CU_ASSERT_STRING_EQUAL(take_text(m, "name"), "web1");
	m = sd_bus_message_unref(m);
	CU_ASSERT_FATAL(
		call(client, "GetGuest", "00112233-4455-6677-8899-AABBCCDDEE01", NULL, &m) >= 0);
	CU_ASSERT_STRING_EQUAL(take_text(m, "name"), "web1");
	sd_bus_message_unref(m);
	sd_bus_close_unref(client);
	stop();
}

static void expect_error(sd_bus *client, const char *method, const char *guest, const char *name)
{
	sd_bus_error error = SD_BUS_ERROR_NULL;

	CU_ASSERT(call(client, method, guest, &error, NULL) < 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(error.name);
	CU_ASSERT_STRING_EQUAL(error.name, name);
	sd_bus_error_free(&error);
}

static void bad_calls_get_an_error_and_nothing_breaks(void)
{
	static const char no_guest[] = "org.ballast1.Error.NoSuchGuest";
	sd_bus *client;

	start();
	client = connect_client();
	expect_error(client, "GetGuest", "nobody", no_guest);
	expect_error(client, "Explain", "", no_guest);
	expect_error(client, "History", "00112233-4455-6677-8899-aabbccddeeff", no_guest);
	expect_error(client, "GetGuest", NULL, SD_BUS_ERROR_INVALID_ARGS);
	expect_error(client, "ListGuests", "web1", SD_BUS_ERROR_INVALID_ARGS);
	expect_error(client, "Frobnicate", NULL, SD_BUS_ERROR_UNKNOWN_METHOD);
	CU_ASSERT(answers_at_all(client));
	sd_bus_close_unref(client);
	stop();
}

static void properties_are_typed_and_complete(void)
{
	static const char *const amounts[] = { "Budget",    "Footprint", "Headroom",
					       "GrantPool", "InFlight",	 "Need",
					       "Shortfall", "Slack",	 "DeadTime" };
	char *text = NULL;
	uint64_t amount;
	sd_bus *client;
	int flag;

	start();
	client = connect_client();
	for (size_t i = 0; i < sizeof(amounts) / sizeof(amounts[0]); i++)
		CU_ASSERT(sd_bus_get_property_trivial(client, NULL, BUS_PATH, BUS_INTERFACE,
						      amounts[i], NULL, 't', &amount) >= 0);
	CU_ASSERT(sd_bus_get_property_trivial(client, NULL, BUS_PATH, BUS_INTERFACE, "Need", NULL,
					      't', &amount) >= 0);
	CU_ASSERT_EQUAL(amount, 512 * FAKE_MIB);
	CU_ASSERT(sd_bus_get_property_trivial(client, NULL, BUS_PATH, BUS_INTERFACE, "Frozen", NULL,
					      'b', &flag) >= 0);
	CU_ASSERT_EQUAL(flag, 0);
	CU_ASSERT(sd_bus_get_property_trivial(client, NULL, BUS_PATH, BUS_INTERFACE,
					      "HypervisorConnected", NULL, 'b', &flag) >= 0);
	CU_ASSERT_EQUAL(flag, 1);
	CU_ASSERT(sd_bus_get_property_string(client, NULL, BUS_PATH, BUS_INTERFACE, "Level", NULL,
					     &text) >= 0);
	CU_ASSERT_STRING_EQUAL(text, "tight");
	free(text);
	sd_bus_close_unref(client);
	stop();
}

static void before_the_first_round_it_says_so(void)
{
	sd_bus_message *m = NULL;
	sd_bus *client;
	int flag = 1;

	start();
	fake.view.plan = NULL;
	client = connect_client();
	CU_ASSERT(sd_bus_get_property_trivial(client, NULL, BUS_PATH, BUS_INTERFACE, "Decided",
					      NULL, 'b', &flag) >= 0);
	CU_ASSERT_EQUAL(flag, 0);
	CU_ASSERT_FATAL(call(client, "GetStatus", NULL, NULL, &m) >= 0);
	CU_ASSERT_STRING_EQUAL(take_text(m, "level"), "");
	sd_bus_message_unref(m);
	sd_bus_close_unref(client);
	stop();
}

static void the_interface_can_be_introspected(void)
{
	static const char *const members[] = { "GetStatus", "ListGuests", "GetGuest", "Explain",
					       "History",   "Reload",	  "Decision", "Shortfall" };
	sd_bus_message *m = NULL;
	const char *xml = "";
	char expected[64];
	sd_bus *client;

	start();
	client = connect_client();
	CU_ASSERT_FATAL(sd_bus_call_method(client, NULL, BUS_PATH,
					   "org.freedesktop.DBus.Introspectable", "Introspect",
					   NULL, &m, NULL) >= 0);
	CU_ASSERT(sd_bus_message_read(m, "s", &xml) >= 0);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		(void)snprintf(expected, sizeof(expected), "name=\"%s\"", members[i]);
		CU_ASSERT_PTR_NOT_NULL(strstr(xml, expected));
	}
	sd_bus_message_unref(m);
	sd_bus_close_unref(client);
	stop();
}

static void names_of_any_bytes_arrive_as_utf8(void)
{
	sd_bus_message *m = NULL;
	const char *name;
	sd_bus *client;

	start();
	client = connect_client();
	CU_ASSERT_FATAL(
		call(client, "GetGuest", "00112233-4455-6677-8899-aabbccddee05", NULL, &m) >= 0);
	name = take_text(m, "name");
	CU_ASSERT_EQUAL(strncmp(name, "evil\033]0;owned", 13), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(name, "\n\xef\xbf\xbd")); /* the byte 0xff */
	sd_bus_message_unref(m);
	sd_bus_close_unref(client);
	stop();
}

static void a_reload_tells_what_came_of_it(void)
{
	sd_bus_error error = SD_BUS_ERROR_NULL;
	sd_bus *client;

	start();
	client = connect_client();
	CU_ASSERT(call(client, "Reload", NULL, NULL, NULL) >= 0);
	CU_ASSERT(call(client, "Reload", NULL, &error, NULL) < 0);
	CU_ASSERT_STRING_EQUAL(error.name, "org.ballast1.Error.ReloadFailed");
	CU_ASSERT_STRING_EQUAL(error.message, "ballast.yaml:3:1: host.moed: unknown key");
	CU_ASSERT_EQUAL(reloads, 2);
	sd_bus_error_free(&error);
	sd_bus_close_unref(client);
	stop();
}

/*
 * In a thread of its own, which the kernel, other than glibc, lets have a user of its own. Leaves
 * 0 where it could read and was refused the reload.
 */
static void *try_as_nobody(void *arg)
{
	sd_bus_error error = SD_BUS_ERROR_NULL;
	int *ret_failed = arg;
	sd_bus *client;

	if (syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY) < 0)
		return NULL;
	client = connect_client();
	*ret_failed = !answers_at_all(client) || call(client, "Reload", NULL, &error, NULL) >= 0 ||
		      !sd_bus_error_has_name(&error, SD_BUS_ERROR_ACCESS_DENIED);
	sd_bus_error_free(&error);
	sd_bus_close_unref(client);
	return NULL;
}

static void others_may_read_but_not_reload(void)
{
	pthread_t nobody;
	int failed = 1;

	if (geteuid() != 0)
		return; /* there is nobody else that one could be */
	start();
	CU_ASSERT_EQUAL(chmod(folder, 0755), 0);
	CU_ASSERT_EQUAL(chmod(address.sun_path, 0666), 0);
	CU_ASSERT_EQUAL(pthread_create(&nobody, NULL, try_as_nobody, &failed), 0);
	CU_ASSERT_EQUAL(pthread_join(nobody, NULL), 0);
	CU_ASSERT_EQUAL(failed, 0);
	CU_ASSERT_EQUAL(reloads, 0);
	stop();
}

static void the_socket_is_for_its_group_only(void)
{
	struct stat st;

	start();
	CU_ASSERT_EQUAL(stat(address.sun_path, &st), 0);
	CU_ASSERT_EQUAL(st.st_mode & 07777, 0660);
	stop();
}

static bool is_hung_up(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLRDHUP };

	return poll(&pollfd, 1, 5000) == 1 && pollfd.revents & (POLLHUP | POLLRDHUP);
}

static void there_is_room_for_so_many_clients_and_again_when_one_leaves(void)
{
	sd_bus *clients[BUS_CLIENTS_MAX], *late;
	int fd;

	start();
	for (size_t i = 0; i < BUS_CLIENTS_MAX; i++) {
		clients[i] = connect_client();
		CU_ASSERT(answers_at_all(clients[i]));
	}
	fd = connect_raw();
	CU_ASSERT(is_hung_up(fd));
	(void)close(fd);
	for (size_t i = 0; i < BUS_CLIENTS_MAX; i++)
		CU_ASSERT(answers_at_all(clients[i]));
	sd_bus_close_unref(clients[0]);
	/* Another's answer comes after the server has seen the first one leave. */
	CU_ASSERT(answers_at_all(clients[1]));
	late = connect_client();
	CU_ASSERT(answers_at_all(late));
	sd_bus_close_unref(late);
	for (size_t i = 1; i < BUS_CLIENTS_MAX; i++)
		sd_bus_close_unref(clients[i]);
	stop();
}

/* Past the authentication, so that what follows is read as messages. */
static int connect_authenticated(void)
{
	int fd = connect_raw(), i = 0;
	char uid[16], hello[128], hex[33] = "";

	(void)snprintf(uid, sizeof(uid), "%u", (unsigned int)geteuid());
	for (; uid[i]; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", (unsigned char)uid[i]);
	i = snprintf(hello, sizeof(hello), "%cAUTH EXTERNAL %s\r\nBEGIN\r\n", '\0', hex);
	CU_ASSERT_EQUAL(write(fd, hello, (size_t)i), i);
	CU_ASSERT(read(fd, hello, sizeof(hello)) > 2);
	CU_ASSERT_EQUAL(strncmp(hello, "OK", 2), 0);
	return fd;
}

static void who_is_silent_or_talks_nonsense_hinders_nobody(void)
{
	static const char nonsense[] = "\0GET / HTTP/1.1\r\n\r\n";
	int silent, noisy, half, broken;
	sd_bus *client;

	start();
	silent = connect_raw();
	noisy = connect_raw();
	CU_ASSERT(write(noisy, nonsense, sizeof(nonsense)) > 0);
	half = connect_raw();
	CU_ASSERT(write(half, "\0AUTH EXT", 9) == 9);
	broken = connect_authenticated();
	CU_ASSERT(write(broken, nonsense, sizeof(nonsense)) > 0);
	client = connect_client();
	CU_ASSERT(answers_at_all(client));
	CU_ASSERT(is_hung_up(broken));
	CU_ASSERT(answers_at_all(client));
	sd_bus_close_unref(client);
	(void)close(silent);
	(void)close(noisy);
	(void)close(half);
	(void)close(broken);
	stop();
}

static void decisions_are_told_to_everybody(void)
{
	sd_bus *clients[3];
	sd_bus_message *m;

	start();
	for (size_t i = 0; i < 3; i++) {
		clients[i] = connect_client();
		CU_ASSERT(answers_at_all(clients[i]));
	}
	CU_ASSERT_EQUAL(write(orders[1], "d", 1), 1);
	await('d');
	for (size_t i = 0; i < 3; i++) {
		m = NULL;
		CU_ASSERT(sd_bus_wait(clients[i], TIMEOUT_US) > 0);
		CU_ASSERT_FATAL(sd_bus_process(clients[i], &m) > 0);
		CU_ASSERT_PTR_NOT_NULL_FATAL(m);
		CU_ASSERT(sd_bus_message_is_signal(m, BUS_INTERFACE, "Decision"));
		CU_ASSERT_STRING_EQUAL(take_text(m, "action"), "shed");
		sd_bus_message_unref(m);
		sd_bus_close_unref(clients[i]);
	}
	stop();
}

static void who_does_not_read_signals_is_dropped(void)
{
	sd_bus *lazy, *good;
	int fd;

	start();
	lazy = connect_client();
	CU_ASSERT(answers_at_all(lazy));
	fd = sd_bus_get_fd(lazy);
	for (int i = 0; i < 4000; i++) {
		CU_ASSERT_EQUAL_FATAL(write(orders[1], "d", 1), 1);
		await('d');
	}
	CU_ASSERT(is_hung_up(fd));
	good = connect_client();
	CU_ASSERT(answers_at_all(good));
	sd_bus_close_unref(good);
	sd_bus_close_unref(lazy);
	stop();
}

/* Sends a call without waiting for its answer. */
static bool ask(sd_bus *client)
{
	sd_bus_message *m = NULL;
	uint64_t cookie; /* without one, no answer would be asked for */
	int r;

	CU_ASSERT_FATAL(sd_bus_message_new_method_call(client, &m, NULL, BUS_PATH, BUS_INTERFACE,
						       "GetStatus") >= 0);
	r = sd_bus_send(client, m, &cookie);
	sd_bus_message_unref(m);
	return r >= 0;
}

static void await_taken(int fd)
{
	int left = 1;

	for (int i = 0; i < 5000 && left; i++) {
		CU_ASSERT_EQUAL_FATAL(ioctl(fd, SIOCOUTQ, &left), 0);
		(void)usleep(1000);
	}
	CU_ASSERT_EQUAL(left, 0);
}

/* The daemon keeps no more than a few answers for a client that has enough in its socket. */
static void answers_that_nobody_reads_are_refused(void)
{
	int refused = 0, good = 0;
	sd_bus *client, *other;

	start();
	client = connect_client();
	other = connect_client();
	CU_ASSERT(answers_at_all(client));
	for (int i = 0; i < 500; i++)
		CU_ASSERT(ask(client));
	await_taken(sd_bus_get_fd(client));
	CU_ASSERT(answers_at_all(other));
	while (good + refused < 500 && sd_bus_wait(client, TIMEOUT_US) > 0) {
		sd_bus_message *m = NULL;

		while (sd_bus_process(client, &m) > 0) {
			if (m && sd_bus_message_is_method_error(m, SD_BUS_ERROR_LIMITS_EXCEEDED))
				refused++;
			else if (m)
				good++;
			m = sd_bus_message_unref(m);
		}
	}
	CU_ASSERT_EQUAL(good + refused, 500);
	CU_ASSERT(good > 0);
	CU_ASSERT(refused > 100);
	CU_ASSERT(answers_at_all(client));
	sd_bus_close_unref(client);
	sd_bus_close_unref(other);
	stop();
}

static void who_asks_and_never_reads_is_dropped(void)
{
	sd_bus *lazy, *good;
	int fd, sent = 0;

	start();
	lazy = connect_client();
	good = connect_client();
	CU_ASSERT(answers_at_all(lazy));
	fd = sd_bus_get_fd(lazy);
	while (sent < 20000 && ask(lazy))
		if (++sent % 500 == 0)
			CU_ASSERT(answers_at_all(good));
	CU_ASSERT(answers_at_all(good));
	CU_ASSERT(is_hung_up(fd));
	sd_bus_close_unref(good);
	sd_bus_close_unref(lazy);
	stop();
}

static void a_socket_that_is_left_over_is_replaced(void)
{
	sd_bus *client;
	int fd;

	start();
	stop();
	CU_ASSERT_EQUAL(mkdir(folder, 0700), 0);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CU_ASSERT_EQUAL(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	(void)close(fd);
	fake_init(&fake);
	CU_ASSERT_EQUAL_FATAL(pipe2(orders, O_CLOEXEC), 0);
	CU_ASSERT_EQUAL_FATAL(pipe2(answers, O_CLOEXEC), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&server, NULL, serve, NULL), 0);
	await('y');
	client = connect_client();
	CU_ASSERT(answers_at_all(client));
	sd_bus_close_unref(client);
	stop();
}

static void a_folder_that_is_not_there_or_too_long_is_an_error(void)
{
	struct bus_config config = { .runtime_dir = "/nonexistent/ballast" };
	char longest[200];
	struct bus *bus;
	sd_event *event;

	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	CU_ASSERT_FATAL(sd_event_new(&event) >= 0);
	CU_ASSERT_EQUAL(bus_new(&bus, event, &config, &fake.view), -ENOENT);
	config.runtime_dir = longest;
	CU_ASSERT_EQUAL(bus_new(&bus, event, &config, &fake.view), -ENAMETOOLONG);
	sd_event_unref(event);
}

static const struct unit_test tests[] = {
	TEST(each_method_answers),
	TEST(a_guest_is_found_by_uuid_in_either_case),
	TEST(bad_calls_get_an_error_and_nothing_breaks),
	TEST(properties_are_typed_and_complete),
	TEST(before_the_first_round_it_says_so),
	TEST(the_interface_can_be_introspected),
	TEST(names_of_any_bytes_arrive_as_utf8),
	TEST(a_reload_tells_what_came_of_it),
	TEST(others_may_read_but_not_reload),
	TEST(the_socket_is_for_its_group_only),
	TEST(there_is_room_for_so_many_clients_and_again_when_one_leaves),
	TEST(who_is_silent_or_talks_nonsense_hinders_nobody),
	TEST(decisions_are_told_to_everybody),
	TEST(who_does_not_read_signals_is_dropped),
	TEST(answers_that_nobody_reads_are_refused),
	TEST(who_asks_and_never_reads_is_dropped),
	TEST(a_socket_that_is_left_over_is_replaced),
	TEST(a_folder_that_is_not_there_or_too_long_is_an_error),
};

HARNESS_MAIN("bus", tests)
