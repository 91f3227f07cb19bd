#!/usr/bin/env bash
# The pictures of the README and the guides, into docs/images: real data, a real server, headless Chromium. MERIDIAN names the
# program (default: the release build). Needs Node, Chromium and the web's packages, as `make test` does.
set -euo pipefail
cd "$(dirname "$0")/.."

meridian=${MERIDIAN:-${CARGO_TARGET_DIR:-target}/release/meridian}
[[ -x $meridian ]] || { echo "there is no program at $meridian: \`make build\` makes it, or MERIDIAN names another"; exit 1; }
make --no-print-directory web/node_modules/.installed

folder=$(mktemp -d)
server=
# shellcheck disable=SC2086
trap 'kill $server 2> /dev/null || true; wait 2> /dev/null || true; rm -rf "$folder"' EXIT
load() { "$meridian" load "$1" "data/$2" --data "$folder/data" --quiet "${@:3}"; }
load earthquakes usgs-earthquakes/earthquakes.csv.zst
load storms atlantic-storms/storms.csv.zst --track storm_id
load ships us-ais-20220103/ais.csv.zst --object vessel
load countries natural-earth/countries_110m_pop.geojsonl.zst
load capitals natural-earth/capitals_110m.geojsonl.zst
load postal-places geonames-postal-places/postal_places.tsv.zst
source scripts/serve.sh

node web/scripts/screenshots.mjs "$url" docs/images
