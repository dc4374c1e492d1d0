// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guest-agent/agent.h"
#include "guest-agent/once.h"

#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

static const char usage[] =
	"Usage: ballast-agent [OPTION]...\n"
	"Tell the host what this guest's memory is used for, and do what its owner permits.\n"
	"\n"
	"  --once         print one sample and end\n"
	"  --json         with --once: as JSON\n"
	"  --port PATH    the port to the host: a character device or a Unix socket\n"
	"                 (default: the virtio port named " WIRE_PORT_NAME ")\n"
	"  --config FILE  what the host may do (default: " AGENT_CONFIG_FILE ")\n"
	"  --root DIR     use DIR/proc, DIR/sys and DIR/run, for tests\n"
	"  --version      print the version and end\n"
	"  --help         print this and end\n";

struct options {
	const char *root, *port, *config;
	bool once, json;
};

enum { OPT_ONCE = 256, OPT_JSON, OPT_PORT, OPT_CONFIG, OPT_ROOT, OPT_VERSION, OPT_HELP };

static const struct option long_options[] = {
	{ "once", no_argument, NULL, OPT_ONCE },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "port", required_argument, NULL, OPT_PORT },
	{ "config", required_argument, NULL, OPT_CONFIG },
	{ "root", required_argument, NULL, OPT_ROOT },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

/* Return: 1 to go on, 0 when all is said, -EINVAL for a wrong command line (getopt has said it). */
static int parse_options(int argc, char **argv, struct options *options)
{
	int c;

	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (c) {
		case OPT_ONCE:
			options->once = true;
			break;
		case OPT_JSON:
			options->json = true;
			break;
		case OPT_PORT:
			options->port = optarg;
			break;
		case OPT_CONFIG:
			options->config = optarg;
			break;
		case OPT_ROOT:
			options->root = optarg;
			break;
		case OPT_VERSION:
			dprintf(STDOUT_FILENO, "ballast-agent %s\n", BALLAST_VERSION);
			return 0;
		case OPT_HELP:
			dprintf(STDOUT_FILENO, "%s", usage);
			return 0;
		default:
			dprintf(STDERR_FILENO, "ballast-agent: --help lists the options\n");
			return -EINVAL;
		}
	}
	if (options->json && !options->once) {
		dprintf(STDERR_FILENO, "ballast-agent: --json goes with --once; see --help\n");
		return -EINVAL;
	}
	if (optind < argc) {
		dprintf(STDERR_FILENO, "ballast-agent: unexpected argument '%s'; see --help\n",
			argv[optind]);
		return -EINVAL;
	}
	return 1;
}

static int load_config(const struct options *options, struct agent_config *ret, char *error,
		       size_t size)
{
	/* A file that was asked for by name is this system's; the default one is the root's. */
	int r = agent_config_load(options->config ? "" : options->root,
				  options->config ? options->config : AGENT_CONFIG_FILE, ret, error,
				  size);

	if (r == -ENOENT && !options->config)
		r = 0;
	else if (r == -ENOENT)
		(void)snprintf(error, size, "%s: no such file", options->config);
	if (r < 0 || !options->port)
		return r;
	if (strlen(options->port) >= sizeof(ret->port)) {
		(void)snprintf(error, size, "--port: the path is longer than %zu bytes",
			       sizeof(ret->port) - 1);
		return -ENAMETOOLONG;
	}
	(void)snprintf(ret->port, sizeof(ret->port), "%s", options->port);
	return 0;
}

/*
 * The agent is needed most when the guest is short of memory: what it has touched stays (under
 * 1.5 MiB), and it is the last to be killed. Where that isn't permitted it runs without.
 */
static void stay_in_memory(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		(void)!write(fd, "-900\n", 5);
		(void)close(fd);
	}
	(void)mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
}

static int serve(const struct options *options, const struct agent_config *config, char *error,
		 size_t size)
{
	static struct agent agent;
	int r;

	agent.root = options->root;
	agent.config = *config;
	(void)signal(SIGPIPE, SIG_IGN);
	if (*agent.root == '\0')
		stay_in_memory();
	r = agent_init(&agent, error, size);
	if (r == 0) {
		r = agent_run(&agent);
		if (r < 0)
			(void)snprintf(error, size, "cannot wait for events: %s", strerror(-r));
	}
	agent_deinit(&agent);
	return r;
}

int main(int argc, char **argv)
{
	struct options options = { .root = "" };
	struct agent_config config = AGENT_CONFIG_DEFAULT;
	char error[512] = "";
	int r;

	r = parse_options(argc, argv, &options);
	if (r <= 0)
		return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	r = load_config(&options, &config, error, sizeof(error));
	if (r == 0 && options.once)
		r = once_print(options.root, &config, options.json, STDOUT_FILENO, error,
			       sizeof(error));
	else if (r == 0)
		r = serve(&options, &config, error, sizeof(error));
	if (r < 0)
		dprintf(STDERR_FILENO, "ballast-agent: %s\n", error);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
