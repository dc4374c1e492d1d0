// SPDX-License-Identifier: GPL-2.0-or-later
/* The queue, the domains that are known, and the calls that the daemon makes. */
#include "daemon/hyp/hyp.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "daemon/hyp/internal.h"
#include "daemon/util/time.h"

#define STACK_SIZE   (256 * 1024)
#define END_WAIT_US  (2 * USEC_PER_SEC)
#define DEFAULT_URI  "qemu:///system"
#define DEFAULT_RUN  "/run/libvirt/qemu"
#define DEFAULT_PROC "/proc"

/* --- Messages; with the lock held ------------------------------------------------------------- */

void hyp_push(struct hyp *h, const struct hyp_message *message)
{
	struct item *item = malloc(sizeof(*item));
	uint64_t one = 1;

	/* Without memory for a message nothing better can be done than to leave it out: events are
	 * hints, and what is listed and sampled comes again. */
	if (!item)
		return;
	item->message = *message;
	item->next = NULL;
	if (h->tail)
		h->tail->next = item;
	else
		h->head = item;
	h->tail = item;
	(void)!write(h->event_fd, &one, sizeof(one));
}

void hyp_push_text(struct hyp *h, enum hyp_kind kind, int code, const char *text)
{
	struct hyp_message message = { .kind = kind, .code = code, .at_us = now_us() };

	(void)snprintf(message.text, sizeof(message.text), "%s", text);
	hyp_push(h, &message);
}

struct hyp_message message_for(enum hyp_kind kind, const struct domain *domain)
{
	struct hyp_message message = { .kind = kind, .at_us = now_us() };

	memcpy(message.uuid, domain->uuid, sizeof(message.uuid));
	memcpy(message.name, domain->name, sizeof(message.name));
	return message;
}

bool hyp_next(struct hyp *h, struct hyp_message *ret)
{
	struct item *item;
	uint64_t count;

	(void)pthread_mutex_lock(&h->lock);
	item = h->head;
	if (item) {
		h->head = item->next;
		if (!h->head)
			h->tail = NULL;
	}
	if (!h->head)
		(void)!read(h->event_fd, &count, sizeof(count));
	(void)pthread_mutex_unlock(&h->lock);
	if (!item)
		return false;
	*ret = item->message;
	free(item);
	return true;
}

int hyp_fd(const struct hyp *h)
{
	return h->event_fd;
}

const char *hyp_kind_name(enum hyp_kind kind)
{
	static const char *const names[HYP_KIND_MAX] = {
		[HYP_CONNECTED] = "connected",
		[HYP_SYNCED] = "synced",
		[HYP_DISCONNECTED] = "disconnected",
		[HYP_GUEST] = "guest",
		[HYP_GUEST_GONE] = "guest-gone",
		[HYP_PHASE] = "phase",
		[HYP_REBOOT] = "reboot",
		[HYP_STATS] = "stats",
		[HYP_STATS_DONE] = "stats-done",
		[HYP_BALLOON] = "balloon",
		[HYP_CALL_DONE] = "call-done",
		[HYP_SUSPECT] = "suspect",
	};

	return (unsigned int)kind < HYP_KIND_MAX ? names[kind] : "unknown";
}

/* --- Domains; with the lock held -------------------------------------------------------------- */

struct domain *domain_find(struct hyp *h, const uint8_t uuid[16])
{
	struct domain *domain;

	HASH_FIND(hh, h->domains, uuid, sizeof(domain->uuid), domain);
	return domain;
}

struct domain *domain_add(struct hyp *h, const uint8_t uuid[16], const char *name)
{
	struct domain *domain = domain_find(h, uuid);

	if (!domain) {
		domain = calloc(1, sizeof(*domain));
		if (!domain)
			return NULL;
		memcpy(domain->uuid, uuid, sizeof(domain->uuid));
		HASH_ADD(hh, h->domains, uuid, sizeof(domain->uuid), domain);
	}
	(void)snprintf(domain->name, sizeof(domain->name), "%s", name);
	return domain;
}

void domain_gone(struct hyp *h, struct domain *domain, const char *why)
{
	struct hyp_message message = message_for(HYP_GUEST_GONE, domain);

	(void)snprintf(message.text, sizeof(message.text), "%s", why);
	hyp_push(h, &message);
	HASH_DEL(h->domains, domain);
	free(domain);
}

void domain_set_phase(struct hyp *h, struct domain *domain, enum guest_phase phase)
{
	struct hyp_message message = message_for(HYP_PHASE, domain);

	/* A job that moves the guest away is more than whether it runs just now. */
	if (domain->migrating && (phase == PHASE_RUNNING || phase == PHASE_PAUSED))
		phase = PHASE_MIGRATING;
	if (domain->phase == phase)
		return;
	domain->phase = phase;
	message.phase = phase;
	hyp_push(h, &message);
}

/* A job that moves the guest away, or saves it, is under way. */
void domain_set_migrating(struct hyp *h, struct domain *domain)
{
	domain->migrating = true;
	if (domain->phase != PHASE_SAVING)
		domain_set_phase(h, domain, PHASE_MIGRATING);
}

/* @flag is the domain's hung or mute. */
void domain_set_suspect(struct hyp *h, struct domain *domain, bool *flag, bool value)
{
	struct hyp_message message = message_for(HYP_SUSPECT, domain);
	bool before = domain->hung || domain->mute;

	*flag = value;
	message.suspect = domain->hung || domain->mute;
	if (message.suspect != before)
		hyp_push(h, &message);
}

/* --- Jobs; with the lock held ----------------------------------------------------------------- */

static bool is_same(const struct job *a, const struct job *b)
{
	return a->kind == b->kind && a->started == b->started && a->target == b->target &&
	       a->round == b->round && memcmp(a->uuid, b->uuid, sizeof(a->uuid)) == 0;
}

/* What waits already needn't wait twice, so that a list stays short while libvirtd stands still. */
int job_queue(struct job **list, const struct job *job, pthread_cond_t *wake)
{
	struct job *copy;

	for (; *list; list = &(*list)->next)
		if (is_same(*list, job))
			return 0;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	*copy = *job;
	copy->next = NULL;
	copy->queued_us = now_us();
	*list = copy;
	(void)pthread_cond_broadcast(wake);
	return 0;
}

bool job_take(struct job **list, struct job *ret)
{
	struct job *job = *list;

	if (!job)
		return false;
	*list = job->next;
	*ret = *job;
	free(job);
	return true;
}

void jobs_drop(struct job **list)
{
	struct job job;

	while (job_take(list, &job))
		;
}

/* --- Requests --------------------------------------------------------------------------------- */

int hyp_request_stats(struct hyp *h)
{
	struct job job = { .kind = JOB_STATS };
	int r = 0;

	(void)pthread_mutex_lock(&h->lock);
	if (!h->synced)
		r = -ENOTCONN;
	else if (h->round_active || lane_full(&h->stats))
		r = -EALREADY;
	if (r == 0) {
		job.round = ++h->round;
		r = job_queue(&h->stats.jobs, &job, &h->stats.wake);
		h->round_active = r == 0;
	}
	(void)pthread_mutex_unlock(&h->lock);
	return r;
}

static bool balloon_queued(const struct hyp *h, const uint8_t uuid[16])
{
	for (const struct job *job = h->act.jobs; job; job = job->next)
		if (job->kind == JOB_BALLOON && memcmp(job->uuid, uuid, sizeof(job->uuid)) == 0)
			return true;
	for (size_t i = 0; i < WORKERS; i++) {
		const struct call *call = &h->act.workers[i].call;

		if (call->active && call->job.kind == JOB_BALLOON &&
		    memcmp(call->job.uuid, uuid, sizeof(call->job.uuid)) == 0)
			return true;
	}
	return false;
}

static int balloon_refused(struct hyp *h, const uint8_t uuid[16])
{
	const struct domain *domain = domain_find(h, uuid);

	if (h->read_only)
		return -EROFS;
	if (!h->synced)
		return -ENOTCONN;
	if (!domain)
		return -ENOENT;
	return domain->hung || domain->mute || balloon_queued(h, uuid) ? -EBUSY : 0;
}

int hyp_request_balloon(struct hyp *h, const uint8_t uuid[16], uint64_t bytes)
{
	struct job job = { .kind = JOB_BALLOON, .target = bytes };
	int r;

	memcpy(job.uuid, uuid, sizeof(job.uuid));
	(void)pthread_mutex_lock(&h->lock);
	r = balloon_refused(h, uuid);
	if (r == 0)
		r = job_queue(&h->act.jobs, &job, &h->act.wake);
	if (r == 0)
		events_arm(h, now_us() + h->call_deadline_us);
	(void)pthread_mutex_unlock(&h->lock);
	return r;
}

int hyp_request_list(struct hyp *h)
{
	struct job job = { .kind = JOB_LIST };
	int r;

	(void)pthread_mutex_lock(&h->lock);
	r = h->synced ? job_queue(&h->jobs, &job, &h->wake) : -ENOTCONN;
	(void)pthread_mutex_unlock(&h->lock);
	return r;
}

/* --- Threads ---------------------------------------------------------------------------------- */

static void hyp_destroy(struct hyp *h)
{
	struct domain *domain, *next;
	struct item *item;

	while ((item = h->head)) {
		h->head = item->next;
		free(item);
	}
	HASH_ITER (hh, h->domains, domain, next) {
		HASH_DEL(h->domains, domain);
		free(domain);
	}
	jobs_drop(&h->jobs);
	jobs_drop(&h->stats.jobs);
	jobs_drop(&h->act.jobs);
	if (h->event_fd >= 0)
		(void)close(h->event_fd);
	(void)pthread_cond_destroy(&h->wake);
	(void)pthread_cond_destroy(&h->ended);
	(void)pthread_cond_destroy(&h->stats.wake);
	(void)pthread_cond_destroy(&h->act.wake);
	(void)pthread_mutex_destroy(&h->lock);
	free(h);
}

/* The last one, be it the daemon or a thread that came back late, frees everything. */
static void unref_and_unlock(struct hyp *h)
{
	bool last = --h->refs == 0;

	(void)pthread_mutex_unlock(&h->lock);
	if (last)
		hyp_destroy(h);
}

static void *thread_main(void *arg)
{
	struct thread *thread = arg;
	struct hyp *h = thread->hyp;

	thread->run(h, thread->arg);
	(void)pthread_mutex_lock(&h->lock);
	thread->ended = true;
	(void)pthread_cond_broadcast(&h->ended);
	unref_and_unlock(h);
	return NULL;
}

static int thread_start(struct hyp *h, void (*run)(struct hyp *, void *), void *arg)
{
	struct thread *thread = &h->threads[h->n_threads];
	pthread_attr_t attr;
	sigset_t all, before;
	int r;

	*thread = (struct thread){ .hyp = h, .run = run, .arg = arg };
	r = pthread_attr_init(&attr);
	if (r)
		return -r;
	(void)pthread_attr_setstacksize(&attr, STACK_SIZE);
	(void)pthread_mutex_lock(&h->lock);
	h->refs++;
	(void)pthread_mutex_unlock(&h->lock);
	/* Signals are the daemon's; and libvirt writes to sockets that libvirtd has left (SIGPIPE). */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread->id, &attr, thread_main, thread);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
	if (r) {
		(void)pthread_mutex_lock(&h->lock);
		h->refs--;
		(void)pthread_mutex_unlock(&h->lock);
		return -r;
	}
	h->n_threads++;
	return 0;
}

static int start_threads(struct hyp *h)
{
	int r = thread_start(h, events_run, NULL);

	for (int i = 0; r == 0 && i < WORKERS; i++) {
		r = thread_start(h, lane_run, &h->stats.workers[i]);
		if (r == 0 && !h->read_only)
			r = thread_start(h, lane_run, &h->act.workers[i]);
	}
	return r == 0 ? thread_start(h, keeper_run, NULL) : r;
}

static void set_text(char *to, size_t size, const char *value, const char *fallback)
{
	(void)snprintf(to, size, "%s", value && value[0] ? value : fallback);
}

static void set_options(struct hyp *h, const struct hyp_options *options)
{
	set_text(h->uri, sizeof(h->uri), options->uri, DEFAULT_URI);
	set_text(h->run_dir, sizeof(h->run_dir), options->run_dir, DEFAULT_RUN);
	set_text(h->proc_dir, sizeof(h->proc_dir), options->proc_dir, DEFAULT_PROC);
	h->period_us = options->stats_period_us ?: USEC_PER_SEC;
	h->stats_deadline_us = options->stats_deadline_us ?: 500 * USEC_PER_MSEC;
	h->call_deadline_us = options->call_deadline_us ?: 2 * USEC_PER_SEC;
	h->retry_min_us = options->retry_min_us ?: USEC_PER_SEC;
	h->retry_max_us = options->retry_max_us ?: 30 * USEC_PER_SEC;
	h->read_only = options->read_only;
}

static void init_conds(struct hyp *h)
{
	pthread_condattr_t attr;

	(void)pthread_mutex_init(&h->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&h->wake, &attr);
	(void)pthread_cond_init(&h->ended, &attr);
	(void)pthread_cond_init(&h->stats.wake, &attr);
	(void)pthread_cond_init(&h->act.wake, &attr);
	(void)pthread_condattr_destroy(&attr);
}

static void init_lane(struct hyp *h, struct lane *lane)
{
	lane->hyp = h;
	for (size_t i = 0; i < WORKERS; i++)
		lane->workers[i].lane = lane;
}

int hyp_new(struct hyp **ret, const struct hyp_options *options)
{
	struct hyp *h;
	int r;

	r = events_init();
	if (r < 0)
		return r;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	set_options(h, options);
	init_conds(h);
	h->refs = 1;
	init_lane(h, &h->stats);
	init_lane(h, &h->act);
	h->timer = virEventAddTimeout(-1, events_on_timer, h, NULL);
	h->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->timer < 0 || h->event_fd < 0)
		r = h->event_fd < 0 ? -errno : -ENOMEM;
	else
		r = start_threads(h);
	if (r < 0) {
		(void)hyp_free(h);
		return r;
	}
	*ret = h;
	return 0;
}

/* Wait until threads have ended, or until the time is over; with the lock held. */
static void wait_ended(struct hyp *h, size_t first, size_t end, uint64_t until_us)
{
	struct timespec until = timespec_of(until_us);

	for (size_t i = first; i < end && i < h->n_threads; i++)
		while (!h->threads[i].ended)
			if (pthread_cond_timedwait(&h->ended, &h->lock, &until) == ETIMEDOUT)
				return;
}

struct hyp *hyp_free(struct hyp *h)
{
	struct thread threads[THREADS_MAX];
	size_t n_threads;

	if (!h)
		return NULL;
	(void)pthread_mutex_lock(&h->lock);
	h->stopping = true;
	(void)pthread_cond_broadcast(&h->wake);
	(void)pthread_cond_broadcast(&h->stats.wake);
	(void)pthread_cond_broadcast(&h->act.wake);
	/* The event loop, thread 0, is the last to go: closing a connection needs it. */
	wait_ended(h, 1, h->n_threads, now_us() + END_WAIT_US);
	h->stop_loop = true;
	if (h->timer >= 0)
		virEventUpdateTimeout(h->timer, 0);
	wait_ended(h, 0, 1, now_us() + END_WAIT_US);
	n_threads = h->n_threads;
	memcpy(threads, h->threads, sizeof(threads));
	if (h->timer >= 0)
		(void)virEventRemoveTimeout(h->timer);
	unref_and_unlock(h);
	for (size_t i = 0; i < n_threads; i++)
		(void)(threads[i].ended ? pthread_join(threads[i].id, NULL)
					: pthread_detach(threads[i].id));
	return NULL;
}
