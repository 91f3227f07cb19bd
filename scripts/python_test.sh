#!/usr/bin/env bash
# The Python client (clients/python) against live servers, and against the engine in its process (crates/python), with the shipped data:
# types, docstrings, docs/python.md, tests, the wheel and the notebooks; with `--all`, all notebooks, and the engine's wheel in an
# environment of its own.
set -euo pipefail
source "$(dirname "$0")/program.sh"

scripts/need.sh openssl=openssl zstd=zstd chromium=chromium
python_tools python pyarrow==26.0.1 urllib3==2.8.0 pandas==3.1.1 geopandas==1.2.0 polars==2.1.0 anywidget==0.11.0 pytest==9.2.0 \
    mypy==2.4.1 hatchling==1.33.0 matplotlib==3.11.2 nbclient==0.11.0 ipykernel==7.4.0
# Built by its own test, with the dependencies of all the others; a wheel of maturin would build them anew.
[[ -n ${MERIDIAN_BUILT:-} ]] || cargo test --workspace --locked --quiet --no-run --test python_module
mkdir "$folder/engine"
for built in "$target"/debug/deps/libmeridian_engine.{so,dylib}; do
    [[ ! -f $built ]] || cp "$built" "$folder/engine/meridian_engine.abi3.so"
done
export PYTHONPATH=$PWD/clients/python/src:$folder/engine PYTHONDONTWRITEBYTECODE=1
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
cp -r "$folder/data" "$folder/own"
export MERIDIAN_TEST_FOLDER=$folder/own
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
timeout 1500 "$tools/bin/python" -m pytest -q -p no:cacheprovider clients/python/tests

[[ ${1:-} == --all ]] || exit 0
echo "-- the engine's wheel in an environment of its own"
scripts/python_wheel.sh "$folder/wheel" --profile dev
python3 -m venv "$folder/fresh"
# By their files: PyPI has a package of someone else under the name of the client.
"$folder/fresh/bin/pip" install --quiet --disable-pip-version-check "$folder"/wheel/*.whl
cd "$folder"
env -u PYTHONPATH "$folder/fresh/bin/python" - << 'END'
import meridian, meridian_engine, pathlib, tempfile

assert (pathlib.Path(meridian_engine.__file__).parent / "py.typed").exists()
with tempfile.TemporaryDirectory() as folder, meridian.open(folder) as db:
    notes = db.create("notes", "seen:Date,*place:Point:srid=4326")
    notes.append([{"seen": "2026-01-31T12:00:00Z", "lon": 4.5, "lat": 52.0}])
    assert notes.query(near=(4.5, 52.0, 10)).to_arrow().num_rows == 1
END
