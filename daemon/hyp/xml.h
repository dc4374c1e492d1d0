/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the daemon wants from a domain's live XML, by libxml2. No I/O, no state; any thread. The
 * text is libvirt's own, so it is trusted to be sane but not to be complete.
 */
#ifndef BALLAST_HYP_XML_H
#define BALLAST_HYP_XML_H

#include "daemon/hyp/hyp.h"

struct domain_xml {
	char name[GUEST_NAME_MAX];
	uint8_t uuid[16];
	struct hyp_guest guest; /* all but id, pid, phase and started */
	uint64_t stats_period_us; /* of the balloon's statistics, 0: none */
};

/**
 * domain_xml_parse() - read a domain's XML.
 * @ret: all of it is written, for 0 only.
 *
 * Return: 0; -EBADMSG for what isn't a domain with name, UUID and memory; -ENOMEM.
 */
int domain_xml_parse(const char *text, struct domain_xml *ret);

#endif
