/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The status of the daemon on D-Bus: interface org.ballast1.Manager at /org/ballast1, served peer
 * to peer on the socket RUNTIME_DIR/bus, and as org.ballast1 on the system bus where there is one.
 * Everybody who can connect may read; Reload is for root and the daemon's own user. The socket is
 * for root, the daemon's user and the group "ballast" (mode 0660); on the system bus its
 * policy decides.
 *
 * The bus owns its connections and reads one struct bus_view, which belongs to the application and
 * has to outlive it. All in the thread of the event loop: nothing here blocks, a client that
 * doesn't read what it asked for is dropped, and there are at most BUS_CLIENTS_MAX of them.
 */
#ifndef BALLAST_IPC_BUS_H
#define BALLAST_IPC_BUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>
#include <systemd/sd-event.h>

#include "daemon/core/history.h"
#include "daemon/core/plan.h"
#include "daemon/core/settings.h"
#include "daemon/core/snapshot.h"

#define BUS_NAME	 "org.ballast1"
#define BUS_PATH	 "/org/ballast1"
#define BUS_INTERFACE	 "org.ballast1.Manager"
#define BUS_CLIENTS_MAX	 32
#define BUS_CLIENTS_KEPT 4 /* of them, for root and the daemon's own user */
#define BUS_GROUP	 "ballast"

/*
 * What the status is made from. The application sets the pointers before it runs the event loop
 * and whenever it swaps what they point to. plan may be NULL, or have at_us 0, until the first
 * round is decided; a guest without a verdict in it is shown without one.
 */
struct bus_view {
	const struct snapshot *snapshot;
	const struct plan *plan;
	const struct settings *settings;
	const struct history *history;
	int64_t realtime_offset_us; /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
	/* The monotonic clock, for ages at the time of the answer; NULL: the snapshot's time. */
	uint64_t (*now_us)(void);
};

struct bus_config {
	const char *runtime_dir; /* folder of the private socket */
	bool system_bus; /* also serve the system bus, now or when it comes up */
	/*
	 * A privileged client asks to read the configuration again. Returns 0, or a negative errno
	 * with one line of what is wrong written to @problem.
	 */
	int (*reload)(void *userdata, char *problem, size_t size);
	/* The system bus was found, lost or refused the name: one line for the log. May be NULL. */
	void (*notice)(void *userdata, const char *text);
	void *userdata;
};

struct bus;

/**
 * bus_address() - the address of the private socket.
 *
 * Return: 0, or -ENAMETOOLONG where the path does not fit.
 */
int bus_address(const char *runtime_dir, struct sockaddr_un *ret_address);

/**
 * bus_new() - serve the status.
 * @view: read whenever a client asks; has to outlive the bus.
 *
 * A socket that is left over at the path is replaced: the application makes sure that there is one
 * daemon only. A system bus that is not there is no error; it is tried again later.
 *
 * Return: 0 or a negative errno of the private socket (-ENAMETOOLONG where its path is too long).
 */
int bus_new(struct bus **ret_bus, sd_event *event, const struct bus_config *config,
	    const struct bus_view *view);

/** bus_free() - drop the clients and remove the socket. Return: NULL. */
struct bus *bus_free(struct bus *bus);

/**
 * bus_emit_decision() - send the signal Decision to everybody connected.
 * @entry: from history_add().
 */
void bus_emit_decision(struct bus *bus, const struct guest_snapshot *guest,
		       const struct history_entry *entry);

#endif
