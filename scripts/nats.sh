#!/usr/bin/env bash
# Prints where a nats-server of the version below is, and builds it first where it is not: from Go modules, once, into the target folder.
# Debian's is too old for the log of a cluster.
set -euo pipefail
cd "$(dirname "$0")/.."
version=v2.15.2

place=$(realpath -m "${CARGO_TARGET_DIR:-target}/tools/nats-$version")
if [[ ! -x $place/nats-server ]]; then
    scripts/need.sh go=golang-go >&2
    echo "building nats-server $version into $place (a minute, once)" >&2
    # Its own name until it is whole: tests may start at once.
    mkdir -p "$(dirname "$place")"
    building=$(mktemp -d "$place.XXXXXX")
    GOBIN=$building GOFLAGS=-mod=mod go install "github.com/nats-io/nats-server/v2@$version" >&2
    mkdir -p "$place"
    mv "$building/nats-server" "$place/nats-server"
    rmdir "$building"
fi
echo "$place/nats-server"
