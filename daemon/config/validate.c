// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/config/validate.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config/value.h"

#define HOST(field)	offsetof(struct settings, host.field)
#define DEFAULTS(field) offsetof(struct settings, defaults.field)

/*
 * Where the last of @n related values was given.
 *
 * Return: NULL if there is nothing to say: all are built-in, or one of them was wrong anyway.
 */
static const struct place *where(const struct loader *loader, size_t n, const size_t *fields)
{
	const struct origin *last = NULL;

	for (size_t i = 0; i < n; i++) {
		const struct origin *origin = apply_origin(loader, fields[i]);

		if (origin && origin->bad)
			return NULL;
		if (origin && (!last || origin->number > last->number))
			last = origin;
	}
	return last ? &last->place : NULL;
}

#define WHERE(loader, ...)                                                                         \
	where(loader, sizeof((size_t[]){ __VA_ARGS__ }) / sizeof(size_t), (size_t[]){ __VA_ARGS__ })

static void error(struct loader *loader, const struct place *place, const char *key,
		  const char *text)
{
	diag_add(loader->diag, CONFIG_ERROR, *place, key, "%s", text);
}

static void check_levels(struct loader *loader)
{
	const struct host_settings *host = &loader->settings->host;
	const struct place *place = WHERE(loader, HOST(tight_below), HOST(critical_below));

	if (place && host->critical_below >= host->tight_below)
		error(loader, place, "host.levels", "critical_below must be less than tight_below");
}

static void check_pressure(struct loader *loader)
{
	const struct host_settings *host = &loader->settings->host;
	const struct place *place = WHERE(loader, HOST(psi_low), HOST(psi_high));

	if (place && host->psi_low >= host->psi_high)
		error(loader, place, "host.pressure", "low must be less than high");
}

/* Sizes can be held against the budget only where that is a size, too. */
static void check_reserve(struct loader *loader)
{
	const struct host_settings *host = &loader->settings->host;
	const struct amount *parts[] = { &host->headroom, &host->grant_pool };
	const struct place *place = WHERE(loader, HOST(headroom), HOST(grant_pool), HOST(budget));
	bool sized = host->budget_kind == BUDGET_AMOUNT && host->budget.kind == AMOUNT_BYTES;
	uint64_t whole = sized ? host->budget.value : UINT64_C(1) << 50, sum = 0;

	for (size_t i = 0; i < 2; i++)
		if (sized || parts[i]->kind == AMOUNT_PERCENT)
			sum += amount_resolve(parts[i], whole, 0);
	if (place && sum >= whole)
		error(loader, place, "host",
		      "headroom and grant_pool leave nothing of the budget: lower them");
}

static void check_hook(struct loader *loader)
{
	const char *hook = loader->settings->host.shortfall_hook;
	const struct place *place = WHERE(loader, HOST(shortfall_hook));

	if (place && *hook && access(hook, X_OK) < 0)
		diag_add(loader->diag, CONFIG_WARNING, *place, "host.shortfall_hook",
			 "can't be run as it is (%s): install it and make it executable",
			 strerror(errno));
}

void validate_guest(struct loader *loader, const struct guest_settings *guest, struct place place,
		    const struct key_path *path)
{
	char min[VALUE_TEXT_MAX], max[VALUE_TEXT_MAX];

	if (guest->min.kind != guest->max.kind || guest->min.value <= guest->max.value)
		return;
	if (guest->min.kind == AMOUNT_PERCENT) {
		value_format_percent(guest->min.value, min);
		value_format_percent(guest->max.value, max);
	} else {
		value_format_size(guest->min.value, min);
		value_format_size(guest->max.value, max);
	}
	diag_add(loader->diag, CONFIG_ERROR, place, path->text,
		 "min (%s) is above max (%s): lower min or raise max", min, max);
}

void validate(struct loader *loader)
{
	const struct place *limits = WHERE(loader, DEFAULTS(min), DEFAULTS(max));
	const struct key_path path = { "defaults" };

	check_levels(loader);
	check_pressure(loader);
	check_reserve(loader);
	check_hook(loader);
	if (limits)
		validate_guest(loader, &loader->settings->defaults, *limits, &path);
}
