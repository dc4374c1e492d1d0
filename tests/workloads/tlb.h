/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For a process that uses the same memory all the time and has its processor to itself: x86 Linux
 * clears accessed bits without emptying the translation buffer, and QEMU's TCG sets them only when
 * it fills its own. To the kernel such memory looks idle, which no real processor would let it look
 * for long. tlb_forget() empties the buffer: taking the right to write from more pages than Linux
 * invalidates one by one (33) reloads CR3. One thread.
 */
#ifndef BALLAST_TLB_H
#define BALLAST_TLB_H

#include "tests/workloads/work.h"

#define TLB_PAGES 64

struct tlb {
	unsigned char *pages;
};

static inline void tlb_init(struct tlb *ret)
{
	ret->pages = work_map(TLB_PAGES * WORK_PAGE);
	if (mlock(ret->pages, TLB_PAGES * WORK_PAGE) < 0)
		work_die("mlock: %s", strerror(errno));
}

static inline void tlb_forget(struct tlb *tlb)
{
	for (size_t i = 0; i < TLB_PAGES; i++)
		tlb->pages[i * WORK_PAGE]++;
	if (mprotect(tlb->pages, TLB_PAGES * WORK_PAGE, PROT_READ) < 0 ||
	    mprotect(tlb->pages, TLB_PAGES * WORK_PAGE, PROT_READ | PROT_WRITE) < 0)
		work_die("mprotect: %s", strerror(errno));
}

#endif
