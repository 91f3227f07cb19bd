#!/usr/bin/env bash
# The TypeScript client (clients/typescript): its types against docs/openapi.json, the package as users install it, and the blocks
# of docs/typescript.md. Its tests run against a stub, against a live server with tokens and mock sources, and in a browser.
set -euo pipefail
source "$(dirname "$0")/program.sh"
scripts/need.sh chromium=chromium
client=$PWD/clients/typescript

[[ $client/node_modules/.package-lock.json -nt $client/package-lock.json ]] || npm --prefix "$client" ci --no-audit --no-fund --silent
echo "-- types, as docs/openapi.json and a user's compiler have them"
npm --prefix "$client" run --silent check

echo "-- the package"
mkdir -p "$folder/user"
npm pack "$client" --silent --pack-destination "$folder" > /dev/null
echo '{"type":"module","private":true}' > "$folder/user/package.json"
npm install --prefix "$folder/user" --silent --no-audit --no-fund "$folder"/meridian-client-*.tgz
cp "$client/tests/types.ts" "$folder/user/"
# For a browser, and for Node alone, whose types are not those of the DOM. The types of the package are checked too.
for platform in '"lib":["es2022","dom"],"types":[]' '"lib":["es2023"],"types":["node"],"typeRoots":["'$client'/node_modules/@types"]'; do
    for module in nodenext preserve; do
        echo '{"compilerOptions":{"strict":true,"noEmit":true,"target":"es2022",'$platform',"module":"'$module'"},"files":["types.ts"]}' \
            > "$folder/user/tsconfig.json"
        "$client/node_modules/.bin/tsc" --project "$folder/user"
    done
done

load earthquakes data/usgs-earthquakes/earthquakes.csv.zst
load ships data/us-ais-20220103/ais.csv.zst --object vessel
MERIDIAN_TOKEN=$("$meridian" token create --role operator --data "$folder/data" | tail -n 1 | awk '{ print $NF }')
source scripts/search_sources.sh
# The page of the browser's test has an address of its own, which the server must know.
MERIDIAN_PAGE=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
printf '[server]\norigins = ["http://127.0.0.1:%s"]\n' "$MERIDIAN_PAGE" >> "$folder/config.toml"
source scripts/serve.sh
export MERIDIAN_TOKEN MERIDIAN_PAGE MERIDIAN_URL=$url MERIDIAN_USER=$folder/user

echo "-- tests"
# Node 20 has its WebSocket behind a flag. A stream that lost an event would wait for ever.
timeout 300 node --experimental-websocket --test --test-concurrency=1 "$client"/tests/*.test.mjs
