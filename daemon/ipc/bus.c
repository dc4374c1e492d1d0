// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The connections: the private socket with its clients, each an sd-bus of its own, and the system
 * bus. What they serve is in manager.c.
 *
 * sd-bus queues what a client doesn't read, without a bound of its own. So the length of that
 * queue is looked at whenever something more would go to it: answers are refused beyond a few
 * (manager.c), and the client is dropped beyond BACKLOG_MAX messages.
 */
#include "daemon/ipc/bus.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "daemon/ipc/manager.h"
#include "daemon/util/cleanup.h"
#include "daemon/util/time.h"

#define BACKLOG_MAX    1024
#define SEND_BUFFER    262144 /* bytes that a client may leave unread in its socket */
#define SOCKET_MODE    0660
#define RETRY_FIRST_US (2 * USEC_PER_SEC)
#define RETRY_LAST_US  (60 * USEC_PER_SEC)
/* Only the check of who asks for Reload on the system bus waits for an answer at all. */
#define SYSTEM_CALL_US	   USEC_PER_SEC
#define ACCEPTS_PER_SECOND 200
/* Deciding and acting go before answering. */
#define BUS_PRIORITY	(SD_EVENT_PRIORITY_NORMAL + 10)

#define LOCAL_PATH	"/org/freedesktop/DBus/Local"
#define LOCAL_INTERFACE "org.freedesktop.DBus.Local"

struct client {
	struct bus *bus;
	sd_bus *connection; /* NULL: this place is free */
};

struct bus {
	struct bus_config config;
	struct manager manager;
	sd_event *event;
	sd_event_source *accept;
	struct sockaddr_un address;
	int fd;
	dev_t device; /* of the socket's file, and the file's number; 0: not bound */
	ino_t inode;
	struct client clients[BUS_CLIENTS_MAX];
	sd_bus *system;
	sd_event_source *retry;
	uint64_t retry_us;
	int system_told; /* the last state that notice() was told, as errno; 1: none yet */
};

int bus_address(const char *runtime_dir, struct sockaddr_un *ret_address)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/bus", runtime_dir);

	if (n < 0 || (size_t)n >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	*ret_address = address;
	return 0;
}

static void client_drop(struct client *client)
{
	client->connection = sd_bus_close_unref(client->connection);
}

static bool is_backlogged(sd_bus *connection)
{
	uint64_t unread;

	return sd_bus_get_n_queued_write(connection, &unread) < 0 || unread > BACKLOG_MAX;
}

static int on_client_gone(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	(void)m;
	(void)error;
	client_drop(userdata);
	return 1;
}

static int on_client_message(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct client *client = userdata;

	(void)m;
	(void)error;
	if (!is_backlogged(client->connection))
		return 0;
	client_drop(client);
	return 1;
}

static int client_setup(struct client *client)
{
	struct bus *bus = client->bus;
	sd_bus *connection = client->connection;
	sd_id128_t id;
	int r;

	r = sd_id128_randomize(&id);
	if (r < 0)
		return r;
	r = sd_bus_set_server(connection, 1, id);
	if (r < 0)
		return r;
	r = sd_bus_add_filter(connection, NULL, on_client_message, client);
	if (r < 0)
		return r;
	r = sd_bus_match_signal(connection, NULL, NULL, LOCAL_PATH, LOCAL_INTERFACE, "Disconnected",
				on_client_gone, client);
	if (r < 0)
		return r;
	return manager_serve(&bus->manager, connection);
}

/* Root, and the daemon's own user. */
static bool is_master(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return false;
	return peer.uid == 0 || peer.uid == geteuid();
}

/* A few places are kept, so that those who may only read can't shut out who is to act. */
static struct client *free_client(struct bus *bus, int fd)
{
	size_t places = is_master(fd) ? BUS_CLIENTS_MAX : BUS_CLIENTS_MAX - BUS_CLIENTS_KEPT;

	for (size_t i = 0; i < places; i++)
		if (!bus->clients[i].connection)
			return &bus->clients[i];
	return NULL;
}

/* After sd_bus_start(), which asks for 8 MiB of kernel memory for what a client leaves unread. */
static int limit_buffer(int fd)
{
	int size = SEND_BUFFER;

	return setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) < 0 ? -errno : 0;
}

/* Takes ownership of @fd. */
static void client_add(struct bus *bus, int fd)
{
	struct client *client = free_client(bus, fd);
	int r;

	/* To be closed at once tells the client more than to be left waiting. */
	if (!client || sd_bus_new(&client->connection) < 0) {
		(void)close(fd);
		return;
	}
	r = sd_bus_set_fd(client->connection, fd, fd);
	if (r < 0)
		(void)close(fd);
	if (r >= 0)
		r = client_setup(client);
	if (r >= 0)
		r = sd_bus_start(client->connection);
	if (r >= 0)
		r = limit_buffer(fd);
	if (r >= 0)
		r = sd_bus_attach_event(client->connection, bus->event, BUS_PRIORITY);
	if (r < 0)
		client_drop(client);
}

static int on_accept(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	int client;

	(void)source;
	(void)revents;
	client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	/* What failed here is the client's trouble, or, out of descriptors, tried again later. */
	if (client >= 0)
		client_add(userdata, client);
	return 0;
}

/*
 * Nobody can connect before listen(), so the mode is right in time. The group is a favour to
 * unprivileged readers: without it, or without the right to set it, root and the daemon's user
 * remain.
 */
static int socket_open(struct bus *bus)
{
	const struct sockaddr *address = (const struct sockaddr *)&bus->address;
	const char *path = bus->address.sun_path;
	const struct group *group;
	struct stat file;

	bus->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (bus->fd < 0)
		return -errno;
	if (unlink(path) < 0 && errno != ENOENT)
		return -errno;
	if (bind(bus->fd, address, sizeof(bus->address)) < 0)
		return -errno;
	if (stat(path, &file) < 0)
		return -errno;
	bus->device = file.st_dev;
	bus->inode = file.st_ino;
	group = getgrnam(BUS_GROUP);
	if (group && chown(path, (uid_t)-1, group->gr_gid) < 0 && errno != EPERM)
		return -errno;
	if (chmod(path, SOCKET_MODE) < 0)
		return -errno;
	if (listen(bus->fd, BUS_CLIENTS_MAX) < 0)
		return -errno;
	return 0;
}

/* There may be another one by now, which isn't ours. */
static void socket_remove(const struct bus *bus)
{
	struct stat file;

	if (bus->inode && stat(bus->address.sun_path, &file) == 0 && file.st_dev == bus->device &&
	    file.st_ino == bus->inode)
		(void)unlink(bus->address.sun_path);
}

static int socket_serve(struct bus *bus)
{
	int r;

	r = socket_open(bus);
	if (r < 0)
		return r;
	r = sd_event_add_io(bus->event, &bus->accept, bus->fd, EPOLLIN, on_accept, bus);
	if (r < 0)
		return r;
	r = sd_event_source_set_priority(bus->accept, BUS_PRIORITY);
	if (r < 0)
		return r;
	return sd_event_source_set_ratelimit(bus->accept, USEC_PER_SEC, ACCEPTS_PER_SECOND);
}

/* Tells each change of the system bus once. @state: 0 or a negative errno. */
static void system_tell(struct bus *bus, int state, const char *text)
{
	if (bus->system_told == state)
		return;
	bus->system_told = state;
	if (bus->config.notice)
		bus->config.notice(bus->config.userdata, text);
}

static void system_retry(struct bus *bus)
{
	bus->system = sd_bus_close_unref(bus->system);
	(void)sd_event_source_set_time_relative(bus->retry, bus->retry_us);
	(void)sd_event_source_set_enabled(bus->retry, SD_EVENT_ONESHOT);
	bus->retry_us = bus->retry_us * 2 < RETRY_LAST_US ? bus->retry_us * 2 : RETRY_LAST_US;
}

static int on_system_gone(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct bus *bus = userdata;

	(void)m;
	(void)error;
	system_tell(bus, -ENOTCONN, "system bus: the connection is lost, trying again");
	system_retry(bus);
	return 1;
}

static int on_system_name(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct bus *bus = userdata;
	uint32_t owner = 0;
	char text[512];

	(void)error;
	if (!sd_bus_message_is_method_error(m, NULL) && sd_bus_message_read(m, "u", &owner) >= 0 &&
	    owner == 1) {
		bus->retry_us = RETRY_FIRST_US;
		system_tell(bus, 0, "system bus: serving as " BUS_NAME);
		return 1;
	}
	(void)snprintf(text, sizeof(text),
		       "system bus: " BUS_NAME " is refused (%s): is its D-Bus policy installed?",
		       sd_bus_message_is_method_error(m, NULL)
			       ? sd_bus_message_get_error(m)->message
			       : "somebody else has the name");
	system_tell(bus, -EPERM, text);
	bus->retry_us = RETRY_LAST_US;
	system_retry(bus);
	return 1;
}

static int system_setup(struct bus *bus)
{
	int r;

	r = sd_bus_open_system(&bus->system);
	if (r < 0)
		return r;
	r = sd_bus_set_method_call_timeout(bus->system, SYSTEM_CALL_US);
	if (r < 0)
		return r;
	r = manager_serve(&bus->manager, bus->system);
	if (r < 0)
		return r;
	r = sd_bus_match_signal(bus->system, NULL, NULL, LOCAL_PATH, LOCAL_INTERFACE,
				"Disconnected", on_system_gone, bus);
	if (r < 0)
		return r;
	r = sd_bus_request_name_async(bus->system, NULL, BUS_NAME, 0, on_system_name, bus);
	if (r < 0)
		return r;
	return sd_bus_attach_event(bus->system, bus->event, BUS_PRIORITY);
}

static void system_connect(struct bus *bus)
{
	if (system_setup(bus) < 0)
		system_retry(bus);
}

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata)
{
	(void)source;
	(void)usec;
	system_connect(userdata);
	return 0;
}

static int system_serve(struct bus *bus)
{
	int r;

	r = sd_event_add_time_relative(bus->event, &bus->retry, CLOCK_MONOTONIC, RETRY_FIRST_US,
				       USEC_PER_SEC, on_retry, bus);
	if (r < 0)
		return r;
	r = sd_event_source_set_enabled(bus->retry, SD_EVENT_OFF);
	if (r < 0)
		return r;
	system_connect(bus);
	return 0;
}

int bus_new(struct bus **ret_bus, sd_event *event, const struct bus_config *config,
	    const struct bus_view *view)
{
	struct bus *bus = calloc(1, sizeof(*bus));
	int r;

	if (!bus)
		return -ENOMEM;
	bus->config = *config;
	bus->manager = (struct manager){ .view = view, .config = &bus->config };
	bus->event = sd_event_ref(event);
	bus->fd = -1;
	bus->retry_us = RETRY_FIRST_US;
	bus->system_told = 1;
	for (size_t i = 0; i < BUS_CLIENTS_MAX; i++)
		bus->clients[i].bus = bus;
	r = bus_address(config->runtime_dir, &bus->address);
	if (r >= 0)
		r = socket_serve(bus);
	if (r >= 0 && config->system_bus)
		r = system_serve(bus);
	if (r < 0) {
		bus_free(bus);
		return r;
	}
	*ret_bus = bus;
	return 0;
}

struct bus *bus_free(struct bus *bus)
{
	if (!bus)
		return NULL;
	for (size_t i = 0; i < BUS_CLIENTS_MAX; i++)
		client_drop(&bus->clients[i]);
	sd_bus_close_unref(bus->system);
	sd_event_source_disable_unref(bus->retry);
	sd_event_source_disable_unref(bus->accept);
	socket_remove(bus);
	if (bus->fd >= 0)
		(void)close(bus->fd);
	sd_event_unref(bus->event);
	free(bus);
	return NULL;
}

void bus_emit_decision(struct bus *bus, const struct guest_snapshot *guest,
		       const struct history_entry *entry)
{
	for (size_t i = 0; i < BUS_CLIENTS_MAX; i++) {
		struct client *client = &bus->clients[i];

		if (!client->connection || sd_bus_is_ready(client->connection) <= 0)
			continue;
		if (is_backlogged(client->connection) ||
		    manager_emit_decision(&bus->manager, client->connection, guest, entry) < 0)
			client_drop(client);
	}
	/* The broker bounds what its own readers leave unread; of one that stands still we are. */
	if (!bus->system || sd_bus_is_ready(bus->system) <= 0)
		return;
	if (is_backlogged(bus->system) ||
	    manager_emit_decision(&bus->manager, bus->system, guest, entry) < 0)
		system_retry(bus);
}
