#!/usr/bin/env bash
# The pages in a real browser, against the program that `cargo test` built, on real data and with mock sources.
set -euo pipefail
cd "$(dirname "$0")/.."

meridian=${CARGO_TARGET_DIR:-target}/debug/meridian
# `make test` has just built it.
[[ -n ${MERIDIAN_BUILT:-} ]] || cargo build --locked --quiet --bin meridian
folder=$(mktemp -d)
mock= server=
trap 'kill $server $mock 2> /dev/null || true; wait 2> /dev/null || true; rm -rf "$folder"' EXIT

"$meridian" load earthquakes data/usgs-earthquakes/earthquakes.csv.zst --data "$folder/data" --quiet
"$meridian" load ships data/us-ais-20220103/ais.csv.zst --object vessel --data "$folder/data" --quiet
"$meridian" load storms data/atlantic-storms/storms.csv.zst --track storm_id --data "$folder/data" --quiet
"$meridian" load countries data/natural-earth/countries_110m_pop.geojsonl.zst --data "$folder/data" --quiet

source scripts/search_sources.sh
source scripts/serve.sh

env -C web MERIDIAN_URL="$url" node --test --test-concurrency=1 tests/map.test.mjs tests/pixels.test.mjs tests/search.test.mjs
