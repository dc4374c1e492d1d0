// SPDX-License-Identifier: GPL-2.0-or-later
/* The interface as a client sees it: methods, properties, errors, and who may do what. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/unit/bus-server.h"

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

#define CROWD (2 * BUS_CLIENTS_MAX)

static void *crowd_as_nobody(void *arg)
{
	int *fds = arg;

	if (syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY) < 0)
		return NULL;
	for (size_t i = 0; i < CROWD; i++) {
		fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		(void)connect(fds[i], (const struct sockaddr *)&address, sizeof(address));
	}
	return NULL;
}

static void a_crowd_of_readers_does_not_shut_out_root(void)
{
	int fds[CROWD];
	pthread_t nobody;
	sd_bus *client;

	if (geteuid() != 0)
		return; /* there is nobody else that one could be */
	memset(fds, -1, sizeof(fds));
	start();
	CU_ASSERT_EQUAL(chmod(folder, 0755), 0);
	CU_ASSERT_EQUAL(chmod(address.sun_path, 0666), 0);
	CU_ASSERT_EQUAL(pthread_create(&nobody, NULL, crowd_as_nobody, fds), 0);
	CU_ASSERT_EQUAL(pthread_join(nobody, NULL), 0);
	CU_ASSERT_FATAL(fds[CROWD - 1] >= 0);
	client = connect_client();
	CU_ASSERT(answers_at_all(client));
	sd_bus_close_unref(client);
	for (size_t i = 0; i < CROWD; i++)
		(void)close(fds[i]);
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
	TEST(a_crowd_of_readers_does_not_shut_out_root),
	TEST(the_socket_is_for_its_group_only),
	TEST(a_socket_that_is_left_over_is_replaced),
	TEST(a_folder_that_is_not_there_or_too_long_is_an_error),
};

HARNESS_MAIN("bus", tests)
