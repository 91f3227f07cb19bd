#!/usr/bin/env bash
# Loads the project's real data sets into one folder and serves them: `make demo`.
# A load that was broken off is resumed; a folder that is complete is served as it is.
set -euo pipefail
cd "$(dirname "$0")/.."

meridian=${MERIDIAN:-target/demo/meridian}
data=${DATA:-demo-data}
port=${PORT:-7117}

# load COLLECTION EVENTS FILE [OPTION...]: unless the collection has that many events already.
load() {
    local collection=$1 events=$2 file=$3
    shift 3
    local there
    there=$("$meridian" aggregate "$collection" --data "$data" --format csv 2> /dev/null | tail -n 1) || there=
    if [[ $there == "$events" ]]; then
        echo "$collection: $events events are there"
        return
    fi
    "$meridian" load "$collection" "data/$file" --data "$data" "$@"
}

load earthquakes 156288 usgs-earthquakes/earthquakes.csv.zst
load postal-places 744944 geonames-postal-places/postal_places.tsv.zst
load storms 692 atlantic-storms/storms.csv.zst --track storm_id
load ships 99999 us-ais-20220103/ais.csv.zst --object vessel
load countries 177 natural-earth/countries_110m_pop.geojsonl.zst
load capitals 243 natural-earth/capitals_110m.geojsonl.zst

cat << END

  Open   http://127.0.0.1:$port/map            the map: earthquakes, storms, ships, places, countries
         http://127.0.0.1:$port/search         searches over all of them, and over outside sources once they are turned on
         http://127.0.0.1:$port/               the API, for people
  Ask    curl 'http://127.0.0.1:$port/collections/earthquakes/items?filter=mag%3E7&f=csv'
         $meridian aggregate ships --by status --url http://127.0.0.1:$port
  End    Ctrl-C

END
exec "$meridian" serve --listen "127.0.0.1:$port" --data "$data"
