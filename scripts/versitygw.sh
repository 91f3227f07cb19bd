#!/usr/bin/env bash
# Prints where a versitygw of the version below is, and builds it first where it is not: from Go modules, once, into the target folder.
# It is an S3-compatible store over a folder: tests keep a cluster's bucket in it.
set -euo pipefail
cd "$(dirname "$0")/.."
version=v1.8.0

place=$(realpath -m "${CARGO_TARGET_DIR:-target}/tools/versitygw-$version")
if [[ ! -x $place/versitygw ]]; then
    scripts/need.sh go=golang-go >&2
    echo "building versitygw $version into $place (two minutes, once)" >&2
    # Its own name until it is whole: tests may start at once.
    mkdir -p "$(dirname "$place")"
    building=$(mktemp -d "$place.XXXXXX")
    GOBIN=$building GOFLAGS=-mod=mod go install "github.com/versity/versitygw/cmd/versitygw@$version" >&2
    mkdir -p "$place"
    mv "$building/versitygw" "$place/versitygw"
    rmdir "$building"
fi
echo "$place/versitygw"
