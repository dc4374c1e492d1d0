/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * UUIDs between their 16 bytes, as everything inside has them, and their text, as people and the
 * hypervisor have it. Pure, any thread.
 */
#ifndef BALLAST_UTIL_UUID_H
#define BALLAST_UTIL_UUID_H

#include <stdint.h>

#define UUID_TEXT_SIZE 37

/** uuid_format() - write @uuid in its canonical form of 36 characters, terminated. */
void uuid_format(const uint8_t uuid[16], char text[UUID_TEXT_SIZE]);

/**
 * uuid_parse() - read the canonical form, in either case.
 *
 * Return: 0, or -EINVAL and @ret_uuid untouched.
 */
int uuid_parse(const char *text, uint8_t ret_uuid[16]);

#endif
