/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hypervisor, as the daemon sees it: a queue of messages to read and a few requests to make.
 * Behind it libvirt runs in threads of its own, so that no call of the daemon ever waits for
 * libvirt or for a QEMU that doesn't answer. Nothing of libvirt shows here.
 *
 * Use, from one thread:
 *
 *	hyp_new(&h, &(struct hyp_options){ .uri = "qemu:///system" });
 *	sd_event_add_io(event, &source, hyp_fd(h), EPOLLIN, on_hyp, manager);
 *	on_hyp: while (hyp_next(h, &message)) ...;
 *	each statistics interval: hyp_request_stats(h);
 *	each minute or so: hyp_request_list(h), as events are hints only;
 *	hyp_free(h);
 *
 * It connects by itself, and again with a back-off of 1 to 30 s when libvirtd goes away. The order
 * of messages of a connection is HYP_CONNECTED, HYP_GUEST for each running guest (and
 * HYP_GUEST_GONE for each that was known before and is no longer there), HYP_SYNCED, then whatever
 * happens, at last HYP_DISCONNECTED. While it isn't synchronised every target has to be held.
 * HYP_GUEST is a full description and may come at any time for a guest that is known: it replaces
 * what was known. A guest is named by its UUID everywhere; messages hold copies, nothing to free.
 *
 * Amounts in bytes, times in µs of CLOCK_MONOTONIC. One struct hyp at a time in a process, since
 * libvirt's event loop is one a process.
 */
#ifndef BALLAST_HYP_HYP_H
#define BALLAST_HYP_HYP_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/snapshot.h"

#define HYP_TEXT_MAX	 256
#define HYP_PATH_MAX	 108 /* of a Unix socket */
#define HYP_METADATA_MAX 128

/* The domain's metadata element: <ballast:guest xmlns:ballast="urn:org.ballast1">TEXT</...> */
#define HYP_METADATA_URI "urn:org.ballast1"

struct hyp;

struct hyp_options {
	const char *uri; /* NULL: qemu:///system */
	const char *run_dir; /* of libvirt's PID files, NULL: /run/libvirt/qemu */
	const char *proc_dir; /* NULL: /proc */
	uint64_t stats_period_us; /* balloon driver statistics, whole seconds; 0: 1 s */
	uint64_t stats_deadline_us; /* of a statistics call, 0: 500 ms */
	uint64_t call_deadline_us; /* of any other call to a guest, 0: 2 s */
	uint64_t retry_min_us, retry_max_us; /* back-off of connecting, 0: 1 s and 30 s */
	bool read_only; /* observe: a read-only connection; balloon requests give -EROFS */
};

enum hyp_kind {
	HYP_CONNECTED, /* text: the URI */
	HYP_SYNCED, /* all guests have been named */
	HYP_DISCONNECTED, /* text and code: why; also after each failed attempt to connect */
	HYP_GUEST, /* guest */
	HYP_GUEST_GONE, /* text: why, such as "shutdown", "migrated" */
	HYP_PHASE, /* phase */
	HYP_REBOOT, /* the guest rebooted: what was known of its inside is void */
	HYP_STATS, /* stats */
	HYP_STATS_DONE, /* hyp_request_stats() is through; code: 0 or -ETIMEDOUT with some missing */
	HYP_BALLOON, /* event: actual changed */
	HYP_CALL_DONE, /* call: a balloon request was answered, or has missed its deadline */
	HYP_SUSPECT, /* suspect: true, it doesn't answer (PHASE_BLOCKED); false, it does again */
	HYP_KIND_MAX,
};

struct hyp_guest {
	int pid; /* of its QEMU, 0: not found */
	enum guest_phase phase; /* RUNNING, PAUSED, MIGRATING, SAVING or STOPPED */
	bool started; /* it was started just now: it boots */
	uint32_t obstacles; /* enum guest_obstacle */
	uint64_t maximum;
	bool autodeflate, reporting;
	bool tcg; /* emulated, not KVM */
	char channel_path[HYP_PATH_MAX]; /* of org.ballast.agent.0's socket, "": no such channel */
	bool channel_open; /* the guest had its end open when this was said */
	char metadata[HYP_METADATA_MAX]; /* text of the ballast element, "" for none */
};

struct hyp_stats {
	enum guest_phase phase;
	bool complete; /* QEMU was asked; else another job held the guest: only actual, maximum */
	uint64_t actual, maximum; /* 0: not told */
	/* From the balloon driver in the guest: absent without a driver that reports. */
	bool has_usable, has_unused;
	uint64_t usable, unused;
	bool updated; /* last-update has changed since the statistics before: these are new */
};

struct hyp_call {
	uint64_t target; /* as asked */
	int status; /* 0: queued with QEMU, which isn't yet done; -ETIMEDOUT, -EBUSY, -ENOENT,
		     * -EROFS, -EINVAL, -ENOTCONN, -EIO; text says more */
	uint64_t sent_us;
};

struct hyp_message {
	enum hyp_kind kind;
	uint64_t at_us; /* when libvirt said so */
	uint8_t uuid[16]; /* of the guest, where it is about one */
	char name[GUEST_NAME_MAX]; /* "" where HYP_CALL_DONE is about a guest that has gone */
	char text[HYP_TEXT_MAX]; /* a reason for a person, may be "" */
	int code; /* libvirt's error code where text comes from libvirt */
	union {
		struct hyp_guest guest;
		enum guest_phase phase;
		struct hyp_stats stats;
		uint64_t actual;
		struct hyp_call call;
		bool suspect;
	};
};

/**
 * hyp_new() - start the threads and begin to connect.
 * @ret: owned by the caller, to be given to hyp_free().
 *
 * Not being able to connect is no error here but HYP_DISCONNECTED.
 * Return: 0, -ENOMEM, or the errno of a thread or an eventfd that couldn't be made.
 */
int hyp_new(struct hyp **ret, const struct hyp_options *options);

/**
 * hyp_free() - disconnect and end. Waits at most 2 s for calls that are under way; a thread that a
 * hung QEMU holds longer is left to itself and frees what it has when the call returns.
 *
 * Return: NULL.
 */
struct hyp *hyp_free(struct hyp *h);

/** hyp_fd() - a descriptor that is readable while there are messages; it belongs to @h. */
int hyp_fd(const struct hyp *h);

/**
 * hyp_next() - take the oldest message.
 *
 * Return: whether there was one.
 */
bool hyp_next(struct hyp *h, struct hyp_message *ret);

/**
 * hyp_request_stats() - ask for the statistics of every guest: HYP_STATS for each that answers,
 * then HYP_STATS_DONE.
 *
 * When QEMUs hang, the guests that answer are still told; those that don't get HYP_SUSPECT and are
 * left out until they do. At most two calls are ever left unreturned.
 * Return: 0; -EALREADY while the round before isn't through or two calls are unreturned,
 * -ENOTCONN before HYP_SYNCED.
 */
int hyp_request_stats(struct hyp *h);

/**
 * hyp_request_balloon() - set a guest's balloon target, of the running guest only.
 * @bytes: rounded down to KiB. libvirt accepts any value that isn't above the maximum, so the
 *         floor is the caller's.
 *
 * HYP_CALL_DONE follows for each request that returned 0.
 * Return: 0; -EBUSY while a call for this guest is under way or it is suspect, -ENOENT, -EROFS,
 * -ENOTCONN, -ENOMEM.
 */
int hyp_request_balloon(struct hyp *h, const uint8_t uuid[16], uint64_t bytes);

/**
 * hyp_request_list() - list and describe all guests again: HYP_GUEST for each, HYP_GUEST_GONE,
 * HYP_SYNCED.
 *
 * Return: 0, -ENOTCONN.
 */
int hyp_request_list(struct hyp *h);

/** hyp_kind_name() - for logs and tests, such as "guest-gone". */
const char *hyp_kind_name(enum hyp_kind kind);

#endif
