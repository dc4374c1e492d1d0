/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which process is a guest's QEMU. libvirt writes it into a PID file; a process counts as the
 * guest's QEMU only when its command line has the guest's UUID as the argument after -uuid. Where
 * the file isn't there (a session daemon, another folder) the processes are searched for that
 * argument. Any thread.
 */
#ifndef BALLAST_HYP_PID_H
#define BALLAST_HYP_PID_H

#include <stdint.h>

/**
 * qemu_pid_find() - find a guest's QEMU.
 * @proc_dir: "/proc", or a made-up one. @run_dir: folder of libvirt's PID files.
 *
 * Return: the PID; 0 where none matches, or more than one of the searched do.
 */
int qemu_pid_find(const char *proc_dir, const char *run_dir, const char *name,
		  const uint8_t uuid[16]);

#endif
