/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The service manager's notification protocol, by hand: one datagram a message. Where there is no
 * $NOTIFY_SOCKET nothing is sent.
 */
#ifndef BALLAST_AGENT_NOTIFY_H
#define BALLAST_AGENT_NOTIFY_H

#include <stdint.h>

/**
 * notify_send() - tell the service manager something, such as "READY=1".
 *
 * Return: 1 if sent, 0 where nobody listens, or a negative errno.
 */
int notify_send(const char *message);

/**
 * notify_watchdog_us() - how often the service manager wants "WATCHDOG=1".
 *
 * Return: half of its patience in µs, or 0 where it doesn't watch.
 */
uint64_t notify_watchdog_us(void);

#endif
