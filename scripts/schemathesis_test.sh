#!/usr/bin/env bash
# The API description held against the OpenAPI schemas, and the server against its description: requests made from it find
# no failure of the server and no answer that is not described. SECONDS_MAX (45) bounds the run, SEED (18) repeats it.
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

# With a token: a run creates some itself, and from the first on nothing is answered without one.
token=$(curl -sfS -X POST -H 'Content-Type: application/json' -d '{"role":"operator"}' "$url/tokens" | python3 -c 'import json, sys; print(json.load(sys.stdin)["token"])')

# In the folder: what a run leaves behind (examples that it found) is not part of the project.
code=0
config=$PWD/scripts/schemathesis.toml
(cd "$folder" && "$tools/bin/schemathesis" --config-file "$config" run "$folder/api.json" --url "$url" --header "Authorization: Bearer $token" --no-color \
    --phases coverage,fuzzing --max-examples "${EXAMPLES:-20}" --max-time "${SECONDS_MAX:-45}" --seed "${SEED:-18}" \
    --generation-database none --continue-on-failure --no-shrink --warnings off) > "$folder/said" 2>&1 || code=$?
tail -n 200 "$folder/said"
# The server is well after all that, and a run that asked nothing proves nothing.
curl -sfS "$url/readyz" > /dev/null
asked=$(curl -sfS -H "Authorization: Bearer $token" "$url/metrics" | awk '/^http_server_request_duration_seconds_count/{n+=$NF} END{print n+0}')
echo "schemathesis: $asked requests"
[[ $asked -ge 200 ]] || { echo "expected 200 or more"; exit 1; }
exit $code
