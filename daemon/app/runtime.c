// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The runtime folder: the lock that keeps a second daemon out, the targets from before a restart,
 * the freeze file and the socket of the status. It may be removed under a running daemon; then it
 * is made anew, since without it nobody could ask or stop the daemon, and a second one could start.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "daemon/app/manager.h"
#include "daemon/util/cleanup.h"
#include "daemon/util/log.h"
#include "daemon/util/time.h"

#define CHECK_INTERVAL_US (2 * USEC_PER_SEC)

/* One daemon a host: two would fight over every balloon. */
static int take_lock(struct manager *m)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	int priority = m->runtime_failing ? LOG_DEBUG : LOG_ERR;

	if (mkdir(m->options.runtime_dir, 0755) < 0 && errno != EEXIST) {
		log_fields(priority, NULL, "%s: can't be made: %s", m->options.runtime_dir,
			   strerror(errno));
		return -errno;
	}
	if (asprintf(&path, "%s/lock", m->options.runtime_dir) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0) {
		log_fields(priority, NULL, "%s: %s", path, strerror(errno));
		return -errno;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		log_error("%s: another ballastd is running here; stop it first", path);
		return -EBUSY;
	}
	if (m->lock_fd >= 0)
		(void)close(m->lock_fd);
	m->lock_fd = TAKE_FD(fd);
	return 0;
}

static int load_targets(struct manager *m)
{
	int r;

	if (asprintf(&m->targets_path, "%s/targets", m->options.runtime_dir) < 0 ||
	    asprintf(&m->freeze_path, "%s/freeze", m->options.runtime_dir) < 0)
		return -ENOMEM;
	r = targets_load(m->targets_path, &m->restored, &m->n_restored);
	if (r < 0)
		log_warning("%s: %s; what the hypervisor reports is taken as it is",
			    m->targets_path, r == -EBADMSG ? "is damaged" : strerror(-r));
	return 0;
}

int runtime_open(struct manager *m)
{
	int r;

	r = take_lock(m);
	return r < 0 ? r : load_targets(m);
}

static int on_bus_reload(void *userdata, char *problem, size_t size)
{
	return manager_reload(userdata, problem, size);
}

static void on_bus_notice(void *userdata, const char *text)
{
	(void)userdata;
	log_info("%s", text);
}

int runtime_serve(struct manager *m)
{
	struct bus_config config = {
		.runtime_dir = m->options.runtime_dir,
		.system_bus = m->options.system_bus,
		.reload = on_bus_reload,
		.notice = on_bus_notice,
		.userdata = m,
	};
	int r;

	m->view = (struct bus_view){
		.snapshot = &m->current,
		.plan = &m->plan,
		.settings = m->settings,
		.history = m->history,
		.realtime_offset_us = realtime_offset_us(),
		.now_us = now_us,
	};
	r = bus_new(&m->bus, m->event, &config, &m->view);
	if (r < 0)
		log_error("%s/bus: can't serve the status: %s", m->options.runtime_dir,
			  strerror(-r));
	return r;
}

/* Whether the lock that we hold is the one that the next daemon would ask for. */
static bool is_locked(const struct manager *m)
{
	struct stat ours, there;
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/lock", m->options.runtime_dir);
	return fstat(m->lock_fd, &ours) == 0 && stat(path, &there) == 0 &&
	       ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

static int make_anew(struct manager *m)
{
	int r;

	r = take_lock(m);
	if (r < 0)
		return r;
	m->bus = bus_free(m->bus);
	m->targets_stored = 0;
	return runtime_serve(m);
}

void runtime_check(struct manager *m, uint64_t now)
{
	int r;

	if (now - m->runtime_checked_us < CHECK_INTERVAL_US)
		return;
	m->runtime_checked_us = now;
	if (is_locked(m) && m->bus)
		return;
	if (!m->runtime_failing)
		log_warning("%s: was removed, it is made anew", m->options.runtime_dir);
	r = make_anew(m);
	m->runtime_failing = r < 0;
	/* Somebody else acts on this host now. */
	if (r == -EBUSY)
		(void)sd_event_exit(m->event, r);
}
