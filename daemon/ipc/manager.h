/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interface org.ballast1.Manager as an sd-bus vtable: the same on every connection. Internal
 * to daemon/ipc. The struct belongs to the bus and outlives its connections; event loop's thread.
 */
#ifndef BALLAST_IPC_MANAGER_H
#define BALLAST_IPC_MANAGER_H

#include <systemd/sd-bus.h>

#include "daemon/ipc/bus.h"

struct manager {
	const struct bus_view *view;
	const struct bus_config *config;
};

/**
 * manager_serve() - put the object on a connection.
 *
 * Return: 0 or a negative errno.
 */
int manager_serve(struct manager *manager, sd_bus *connection);

/**
 * manager_emit_decision() - send the signal Decision on a connection.
 *
 * Return: 0 or a negative errno.
 */
int manager_emit_decision(const struct manager *manager, sd_bus *connection,
			  const struct guest_snapshot *guest, const struct history_entry *entry);

#endif
