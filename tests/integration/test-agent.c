// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The agent as a process, on a made-up guest and a Unix socket in place of the port.
 */
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/integration/peer.h"
#include "tests/unit/fake-root.h"
#include "tests/unit/harness.h"

#define SWAPPINESS FAKE_KNOB("swappiness")
#define RECLAIM	   "/sys/fs/cgroup/memory.reclaim"
#define STATE	   "/run/ballast-agent/own-values"
#define SOON_MS	   5000

struct bench {
	struct fake_root root;
	struct peer peer;
	char port[100], agent[512];
	pid_t pid;
};

static void find_agent(char *ret, size_t size)
{
	char self[512];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = '\0';
	(void)snprintf(ret, size, "%s/../../ballast-agent", dirname(self));
}

static void start(struct bench *b)
{
	b->pid = fork();
	if (b->pid == 0) {
		const char *config = fake_path(&b->root, "/agent.conf");

		execl(b->agent, b->agent, "--root", b->root.dir, "--port", b->port, "--config",
		      config, (char *)NULL);
		_exit(127);
	}
	CU_ASSERT_FATAL(b->pid > 0);
}

static int stop(struct bench *b, int signal)
{
	int status = -1;

	if (b->pid > 0 && kill(b->pid, signal) == 0)
		(void)waitpid(b->pid, &status, 0);
	b->pid = 0;
	return status;
}

/* A guest, a host that listens, and no agent yet. */
static void prepare(struct bench *b)
{
	*b = (struct bench){ .pid = 0 };
	fake_root_make(&b->root);
	fake_write(&b->root, "/agent.conf", "# everything\n");
	(void)snprintf(b->port, sizeof(b->port), "%s/port", b->root.dir);
	find_agent(b->agent, sizeof(b->agent));
	CU_ASSERT_EQUAL_FATAL(peer_listen(&b->peer, b->port), 0);
}

static void meet(struct bench *b)
{
	struct wire_message msg;

	CU_ASSERT_FATAL(peer_accept(&b->peer, SOON_MS));
	CU_ASSERT_FATAL(peer_next(&b->peer, &msg, SOON_MS));
	CU_ASSERT_EQUAL_FATAL(msg.type, WIRE_HELLO);
}

static void setup(struct bench *b)
{
	prepare(b);
	start(b);
	meet(b);
}

static void teardown(struct bench *b)
{
	(void)stop(b, SIGKILL);
	peer_close(&b->peer);
	fake_root_remove(&b->root);
}

static uint64_t status_of(struct bench *b, const struct wire_message *command)
{
	struct wire_message answer;

	if (!peer_ask(&b->peer, command, &answer, SOON_MS))
		return UINT64_MAX;
	CU_ASSERT_EQUAL(answer.result.command_type, command->type);
	return answer.result.status;
}

static struct wire_message profile(struct bench *b, uint64_t swappiness)
{
	struct wire_message msg = peer_command(&b->peer, WIRE_PROFILE);

	knob_put(&msg.profile, KNOB_SWAPPINESS, swappiness);
	return msg;
}

static void hello_comes_first_then_a_sample_at_once_then_one_a_second(void)
{
	struct wire_message msg;
	uint64_t first;
	struct bench b;

	setup(&b);
	CU_ASSERT_FATAL(peer_next(&b.peer, &msg, 500));
	CU_ASSERT_EQUAL_FATAL(msg.type, WIRE_SAMPLE);
	CU_ASSERT_EQUAL(msg.seq, 1);
	CU_ASSERT_EQUAL(msg.sample.stats.value[STAT_FREE], UINT64_C(102400) << 10);
	CU_ASSERT_EQUAL(msg.sample.stats.value[STAT_SWAP_ENTRIES], UINT64_C(9216) << 10);
	CU_ASSERT_FALSE(stat_has(&msg.sample.stats, STAT_STEAL_EXEC));
	CU_ASSERT_EQUAL(msg.sample.approximate,
			UINT64_C(1) << STAT_LAZYFREE | UINT64_C(1) << STAT_EXEC_MAPPED);
	first = msg.sample.clock_us;
	CU_ASSERT_FATAL(peer_wait(&b.peer, WIRE_SAMPLE, &msg, SOON_MS));
	CU_ASSERT(msg.sample.clock_us - first > 900000);
	CU_ASSERT(msg.sample.clock_us - first < 1500000);
	CU_ASSERT_EQUAL(msg.sample.cause, WIRE_CAUSE_TIMER);
	teardown(&b);
}

static void hello_is_repeated_with_the_same_nonce(void)
{
	struct wire_message msg;
	struct bench b;
	uint64_t nonce;

	setup(&b);
	nonce = b.peer.nonce;
	CU_ASSERT_FATAL(peer_wait(&b.peer, WIRE_HELLO, &msg, 6000));
	CU_ASSERT_EQUAL(msg.hello.nonce, nonce);
	teardown(&b);
}

static void rate_is_taken_at_once(void)
{
	struct wire_message msg;
	unsigned int n = 0;
	struct bench b;
	uint64_t end;

	setup(&b);
	msg = peer_command(&b.peer, WIRE_RATE);
	msg.rate.interval_ms = 100;
	CU_ASSERT_EQUAL(status_of(&b, &msg), 0);
	end = peer_now_us() + 1000000;
	while (peer_now_us() < end && peer_wait(&b.peer, WIRE_SAMPLE, &msg, 1000))
		n++;
	CU_ASSERT(n >= 7 && n <= 12);
	CU_ASSERT_EQUAL(msg.sample.interval_ms, 100);
	teardown(&b);
}

static void sample_that_is_asked_for_comes_at_once(void)
{
	struct wire_message msg;
	struct bench b;

	setup(&b);
	CU_ASSERT_FATAL(peer_wait(&b.peer, WIRE_SAMPLE, &msg, SOON_MS));
	msg = peer_command(&b.peer, WIRE_SAMPLE_NOW);
	CU_ASSERT(peer_send(&b.peer, &msg));
	CU_ASSERT_FATAL(peer_wait(&b.peer, WIRE_SAMPLE, &msg, 500));
	CU_ASSERT_EQUAL(msg.sample.cause, WIRE_CAUSE_ASKED);
	teardown(&b);
}

static void command_with_a_stale_nonce_is_refused(void)
{
	struct wire_message msg;
	struct bench b;

	setup(&b);
	msg = profile(&b, 10);
	msg.command.nonce ^= 1;
	CU_ASSERT_EQUAL(status_of(&b, &msg), ESTALE);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "60\n");
	teardown(&b);
}

static void command_whose_lifetime_is_over_is_not_done(void)
{
	struct wire_message msg;
	struct bench b;

	setup(&b);
	msg = profile(&b, 10);
	msg.command.lifetime_ms = 50;
	msg.command.sent_us = b.peer.clock_us - 60000;
	CU_ASSERT_EQUAL(status_of(&b, &msg), ETIME);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "60\n");
	/* a host that guesses our clock ahead gives no longer life than from the arrival on */
	msg = profile(&b, 11);
	msg.command.sent_us = UINT64_MAX;
	CU_ASSERT_EQUAL(status_of(&b, &msg), 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "11\n");
	teardown(&b);
}

/* The agent is stopped, the host sends, gives up and comes again: nothing of it is done. */
static void command_that_waited_for_a_sleeping_agent_is_not_done(void)
{
	struct wire_message msg;
	struct bench b;

	setup(&b);
	CU_ASSERT_FATAL(peer_wait(&b.peer, WIRE_SAMPLE, &msg, SOON_MS));
	msg = profile(&b, 10);
	msg.command.lifetime_ms = 200;
	msg.command.sent_us = b.peer.clock_us;
	CU_ASSERT_EQUAL(kill(b.pid, SIGSTOP), 0);
	CU_ASSERT(peer_send(&b.peer, &msg));
	(void)usleep(400000);
	CU_ASSERT_EQUAL(kill(b.pid, SIGCONT), 0);
	CU_ASSERT_FATAL(peer_wait(&b.peer, WIRE_RESULT, &msg, SOON_MS));
	CU_ASSERT_EQUAL(msg.result.status, ETIME);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "60\n");
	teardown(&b);
}

static void command_that_comes_byte_by_byte_is_done(void)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_message msg;
	struct bench b;
	ssize_t n;

	setup(&b);
	msg = profile(&b, 12);
	n = wire_encode(&msg, frame, sizeof(frame));
	for (ssize_t i = 0; i < n; i++) {
		CU_ASSERT_EQUAL(write(b.peer.fd, frame + i, 1), 1);
		(void)usleep(2000);
	}
	CU_ASSERT_FATAL(peer_wait(&b.peer, WIRE_RESULT, &msg, SOON_MS));
	CU_ASSERT_EQUAL(msg.result.status, 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "12\n");
	teardown(&b);
}

static void malformed_frames_are_passed_over(void)
{
	uint8_t junk[3 * WIRE_FRAME_MAX];
	struct wire_message msg;
	struct bench b;
	ssize_t n;

	setup(&b);
	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = (uint8_t)(i * 2654435761U >> 13);
	msg = profile(&b, 77);
	n = wire_encode(&msg, junk, sizeof(junk));
	junk[n - 1] ^= 1; /* its hash */
	CU_ASSERT_EQUAL(write(b.peer.fd, junk, sizeof(junk)), (ssize_t)sizeof(junk));
	msg = profile(&b, 13);
	CU_ASSERT_EQUAL(status_of(&b, &msg), 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "13\n");
	teardown(&b);
}

static void echo_of_its_own_frames_is_no_command(void)
{
	struct wire_message msg;
	struct bench b;

	setup(&b);
	CU_ASSERT_FATAL(peer_wait(&b.peer, WIRE_SAMPLE, &msg, SOON_MS));
	CU_ASSERT(peer_send(&b.peer, &msg));
	CU_ASSERT_FALSE(peer_wait(&b.peer, WIRE_RESULT, &msg, 300));
	teardown(&b);
}

static void empty_profile_gives_the_guest_its_own_values(void)
{
	struct wire_message msg;
	struct bench b;

	setup(&b);
	msg = profile(&b, 10);
	CU_ASSERT_EQUAL(status_of(&b, &msg), 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "10\n");
	msg = peer_command(&b.peer, WIRE_PROFILE);
	CU_ASSERT_EQUAL(status_of(&b, &msg), 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "60\n");
	teardown(&b);
}

static bool becomes(struct bench *b, const char *path, const char *want, int timeout_ms)
{
	for (int i = 0; i < timeout_ms / 50; i++) {
		if (strcmp(fake_read(&b->root, path), want) == 0)
			return true;
		(void)usleep(50000);
	}
	return false;
}

static void silent_hosts_lease_ends(void)
{
	struct wire_message msg;
	struct bench b;

	setup(&b);
	msg = peer_command(&b.peer, WIRE_WELCOME);
	msg.welcome.lease_ms = 1000;
	CU_ASSERT(peer_send(&b.peer, &msg));
	msg = profile(&b, 10);
	CU_ASSERT_EQUAL(status_of(&b, &msg), 0);
	for (int i = 0; i < 3; i++) {
		(void)usleep(600000);
		msg = peer_command(&b.peer, WIRE_WELCOME);
		msg.welcome.lease_ms = 1000;
		CU_ASSERT(peer_send(&b.peer, &msg));
		CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "10\n");
	}
	CU_ASSERT(becomes(&b, SWAPPINESS, "60\n", 2000));
	teardown(&b);
}

static void host_that_has_gone_loses_its_lease_too(void)
{
	struct wire_message msg;
	struct bench b;

	setup(&b);
	msg = peer_command(&b.peer, WIRE_WELCOME);
	msg.welcome.lease_ms = 1000;
	CU_ASSERT(peer_send(&b.peer, &msg));
	msg = profile(&b, 10);
	CU_ASSERT_EQUAL(status_of(&b, &msg), 0);
	peer_close(&b.peer);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "10\n");
	CU_ASSERT(becomes(&b, SWAPPINESS, "60\n", 2500));
	teardown(&b);
}

static void agent_that_is_stopped_restores_and_says_bye(void)
{
	struct wire_message msg;
	struct bench b;
	int status;

	setup(&b);
	msg = profile(&b, 10);
	CU_ASSERT_EQUAL(status_of(&b, &msg), 0);
	status = stop(&b, SIGTERM);
	CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "60\n");
	CU_ASSERT(peer_wait(&b.peer, WIRE_BYE, &msg, SOON_MS));
	CU_ASSERT_NOT_EQUAL(access(fake_path(&b.root, STATE), F_OK), 0);
	teardown(&b);
}

static void agent_that_was_killed_restores_when_it_is_back(void)
{
	struct wire_message msg;
	struct bench b;

	setup(&b);
	msg = profile(&b, 10);
	CU_ASSERT_EQUAL(status_of(&b, &msg), 0);
	(void)stop(&b, SIGKILL);
	peer_hang_up(&b.peer);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "10\n");
	start(&b);
	meet(&b);
	(void)stop(&b, SIGTERM);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "60\n");
	teardown(&b);
}

static void owner_forbids(void)
{
	struct wire_message msg;
	struct bench b;

	prepare(&b);
	fake_write(&b.root, "/agent.conf", "allow = sample\n");
	start(&b);
	CU_ASSERT_FATAL(peer_accept(&b.peer, SOON_MS));
	CU_ASSERT_FATAL(peer_wait(&b.peer, WIRE_HELLO, &msg, SOON_MS));
	CU_ASSERT_EQUAL(msg.hello.capabilities &
				(WIRE_CAP_SAMPLE | WIRE_CAP_PROFILE | WIRE_CAP_SHED),
			WIRE_CAP_SAMPLE);
	CU_ASSERT_EQUAL(msg.hello.knobs_writable, 0);
	msg = profile(&b, 10);
	CU_ASSERT_EQUAL(status_of(&b, &msg), EPERM);
	msg = peer_command(&b.peer, WIRE_SHED);
	msg.shed = (struct wire_shed){ 1 << 20, 0, WIRE_SHED_FILE };
	CU_ASSERT_EQUAL(status_of(&b, &msg), EPERM);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "60\n");
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, RECLAIM), "");
	teardown(&b);
}

static void owner_who_permits_nothing_is_not_sampled(void)
{
	struct wire_message msg;
	struct bench b;

	prepare(&b);
	fake_write(&b.root, "/agent.conf", "allow =\n");
	start(&b);
	meet(&b);
	msg = peer_command(&b.peer, WIRE_SAMPLE_NOW);
	CU_ASSERT_EQUAL(status_of(&b, &msg), EPERM);
	CU_ASSERT_FALSE(peer_wait(&b.peer, WIRE_SAMPLE, &msg, 1500));
	teardown(&b);
}

static void shed_is_bounded_answered_and_does_not_stop_the_samples(void)
{
	struct wire_message msg;
	struct bench b;

	setup(&b);
	msg = peer_command(&b.peer, WIRE_SHED);
	msg.shed = (struct wire_shed){ UINT64_C(1) << 40, 200, WIRE_SHED_FILE };
	CU_ASSERT(peer_ask(&b.peer, &msg, &msg, SOON_MS));
	CU_ASSERT_EQUAL(msg.result.status, 0);
	CU_ASSERT_EQUAL(msg.result.asked, UINT64_C(1) << 40);
	CU_ASSERT_EQUAL(msg.result.done, 0); /* nothing reclaims in a made-up guest */
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, RECLAIM), "4194304 swappiness=0");
	CU_ASSERT(peer_wait(&b.peer, WIRE_SAMPLE, &msg, 1500));
	teardown(&b);
}

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
	TEST(hello_comes_first_then_a_sample_at_once_then_one_a_second),
	TEST(hello_is_repeated_with_the_same_nonce),
	TEST(rate_is_taken_at_once),
	TEST(sample_that_is_asked_for_comes_at_once),
	TEST(command_with_a_stale_nonce_is_refused),
	TEST(command_whose_lifetime_is_over_is_not_done),
	TEST(command_that_waited_for_a_sleeping_agent_is_not_done),
	TEST(command_that_comes_byte_by_byte_is_done),
	TEST(malformed_frames_are_passed_over),
	TEST(echo_of_its_own_frames_is_no_command),
	TEST(empty_profile_gives_the_guest_its_own_values),
	TEST(silent_hosts_lease_ends),
	TEST(host_that_has_gone_loses_its_lease_too),
	TEST(agent_that_is_stopped_restores_and_says_bye),
	TEST(agent_that_was_killed_restores_when_it_is_back),
	TEST(owner_forbids),
	TEST(owner_who_permits_nothing_is_not_sampled),
	TEST(shed_is_bounded_answered_and_does_not_stop_the_samples),
	TEST(host_goes_and_comes_and_each_session_has_its_nonce),
	TEST(host_that_does_not_read_gets_whole_frames_later),
	TEST(without_a_host_the_agent_sleeps),
	TEST(agent_stays_under_one_and_a_half_mib),
	TEST(service_manager_is_told),
	TEST(agent_that_cannot_start_says_why_in_one_line),
	TEST(agent_without_a_port_says_so_once),
};

HARNESS_MAIN("agent", tests)
