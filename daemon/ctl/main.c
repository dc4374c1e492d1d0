// SPDX-License-Identifier: GPL-2.0-or-later
/* ballastctl: finds the verb and hands it the rest of the command line. */
#include "daemon/ctl/ctl.h"

#include <stdio.h>
#include <string.h>

static int help(int argc, char **argv);

static int version(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf("ballastctl %s\n", BALLAST_VERSION);
	return CTL_OK;
}

static const struct ctl_verb verbs[] = {
	{ "help", help, "", "show this text" },
	{ "check", ctl_check, "[--effective] [FILE]", "validate a configuration and its drop-ins" },
	{ "version", version, "", "show the version" },
};

static int help(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf("Usage: ballastctl VERB [ARGUMENT...]\n\nVerbs:\n");
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		printf("  %-8s %-22s %s\n", verbs[i].name, verbs[i].arguments, verbs[i].help);
	printf("\nSee ballastctl(1).\n");
	return CTL_OK;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;

	if (!name) {
		fprintf(stderr, "ballastctl: a verb is missing: `ballastctl help` lists them\n");
		return CTL_USAGE;
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";
	else if (strcmp(name, "--version") == 0)
		name = "version";
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(name, verbs[i].name) == 0)
			return verbs[i].run(argc - 1, argv + 1);
	fprintf(stderr, "ballastctl: no verb %s: `ballastctl help` lists them\n", name);
	return CTL_USAGE;
}
