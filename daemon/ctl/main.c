// SPDX-License-Identifier: GPL-2.0-or-later
/* ballastctl: finds the verb and hands it the rest of the command line. */
#include "daemon/ctl/ctl.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "daemon/ctl/client.h"
#include "daemon/ctl/terminal.h"

static int help(int argc, char **argv);

static int version(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf("ballastctl %s\n", BALLAST_VERSION);
	return CTL_OK;
}

static const struct ctl_verb verbs[] = {
	{ "status", ctl_status, "[GUEST]", "show the host and its guests, or one guest" },
	{ "explain", ctl_explain, "GUEST", "show why a guest has what it has" },
	{ "check", ctl_check, "[--effective] [FILE]", "validate a configuration and its drop-ins" },
	{ "reload", ctl_reload, "", "have the daemon read its configuration again" },
	{ "release", ctl_release, "--direct [--uri URI]",
	  "give all guests their maximum, without the daemon" },
	{ "help", help, "", "show this text" },
	{ "version", version, "", "show the version" },
};

static int help(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf("Usage: ballastctl [OPTION...] VERB [ARGUMENT...]\n\nVerbs:\n");
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		printf("  %-8s %-22s %s\n", verbs[i].name, verbs[i].arguments, verbs[i].help);
	printf("\nOptions of status, explain and reload:\n" CLIENT_OPTIONS_HELP
	       "\nExit status: 0 good, 1 failed, 2 bad command line, 3 no daemon,\n"
	       "4 (status) the host is short of memory and nothing more can be taken.\n"
	       "\nSee ballastctl(1).\n");
	return CTL_OK;
}

/* Options may stand before the verb as well: the verb is moved in front of them. */
static void verb_first(int argc, char **argv)
{
	int verb = 1;
	char *name;

	while (verb < argc && argv[verb][0] == '-' && argv[verb][1])
		verb += strcmp(argv[verb], "--runtime-dir") == 0 ? 2 : 1;
	if (verb >= argc)
		return;
	name = argv[verb];
	memmove(&argv[2], &argv[1], (size_t)(verb - 1) * sizeof(*argv));
	argv[1] = name;
}

static const char *find_name(int argc, char **argv)
{
	if (argc < 2)
		return NULL;
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return "help";
	if (strcmp(argv[1], "--version") == 0)
		return "version";
	verb_first(argc, argv);
	return argv[1][0] == '-' ? NULL : argv[1];
}

/* A result that nobody could read is none: a full disk is told. */
static int finish(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	complain("can't write the output: %m");
	return CTL_FAILED;
}

int main(int argc, char **argv)
{
	const char *name;

	(void)setlocale(LC_CTYPE, "");
	name = find_name(argc, argv);
	if (!name) {
		complain("a verb is missing: `ballastctl help` lists them");
		return CTL_USAGE;
	}
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(name, verbs[i].name) == 0)
			return finish(verbs[i].run(argc - 1, argv + 1));
	complain("no verb %s: `ballastctl help` lists them", name);
	return CTL_USAGE;
}
