#!/usr/bin/env bash
# The API description held against the OpenAPI schemas, and the server against its description. Requests made from the description
# find no failure of the server and no answer that is not described. SECONDS_MAX (45) bounds the run as an operator; SEED (18)
# repeats it.
set -euo pipefail
source "$(dirname "$0")/program.sh"

python_tools openapi schemathesis==4.32.5 openapi-spec-validator==0.9.0

load countries data/natural-earth/countries_110m_pop.geojsonl.zst
load capitals data/natural-earth/capitals_110m.geojsonl.zst
load storms data/atlantic-storms/storms.csv.zst --track storm_id
source scripts/serve.sh

for document in api openapi.json; do
    curl -sfS "$url/$document" > "$folder/$document.json"
    "$tools/bin/openapi-spec-validator" "$folder/$document.json"
done

# As callers of each kind, so that what a role may not do is described as well. Those who change least come first: an operator creates
# and deletes what it likes.
token() {
    curl -sfS -X POST "${as[@]}" -H 'Content-Type: application/json' -d "$1" "$url/tokens" | python3 -c 'import json, sys; print(json.load(sys.stdin)["token"])'
}
as=()
operator=$(token '{"role":"operator"}')
as=(-H "Authorization: Bearer $operator")
reader=$(token '{"role":"reader","collections":"countries"}')
writer=$(token '{"role":"writer"}')

# run WHO SECONDS HEADER...: in the folder, as what a run leaves behind (examples that it found) is not part of the project.
code=0
config=$PWD/scripts/schemathesis.toml
run() {
    local who=$1 seconds=$2
    shift 2
    echo "schemathesis: as $who"
    (cd "$folder" && "$tools/bin/schemathesis" --config-file "$config" run "$folder/api.json" --url "$url" "$@" --no-color \
        --phases coverage,fuzzing --max-examples "${EXAMPLES:-20}" --max-time "$seconds" --seed "${SEED:-18}" \
        --generation-database none --continue-on-failure --no-shrink --warnings off) > "$folder/said" 2>&1 || code=$?
    tail -n 200 "$folder/said"
}
# Each takes its share of the time for each operation, so that all 94 are asked.
run "a reader of one collection" 30 --header "Authorization: Bearer $reader"
run "a writer" 30 --header "Authorization: Bearer $writer"
run "a caller without a token" 30
run "an operator" "${SECONDS_MAX:-45}" --header "Authorization: Bearer $operator"
# The server is well after all that, and a run that asked nothing proves nothing.
curl -sfS "$url/readyz" > /dev/null
# The operator may have revoked its own token.
operator=$("$meridian" token create --role operator --data "$folder/data" | awk 'END {print $NF}')
as=(-H "Authorization: Bearer $operator")
metrics=$(curl -sfS "${as[@]}" "$url/metrics")
count() { awk -v status="$1" '/^http_server_request_duration_seconds_count/ && $0 ~ status {n+=$NF} END{print n+0}' <<< "$metrics"; }
asked=$(count '') refused=$(count 'code="40[134]"')
echo "schemathesis: $asked requests, $refused of them answered with 401, 403 or 404"
[[ $asked -ge 400 && $refused -ge 100 ]] || { echo "expected 400 or more, and 100 or more"; exit 1; }
exit $code
