#!/usr/bin/env bash
# Every test that must pass before a change lands: `make test`. With `--all` the long suites as well: `make test-all`. Runs all of
# them, whatever fails, and ends with a table of minutes and a line that counts. One Cargo profile builds the workspace once; the end-to-end tests drive that very binary.
set -uo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
tools=$target/tools
passed=0 failed=0 failures=() minutes=() unsteady=()
long=no
[[ ${1:-} != --all ]] || long=yes

# timed MINUTES NAME START: notes how long a suite took beside its budget, which is for a warm run on two idle cores. What
# outgrows it goes to `make test-all`; nothing fails for being slow.
timed() {
    minutes+=("$(awk -v took=$((SECONDS - $3)) -v budget="$1" -v name="$2" 'BEGIN {
        printf "%6.1f  %6.1f  %s%s", took / 60, budget, name, (took / 60 > budget) ? "  (over)" : "" }')")
}

# step MINUTES NAME COMMAND...: one test that passes or fails as a whole.
step() {
    local budget=$1 name=$2 start=$SECONDS
    shift 2
    echo
    echo "== $name"
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1)) failures+=("$name")
        echo "FAILED: $name"
    fi
    timed "$budget" "$name" "$start"
}

# counted MINUTES NAME COMMAND...: Rust's and Node's test runners say themselves how many passed.
counted() {
    local budget=$1 name=$2 start=$SECONDS log
    shift 2
    echo
    echo "== $name"
    log=$(mktemp)
    "$@" 2>&1 | tee "$log"
    local code=${PIPESTATUS[0]} ok bad names
    ok=$(awk '/^test result: /{n+=$4} /^# pass /{n+=$3} /^ℹ pass /{n+=$3} END{print n+0}' "$log")
    bad=$(awk '/^test result: /{n+=$6} /^# fail /{n+=$3} /^ℹ fail /{n+=$3} END{print n+0}' "$log")
    # The names stand in the table's last lines too: a long log is often kept by its end only.
    mapfile -t names < <(sed -nE 's/^(failed: |not ok [0-9]+ - |✖ )(.+)$/\2/p' "$log" | sort -u | head -20)
    mapfile -t -O "${#unsteady[@]}" unsteady < <(sed -n 's/^unsteady: //p' "$log")
    rm -f "$log"
    # A run that breaks off (it does not compile, a test binary crashes) is a failure of its own.
    if [[ $code -ne 0 && $bad -eq 0 ]]; then bad=1; fi
    passed=$((passed + ok)) failed=$((failed + bad))
    if [[ $bad -ne 0 ]]; then failures+=("$name" "${names[@]/#/  }"); fi
    timed "$budget" "$name" "$start"
}

# cargo-deny comes from crates.io, once, into the target folder.
deny() {
    if [[ ! -x $tools/bin/cargo-deny ]]; then
        echo "installing cargo-deny into $tools (some minutes, once)"
        cargo install cargo-deny --locked --quiet --root "$tools" || return 1
    fi
    local log code
    "$tools/bin/cargo-deny" check licenses bans sources || return 1
    log=$(mktemp)
    "$tools/bin/cargo-deny" check advisories > "$log" 2>&1
    code=$?
    if [[ $code -ne 0 ]] && grep -q "failed to fetch advisory database" "$log"; then
        echo "NOTE: the advisory database cannot be reached from here: licences, bans and sources were checked, advisories were NOT"
        code=0
    elif [[ $code -ne 0 ]]; then
        cat "$log"
    fi
    rm -f "$log"
    return $code
}

echo "== what the tests need"
scripts/need.sh ogr2ogr=gdal-bin wrk=wrk chromium=chromium curl=curl /usr/share/doc/python3-venv=python3-venv || exit 1
scripts/need.sh pg_lsclusters=postgresql nginx=nginx-light nats-server=nats-server redis-server=redis-server || exit 1
make --no-print-directory web || exit 1

step 0.2 "format" cargo fmt --all --check
step 0.1 "commits: subjects of at most 72 characters" scripts/commit_subjects.sh
step 0.1 "crates: arrows point down" python3 tests/arrows.py
step 0.1 "modules: no circles" python3 tests/circles.py
step 3 "clippy" cargo clippy --workspace --all-targets --locked -- -D warnings
step 1 "a server without lab, images and map compiles" cargo check -p meridian-cli --no-default-features --locked
step 1 "cargo doc without warnings" env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked --quiet
counted 13 "workspace: unit, property and end-to-end tests, the server's in three forms" python3 scripts/cargo_tests.py
step 4 "dependencies: licences, bans, sources, advisories" deny
step 0.3 "web: types" npm --prefix web run --silent check
step 0.3 "web: ESLint" npm --prefix web run --silent lint
step 1 "sizing: the guide's tables are what its inputs give" python3 bench/sizing/size.py --check --meridian "$target/debug/meridian"
step 0.5 "scans: the void rule, the report and a tiny row of the dilated study" env MERIDIAN_BUILT=1 MERIDIAN="$target/debug/meridian" python3 tests/scans.py
step 1 "differential: a live server against an oracle" env MERIDIAN_BUILT=1 scripts/differential_test.sh --seed 1 --rounds 12
step 1 "readers: DuckDB and pyarrow on the files of a live server" env MERIDIAN_BUILT=1 scripts/readers_test.sh
step 1 "flight: pyarrow and DuckDB over Arrow Flight, with TLS and tokens" env MERIDIAN_BUILT=1 scripts/flight_test.sh
step 1 "Python: the client, its documentation and a notebook against live servers" env MERIDIAN_BUILT=1 scripts/python_test.sh
counted 1.5 "TypeScript: the client as users install it, in Node and a browser, against live servers" env MERIDIAN_BUILT=1 scripts/typescript_test.sh
step 0.1 "docs: links and anchors of every page" python3 tests/docs/links.py
step 1.5 "docs: the commands of README, tutorial, DuckDB and GDAL print what the pages show" env MERIDIAN_BUILT=1 scripts/docs_test.sh
step 0.3 "deploy: units, containers and manifests against the program" env MERIDIAN_BUILT=1 scripts/deploy_test.sh
step 0.5 "packages: archive and Debian package of the program" env MERIDIAN_BUILT=1 scripts/package_test.sh
step 0.5 "CQL2: the standard's abstract tests" env MERIDIAN_BUILT=1 scripts/cql2_test.sh
step 4 "OpenAPI: both documents valid, no answer that they do not describe" env MERIDIAN_BUILT=1 scripts/schemathesis_test.sh
if [[ -n ${ETS_FEATURES:-}${ETS_TILES:-} ]]; then
    step 10 "OGC: the conformance suites of Features and Tiles" env MERIDIAN_BUILT=1 scripts/conformance_test.sh
else
    echo
    echo "NOTE: the OGC's conformance suites were NOT run: name their jars in ETS_FEATURES and ETS_TILES"
fi
counted 0.2 "web: unit tests" env -C web node --test tests/unit.test.mjs tests/picture-unit.test.mjs tests/time-unit.test.mjs tests/live-unit.test.mjs tests/search-unit.test.mjs tests/document-unit.test.mjs tests/layers-unit.test.mjs tests/table-unit.test.mjs
counted 5 "web: browser tests against the real server" env MERIDIAN_BUILT=1 scripts/browser_test.sh

# What is longer than a change should wait for.
if [[ $long == yes ]]; then
    step 8 "chaos: crashes, faults and damage from new seeds" make --no-print-directory chaos FOR=120
    step 2.5 "soak: writes, deletions and queries at once with little memory" make --no-print-directory soak FOR=120
    step 2.5 "differential: new seeds" make --no-print-directory differential FOR=120
    step 2.5 "OpenAPI: requests from new seeds" make --no-print-directory schemathesis FOR=120
    step 1 "docs: QGIS as its page says" env MERIDIAN_BUILT=1 scripts/docs_test.sh --all docs/qgis.md
    step 4 "docs: the book, and its links" make --no-print-directory docs
    step 1.5 "Python: all notebooks" env MERIDIAN_BUILT=1 scripts/python_test.sh --all
    step 15 "packages: all of them, installed and run" make --no-print-directory test-package
    step 1 "traces: the OpenTelemetry collector takes them" env MERIDIAN_BUILT=1 scripts/otel_test.sh
fi

echo
echo "minutes  budget  suite"
printf '%s\n' "${minutes[@]}"
echo
if [[ ${#unsteady[@]} -ne 0 ]]; then printf 'NOTE: failed once, and passed when it ran alone: %s\n' "${unsteady[@]}"; fi
if [[ $failed -ne 0 ]]; then printf 'failed: %s\n' "${failures[@]}"; fi
echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
