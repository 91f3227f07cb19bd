#!/usr/bin/env bash
# The real OpenTelemetry collector takes the traces of a live server into a file, and the lab calibrates a scenario by it. The
# collector is built from its Go modules, once, into the target folder.
set -euo pipefail
source "$(dirname "$0")/program.sh"

collector=$(realpath -m "$target/tools/otelcol")
if [[ ! -x $collector/collector || $(cat "$collector/wanted" 2> /dev/null) != "$(cat tests/otelcol/*)" ]]; then
    scripts/need.sh go=golang-go
    echo "building the collector into $collector (some minutes, once)"
    rm -rf "$collector"
    cp -r tests/otelcol "$collector"
    (cd "$collector" && go build -o collector .)
    cat tests/otelcol/* > "$collector/wanted"
fi

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat > "$folder/collector.yaml" << YAML
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:$port
exporters:
  file:
    path: $folder/spans.json
service:
  telemetry:
    metrics:
      level: none
  pipelines:
    traces:
      receivers: [otlp]
      exporters: [file]
YAML
"$collector/collector" --config "file:$folder/collector.yaml" > "$folder/collector.log" 2>&1 &
mock=$!

printf '[traces]\nendpoint = "http://127.0.0.1:%s"\nsample = 1\n' "$port" > "$folder/config.toml"
load quakes data/usgs-earthquakes/earthquakes.csv.zst
source scripts/serve.sh

for n in $(seq 50); do
    curl -sfS "$url/collections/quakes/items?limit=1000&bbox=-125,32,-114,4$((n % 10))" > /dev/null
done
wait_for() {
    for _ in $(seq 300); do
        grep -q "$1" "$folder/spans.json" 2> /dev/null && return
        sleep 0.1
    done
    echo "the collector got no $1:"
    tail -n 20 "$folder/collector.log" "$folder/log"
    exit 1
}
for name in access admission plan scan encode 'GET /collections/{c}/items'; do
    wait_for "\"name\":\"$name\""
done
kill "$server" && wait "$server" || true
server=
kill "$mock" && wait "$mock" || true
mock=

echo "-- a scenario whose stages bear the names of Meridian's"
sed 's/"execute-quick-search"/"scan"/g; s/"process-results"/"encode"/g' bench/studies/search-pipeline.toml > "$folder/scenario.toml"
"$meridian" lab simulate "$folder/scenario.toml" --calibrate "$folder/spans.json" | tee "$folder/calibrated"
grep -q 'stage.scan.service.mean_s' "$folder/calibrated" && grep -q 'stage.encode.service.mean_s' "$folder/calibrated"
echo "traces: the collector has taken them, and the lab has read them"
