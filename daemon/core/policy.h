/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The policy: from what is known to what is to be done. Pure: no I/O, no clock, no allocation in
 * policy_decide(); time is in the snapshot, and everything that is remembered from round to round
 * is in the policy state. The state belongs to the application, which calls from one thread.
 */
#ifndef BALLAST_CORE_POLICY_H
#define BALLAST_CORE_POLICY_H

#include <stdint.h>

#include "daemon/core/plan.h"
#include "daemon/core/settings.h"
#include "daemon/core/snapshot.h"

struct policy;

/**
 * policy_new() - make the state for guests in slots 0..@capacity-1.
 *
 * Return: 0 or -ENOMEM.
 */
int policy_new(struct policy **ret_policy, size_t capacity);
struct policy *policy_free(struct policy *policy);

/**
 * policy_forget() - a guest is gone: its slot starts afresh.
 */
void policy_forget(struct policy *policy, uint32_t slot);

/**
 * policy_restore() - take over a balloon target from before a restart of the daemon.
 * @target: bytes, as it was stored; reconciled with what the hypervisor reports in the next round.
 */
void policy_restore(struct policy *policy, uint32_t slot, uint64_t target);

/**
 * policy_target() - the balloon target that the policy stands by, to be stored.
 *
 * Return: bytes, 0 where the policy has set none.
 */
uint64_t policy_target(const struct policy *policy, uint32_t slot);

/**
 * policy_decide() - one round.
 * @plan: from plan_init(), of at least as many guests as @current has; overwritten.
 *
 * Deterministic: the same arguments and state give the same plan.
 */
void policy_decide(struct policy *policy, const struct snapshot *current,
		   const struct settings *settings, struct plan *plan);

#endif
