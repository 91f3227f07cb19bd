#!/usr/bin/env bash
# The map in a real browser, against the program that `cargo test` built, on real data.
set -euo pipefail
cd "$(dirname "$0")/.."

meridian=${CARGO_TARGET_DIR:-target}/debug/meridian
# `make test` has just built it.
[[ -n ${MERIDIAN_BUILT:-} ]] || cargo build --locked --quiet --bin meridian
folder=$(mktemp -d)
trap 'kill "$server" 2> /dev/null && wait "$server" 2> /dev/null; rm -rf "$folder"' EXIT
server=

"$meridian" load earthquakes data/usgs-earthquakes/earthquakes.csv.zst --data "$folder/data" --quiet
"$meridian" load ships data/us-ais-20220103/ais.csv.zst --object vessel --data "$folder/data" --quiet
"$meridian" load storms data/atlantic-storms/storms.csv.zst --track storm_id --data "$folder/data" --quiet
"$meridian" load countries data/natural-earth/countries_110m_pop.geojsonl.zst --data "$folder/data" --quiet

source scripts/serve.sh

env -C web MERIDIAN_URL="$url" node --test tests/map.test.mjs
