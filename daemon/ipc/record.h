/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one rendering of the host, a guest and a decision into named values. D-Bus, and through it
 * JSON and ballastctl, and the journal are all fed from here, so that a name means the same
 * everywhere. Names of statistics are those of stats.def, of reasons and operands those of
 * reason.def. What is not known is left out; nothing is rendered as zero for want of a number.
 *
 * Numbers are bytes, unless the key ends in _us (microseconds; time_us is CLOCK_REALTIME, the
 * others are spans), _pct (hundredths of a percent) or _n (a count), or the group says otherwise
 * (stats: see stats.def). Stateless; the values are valid only during the call of the sink.
 */
#ifndef BALLAST_IPC_RECORD_H
#define BALLAST_IPC_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/history.h"
#include "daemon/ipc/bus.h"

/* Takes the values one by one. Each returns 0 or a negative errno, which ends the rendering. */
struct record_sink {
	int (*text)(void *to, const char *key, const char *value);
	int (*flag)(void *to, const char *key, bool value);
	int (*number)(void *to, const char *key, uint64_t value);
	int (*words)(void *to, const char *key, const char *const *words, size_t n);
	/* A group of numbers; groups are not nested. */
	int (*open)(void *to, const char *key);
	int (*close)(void *to);
};

/**
 * record_host() - the host and the whole of the last round.
 *
 * Return: 0 or what the sink returned.
 */
int record_host(const struct bus_view *view, const struct record_sink *sink, void *to);

/**
 * record_guest() - one guest: what is known of it and what the last round made of it.
 * @i: its index in the snapshot.
 */
int record_guest(const struct bus_view *view, size_t i, const struct record_sink *sink, void *to);

/**
 * record_decision() - one decision and what came of it.
 * @realtime_offset_us: CLOCK_REALTIME minus CLOCK_MONOTONIC.
 */
int record_decision(const struct guest_snapshot *guest, const struct history_entry *entry,
		    int64_t realtime_offset_us, const struct record_sink *sink, void *to);

#endif
