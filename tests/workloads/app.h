/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs with a large text of their own, made where there is no compiler: a copy of the program
 * that runs, with functions of text.h behind its end and a program header that has the kernel map
 * them as one more segment, r-x. PT_NOTE is turned into that header: nobody misses it, and it comes
 * behind the segments that there are, as addresses have to. One thread.
 */
#ifndef BALLAST_APP_H
#define BALLAST_APP_H

#include <elf.h>
#include <sys/stat.h>

#include "tests/workloads/text.h"

/* Where the segment begins: behind a static program, which isn't moved and is small. */
#define APP_TEXT_AT UINT64_C(0x10000000)

/* The program that runs, as a file's contents. */
struct app_image {
	unsigned char *bytes;
	size_t size;
};

static inline void app_image_read(struct app_image *ret)
{
	static const char path[] = "/proc/self/exe";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat stat;

	if (fd < 0 || fstat(fd, &stat) < 0)
		work_die("%s: %s", path, strerror(errno));
	ret->size = (size_t)stat.st_size;
	ret->bytes = work_map(ret->size);
	for (size_t at = 0; at < ret->size;) {
		ssize_t n = read(fd, ret->bytes + at, ret->size - at);

		if (n <= 0)
			work_die("%s can't be read", path);
		at += (size_t)n;
	}
	close(fd);
}

/* The text stands in whole pages of the file, as in memory. */
static inline uint64_t app_text_offset(const struct app_image *image)
{
	return (image->size + WORK_PAGE - 1) / WORK_PAGE * WORK_PAGE;
}

/**
 * app_image_add_text() - give the image's header a segment of text.
 * @size: of the text in bytes, whole pages
 */
static inline void app_image_add_text(struct app_image *image, uint64_t size)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	memcpy(&header, image->bytes, sizeof(header));
	if (header.e_type != ET_EXEC)
		work_die("a program that makes others of itself has to be static, not PIE");
	for (size_t i = 0; i < header.e_phnum; i++) {
		unsigned char *at = image->bytes + header.e_phoff + i * sizeof(segment);

		memcpy(&segment, at, sizeof(segment));
		if (segment.p_type != PT_NOTE)
			continue;
		segment = (Elf64_Phdr){
			.p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_offset = app_text_offset(image),
			.p_vaddr = APP_TEXT_AT,
			.p_paddr = APP_TEXT_AT,
			.p_filesz = size,
			.p_memsz = size,
			.p_align = WORK_PAGE,
		};
		memcpy(at, &segment, sizeof(segment));
		return;
	}
	work_die("the program has no PT_NOTE to be a segment of text");
}

/**
 * app_write() - write a program that has the functions @first ... @first + @pages - 1 as its text.
 * @image: after app_image_add_text() for so many pages
 */
static inline void app_write(const struct app_image *image, const char *path, uint32_t first,
			     uint32_t pages)
{
	FILE *file = fopen(path, "we");

	if (!file || fwrite(image->bytes, image->size, 1, file) != 1 ||
	    fseek(file, (long)app_text_offset(image), SEEK_SET) < 0)
		work_die("%s: %s", path, strerror(errno));
	text_write(file, path, first, pages);
	if (fchmod(fileno(file), 0755) < 0 || fclose(file) != 0)
		work_die("%s: %s", path, strerror(errno));
}

/* The text of the program that runs, which app_write() has made. */
static inline const unsigned char *app_text(void)
{
	const uint64_t at = APP_TEXT_AT;
	const unsigned char *text;

	memcpy(&text, &at, sizeof(text));
	return text;
}

#endif
