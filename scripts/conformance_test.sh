#!/usr/bin/env bash
# The OGC's own conformance suites against a live server: ETS_FEATURES and ETS_TILES name their all-in-one jars
# (ets-ogcapi-features10-*-aio.jar, ets-ogcapi-tiles10-*-aio.jar). Nothing of theirs is part of this project, and they are in no
# package registry. Maven builds them from their sources: `mvn -DskipTests package` (before 3.9 with `-Denforcer.skip=true`).
set -euo pipefail

if [[ -z ${ETS_FEATURES:-}${ETS_TILES:-} ]]; then
    echo "name a suite's jar in ETS_FEATURES or ETS_TILES"
    exit 2
fi
source "$(dirname "$0")/program.sh"
scripts/need.sh java=default-jre-headless
load capitals data/natural-earth/capitals_110m.geojsonl.zst
load countries data/natural-earth/countries_110m_pop.geojsonl.zst
load storms data/atlantic-storms/storms.csv.zst --track storm_id
source scripts/serve.sh

# entries NAME VALUE...: a suite's arguments as Java properties. Without the usual DOCTYPE, which would be fetched.
entries() {
    echo '<?xml version="1.0" encoding="UTF-8"?><properties version="1.0">'
    while [[ $# -gt 0 ]]; do
        echo "<entry key=\"$1\">$2</entry>"
        shift 2
    done
    echo '</properties>'
}

# run SUITE JAR: runs it and judges what it found.
run() {
    local suite=$1 jar=$2
    [[ -f $jar ]] || { echo "there is no file $jar"; return 1; }
    timeout 900 java -jar "$jar" -o "$folder/$suite" "$folder/$suite.xml" > "$folder/$suite.log" 2>&1 ||
        { tail -n 20 "$folder/$suite.log"; return 1; }
    local results
    mapfile -t results < <(find "$folder/$suite" -name testng-results.xml)
    if [[ ${#results[@]} -eq 0 ]]; then
        echo "the suite wrote no results:"
        tail -n 20 "$folder/$suite.log"
        return 1
    fi
    python3 tests/conformance.py "$suite" "${results[@]}"
}

code=0
if [[ -n ${ETS_FEATURES:-} ]]; then
    entries iut "$url/" noofcollections 3 > "$folder/features.xml"
    run features "$ETS_FEATURES" || code=1
fi
if [[ -n ${ETS_TILES:-} ]]; then
    entries iut "$url/" noofcollections 3 \
        tilematrixsetdefinitionuri http://www.opengis.net/def/tilematrixset/OGC/1.0/WebMercatorQuad \
        urltemplatefortiles "$url/collections/countries/tiles/WebMercatorQuad/{tileMatrix}/{tileRow}/{tileCol}" \
        tilematrix 1 mintilerow 0 maxtilerow 1 mintilecol 0 maxtilecol 1 > "$folder/tiles.xml"
    run tiles "$ETS_TILES" || code=1
fi
exit $code
