#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The kernel's series is in order: see kernel-patches/check.sh.
exec "$(dirname "$0")/../../kernel-patches/check.sh"
