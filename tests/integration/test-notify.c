// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the service manager hears of the daemon: a socket of ours stands in for it. Each message has
 * to come within a generous time; none is assumed.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 10000

static char dir[] = "/tmp/ballast-notify-XXXXXX";
static char socket_path[100], config_path[128], runtime_path[128], log_path[128];
static int notify_fd;
static bool failed;

static void check(const char *name, bool good)
{
	printf("%s %s\n", good ? "ok" : "not ok", name);
	(void)fflush(stdout);
	failed |= !good;
}

static void write_config(const char *text)
{
	FILE *file = fopen(config_path, "we");

	if (!file || fputs(text, file) < 0 || fclose(file) != 0)
		abort();
}

static int open_socket(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		abort();
	return fd;
}

static pid_t start(const char *program)
{
	pid_t pid = fork();
	int fd;

	if (pid != 0)
		return pid;
	fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(126);
	(void)setenv("NOTIFY_SOCKET", socket_path, 1);
	(void)setenv("WATCHDOG_USEC", "500000", 1);
	(void)execl(program, program, "--config", config_path, "--uri", "test:///default",
		    "--no-system-bus", "--runtime-dir", runtime_path, (char *)NULL);
	_exit(127);
}

/* Reads messages until one has a line that begins with @wanted. */
static bool hear(const char *wanted)
{
	struct pollfd poll_fd = { .fd = notify_fd, .events = POLLIN };
	char text[1025];

	for (int i = 0; i < 1000; i++) {
		ssize_t n;

		if (poll(&poll_fd, 1, PATIENCE_MS) <= 0)
			return false;
		n = recv(notify_fd, text, sizeof(text) - 1, 0);
		if (n < 0)
			return false;
		text[n] = '\0';
		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
			if (strncmp(line, wanted, strlen(wanted)) == 0)
				return true;
	}
	return false;
}

static void run(const char *program)
{
	pid_t pid = start(program);
	int status;

	check("ready-is-told", hear("READY=1"));
	check("the-watchdog-is-fed", hear("WATCHDOG=1") && hear("WATCHDOG=1"));
	check("a-status-line-is-told", hear("STATUS="));
	(void)kill(pid, SIGHUP);
	check("reloading-is-told", hear("RELOADING=1"));
	check("ready-is-told-after-a-reload", hear("READY=1"));
	write_config("nonsense: 1\n");
	(void)kill(pid, SIGHUP);
	check("ready-is-told-after-a-bad-reload", hear("RELOADING=1") && hear("READY=1"));
	(void)kill(pid, SIGTERM);
	check("stopping-is-told", hear("STOPPING=1"));
	check("the-stop-is-clean",
	      waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
	const char *build = getenv("BALLAST_BUILD");
	char program[512], command[256];

	if (!mkdtemp(dir))
		return EXIT_FAILURE;
	(void)snprintf(socket_path, sizeof(socket_path), "%s/notify", dir);
	(void)snprintf(config_path, sizeof(config_path), "%s/ballast.yaml", dir);
	(void)snprintf(runtime_path, sizeof(runtime_path), "%s/run", dir);
	(void)snprintf(log_path, sizeof(log_path), "%s/log", dir);
	(void)snprintf(program, sizeof(program), "%s/ballastd", build ? build : "build");
	write_config("host: {mode: observe}\n");
	notify_fd = open_socket();
	run(program);
	(void)snprintf(command, sizeof(command), "%s %s/log; rm -rf %s", failed ? "cat" : ":", dir,
		       dir);
	return system(command) != 0 || failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
