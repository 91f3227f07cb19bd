#!/usr/bin/env bash
# The abstract tests of CQL2 (OGC 21-065r2, annex A) against a live server.
set -euo pipefail
cd "$(dirname "$0")/.."

meridian=${CARGO_TARGET_DIR:-target}/debug/meridian
# `make test` has just built it.
[[ -n ${MERIDIAN_BUILT:-} ]] || cargo build --locked --quiet --bin meridian
scripts/need.sh zstd=zstd

folder=$(mktemp -d)
server=
trap '[[ -z $server ]] || { kill "$server" && wait "$server"; } 2> /dev/null; rm -rf "$folder"' EXIT
source scripts/serve.sh
python3 tests/cql2.py "$url" data/natural-earth
