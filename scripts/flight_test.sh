#!/usr/bin/env bash
# Arrow Flight of a live server: read and written by pyarrow, read by DuckDB, against the answers of the same server over HTTP. Then
# with TLS and tokens.
set -euo pipefail
source "$(dirname "$0")/program.sh"

scripts/need.sh openssl=openssl
python_tools readers pyarrow==26.0.1 duckdb==1.5.5 duckdb-extension-spatial==1.5.5

# location FILE SCHEME: the address of Flight that a server says it has.
location() {
    for _ in $(seq 100); do
        grep -oE "$2://127.0.0.1:[0-9]+" "$1" && return
        sleep 0.1
    done
    echo "the server has no Flight:" >&2
    cat "$folder/log" >&2
    return 1
}

load quakes data/usgs-earthquakes/earthquakes.csv.zst
printf '[server]\nflight_listen = "127.0.0.1:0"\n' > "$folder/config.toml"
source scripts/serve.sh
"$tools/bin/python" tests/flight.py plain "$url" "$(location "$folder/out" grpc)" quakes mag

echo "-- with TLS and tokens"
kill "$server" && wait "$server" || true
server=
token() { "$meridian" token create --role "$1" --tenant default --data "$folder/data" | tail -n 1 | awk '{ print $NF }'; }
reader=$(token reader) writer=$(token writer)
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -keyout "$folder/key.pem" -out "$folder/cert.pem" 2> /dev/null
"$meridian" serve --listen 127.0.0.1:0 --flight 127.0.0.1:0 --data "$folder/data" \
    --tls-cert "$folder/cert.pem" --tls-key "$folder/key.pem" > "$folder/secured" 2> "$folder/log" &
server=$!
at=$(location "$folder/secured" 'grpc[+]tls')
"$tools/bin/python" tests/flight.py secured "${at/127.0.0.1/localhost}" "$folder/cert.pem" "$reader" "$writer" quakes
