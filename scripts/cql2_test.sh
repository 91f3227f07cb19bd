#!/usr/bin/env bash
# The abstract tests of CQL2 (OGC 21-065r2, annex A) against a live server.
set -euo pipefail
source "$(dirname "$0")/program.sh"
scripts/need.sh zstd=zstd
source scripts/serve.sh
python3 tests/cql2 "$url" data/natural-earth
