// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The shortfall: what the host lacks and nobody may be made to give. It is said once when it
 * begins and once when it ends, and a program of the administrator's is run when it lasts.
 */
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "daemon/app/manager.h"
#include "daemon/util/log.h"
#include "daemon/util/time.h"

/* A shortfall shorter than this is the time that acting takes. */
#define SHORTFALL_LASTS_US (10 * USEC_PER_SEC)

static int on_hook_exit(sd_event_source *source, const siginfo_t *si, void *userdata)
{
	struct manager *m = userdata;

	m->hook_source = sd_event_source_unref(source);
	if (si->si_code != CLD_EXITED || si->si_status != 0)
		log_warning("%s: ended with %s %d", m->settings->host.shortfall_hook,
			    si->si_code == CLD_EXITED ? "status" : "signal", si->si_status);
	return 0;
}

/* The daemon blocks the signals that its loop handles; the program starts with none blocked. */
static int spawn(pid_t *ret_pid, char *const argv[], char *const envp[])
{
	posix_spawnattr_t attributes;
	sigset_t none;
	int r;

	(void)sigemptyset(&none);
	r = posix_spawnattr_init(&attributes);
	if (r != 0)
		return -r;
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	r = posix_spawn(ret_pid, argv[0], NULL, &attributes, argv, envp);
	(void)posix_spawnattr_destroy(&attributes);
	return -r;
}

static void run_hook(struct manager *m)
{
	char shortfall[48],
		path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	char *const argv[] = { m->settings->host.shortfall_hook, NULL };
	char *const envp[] = { shortfall, path, NULL };
	pid_t pid = 0;
	int r;

	if (!m->settings->host.shortfall_hook[0] || m->hook_source)
		return;
	(void)snprintf(shortfall, sizeof(shortfall), "BALLAST_SHORTFALL=%" PRIu64,
		       m->plan.shortfall);
	r = spawn(&pid, argv, envp);
	if (r < 0) {
		log_error("%s: can't be run: %s", argv[0], strerror(-r));
		return;
	}
	r = sd_event_add_child(m->event, &m->hook_source, pid, WEXITED, on_hook_exit, m);
	if (r < 0)
		log_warning("%s: can't be waited for: %s", argv[0], strerror(-r));
}

void hook_check(struct manager *m, uint64_t now)
{
	if (m->plan.shortfall == 0) {
		if (m->shortfall_told)
			log_notice("the shortfall is over");
		m->shortfall_since_us = 0;
		m->shortfall_told = false;
		return;
	}
	if (m->shortfall_since_us == 0)
		m->shortfall_since_us = now;
	if (m->shortfall_told || now - m->shortfall_since_us < SHORTFALL_LASTS_US)
		return;
	m->shortfall_told = true;
	log_warning("the host lacks %" PRIu64 " MiB and no guest may be made to give more: "
		    "lower a min, migrate a guest away, or raise the budget",
		    m->plan.shortfall >> 20);
	run_hook(m);
}
