// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/app/manager.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "daemon/config/config.h"
#include "daemon/guest/channel.h"
#include "daemon/util/log.h"
#include "daemon/util/time.h"

/* How long a stop waits for balloons to be given back. */
#define RELEASE_PATIENCE_US (5 * USEC_PER_SEC)

static void log_diag(const struct config_diag *diag)
{
	char text[1024];

	for (size_t i = 0; i < diag->n_messages; i++) {
		config_diag_format(&diag->messages[i], sizeof(text), text);
		if (diag->messages[i].severity == CONFIG_ERROR)
			log_error("%s", text);
		else
			log_warning("%s", text);
	}
}

static int load_settings(const struct manager_options *options, struct settings **ret)
{
	struct config_diag diag = CONFIG_DIAG_INIT;
	const char *path = options->config_path;
	int r;

	r = config_load(path, ret, &diag);
	log_diag(&diag);
	if (r < 0 && diag.n_errors == 0)
		log_error("%s: %s", path, strerror(-r));
	config_diag_clear(&diag);
	if (r >= 0 && options->observe)
		(*ret)->host.mode = MODE_OBSERVE;
	return r;
}

static const char *cgroup_of(const struct settings *settings)
{
	const struct host_settings *host = &settings->host;

	return host->budget_kind == BUDGET_CGROUP ? host->budget_cgroup : "";
}

int manager_reload(struct manager *m, char *problem, size_t size)
{
	struct settings *settings;
	int r;

	(void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, now_us());
	r = load_settings(&m->options, &settings);
	if (r < 0) {
		(void)snprintf(problem, size,
			       "%s has mistakes: `ballastctl check` names them; the old one stays",
			       m->options.config_path);
		log_error("reload: %s", problem);
	} else {
		if (strcmp(settings->host.uri, m->settings->host.uri) != 0 ||
		    strcmp(cgroup_of(settings), cgroup_of(m->settings)) != 0)
			log_warning("reload: a new uri or budget cgroup takes a restart");
		config_free(m->settings);
		m->settings = settings;
		m->view.settings = settings;
		sources_apply_settings(m);
		manager_kick(m);
		log_notice("configuration reloaded from %s", m->options.config_path);
	}
	(void)sd_notify(0, "READY=1");
	return r;
}

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
	char problem[512];

	(void)source;
	(void)si;
	(void)manager_reload(userdata, problem, sizeof(problem));
	return 0;
}

static int on_patience_over(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;

	(void)source;
	(void)usec;
	log_warning("stopping: %zu guests were not given their memory back in time; "
		    "ballastctl release --direct does it without the daemon",
		    m->releases_pending);
	return sd_event_exit(m->event, 0);
}

static int on_terminate(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
	struct manager *m = userdata;

	(void)source;
	(void)si;
	if (m->stopping)
		return sd_event_exit(m->event, 0);
	(void)sd_notify(0, "STOPPING=1");
	m->stopping = true;
	actuator_leave(m);
	actuator_store_targets(m);
	if (m->releases_pending == 0 ||
	    sd_event_add_time_relative(m->event, &m->stop_source, CLOCK_MONOTONIC,
				       RELEASE_PATIENCE_US, 0, on_patience_over, m) < 0)
		return sd_event_exit(m->event, 0);
	return 0;
}

/* Signals are blocked in all threads, those of libvirt too, and arrive in the loop only. */
static int watch_signals(struct manager *m)
{
	sigset_t set;
	int r;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGPIPE);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	r = sd_event_add_signal(m->event, NULL, SIGTERM, on_terminate, m);
	if (r >= 0)
		r = sd_event_add_signal(m->event, NULL, SIGINT, on_terminate, m);
	if (r >= 0)
		r = sd_event_add_signal(m->event, NULL, SIGHUP, on_hangup, m);
	return r < 0 ? r : 0;
}

static int make_core(struct manager *m)
{
	int r;

	r = guests_init(&m->guests, GUEST_MAX);
	if (r >= 0)
		r = policy_new(&m->policy, GUEST_MAX);
	if (r >= 0)
		r = history_new(&m->history, GUEST_MAX);
	if (r >= 0)
		r = plan_init(&m->plan, GUEST_MAX);
	return r;
}

static int set_up(struct manager *m)
{
	int r;

	r = load_settings(&m->options, &m->settings);
	if (r < 0)
		return r;
	r = runtime_open(m);
	if (r < 0)
		return r;
	r = sd_event_default(&m->event);
	if (r < 0)
		return r;
	(void)sd_event_set_watchdog(m->event, true);
	r = watch_signals(m);
	if (r < 0)
		return r;
	r = make_core(m);
	if (r < 0)
		return r;
	r = runtime_serve(m);
	if (r < 0)
		return r;
	r = sources_open(m);
	if (r < 0)
		return r;
	return rounds_start(m);
}

int manager_new(struct manager **ret, const struct manager_options *options)
{
	struct manager *m;
	int r;

	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->options = *options;
	m->lock_fd = -1;
	r = set_up(m);
	if (r < 0) {
		(void)manager_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

struct manager *manager_free(struct manager *m)
{
	if (!m)
		return NULL;
	sources_close(m);
	m->bus = bus_free(m->bus);
	m->round_source = sd_event_source_disable_unref(m->round_source);
	m->stop_source = sd_event_source_disable_unref(m->stop_source);
	m->hook_source = sd_event_source_disable_unref(m->hook_source);
	plan_done(&m->plan);
	m->history = history_free(m->history);
	m->policy = policy_free(m->policy);
	guests_done(&m->guests);
	free(m->restored);
	free(m->targets_path);
	free(m->freeze_path);
	config_free(m->settings);
	m->event = sd_event_unref(m->event);
	if (m->lock_fd >= 0)
		(void)close(m->lock_fd);
	free(m);
	return NULL;
}

int manager_run(struct manager *m)
{
	const char *does = "acts";

	if (m->options.observe)
		does = "observes (--observe)";
	else if (m->settings->host.mode == MODE_OBSERVE)
		does = "observes (host: mode: act makes it act)";
	log_notice("ballastd %s %s, configuration %s", BALLAST_VERSION, does,
		   m->options.config_path);
	(void)sd_notify(0, "READY=1");
	return sd_event_loop(m->event);
}
