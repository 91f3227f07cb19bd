#!/usr/bin/env bash
# Prints where the checker of histories (tests/linearizability, over Porcupine) is. The script first builds it into the target
# folder if it is absent or its sources have changed.
set -euo pipefail
cd "$(dirname "$0")/.."
sources=tests/linearizability

made=$(cat "$sources"/*.go "$sources"/go.mod "$sources"/go.sum | sha256sum | head -c 16)
tools=$(realpath -m "${CARGO_TARGET_DIR:-target}/tools")
place=$tools/linearizability-$made
if [[ ! -x $place ]]; then
    scripts/need.sh go=golang-go >&2
    echo "building $place" >&2
    # Its own name until it is whole: tests may start at once.
    mkdir -p "$tools"
    building=$(mktemp -d "$tools/linearizability.XXXXXX")
    (cd "$sources" && GOFLAGS=-buildvcs=false go build -trimpath -o "$building/linearizability" . >&2)
    mv "$building/linearizability" "$place"
    rmdir "$building"
fi
echo "$place"
