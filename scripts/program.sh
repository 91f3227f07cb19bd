# Sourced by tests, after `set -euo pipefail`: goes to the project's root; sets meridian (the program that `cargo test` built) and
# folder, which goes when the test ends, as do the processes server and mock.
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

# python_tools NAME PACKAGE...: sets tools to a Python environment with these packages, taken from PyPI once, into the target folder.
python_tools() {
    tools=$(realpath -m "$target/tools/$1")
    shift
    if [[ ! -f $tools/wanted || $(cat "$tools/wanted") != "$*" ]]; then
        rm -rf "$tools"
        python3 -m venv "$tools"
        "$tools/bin/pip" install --quiet --disable-pip-version-check "$@"
        echo "$*" > "$tools/wanted"
    fi
}
