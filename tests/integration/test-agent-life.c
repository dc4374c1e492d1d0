// SPDX-License-Identifier: GPL-2.0-or-later
/* How the agent comes, waits and goes, and what it costs. */
#include "tests/integration/agent-bench.h"

static void host_goes_and_comes_and_each_session_has_its_nonce(void)
{
	uint64_t nonces[3];
	struct wire_message msg;
	struct bench b;

	prepare(&b);
	start(&b);
	for (int i = 0; i < 3; i++) {
		meet(&b);
		nonces[i] = b.peer.nonce;
		for (int k = 0; k < i; k++)
			CU_ASSERT_NOT_EQUAL(nonces[i], nonces[k]);
		msg = profile(&b, 10);
		msg.command.nonce = nonces[0];
		CU_ASSERT_EQUAL(status_of(&b, &msg), i == 0 ? 0 : ESTALE);
		peer_hang_up(&b.peer);
	}
	teardown(&b);
}

static void host_that_does_not_read_gets_whole_frames_later(void)
{
	struct wire_message msg;
	uint32_t want = 1;
	struct bench b;
	uint64_t end;

	setup(&b);
	msg = peer_command(&b.peer, WIRE_RATE);
	msg.rate.interval_ms = 100;
	CU_ASSERT(peer_send(&b.peer, &msg));
	/* Some 200 KiB fit in between; commands that need answers fill it up. */
	for (int i = 0; i < 4000; i++) {
		msg = peer_command(&b.peer, WIRE_SAMPLE_NOW);
		if (!peer_send(&b.peer, &msg))
			break;
	}
	(void)usleep(500000);
	/* No sequence number is missing: what was dropped was dropped before its first byte. */
	end = peer_now_us() + 1500000;
	while (peer_now_us() < end && peer_next(&b.peer, &msg, 1000))
		CU_ASSERT_EQUAL(msg.seq, want++);
	CU_ASSERT_EQUAL(b.peer.bad, 0);
	CU_ASSERT(want > 200);
	teardown(&b);
}

static uint64_t cpu_ticks(pid_t pid)
{
	unsigned long user = 0, system = 0;
	char path[64], text[1024];
	const char *p;
	FILE *f;
	size_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	(void)fclose(f);
	p = strrchr(text, ')');
	CU_ASSERT_FATAL(p && sscanf(p, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
				    &user, &system) == 2);
	return user + system;
}

static void without_a_host_the_agent_sleeps(void)
{
	struct bench b;
	uint64_t before;

	setup(&b);
	peer_close(&b.peer);
	(void)usleep(200000);
	before = cpu_ticks(b.pid);
	(void)usleep(2000000);
	CU_ASSERT(cpu_ticks(b.pid) - before <= 1);
	teardown(&b);
}

static unsigned long resident_kib(pid_t pid)
{
	char path[64], line[256];
	unsigned long kib = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	while (fgets(line, sizeof(line), f))
		(void)sscanf(line, "VmRSS: %lu", &kib);
	(void)fclose(f);
	return kib;
}

/* The sanitizers' builds are no measure. */
static void agent_stays_under_one_and_a_half_mib(void)
{
	struct wire_message msg;
	struct bench b;
	unsigned long kib;

	setup(&b);
	msg = profile(&b, 10);
	CU_ASSERT_EQUAL(status_of(&b, &msg), 0);
	msg = peer_command(&b.peer, WIRE_SHED);
	msg.shed = (struct wire_shed){ 1 << 20, 0, WIRE_SHED_FILE };
	CU_ASSERT_EQUAL(status_of(&b, &msg), 0);
	CU_ASSERT(peer_wait(&b.peer, WIRE_SAMPLE, &msg, SOON_MS));
	kib = resident_kib(b.pid);
	CU_ASSERT(kib > 0);
#ifndef __SANITIZE_ADDRESS__
	CU_ASSERT(kib < 1536);
#endif
	teardown(&b);
}

static bool datagram(int fd, const char *want)
{
	char text[256];
	ssize_t n;

	if (!peer_readable(fd, SOON_MS))
		return false;
	n = recv(fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	return strcmp(text, want) == 0;
}

static void service_manager_is_told(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char status[160];
	struct bench b;
	int fd;

	prepare(&b);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/notify", b.root.dir);
	CU_ASSERT_EQUAL_FATAL(bind(fd, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	(void)setenv("NOTIFY_SOCKET", addr.sun_path, 1);
	(void)setenv("WATCHDOG_USEC", "400000", 1);
	start(&b);
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unsetenv("WATCHDOG_USEC");
	CU_ASSERT(datagram(fd, "READY=1"));
	meet(&b);
	(void)snprintf(status, sizeof(status), "STATUS=Serving the host on %s", b.port);
	CU_ASSERT(datagram(fd, status));
	CU_ASSERT(datagram(fd, "WATCHDOG=1"));
	CU_ASSERT(datagram(fd, "WATCHDOG=1"));
	CU_ASSERT_EQUAL(kill(b.pid, SIGTERM), 0);
	while (!datagram(fd, "STOPPING=1"))
		;
	(void)close(fd);
	teardown(&b);
}

static void agent_that_cannot_start_says_why_in_one_line(void)
{
	char command[1400], line[512] = "", more[16] = "";
	struct bench b;
	FILE *f;
	int rc;

	prepare(&b);
	fake_write(&b.root, "/agent.conf", "\nallow = everything\n");
	(void)snprintf(command, sizeof(command), "%s --root %s --config %s/agent.conf 2>&1",
		       b.agent, b.root.dir, b.root.dir);
	f = popen(command, "r"); // NOLINT: the paths are the test's own
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_PTR_NOT_NULL(fgets(line, sizeof(line), f));
	CU_ASSERT_PTR_NULL(fgets(more, sizeof(more), f));
	rc = pclose(f);
	CU_ASSERT(WIFEXITED(rc) && WEXITSTATUS(rc) == 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(line, "/agent.conf:2: allow: 'everything' is none of"));
	teardown(&b);
}

static void second_agent_leaves_the_first_ones_settings(void)
{
	char command[1400], line[512] = "";
	struct wire_message msg;
	struct bench b;
	FILE *f;
	int rc;

	setup(&b);
	msg = profile(&b, 10);
	CU_ASSERT_EQUAL(status_of(&b, &msg), 0);
	(void)snprintf(command, sizeof(command),
		       "timeout 2 %s --root %s --port %s/other --config %s/agent.conf 2>&1",
		       b.agent, b.root.dir, b.root.dir, b.root.dir);
	f = popen(command, "r"); // NOLINT: the paths are the test's own
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_PTR_NOT_NULL(fgets(line, sizeof(line), f));
	rc = pclose(f);
	CU_ASSERT(WIFEXITED(rc) && WEXITSTATUS(rc) == 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(line, "another ballast-agent runs"));
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "10\n");
	/* Who only looks is no second one. */
	(void)snprintf(command, sizeof(command), "%s --once --root %s >/dev/null", b.agent,
		       b.root.dir);
	CU_ASSERT_EQUAL(system(command), 0); // NOLINT: the paths are the test's own
	teardown(&b);
}

static void agent_without_a_port_says_so_once(void)
{
	char command[1400], line[512] = "", more[16] = "";
	struct bench b;
	FILE *f;

	prepare(&b);
	(void)snprintf(command, sizeof(command),
		       "timeout 2.5 %s --root %s --config %s/agent.conf 2>&1", b.agent, b.root.dir,
		       b.root.dir);
	f = popen(command, "r"); // NOLINT: the paths are the test's own
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_PTR_NOT_NULL(fgets(line, sizeof(line), f));
	CU_ASSERT_PTR_NULL(fgets(more, sizeof(more), f));
	(void)pclose(f);
	CU_ASSERT_STRING_EQUAL(line, "ballast-agent: The host has given this guest no port "
				     "org.ballast.agent.0; looking again every second\n");
	teardown(&b);
}

static const struct unit_test tests[] = {
	TEST(host_goes_and_comes_and_each_session_has_its_nonce),
	TEST(host_that_does_not_read_gets_whole_frames_later),
	TEST(without_a_host_the_agent_sleeps),
	TEST(agent_stays_under_one_and_a_half_mib),
	TEST(service_manager_is_told),
	TEST(agent_that_cannot_start_says_why_in_one_line),
	TEST(second_agent_leaves_the_first_ones_settings),
	TEST(agent_without_a_port_says_so_once),
};

HARNESS_MAIN("agent-life", tests)
