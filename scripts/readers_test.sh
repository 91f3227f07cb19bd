#!/usr/bin/env bash
# What `meridian files` lists, read by DuckDB and pyarrow, against the answers of the live server that wrote it.
set -euo pipefail
source "$(dirname "$0")/program.sh"

python_tools readers pyarrow==26.0.1 duckdb==1.5.5 duckdb-extension-spatial==1.5.5

load quakes data/usgs-earthquakes/earthquakes.csv.zst
source scripts/serve.sh

check() {
    "$tools/bin/python" tests/readers.py "$meridian" "$url" quakes mag -125,32,-114,42
}

echo "-- as loaded"
check
echo "-- after deletions and late events"
curl -sfS -X DELETE "$url/collections/quakes/items?filter=mag%20%3C%201.5" > /dev/null
for year in 1990 2005 2020; do
    curl -sfS -X POST "$url/collections/quakes/items" -H 'Content-Type: application/geo+json' -d '{"type":"Feature",
        "id":"late-'$year'","geometry":{"type":"Point","coordinates":[-120.5,37.25]},
        "properties":{"time":"'$year'-06-01T00:00:00Z","mag":7.75}}' > /dev/null
done
check
echo "-- from the folder of a stopped server"
"$meridian" files quakes --url "$url" > "$folder/live"
kill "$server" && wait "$server" || true
server=
"$meridian" files quakes --data "$folder/data" | diff - "$folder/live"
"$meridian" check --data "$folder/data"
echo "readers: pyarrow and DuckDB agree with Meridian"
