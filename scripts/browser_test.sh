#!/usr/bin/env bash
# The pages in a real browser, against the program that `cargo test` built, on real data and with mock sources.
set -euo pipefail
source "$(dirname "$0")/program.sh"

load earthquakes data/usgs-earthquakes/earthquakes.csv.zst
load ships data/us-ais-20220103/ais.csv.zst --object vessel
load storms data/atlantic-storms/storms.csv.zst --track storm_id
load countries data/natural-earth/countries_110m_pop.geojsonl.zst

source scripts/search_sources.sh
source scripts/serve.sh

# A report of the lab, to be looked at as the other pages are. Its figures mean nothing.
cat > "$folder/load.toml" << END
[target]
url = "$url"
[arrival]
kind = "constant"
rate = 20
[request]
path = "/version"
[phases]
measured_s = 1
END
"$meridian" lab run "$folder/load.toml" --out "$folder/lab" > /dev/null
"$meridian" lab report "$folder/lab" > /dev/null

maps=(tests/map.test.mjs tests/map-limits.test.mjs tests/map-layers.test.mjs tests/map-files.test.mjs tests/map-moving.test.mjs tests/map-table.test.mjs)
env -C web MERIDIAN_URL="$url" MERIDIAN_REPORT="$folder/lab/report.html" \
    node --test --test-concurrency=1 "${maps[@]}" tests/base-map.test.mjs tests/pixels.test.mjs tests/weight.test.mjs tests/search.test.mjs tests/pages.test.mjs

# Last: from the first user on, the server needs a credential.
printf 'correct horse battery\n' | "$meridian" user create anna --role writer --data "$folder/data"
env -C web MERIDIAN_URL="$url" node --test tests/sign-in.test.mjs
