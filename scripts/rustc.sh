#!/usr/bin/env bash
# rustc for the workspace's crates, as `.cargo/config.toml` names it: programs of tests are not optimised and have no debug information. Cargo has one
# profile for a library and its tests, and optimising tests was most of the time of their build (decision 081). Libraries that tests link stay
# as their profile says.
set -euo pipefail
rustc=$1
shift
# Simulations and schedules, explored at length: their runs would lose more than their build gains.
slow=" meridian-lab-plan meridian-model "
if [[ " $* " == *" --test "* && $slow != *" ${CARGO_PKG_NAME:-} "* ]]; then
    set -- "$@" -C opt-level=0 -C debuginfo=0
fi
exec "$rustc" "$@"
