// SPDX-License-Identifier: GPL-2.0-or-later
/* What is read from a domain's XML, and which process is taken for its QEMU. */
#include "tests/unit/harness.h"

#include <errno.h>

#include "daemon/hyp/pid.h"
#include "daemon/hyp/xml.h"
#include "daemon/util/parse.h"
#include "daemon/util/time.h"
#include "tests/unit/fake-root.h"

#define UUID "12345678-9abc-def0-1234-56789abcdef0"
#define HEAD                                                                                       \
	"<domain type='kvm' id='7'><name>web</name><uuid>" UUID "</uuid>"                          \
	"<memory unit='KiB'>524288</memory><currentMemory unit='KiB'>262144</currentMemory>"
#define BALLOON                                                                                    \
	"<memballoon model='virtio' autodeflate='on' freePageReporting='on'>"                      \
	"<stats period='10'/></memballoon>"

static const uint8_t uuid[16] = { 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0,
				  0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0 };

static struct domain_xml parse(const char *text)
{
	struct domain_xml xml = { 0 };

	CU_ASSERT_EQUAL(domain_xml_parse(text, &xml), 0);
	return xml;
}

static uint32_t obstacles_of(const char *text)
{
	return parse(text).guest.obstacles;
}

static void an_ordinary_domain_is_read(void)
{
	struct domain_xml xml =
		parse(HEAD "<devices><channel type='unix'><source mode='bind' path='/run/other'/>"
			   "<target type='virtio' name='org.qemu.guest_agent.0'/></channel>"
			   "<channel type='unix'><source mode='bind' path='/run/web.sock'/>"
			   "<target type='virtio' name='org.ballast.agent.0' state='connected'/>"
			   "</channel>" BALLOON "</devices></domain>");

	CU_ASSERT_STRING_EQUAL(xml.name, "web");
	CU_ASSERT_EQUAL(memcmp(xml.uuid, uuid, 16), 0);
	CU_ASSERT_EQUAL(xml.guest.maximum, MIB(512));
	CU_ASSERT_EQUAL(xml.guest.obstacles, 0);
	CU_ASSERT_TRUE(xml.guest.autodeflate);
	CU_ASSERT_TRUE(xml.guest.reporting);
	CU_ASSERT_FALSE(xml.guest.tcg);
	CU_ASSERT_EQUAL(xml.stats_period_us, 10 * USEC_PER_SEC);
	CU_ASSERT_STRING_EQUAL(xml.guest.channel_path, "/run/web.sock");
	CU_ASSERT_TRUE(xml.guest.channel_open);
	CU_ASSERT_STRING_EQUAL(xml.guest.metadata, "");
}

static void a_domain_of_any_name_is_known_by_it(void)
{
	static const char *const names[] = { "a b", " padded ",
					     ("gr\xc3\xbc\xc3\x9f"
					      "e"),
					     "-x", "tab\tname" };
	char text[2048], name[GUEST_NAME_MAX];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		(void)snprintf(text, sizeof(text),
			       "<domain><name>%s</name><uuid>" UUID
			       "</uuid><memory>1</memory></domain>",
			       names[i]);
		CU_ASSERT_STRING_EQUAL(parse(text).name, names[i]);
	}
	/* As long as a file's name can be, and longer. */
	memset(name, 'x', sizeof(name));
	(void)snprintf(text, sizeof(text),
		       "<domain><name>%.255s</name><uuid>" UUID
		       "</uuid><memory>1</memory></domain>",
		       name);
	CU_ASSERT_EQUAL(strlen(parse(text).name), 255);
	(void)snprintf(text, sizeof(text),
		       "<domain><name>%.255sy</name><uuid>" UUID
		       "</uuid><memory>1</memory></domain>",
		       name);
	CU_ASSERT_STRING_EQUAL(parse(text).name, UUID);
}

static void units_of_memory_are_understood(void)
{
	struct domain_xml xml = parse("<domain><name>a</name><uuid>" UUID "</uuid>"
				      "<memory unit='GiB'>2</memory></domain>");

	CU_ASSERT_EQUAL(xml.guest.maximum, MIB(2048));
}

static void a_domain_without_a_balloon_has_the_obstacle(void)
{
	CU_ASSERT_EQUAL(obstacles_of(HEAD "<devices><memballoon model='none'/></devices></domain>"),
			OBSTACLE_NO_BALLOON);
	CU_ASSERT_EQUAL(obstacles_of(HEAD "<devices/></domain>"), OBSTACLE_NO_BALLOON);
	CU_ASSERT_EQUAL(obstacles_of(HEAD "</domain>"), OBSTACLE_NO_BALLOON);
	CU_ASSERT_EQUAL(obstacles_of(HEAD "<devices><memballoon model='virtio-transitional'/>"
					  "</devices></domain>"),
			0);
}

static void devices_that_pin_memory_are_obstacles(void)
{
	static const char *const pinning[] = {
		"<hostdev mode='subsystem' type='pci'/>",
		"<hostdev mode='subsystem' type='mdev'/>",
		"<interface type='hostdev'/>",
		"<interface type='vdpa'/>",
		"<disk type='nvme'/>",
	};
	static const char *const harmless[] = { "<hostdev mode='subsystem' type='usb'/>",
						"<interface type='network'/>",
						"<disk type='file'/>" };
	char text[1024];

	for (size_t i = 0; i < sizeof(pinning) / sizeof(*pinning); i++) {
		(void)snprintf(text, sizeof(text), HEAD "<devices>%s" BALLOON "</devices></domain>",
			       pinning[i]);
		CU_ASSERT_EQUAL(obstacles_of(text), OBSTACLE_PASSTHROUGH);
	}
	for (size_t i = 0; i < sizeof(harmless) / sizeof(*harmless); i++) {
		(void)snprintf(text, sizeof(text), HEAD "<devices>%s" BALLOON "</devices></domain>",
			       harmless[i]);
		CU_ASSERT_EQUAL(obstacles_of(text), 0);
	}
}

static void memory_that_a_balloon_cannot_move_is_an_obstacle(void)
{
	static const struct {
		const char *text;
		uint32_t obstacles;
	} cases[] = {
		{ "<memoryBacking><locked/></memoryBacking>", OBSTACLE_LOCKED },
		{ "<launchSecurity type='sev'/>", OBSTACLE_LOCKED },
		{ "<memoryBacking><hugepages/></memoryBacking>", OBSTACLE_HUGEPAGES },
		{ "<memoryBacking><access mode='shared'/></memoryBacking>", OBSTACLE_SHARED },
		{ "<memoryBacking><source type='file'/></memoryBacking>", OBSTACLE_SHARED },
		{ "<memoryBacking><source type='anonymous'/></memoryBacking>", 0 },
		{ "<cpu><numa><cell id='0'/><cell id='1' memAccess='shared'/></numa></cpu>",
		  OBSTACLE_SHARED },
	};
	char text[1024];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		(void)snprintf(text, sizeof(text), HEAD "%s<devices>" BALLOON "</devices></domain>",
			       cases[i].text);
		CU_ASSERT_EQUAL(obstacles_of(text), cases[i].obstacles);
	}
}

static void metadata_is_ours_by_its_namespace(void)
{
	struct domain_xml xml =
		parse(HEAD "<metadata><o:x xmlns:o='urn:other'>no</o:x>"
			   "<b:guest xmlns:b='" HYP_METADATA_URI "'>\n  gold \n</b:guest>"
			   "</metadata></domain>");

	CU_ASSERT_STRING_EQUAL(xml.guest.metadata, "gold");
}

static void a_channel_of_another_kind_is_none(void)
{
	struct domain_xml xml =
		parse(HEAD "<devices><channel type='pty'><source path='/dev/pts/1'/>"
			   "<target type='virtio' name='org.ballast.agent.0'/></channel>"
			   "<channel type='unix'><source mode='connect' path='/run/x'/>"
			   "<target type='virtio' name='org.ballast.agent.0'/></channel>"
			   "</devices></domain>");

	CU_ASSERT_STRING_EQUAL(xml.guest.channel_path, "");
}

static void a_path_that_does_not_fit_is_not_cut(void)
{
	char path[200], text[1024];

	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	(void)snprintf(text, sizeof(text),
		       HEAD "<devices><channel type='unix'><source mode='bind' path='%s'/>"
			    "<target type='virtio' name='org.ballast.agent.0'/></channel></devices>"
			    "</domain>",
		       path);
	CU_ASSERT_STRING_EQUAL(parse(text).guest.channel_path, "");
}

static void what_is_no_domain_is_refused_and_the_output_untouched(void)
{
	static const char *const texts[] = {
		"",
		"<",
		"<domain/>",
		"<network><name>a</name></network>",
		"<domain><name>a</name><uuid>1</uuid><memory>1</memory></domain>",
		"<domain><name>a</name><uuid>" UUID "</uuid></domain>",
		"<domain><name>a</name><uuid>" UUID "</uuid><memory>x</memory></domain>",
		"<domain><name>a</name><uuid>" UUID
		"</uuid><memory unit='TiB'>99999999999</memory></domain>",
	};
	struct domain_xml xml = { .name = "before" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		CU_ASSERT_EQUAL(domain_xml_parse(texts[i], &xml), -EBADMSG);
	CU_ASSERT_STRING_EQUAL(xml.name, "before");
}

/* --- The process ------------------------------------------------------------------------------ */

/* Write arguments separated by '|' as NUL-separated ones. */
static void write_args(const struct fake_root *root, const char *pid, const char *args)
{
	char path[64], *text = strdup(args);
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
	fake_write(root, path, "");
	file = fopen(fake_path(root, path), "w");
	for (char *p = text; *p; p++)
		(void)fputc(*p == '|' ? '\0' : *p, file);
	(void)fclose(file);
	free(text);
}

static int find(const struct fake_root *root)
{
	char proc[128], run[128];

	(void)snprintf(proc, sizeof(proc), "%s/proc", root->dir);
	(void)snprintf(run, sizeof(run), "%s/run", root->dir);
	return qemu_pid_find(proc, run, "web", uuid);
}

static void the_pid_file_is_believed_when_the_process_has_the_uuid(void)
{
	struct fake_root root;

	fake_root_make(&root);
	fake_write(&root, "/run/web.pid", "100\n");
	write_args(&root, "100", "qemu|-name|guest=web|-uuid|" UUID "|-m|1|");
	write_args(&root, "200", "qemu|-uuid|" UUID "|");
	CU_ASSERT_EQUAL(find(&root), 100);
	fake_root_remove(&root);
}

static void a_stale_pid_file_is_not_believed(void)
{
	struct fake_root root;

	fake_root_make(&root);
	fake_write(&root, "/run/web.pid", "100\n");
	write_args(&root, "100", "bash|");
	CU_ASSERT_EQUAL(find(&root), 0);
	write_args(&root, "200", "qemu|-uuid|" UUID "|");
	CU_ASSERT_EQUAL(find(&root), 200);
	fake_root_remove(&root);
}

static void an_argument_that_only_contains_the_uuid_is_no_match(void)
{
	struct fake_root root;

	fake_root_make(&root);
	write_args(&root, "100", "grep|" UUID "|");
	write_args(&root, "101", "sh|-c|qemu -uuid " UUID "|");
	write_args(&root, "102", "qemu|-uuid|" UUID "0|");
	write_args(&root, "103", "qemu|-uuid|");
	CU_ASSERT_EQUAL(find(&root), 0);
	fake_root_remove(&root);
}

static void two_processes_with_the_uuid_are_one_too_many(void)
{
	struct fake_root root;

	fake_root_make(&root);
	write_args(&root, "100", "qemu|-uuid|" UUID "|");
	write_args(&root, "101", "qemu|-uuid|" UUID "|");
	CU_ASSERT_EQUAL(find(&root), 0);
	fake_root_remove(&root);
}

static const struct unit_test tests[] = {
	TEST(an_ordinary_domain_is_read),
	TEST(a_domain_of_any_name_is_known_by_it),
	TEST(units_of_memory_are_understood),
	TEST(a_domain_without_a_balloon_has_the_obstacle),
	TEST(devices_that_pin_memory_are_obstacles),
	TEST(memory_that_a_balloon_cannot_move_is_an_obstacle),
	TEST(metadata_is_ours_by_its_namespace),
	TEST(a_channel_of_another_kind_is_none),
	TEST(a_path_that_does_not_fit_is_not_cut),
	TEST(what_is_no_domain_is_refused_and_the_output_untouched),
	TEST(the_pid_file_is_believed_when_the_process_has_the_uuid),
	TEST(a_stale_pid_file_is_not_believed),
	TEST(an_argument_that_only_contains_the_uuid_is_no_match),
	TEST(two_processes_with_the_uuid_are_one_too_many),
};

HARNESS_MAIN("xml", tests)
