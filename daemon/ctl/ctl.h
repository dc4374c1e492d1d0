/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The verbs of ballastctl. Each gets its own arguments, argv[0] being the verb itself, prints its
 * result on stdout and what went wrong on stderr, and returns the exit status of the program.
 * One thread; nothing is owned beyond a call.
 */
#ifndef BALLAST_CTL_CTL_H
#define BALLAST_CTL_CTL_H

enum ctl_status {
	CTL_OK = 0,
	CTL_FAILED = 1, /* what was asked for could not be done, or the answer is "no" */
	CTL_USAGE = 2, /* the command line makes no sense */
	CTL_NO_DAEMON = 3, /* no daemon answers */
	CTL_SHORTFALL = 4, /* status: the host is short of memory and nothing more can be taken */
};

struct ctl_verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *arguments; /* as the help shows them */
	const char *help; /* one short sentence */
};

/**
 * ctl_check() - `check [--effective] [FILE]`: validate a configuration with its drop-ins.
 *
 * Return: CTL_OK, CTL_FAILED when it has mistakes, CTL_USAGE.
 */
int ctl_check(int argc, char **argv);

/* The verbs that ask the daemon; also CTL_NO_DAEMON, and ctl_status() CTL_SHORTFALL. */
int ctl_status(int argc, char **argv);
int ctl_explain(int argc, char **argv);
int ctl_reload(int argc, char **argv);

/**
 * ctl_release() - `release --direct [--uri URI]`: give every running domain its maximum back,
 * through libvirt alone.
 *
 * Return: CTL_OK, CTL_FAILED when some domain was not released, CTL_USAGE.
 */
int ctl_release(int argc, char **argv);

#endif
