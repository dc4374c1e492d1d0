// SPDX-License-Identifier: GPL-2.0-or-later
/* Many clients, silent ones, and such as never read. */
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "tests/unit/bus-server.h"

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

static const struct unit_test tests[] = {
	TEST(there_is_room_for_so_many_clients_and_again_when_one_leaves),
	TEST(who_is_silent_or_talks_nonsense_hinders_nobody),
	TEST(decisions_are_told_to_everybody),
	TEST(who_does_not_read_signals_is_dropped),
	TEST(answers_that_nobody_reads_are_refused),
	TEST(who_asks_and_never_reads_is_dropped),
};

HARNESS_MAIN("bus-clients", tests)
