// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/hyp/xml.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <libxml/parser.h>
#include <libxml/tree.h>

#include "daemon/util/cleanup.h"
#include "daemon/util/parse.h"
#include "daemon/util/time.h"
#include "daemon/util/uuid.h"

#define CHANNEL_NAME "org.ballast.agent.0"

DEFINE_CLEANUP(xmlDocPtr, xmlFreeDoc);

static bool is_element(const xmlNode *node, const char *name)
{
	return node->type == XML_ELEMENT_NODE && strcmp((const char *)node->name, name) == 0;
}

/* The next element of that name: the first child of @parent, or the one behind @after. */
static const xmlNode *find_child(const xmlNode *parent, const xmlNode *after, const char *name)
{
	const xmlNode *node = after ? after->next : parent ? parent->children : NULL;

	while (node && !is_element(node, name))
		node = node->next;
	return node;
}

/* Copy a string that libxml2 allocated, without the white space around it. */
static void copy_trimmed(xmlChar *from, char *to, size_t size)
{
	const char *start = (const char *)from;
	size_t length;

	to[0] = '\0';
	if (!from)
		return;
	start += strspn(start, " \t\r\n");
	length = strlen(start);
	while (length && strchr(" \t\r\n", start[length - 1]))
		length--;
	/* A cut name or path would name something else. */
	if (length < size) {
		memcpy(to, start, length);
		to[length] = '\0';
	}
	xmlFree(from);
}

static void get_text(const xmlNode *node, char *to, size_t size)
{
	copy_trimmed(node ? xmlNodeGetContent(node) : NULL, to, size);
}

static void get_attribute(const xmlNode *node, const char *name, char *to, size_t size)
{
	copy_trimmed(node ? xmlGetNoNsProp(node, (const xmlChar *)name) : NULL, to, size);
}

static bool attribute_is(const xmlNode *node, const char *name, const char *value)
{
	char text[32];

	get_attribute(node, name, text, sizeof(text));
	return strcmp(text, value) == 0;
}

static uint64_t unit_bytes(const char *unit)
{
	static const struct {
		const char *name;
		uint64_t bytes;
	} units[] = {
		{ "", KIB(1) },	    { "KiB", KIB(1) },	     { "k", KIB(1) }, { "b", 1 },
		{ "bytes", 1 },	    { "MiB", MIB(1) },	     { "M", MIB(1) }, { "GiB", MIB(1024) },
		{ "G", MIB(1024) }, { "TiB", MIB(1048576) },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (strcmp(units[i].name, unit) == 0)
			return units[i].bytes;
	return 0;
}

static uint64_t get_amount(const xmlNode *node)
{
	char text[32], unit[16];
	const char *p = text;
	uint64_t value;

	get_text(node, text, sizeof(text));
	get_attribute(node, "unit", unit, sizeof(unit));
	if (!parse_u64(&p, &value) || __builtin_mul_overflow(value, unit_bytes(unit), &value))
		return 0;
	return value;
}

/* The balloon, and whether there is one that works without the guest's consent to more. */
static void read_balloon(const xmlNode *devices, struct domain_xml *ret)
{
	const xmlNode *balloon = find_child(devices, NULL, "memballoon");
	char model[32], period[16];
	const char *p = period;
	uint64_t seconds;

	get_attribute(balloon, "model", model, sizeof(model));
	if (strncmp(model, "virtio", strlen("virtio")) != 0) {
		ret->guest.obstacles |= OBSTACLE_NO_BALLOON;
		return;
	}
	ret->guest.autodeflate = attribute_is(balloon, "autodeflate", "on");
	ret->guest.reporting = attribute_is(balloon, "freePageReporting", "on");
	get_attribute(find_child(balloon, NULL, "stats"), "period", period, sizeof(period));
	if (parse_u64(&p, &seconds) && seconds < UINT32_MAX)
		ret->stats_period_us = seconds * USEC_PER_SEC;
}

/* Devices through which the guest's memory is pinned: a balloon would gain nothing. */
static bool pins_memory(const xmlNode *device)
{
	if (is_element(device, "hostdev"))
		return attribute_is(device, "type", "pci") || attribute_is(device, "type", "mdev");
	if (is_element(device, "interface"))
		return attribute_is(device, "type", "hostdev") ||
		       attribute_is(device, "type", "vdpa");
	if (is_element(device, "disk"))
		return attribute_is(device, "type", "nvme") ||
		       attribute_is(device, "type", "vhostvdpa");
	return false;
}

static void read_channel(const xmlNode *channel, struct hyp_guest *ret)
{
	const xmlNode *target = find_child(channel, NULL, "target");
	const xmlNode *source = find_child(channel, NULL, "source");

	if (!attribute_is(channel, "type", "unix") || !attribute_is(target, "name", CHANNEL_NAME) ||
	    !attribute_is(source, "mode", "bind"))
		return;
	get_attribute(source, "path", ret->channel_path, sizeof(ret->channel_path));
	ret->channel_open = attribute_is(target, "state", "connected");
}

static void read_devices(const xmlNode *devices, struct domain_xml *ret)
{
	read_balloon(devices, ret);
	for (const xmlNode *node = devices ? devices->children : NULL; node; node = node->next) {
		if (pins_memory(node))
			ret->guest.obstacles |= OBSTACLE_PASSTHROUGH;
		if (is_element(node, "channel"))
			read_channel(node, &ret->guest);
	}
}

static bool has_shared_cell(const xmlNode *domain)
{
	const xmlNode *numa = find_child(find_child(domain, NULL, "cpu"), NULL, "numa");
	const xmlNode *cell = NULL;

	while (numa && (cell = find_child(numa, cell, "cell")))
		if (attribute_is(cell, "memAccess", "shared"))
			return true;
	return false;
}

static void read_backing(const xmlNode *domain, struct hyp_guest *ret)
{
	const xmlNode *backing = find_child(domain, NULL, "memoryBacking");

	/* Encrypted guests' memory is pinned, too. */
	if (find_child(backing, NULL, "locked") || find_child(domain, NULL, "launchSecurity"))
		ret->obstacles |= OBSTACLE_LOCKED;
	if (find_child(backing, NULL, "hugepages"))
		ret->obstacles |= OBSTACLE_HUGEPAGES;
	if (attribute_is(find_child(backing, NULL, "access"), "mode", "shared") ||
	    attribute_is(find_child(backing, NULL, "source"), "type", "file") ||
	    has_shared_cell(domain))
		ret->obstacles |= OBSTACLE_SHARED;
}

/* The text of the first element of ours in <metadata>. */
static void read_metadata(const xmlNode *domain, struct hyp_guest *ret)
{
	const xmlNode *metadata = find_child(domain, NULL, "metadata");

	for (const xmlNode *node = metadata ? metadata->children : NULL; node; node = node->next) {
		if (node->type != XML_ELEMENT_NODE || !node->ns || !node->ns->href ||
		    strcmp((const char *)node->ns->href, HYP_METADATA_URI) != 0)
			continue;
		get_text(node, ret->metadata, sizeof(ret->metadata));
		return;
	}
}

/* As it is, with white space and all; the UUID for one that is too long for its place. */
static void read_name(const xmlNode *node, const char *uuid, char name[GUEST_NAME_MAX])
{
	xmlChar *text = node ? xmlNodeGetContent(node) : NULL;
	const char *from = text ? (const char *)text : "";

	(void)snprintf(name, GUEST_NAME_MAX, "%s", strlen(from) < GUEST_NAME_MAX ? from : uuid);
	xmlFree(text);
}

static int read_domain(const xmlNode *domain, struct domain_xml *ret)
{
	char uuid[UUID_TEXT_SIZE];

	if (!domain || !is_element(domain, "domain"))
		return -EBADMSG;
	get_text(find_child(domain, NULL, "uuid"), uuid, sizeof(uuid));
	read_name(find_child(domain, NULL, "name"), uuid, ret->name);
	if (!ret->name[0] || uuid_parse(uuid, ret->uuid) < 0)
		return -EBADMSG;
	ret->guest.maximum = get_amount(find_child(domain, NULL, "memory"));
	if (ret->guest.maximum == 0)
		return -EBADMSG;
	ret->guest.tcg = attribute_is(domain, "type", "qemu");
	read_backing(domain, &ret->guest);
	read_devices(find_child(domain, NULL, "devices"), ret);
	read_metadata(domain, &ret->guest);
	return 0;
}

int domain_xml_parse(const char *text, struct domain_xml *ret)
{
	_cleanup_(xmlFreeDocp) xmlDocPtr doc = NULL;
	struct domain_xml xml = { 0 };
	size_t size = strlen(text);
	int r;

	if (size > MIB(4))
		return -EBADMSG;
	doc = xmlReadMemory(text, (int)size, "domain.xml", NULL,
			    XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING |
				    XML_PARSE_NOBLANKS);
	if (!doc)
		return -EBADMSG;
	r = read_domain(xmlDocGetRootElement(doc), &xml);
	if (r < 0)
		return r;
	*ret = xml;
	return 0;
}
