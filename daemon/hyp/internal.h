/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of daemon/hyp share.
 *
 * Theory of operation. One thread runs libvirt's event loop: its callbacks take the lock, note and
 * queue, and never call libvirt. One thread, the keeper, connects, lists and describes domains:
 * calls that libvirtd answers without asking a QEMU. Calls that wait for a QEMU are made in two
 * lanes, statistics and actuation, so that a hung call of the one can't hold up the other, each
 * with two workers: a worker that waits for an answer makes no other call, so a lane never has
 * more than two calls unreturned. A worker's call has a deadline, which the event loop's timer
 * checks; a call that misses its deadline makes its domain a suspect. Suspects get no calls until
 * theirs returns.
 *
 * Each worker has a connection of its own. In libvirt up to 9.9 the second of two threads that
 * call through one connection may wait for seconds, though its answer is there: the thread that
 * polls for both misses the wake-up when it comes just before it polls.
 *
 * Everything in struct hyp is under the lock, but what is set once before the threads start. No
 * libvirt call is ever made with the lock held. Whoever comes back from a call compares the
 * generation: after a reconnection what it brings is void.
 */
#ifndef BALLAST_HYP_INTERNAL_H
#define BALLAST_HYP_INTERNAL_H

#include <pthread.h>

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <uthash.h>

#include "daemon/hyp/hyp.h"
#include "daemon/util/cleanup.h"

#define WORKERS		 2 /* of a lane */
#define EVENTS_MAX	 8
#define THREADS_MAX	 (2 * WORKERS + 2)
#define SUSPECT_AFTER_US (3 * UINT64_C(1000000)) /* of statistics that another job kept from us */

DEFINE_CLEANUP(virDomainPtr, virDomainFree);

struct domain {
	uint8_t uuid[16];
	char name[GUEST_NAME_MAX];
	enum guest_phase phase;
	uint64_t seen_listing;
	uint64_t last_update; /* of the balloon's statistics, as QEMU stamps them; 0: none seen */
	uint64_t incomplete_since_us; /* statistics kept from us by another job, 0: no */
	bool migrating; /* an outgoing migration or a save is under way */
	bool job_checked; /* ... was asked for since we know the domain */
	bool period_wanted; /* the statistics period has to be set */
	bool answered; /* its QEMU has answered since we are connected */
	bool in_call; /* a call to this domain alone is under way */
	bool hung; /* a call to this domain has missed its deadline and hasn't returned */
	bool doubted; /* its answer was little, and is asked for once more in this round */
	bool mute; /* its statistics are kept from us while something hangs */
	UT_hash_handle hh;
};

enum job_kind {
	JOB_LIST, /* keeper */
	JOB_DESCRIBE, /* keeper */
	JOB_STATS, /* statistics lane: all guests in one call */
	JOB_SIFT, /* statistics lane: guest by guest */
	JOB_BALLOON, /* actuation lane */
	JOB_PERIOD, /* actuation lane */
};

struct job {
	enum job_kind kind;
	uint8_t uuid[16];
	bool started; /* JOB_DESCRIBE: the domain was started just now */
	uint64_t target; /* JOB_BALLOON: bytes */
	uint64_t round; /* JOB_STATS, JOB_SIFT */
	bool again; /* JOB_SIFT: those that gave little the first time */
	uint64_t queued_us;
	struct job *next;
};

/* A call that is under way in a worker. */
struct call {
	bool active;
	bool overdue;
	struct job job; /* of what it is a part; .uuid is the domain of this call */
	bool for_all; /* the call is about all domains */
	uint64_t sent_us, deadline_us;
};

struct worker {
	struct lane *lane;
	virConnectPtr conn; /* NULL: not connected */
	struct call call;
};

struct lane {
	struct hyp *hyp;
	struct job *jobs; /* first in, first out */
	struct worker workers[WORKERS];
	pthread_cond_t wake;
};

struct thread {
	struct hyp *hyp;
	pthread_t id;
	void (*run)(struct hyp *h, void *arg);
	void *arg;
	bool ended;
};

struct item {
	struct hyp_message message;
	struct item *next;
};

struct hyp {
	/* set once */
	char uri[HYP_TEXT_MAX], run_dir[HYP_TEXT_MAX], proc_dir[HYP_TEXT_MAX];
	uint64_t period_us, stats_deadline_us, call_deadline_us, retry_min_us, retry_max_us;
	bool read_only;
	int event_fd;
	int timer; /* libvirt's, for deadlines; never removed before the loop has ended */
	struct thread threads[THREADS_MAX];
	size_t n_threads;

	pthread_mutex_t lock;
	unsigned int refs; /* the caller's and one a thread */
	pthread_cond_t ended;
	bool stopping, stop_loop;

	struct item *head, *tail; /* of the message queue */

	uint64_t generation; /* of the connection */
	bool connected, synced, lost;
	char lost_why[HYP_TEXT_MAX];
	virConnectPtr conn; /* the keeper's, with the events */
	int events[EVENTS_MAX]; /* registered callbacks */
	size_t n_events;
	struct job *jobs; /* the keeper's */
	pthread_cond_t wake;

	struct domain *domains; /* uthash */
	uint64_t listing;
	struct lane stats, act;

	uint64_t round; /* of statistics, counted */
	bool round_active;
	uint64_t armed_us; /* when the timer fires, 0: not armed */
};

/* hyp.c: messages, domains, jobs. With the lock held, all of them. */
void hyp_push(struct hyp *h, const struct hyp_message *message);
void hyp_push_text(struct hyp *h, enum hyp_kind kind, int code, const char *text);
struct hyp_message message_for(enum hyp_kind kind, const struct domain *domain);
struct domain *domain_find(struct hyp *h, const uint8_t uuid[16]);
struct domain *domain_add(struct hyp *h, const uint8_t uuid[16], const char *name);
void domain_gone(struct hyp *h, struct domain *domain, const char *why);
void domain_set_phase(struct hyp *h, struct domain *domain, enum guest_phase phase);
void domain_set_migrating(struct hyp *h, struct domain *domain);
void domain_set_suspect(struct hyp *h, struct domain *domain, bool *flag, bool value);
int job_queue(struct job **list, const struct job *job, pthread_cond_t *wake);
bool job_take(struct job **list, struct job *ret);
void jobs_drop(struct job **list);

/* libvirt-conn.c */
void keeper_run(struct hyp *h, void *arg);
void error_copy(char *to, size_t size, int *ret_code);
enum guest_phase phase_from_state(int state, int reason);

/* libvirt-events.c */
int events_init(void); /* once a process */
void events_run(struct hyp *h, void *arg);
int events_register(struct hyp *h, virConnectPtr conn);
void events_deregister(struct hyp *h, virConnectPtr conn);
void events_on_close(virConnectPtr conn, int reason, void *opaque);
void events_on_timer(int timer, void *opaque);
void events_arm(struct hyp *h, uint64_t at_us); /* with the lock held */

/* libvirt-worker.c */
void lane_run(struct hyp *h, void *arg);
void calls_check(struct hyp *h, uint64_t now); /* with the lock held */
bool lane_overdue(const struct lane *lane); /* with the lock held: a call is overdue */
bool lane_full(const struct lane *lane); /* with the lock held: all its calls are overdue */
void call_begin(struct worker *worker, const struct job *job, const uint8_t *uuid,
		uint64_t deadline_us); /* with the lock held; @uuid NULL: for all domains */
bool call_end(struct worker *worker); /* with the lock held; was it in time? */
/* Queue HYP_CALL_DONE, also of a guest that has gone; with the lock held. */
void call_done(struct hyp *h, const struct job *job, uint64_t sent_us, int status, int code,
	       const char *text);
void act_run(struct worker *worker, virConnectPtr conn, uint64_t generation, const struct job *job);

/* libvirt-stats.c */
void stats_run(struct worker *worker, virConnectPtr conn, uint64_t generation,
	       const struct job *job);
void stats_overdue(struct hyp *h, const struct call *call); /* with the lock held */
void stats_round_end(struct hyp *h, int code); /* with the lock held */

#endif
