/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cleanup attributes: a local variable marked with one of them is released when it goes out of
 * scope. TAKE_PTR() and TAKE_FD() hand ownership on. Header only, any thread.
 */
#ifndef BALLAST_UTIL_CLEANUP_H
#define BALLAST_UTIL_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

/* DEFINE_CLEANUP(struct foo *, foo_free) makes foo_freep() for _cleanup_(foo_freep). */
#define DEFINE_CLEANUP(type, func)                                                                 \
	static inline void func##p(type *p)                                                        \
	{                                                                                          \
		if (*p)                                                                            \
			func(*p);                                                                  \
	}                                                                                          \
	struct cleanup_needs_a_semicolon

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

static inline void cleanup_fclose(FILE **f)
{
	if (*f)
		(void)fclose(*f);
}

#define _cleanup_free_	 _cleanup_(cleanup_free)
#define _cleanup_close_	 _cleanup_(cleanup_close)
#define _cleanup_fclose_ _cleanup_(cleanup_fclose)

#define TAKE_PTR(p)                                                                                \
	({                                                                                         \
		__typeof__(p) take_ = (p);                                                         \
		(p) = NULL;                                                                        \
		take_;                                                                             \
	})

static inline int take_fd(int *fd)
{
	int r = *fd;

	*fd = -1;
	return r;
}

#define TAKE_FD(fd) take_fd(&(fd))

#endif
