/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records as D-Bus values: each becomes one a{sv}, with text as s, flags as b, numbers as t, words
 * as as and groups as a{st}. Internal to daemon/ipc. Stateless; all return 0 or a negative errno.
 */
#ifndef BALLAST_IPC_MESSAGE_H
#define BALLAST_IPC_MESSAGE_H

#include <systemd/sd-bus.h>

#include "daemon/ipc/bus.h"

int message_append_host(sd_bus_message *m, const struct bus_view *view);

/** message_append_guest() - @i: the guest's index in the snapshot. */
int message_append_guest(sd_bus_message *m, const struct bus_view *view, size_t i);

/** message_append_guests() - all guests, as aa{sv}. */
int message_append_guests(sd_bus_message *m, const struct bus_view *view);

int message_append_decision(sd_bus_message *m, const struct guest_snapshot *guest,
			    const struct history_entry *entry, int64_t realtime_offset_us);

/**
 * message_append_history() - the guest's last decisions, newest first, as aa{sv}.
 */
int message_append_history(sd_bus_message *m, const struct bus_view *view,
			   const struct guest_snapshot *guest);

#endif
