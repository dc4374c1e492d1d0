// SPDX-License-Identifier: GPL-2.0-or-later
/* ballastd: options, and the manager's life. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "daemon/app/manager.h"
#include "daemon/config/config.h"
#include "daemon/util/log.h"

enum {
	OPTION_URI = 256,
	OPTION_RUNTIME_DIR,
	OPTION_RUN_DIR,
	OPTION_ROOT,
	OPTION_OBSERVE,
	OPTION_NO_SYSTEM_BUS,
	OPTION_LOG_LEVEL,
	OPTION_VERSION,
};

static const char usage[] =
	"Usage: ballastd [OPTION...]\n"
	"\n"
	"Balances the memory of a libvirt host's guests.\n"
	"\n"
	"  -c, --config FILE        configuration (" CONFIG_PATH ")\n"
	"      --uri URI            libvirt connection, instead of the configured one\n"
	"      --observe            watch and decide, but change nothing\n"
	"      --runtime-dir DIR    socket, lock and targets (/run/ballast)\n"
	"      --libvirt-run-dir DIR  where libvirt keeps the PID files of QEMU\n"
	"      --root DIR           read /proc and /sys below DIR\n"
	"      --no-system-bus      serve the private socket only\n"
	"      --log-level LEVEL    error, warning, notice, info or debug\n"
	"  -h, --help               this text\n"
	"      --version            the version\n";

static const struct option long_options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "uri", required_argument, NULL, OPTION_URI },
	{ "observe", no_argument, NULL, OPTION_OBSERVE },
	{ "runtime-dir", required_argument, NULL, OPTION_RUNTIME_DIR },
	{ "libvirt-run-dir", required_argument, NULL, OPTION_RUN_DIR },
	{ "root", required_argument, NULL, OPTION_ROOT },
	{ "no-system-bus", no_argument, NULL, OPTION_NO_SYSTEM_BUS },
	{ "log-level", required_argument, NULL, OPTION_LOG_LEVEL },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ 0 },
};

static int set_log_level(const char *name)
{
	int level = log_level_by_name(name);

	if (level < 0) {
		fprintf(stderr,
			"ballastd: --log-level %s: take error, warning, notice, info or debug\n",
			name);
		return level;
	}
	log_set_level(level);
	return 0;
}

/* Returns 1 to go on, 0 to end well, negative for a mistake that has been said. */
static int parse_options(int argc, char **argv, struct manager_options *options)
{
	int c;

	while ((c = getopt_long(argc, argv, "c:h", long_options, NULL)) >= 0) {
		switch (c) {
		case 'c':
			options->config_path = optarg;
			break;
		case OPTION_URI:
			options->uri = optarg;
			break;
		case OPTION_OBSERVE:
			options->observe = true;
			break;
		case OPTION_RUNTIME_DIR:
			options->runtime_dir = optarg;
			break;
		case OPTION_RUN_DIR:
			options->run_dir = optarg;
			break;
		case OPTION_ROOT:
			options->root = optarg;
			break;
		case OPTION_NO_SYSTEM_BUS:
			options->system_bus = false;
			break;
		case OPTION_LOG_LEVEL:
			if (set_log_level(optarg) < 0)
				return -EINVAL;
			break;
		case OPTION_VERSION:
			puts("ballastd " BALLAST_VERSION);
			return 0;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs("ballastd: --help lists the options\n", stderr);
			return -EINVAL;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "ballastd: %s: takes options only, see ballastd --help\n",
			argv[optind]);
		return -EINVAL;
	}
	return 1;
}

/* Each guest costs three descriptors; when they run out, GLib below libvirt ends the process. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
	struct manager_options options = {
		.config_path = CONFIG_PATH,
		.runtime_dir = "/run/ballast",
		.system_bus = true,
	};
	struct manager *manager;
	int r;

	r = parse_options(argc, argv, &options);
	if (r <= 0)
		return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	(void)log_use_journal();
	raise_file_limit();
	r = manager_new(&manager, &options);
	if (r < 0) {
		log_error("can't start: %s", strerror(-r));
		return EXIT_FAILURE;
	}
	r = manager_run(manager);
	if (r < 0)
		log_error("the event loop failed: %s", strerror(-r));
	(void)manager_free(manager);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
