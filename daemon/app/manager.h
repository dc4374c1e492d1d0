/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The daemon's whole: it owns the event loop, the sources, the guests, the policy and what shows
 * them, and is the only place that knows all of these. One thread; whatever other threads there
 * are belong to daemon/hyp and talk to it through a queue.
 *
 * sources.c fills the snapshot, round.c decides, actuator.c carries out. Nothing but round.c calls
 * the policy, nothing but actuator.c changes a guest.
 */
#ifndef BALLAST_APP_MANAGER_H
#define BALLAST_APP_MANAGER_H

#include <systemd/sd-event.h>

#include "daemon/app/guests.h"
#include "daemon/app/targets.h"
#include "daemon/core/history.h"
#include "daemon/core/plan.h"
#include "daemon/core/policy.h"
#include "daemon/host/host.h"
#include "daemon/hyp/hyp.h"
#include "daemon/ipc/bus.h"

struct manager_options {
	const char *config_path;
	const char *uri; /* NULL: as configured */
	const char *runtime_dir;
	const char *run_dir; /* of libvirt's PID files, NULL: its default */
	const char *root; /* in front of /proc and /sys, NULL: none */
	bool observe; /* whatever the configuration says */
	bool system_bus;
};

struct manager {
	struct manager_options options;
	sd_event *event;
	struct settings *settings;
	struct host *host;
	struct hyp *hyp;
	struct bus *bus;
	struct bus_view view;
	struct guests guests;
	struct policy *policy;
	struct history *history;
	struct plan plan;
	struct snapshot current;

	struct target_entry *restored; /* targets from before a restart */
	size_t n_restored;
	char *targets_path, *freeze_path;
	int lock_fd;
	uint64_t runtime_checked_us;
	bool runtime_failing; /* the folder is gone and can't be made anew, which was said */

	sd_event_source *round_source, *stats_source, *stop_source, *hyp_source, *pressure_source;
	sd_event_source *hook_source; /* the shortfall's program is running */
	uint64_t earliest_round_us, next_round_us, last_list_us, last_cost_us;
	uint64_t targets_stored; /* digest of the targets that were last stored */
	bool targets_failing; /* ... can't be, which was said */
	uint64_t shortfall_since_us;
	bool shortfall_told;
	bool host_failing; /* its numbers can't be read, which was said */
	bool hypervisor_reported; /* that it is out of reach, once for all attempts */
	bool stopping;
	size_t releases_pending;
	enum level logged_level;
	char status[256]; /* last STATUS= line */
};

/**
 * manager_new() - load the configuration and set everything up.
 *
 * What goes wrong has been logged.
 * Return: 0; -EBUSY when another instance runs; -EINVAL for the configuration; another errno.
 */
int manager_new(struct manager **ret, const struct manager_options *options);
struct manager *manager_free(struct manager *m);

/** manager_run() - run the loop until a signal ends it. Return: 0 or a negative errno. */
int manager_run(struct manager *m);

/**
 * manager_reload() - load the configuration anew; a bad one leaves the old one.
 * @problem: a line for who asked, of @size bytes; written on failure only.
 *
 * What goes wrong has been logged. Return: 0 or a negative errno.
 */
int manager_reload(struct manager *m, char *problem, size_t size);

/* runtime.c: the runtime folder, with the lock, the targets and the socket. */
int runtime_open(struct manager *m);
int runtime_serve(struct manager *m);
/* runtime_check() - make the folder anew if somebody has removed it. */
void runtime_check(struct manager *m, uint64_t now);

/*
 * sources.c: sources_open() starts the host's and the hypervisor's, and returns 0 or a negative errno
 * that has been logged; sources_read_host() brings the host's part and each footprint up to @now;
 * sources_apply_settings() gives every guest its settings anew; guest_gone() forgets one, whatever
 * it owns.
 */
int sources_open(struct manager *m);
void sources_close(struct manager *m);
void sources_read_host(struct manager *m, uint64_t now);
void sources_apply_settings(struct manager *m);
void guest_gone(struct manager *m, struct guest *guest);

/*
 * agents.c: agent_open() watches the channel at @path, "" for none, in place of the one before. Returns
 * 0 or a negative errno, and then there is none.
 */
int agent_open(struct manager *m, struct guest *guest, const char *path);

/* round.c: rounds_start() has the first round decided soon. Returns 0 or a negative errno. */
int rounds_start(struct manager *m);
/* manager_kick() - decide soon: something happened that can't wait for the next round. */
void manager_kick(struct manager *m);

/*
 * actuator.c: actuator_carry_out() does what was decided, and shows it; actuator_call_done() takes the
 * hypervisor's answer to a balloon request; actuator_store_targets() writes the file of targets where
 * they have changed; actuator_leave() gives back, as the daemon stops, what the settings say.
 */
void actuator_carry_out(struct manager *m, const struct decision *decision);
/* actuator_note() - show a decision that isn't to be carried out. */
void actuator_note(struct manager *m, const struct decision *decision);
void actuator_call_done(struct manager *m, struct guest *guest, const struct hyp_call *call,
			const char *text);
void actuator_store_targets(struct manager *m);
/* actuator_released() - a stop needn't wait for the guest any longer. */
void actuator_released(struct manager *m, struct guest *guest);
void actuator_leave(struct manager *m);
/* actuator_settings() - the guest's settings are new: grant what they permit, or give it back. */
void actuator_settings(struct manager *m, struct guest *guest);
/* actuator_may_act() - the last gate: mode, freeze file and the guest's own settings. */
bool actuator_may_act(const struct manager *m, const struct guest_snapshot *snap);

/* hook.c: hook_check() says when a shortfall begins and ends, and runs the program when it lasts. */
void hook_check(struct manager *m, uint64_t now);

#endif
