/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decisions as structured journal entries, made from the same record as the status on D-Bus.
 * Stateless; any thread that may log.
 */
#ifndef BALLAST_IPC_JOURNAL_H
#define BALLAST_IPC_JOURNAL_H

#include "daemon/core/history.h"
#include "daemon/core/snapshot.h"

/**
 * journal_decision() - log a decision, one line with the fields VM_NAME, VM_UUID, ACTION, REASON
 * and so on.
 * @entry: from history_add().
 */
void journal_decision(const struct guest_snapshot *guest, const struct history_entry *entry);

#endif
