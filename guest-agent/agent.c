// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest-agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest-agent/notify.h"
#include "guest-agent/util.h"

#define READS_A_TURN	16
#define US_A_MS		1000
#define AGENT_LOCK_FILE KNOBS_STATE_DIR "/lock"

static int watch(int epoll_fd, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int open_signals(void)
{
	sigset_t set;
	int fd;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int open_loop(struct agent *agent)
{
	int r;

	agent->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (agent->epoll_fd < 0)
		return -errno;
	agent->signal_fd = open_signals();
	if (agent->signal_fd < 0)
		return agent->signal_fd;
	r = watch(agent->epoll_fd, agent->signal_fd, EPOLLIN);
	if (r < 0 || agent->trigger.fd < 0)
		return r;
	return watch(agent->epoll_fd, agent->trigger.fd, EPOLLPRI);
}

/*
 * A second agent would take the first one's settings for those of one that crashed, and restore
 * them at its end. Where there is no place for the lock there is none for the note of own values
 * either, and nothing is set.
 */
static int lock(struct agent *agent, char *ret_error, size_t error_size)
{
	char path[AGENT_PATH_MAX];

	if (root_path(agent->root, KNOBS_STATE_DIR, path) == 0)
		(void)mkdir(path, 0755);
	if (root_path(agent->root, AGENT_LOCK_FILE, path) < 0)
		return 0;
	agent->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (agent->lock_fd < 0 || flock(agent->lock_fd, LOCK_EX | LOCK_NB) == 0 ||
	    errno != EWOULDBLOCK)
		return 0;
	(void)snprintf(ret_error, error_size,
		       "another ballast-agent runs (it holds %s); --once works beside it", path);
	return -EBUSY;
}

static void tell_restored(struct agent *agent, int r)
{
	/* A setting that isn't there any more has no value to be given back. */
	if (!knobs_changed(&agent->knobs))
		r = 0;
	if (r < 0 && r != agent->restore_told)
		dprintf(STDERR_FILENO,
			"ballast-agent: a setting's own value can't be restored: %s; "
			"ballast-agent --once names it\n",
			strerror(-r));
	agent->restore_told = r;
}

void agent_restore(struct agent *agent)
{
	tell_restored(agent, knobs_restore(&agent->knobs));
}

/* What an agent before us has set stays, for the host to renew, as far as the owner permits it. */
static void load_settings(struct agent *agent)
{
	if (!knobs_load(&agent->knobs, agent->root, agent->config.keep))
		return;
	if (agent->config.allow & WIRE_CAP_PROFILE)
		tell_restored(agent, knobs_restore_kept(&agent->knobs));
	else
		agent_restore(agent);
}

int agent_init(struct agent *agent, char *ret_error, size_t error_size)
{
	int r;

	agent->epoll_fd = agent->signal_fd = agent->trigger.fd = agent->lock_fd = -1;
	agent->interval_ms = AGENT_INTERVAL_MS;
	agent->shed.root = agent->root;
	agent->session.lease_us = (uint64_t)WIRE_LEASE_DEFAULT_MS * US_A_MS;
	agent->session.heard_us = clock_us();
	agent->watchdog_us = notify_watchdog_us();
	port_init(&agent->port, agent->root, agent->config.port);
	r = sampler_open(&agent->sampler, agent->root);
	if (r < 0) {
		(void)snprintf(ret_error, error_size, "%s/proc/meminfo: %s: is /proc mounted?",
			       agent->root, strerror(-r));
		return r;
	}
	r = lock(agent, ret_error, error_size);
	if (r < 0)
		return r;
	load_settings(agent);
	(void)trigger_arm(&agent->trigger, agent->root);
	r = open_loop(agent);
	if (r < 0)
		(void)snprintf(ret_error, error_size, "cannot set up the event loop: %s",
			       strerror(-r));
	return r;
}

void agent_deinit(struct agent *agent)
{
	port_close(&agent->port);
	sampler_close(&agent->sampler);
	trigger_close(&agent->trigger);
	if (agent->signal_fd >= 0)
		(void)close(agent->signal_fd);
	if (agent->epoll_fd >= 0)
		(void)close(agent->epoll_fd);
	if (agent->lock_fd >= 0)
		(void)close(agent->lock_fd);
}

/* Read what the host sent, not more than some at a time. Return: whether there may be more. */
static bool receive(struct agent *agent)
{
	uint8_t buf[1024];

	for (int i = 0; i < READS_A_TURN; i++) {
		uint64_t now = clock_us();
		ssize_t n = port_read(&agent->port, buf, sizeof(buf), now);

		if (n == -EPIPE)
			session_end(agent);
		if (n <= 0)
			return false;
		session_bytes(agent, buf, (size_t)n, now);
	}
	return true;
}

static void sample_if_due(struct agent *agent, uint64_t now)
{
	struct session *session = &agent->session;
	uint64_t interval = agent->interval_ms * US_A_MS;

	if (now < session->next_sample_us)
		return;
	if (agent->config.allow & WIRE_CAP_SAMPLE)
		(void)sampler_step(&agent->sampler, now);
	session_sample(agent, WIRE_CAUSE_TIMER);
	session->next_sample_us += interval;
	/* After a pause of the guest there is nothing to catch up with. */
	if (session->next_sample_us <= now)
		session->next_sample_us = now + interval;
}

/* What there is to do while a host is there. Return: when to come back; 0 for at once. */
static uint64_t serve(struct agent *agent, uint64_t now)
{
	struct session *session = &agent->session;
	bool more;

	if (now >= session->next_hello_us)
		session_hello(agent, now);
	sample_if_due(agent, now);
	more = receive(agent);
	port_flush(&agent->port);
	if (agent->port.state != PORT_UP)
		return agent->port.next_us;
	if (agent->shed.active)
		session_shed(agent);
	if (agent->sampler.walk.running)
		(void)sampler_step(&agent->sampler, now);
	if (more || agent->shed.active || agent->sampler.walk.running)
		return 0;
	return lesser(session->next_hello_us, session->next_sample_us);
}

static uint64_t feed_watchdog(struct agent *agent, uint64_t now)
{
	if (!agent->watchdog_us)
		return UINT64_MAX;
	if (now >= agent->next_watchdog_us) {
		(void)notify_send("WATCHDOG=1");
		agent->next_watchdog_us = now + agent->watchdog_us;
	}
	return agent->next_watchdog_us;
}

/* Say once how the port is: to the service manager, and on stderr what has to be done about it. */
static void tell_port(struct agent *agent)
{
	const struct port *port = &agent->port;
	/* A socket whose host has hung up is closed without an error, and waited for. */
	bool failed = port->state == PORT_CLOSED && port->error < 0;
	int now = failed ? port->error : 1 + (port->state == PORT_UP);
	char text[128 + AGENT_PORT_MAX];

	if (now == agent->told)
		return;
	agent->told = now;
	if (port->state == PORT_UP)
		(void)snprintf(text, sizeof(text), "STATUS=Serving the host on %s", port->path);
	else if (!failed)
		(void)snprintf(text, sizeof(text), "STATUS=Waiting for a host on %s", port->path);
	else if (!*port->path)
		(void)snprintf(text, sizeof(text),
			       "STATUS=The host has given this guest no port " WIRE_PORT_NAME
			       "; looking again every second");
	else
		(void)snprintf(text, sizeof(text), "STATUS=%s: %s; trying again every second",
			       port->path, strerror(-port->error));
	(void)notify_send(text);
	if (failed)
		dprintf(STDERR_FILENO, "ballast-agent: %s\n", text + strlen("STATUS="));
}

/* One turn without waiting. Return: when the next is due, 0 for at once. */
static uint64_t turn(struct agent *agent)
{
	uint64_t now = clock_us(), next;

	if (port_check(&agent->port, agent->epoll_fd, now))
		session_begin(agent, now);
	tell_port(agent);
	next = agent->port.state == PORT_UP ? serve(agent, now) : agent->port.next_us;
	next = lesser(next, session_lease(agent, now));
	return lesser(next, feed_watchdog(agent, now));
}

static int timeout_ms(uint64_t next)
{
	uint64_t now = clock_us(), ms;

	if (next <= now)
		return 0;
	ms = (next - now + US_A_MS - 1) / US_A_MS;
	return ms < 60000 ? (int)ms : 60000;
}

static void take_trigger(struct agent *agent, uint32_t events)
{
	if (events & EPOLLERR) {
		/* PSI was switched off under us. */
		trigger_close(&agent->trigger);
		return;
	}
	if (events & EPOLLPRI && agent->port.state == PORT_UP)
		session_pressure(agent, clock_us());
}

/* Return: 1 to stop, 0, or a negative errno. */
static int wait_events(struct agent *agent, int timeout)
{
	struct epoll_event events[4];
	int n = epoll_wait(agent->epoll_fd, events, 4, timeout);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++) {
		if (events[i].data.fd == agent->signal_fd)
			return 1;
		if (events[i].data.fd == agent->trigger.fd)
			take_trigger(agent, events[i].events);
		/* The port needs no more than the turn that follows. */
	}
	return 0;
}

int agent_run(struct agent *agent)
{
	int r;

	(void)notify_send("READY=1");
	do {
		r = wait_events(agent, timeout_ms(turn(agent)));
	} while (r == 0);
	(void)notify_send("STOPPING=1");
	agent_restore(agent);
	if (agent->port.state == PORT_UP)
		session_bye(agent, WIRE_BYE_STOP);
	return r < 0 ? r : 0;
}
