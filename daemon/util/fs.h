/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Small files: read whole into the caller's buffer, or replaced as a whole. Any thread.
 */
#ifndef BALLAST_UTIL_FS_H
#define BALLAST_UTIL_FS_H

#include <stddef.h>
#include <sys/types.h>

/**
 * fs_pread() - read a file that is kept open, from its start.
 * @buf, @size: where to; always terminated by a NUL, so at most @size - 1 bytes are read. What is
 *              beyond that is left out.
 *
 * For files of /proc and /sys: a new read from 0 makes the kernel produce its text anew.
 * Return: the bytes read, or a negative errno and an empty @buf.
 */
ssize_t fs_pread(int fd, char *buf, size_t size);

/**
 * fs_read() - open a file, read it like fs_pread(), close it.
 */
ssize_t fs_read(const char *path, char *buf, size_t size);

/**
 * fs_open_under() - open a file below a root for reading, close-on-exec.
 * @root: folder, "" or "/" for the real one. @path: absolute, such as "/proc/meminfo".
 *
 * Return: a file descriptor that the caller owns, or a negative errno.
 */
int fs_open_under(const char *root, const char *path);

/**
 * fs_write_atomic() - replace a file's content: readers see the old one or the new one.
 *
 * Written to a temporary name beside it, synced, renamed. Mode 0644 less the umask. On failure
 * (-ENOSPC, ...) the old file is untouched and the temporary is gone.
 */
int fs_write_atomic(const char *path, const void *data, size_t size);

#endif
