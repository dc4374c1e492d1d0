// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/ctl/client.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/ctl/terminal.h"
#include "daemon/ipc/bus.h"
#include "daemon/util/cleanup.h"
#include "daemon/util/time.h"

#define CALL_US (5 * USEC_PER_SEC)

static int usage_error(const char *verb, const char *problem, const char *what)
{
	complain("%s: %s %s: `ballastctl %s --help` shows how", verb, problem, what, verb);
	return CTL_USAGE;
}

bool client_parse(int argc, char **argv, const char *usage, enum client_guest guest,
		  struct client_options *ret_options, int *ret_status)
{
	static const struct option long_options[] = {
		{ "runtime-dir", required_argument, NULL, 'r' },
		{ "system", no_argument, NULL, 's' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct client_options options = { .runtime_dir = CLIENT_RUNTIME_DIR };
	int c;

	*ret_status = CTL_OK;
	opterr = 0;
	optind = 0;
	while ((c = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		if (c == 'r') {
			options.runtime_dir = optarg;
		} else if (c == 's') {
			options.system = true;
		} else if (c == 'j') {
			options.json = true;
		} else if (c == 'h') {
			printf("Usage: ballastctl %s\n%s", usage, CLIENT_OPTIONS_HELP);
			return false;
		} else {
			*ret_status = usage_error(argv[0], "can't understand", argv[optind - 1]);
			return false;
		}
	}
	if (optind < argc)
		options.guest = argv[optind++];
	if (optind < argc || (options.guest && guest == CLIENT_NO_GUEST))
		*ret_status = usage_error(argv[0], "one argument too many,", argv[argc - 1]);
	else if (!options.guest && guest == CLIENT_ONE_GUEST)
		*ret_status = usage_error(argv[0], "a guest is missing,", "its name or UUID");
	*ret_options = options;
	return *ret_status == CTL_OK;
}

static int no_daemon(int error, const char *path)
{
	if (error == -ENOENT || error == -ECONNREFUSED)
		complain("no ballastd at %s: is the service running? (systemctl status ballastd)",
			 path);
	else if (error == -EACCES || error == -EPERM)
		complain("%s is for root and members of the group " BUS_GROUP, path);
	else if (error == -ENAMETOOLONG)
		complain("%s/bus is too long for a socket's path", path);
	else if (error == -ECONNRESET || error == -ENOTCONN || error == -EPIPE)
		complain("ballastd at %s hung up: it is stopping, or has too many clients", path);
	else if (error == -ETIMEDOUT || error == -EAGAIN)
		complain("ballastd at %s doesn't answer (systemctl status ballastd)", path);
	else
		complain("%s: %s", path, strerror(-error));
	return CTL_NO_DAEMON;
}

static int open_private(const struct sockaddr_un *address, sd_bus **ret_bus)
{
	_cleanup_(sd_bus_close_unrefp) sd_bus *bus = NULL;
	_cleanup_close_ int fd = -1;
	int r;

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		return -errno;
	r = sd_bus_new(&bus);
	if (r < 0)
		return r;
	r = sd_bus_set_fd(bus, fd, fd);
	if (r < 0)
		return r;
	TAKE_FD(fd);
	r = sd_bus_start(bus);
	if (r < 0)
		return r;
	*ret_bus = TAKE_PTR(bus);
	return 0;
}

static int open_bus(const struct client_options *options, const char **ret_path,
		    struct sockaddr_un *address, sd_bus **ret_bus)
{
	int r;

	if (options->system) {
		*ret_path = "the system bus";
		return sd_bus_open_system(ret_bus);
	}
	*ret_path = options->runtime_dir;
	r = bus_address(options->runtime_dir, address);
	if (r < 0)
		return r;
	*ret_path = address->sun_path;
	return open_private(address, ret_bus);
}

static int call_error(const sd_bus_error *error, int r, const char *path)
{
	if (sd_bus_error_has_name(error, SD_BUS_ERROR_SERVICE_UNKNOWN) ||
	    sd_bus_error_has_name(error, SD_BUS_ERROR_NAME_HAS_NO_OWNER))
		return no_daemon(-ENOENT, path);
	/* Errors that the daemon or the broker sent, against those of the connection. */
	if (error->message && r != -ETIMEDOUT && r != -ECONNRESET && r != -ENOTCONN) {
		complain("%s", error->message);
		return CTL_FAILED;
	}
	return no_daemon(r, path);
}

/* sd_bus_call() has a time limit for the answer, but not for the greeting before it. */
static int await_ready(sd_bus *bus)
{
	uint64_t until = now_us() + CALL_US;
	int r;

	while ((r = sd_bus_is_ready(bus)) == 0) {
		r = sd_bus_process(bus, NULL);
		if (r > 0)
			continue;
		if (r == 0)
			r = now_us() < until ? sd_bus_wait(bus, until - now_us()) : -ETIMEDOUT;
		if (r < 0 && r != -EINTR)
			return r;
	}
	return r;
}

int client_call(const struct client_options *options, const char *method, bool with_guest,
		sd_bus_message **ret_answer)
{
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
	_cleanup_(sd_bus_close_unrefp) sd_bus *bus = NULL;
	struct sockaddr_un address;
	const char *path;
	int r;

	r = open_bus(options, &path, &address, &bus);
	if (r >= 0)
		r = await_ready(bus);
	if (r < 0)
		return no_daemon(r, path);
	r = sd_bus_message_new_method_call(bus, &call, options->system ? BUS_NAME : NULL, BUS_PATH,
					   BUS_INTERFACE, method);
	if (r >= 0 && with_guest)
		r = sd_bus_message_append_basic(call, SD_BUS_TYPE_STRING, options->guest);
	if (r == -EINVAL && with_guest) {
		complain("the guest's name is not UTF-8: use its UUID");
		return CTL_FAILED;
	}
	if (r < 0)
		return no_daemon(r, path);
	r = sd_bus_call(bus, call, CALL_US, &error, ret_answer);
	return r < 0 ? call_error(&error, r, path) : CTL_OK;
}

int client_bad_answer(int error)
{
	complain("ballastd gave an answer that makes no sense (%s): is it of another version?",
		 strerror(-error));
	return CTL_FAILED;
}
