/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ballastctl's end of the bus: options, connection and calls. What goes wrong is printed here, one
 * line that says what to do, and comes back as the exit status. One thread.
 */
#ifndef BALLAST_CTL_CLIENT_H
#define BALLAST_CTL_CLIENT_H

#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "daemon/ctl/ctl.h"

#define CLIENT_RUNTIME_DIR "/run/ballast"
#define CLIENT_OPTIONS_HELP                                                                        \
	"  --runtime-dir DIR  where the daemon's socket is, instead of " CLIENT_RUNTIME_DIR "\n"   \
	"  --system           ask over the system bus\n"                                           \
	"  --json             print JSON: amounts in bytes, see ballastctl(1)\n"

struct client_options {
	const char *runtime_dir;
	bool system, json;
	const char *guest; /* name or UUID, or NULL */
};

enum client_guest { CLIENT_NO_GUEST, CLIENT_MAYBE_GUEST, CLIENT_ONE_GUEST };

/**
 * client_parse() - the command line of a verb that asks the daemon.
 * @usage: what the help shows for the verb.
 * @ret_options: points into @argv.
 * @ret_status: where the verb is to end here, after -h or a mistake.
 *
 * Return: whether to go on.
 */
bool client_parse(int argc, char **argv, const char *usage, enum client_guest guest,
		  struct client_options *ret_options, int *ret_status);

/**
 * client_call() - connect, call a method of the manager, and hang up.
 * @method: takes options->guest as its argument if @with_guest, else nothing.
 * @ret_answer: set for CTL_OK, to be released with sd_bus_message_unref().
 *
 * Return: CTL_OK, CTL_FAILED or CTL_NO_DAEMON.
 */
int client_call(const struct client_options *options, const char *method, bool with_guest,
		sd_bus_message **ret_answer);

/** client_bad_answer() - say that the daemon's answer makes no sense. Return: CTL_FAILED. */
int client_bad_answer(int error);

#endif
