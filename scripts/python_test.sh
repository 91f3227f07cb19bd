#!/usr/bin/env bash
# The Python client (clients/python) against live servers with the shipped data: types, docstrings, docs/python.md, tests, the wheel
# and the notebooks; with `--all`, all notebooks.
set -euo pipefail
source "$(dirname "$0")/program.sh"

scripts/need.sh openssl=openssl zstd=zstd chromium=chromium
python_tools python pyarrow==26.0.1 urllib3==2.8.0 pandas==3.1.1 geopandas==1.2.0 polars==2.1.0 anywidget==0.11.0 pytest==9.2.0 \
    mypy==2.4.1 hatchling==1.33.0 matplotlib==3.11.2 nbclient==0.11.0 ipykernel==7.4.0
export PYTHONPATH=$PWD/clients/python/src PYTHONDONTWRITEBYTECODE=1
unset MERIDIAN_URL MERIDIAN_TOKEN MERIDIAN_CA

echo "-- types"
"$tools/bin/mypy" --config-file clients/python/pyproject.toml --cache-dir "$tools/mypy" clients/python/src/meridian

echo "-- the wheel"
"$tools/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$folder/wheel" ./clients/python
grep -q meridian/py.typed <<< "$(python3 -m zipfile -l "$folder"/wheel/meridian_client-*.whl)"

load earthquakes data/usgs-earthquakes/earthquakes.csv.zst
load ships data/us-ais-20220103/ais.csv.zst --object vessel
load storms data/atlantic-storms/storms.csv.zst --track storm_id
load countries data/natural-earth/countries_110m_pop.geojsonl.zst
cp -r "$folder/data" "$folder/secured"
source scripts/serve.sh
export MERIDIAN_TEST_URL=$url

# The same data behind TLS and tokens.
token() { "$meridian" token create --role "$1" --tenant default --data "$folder/secured" | tail -n 1 | awk '{ print $NF }'; }
MERIDIAN_TEST_TLS_READER=$(token reader) MERIDIAN_TEST_TLS_WRITER=$(token writer) MERIDIAN_TEST_TLS_CA=$folder/cert.pem
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE \
    -keyout "$folder/key.pem" -out "$folder/cert.pem" 2> /dev/null
"$meridian" serve --listen 127.0.0.1:0 --data "$folder/secured" --tls-cert "$folder/cert.pem" --tls-key "$folder/key.pem" \
    > "$folder/secured.out" 2> "$folder/secured.log" &
mock=$!
for _ in $(seq 100); do
    port=$(grep -oE 'https://127.0.0.1:[0-9]+' "$folder/secured.out" | head -n 1 | grep -oE '[0-9]+$') && break
    sleep 0.1
done
[[ -n ${port:-} ]] || { echo "the server with TLS did not start:"; cat "$folder/secured.log"; exit 1; }
MERIDIAN_TEST_TLS_URL=https://localhost:$port
export MERIDIAN_TEST_TLS_READER MERIDIAN_TEST_TLS_WRITER MERIDIAN_TEST_TLS_CA MERIDIAN_TEST_TLS_URL

echo "-- tests"
[[ ${1:-} != --all ]] || export MERIDIAN_TEST_NOTEBOOKS=all
# A stream that lost an event would wait for ever.
timeout 900 "$tools/bin/python" -m pytest -q -p no:cacheprovider clients/python/tests
