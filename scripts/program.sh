# Sourced by tests, after `set -euo pipefail`: goes to the project's root. It sets meridian (the program that `cargo test` built)
# and folder. The folder is removed when the test ends, and the processes server and mock end then.
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}
meridian=$target/debug/meridian
# `make test` has just built it.
[[ -n ${MERIDIAN_BUILT:-} ]] || cargo build --locked --quiet --bin meridian

folder=$(mktemp -d)
server= mock=
# shellcheck disable=SC2086
trap 'kill $server $mock 2> /dev/null || true; wait 2> /dev/null || true; rm -rf "$folder"' EXIT

# load COLLECTION FILE...: loads into the folder's data.
load() { "$meridian" load "$@" --data "$folder/data" --quiet; }

source scripts/python_tools.sh
