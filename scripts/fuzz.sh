#!/usr/bin/env bash
# libFuzzer on the parsers of outside bytes: each target of fuzz/ for SECONDS_MAX (60) seconds, or those that are named. Begins with
# fuzz/corpus and what earlier runs found (in the target folder). An input that is found is in fuzz/artifacts: keep it in
# fuzz/regressions/TARGET, where `make test` replays it.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/need.sh g++=g++
tools=$(realpath -m "${CARGO_TARGET_DIR:-target}/tools")
if [[ ! -x $tools/bin/cargo-fuzz ]]; then
    echo "installing cargo-fuzz into $tools (some minutes, once)"
    cargo install cargo-fuzz --locked --quiet --root "$tools"
fi
# Coverage for libFuzzer is an option that the stable compiler takes only when it is told to.
export PATH=$tools/bin:$PATH RUSTC_BOOTSTRAP=1
# A list that fails ends the script; in a process substitution it would leave no target, and success.
[[ $# -gt 0 ]] || listed=$(cargo fuzz list)
failed=()
for target in ${listed:-"$@"}; do
    grown=$PWD/fuzz/target/corpus/$target
    mkdir -p "$grown"
    # Meridian's own code has no unsafe block that bytes reach: panics, hangs and memory are what is sought.
    cargo fuzz run --sanitizer none "$target" "$grown" "fuzz/corpus/$target" -- -max_total_time="${SECONDS_MAX:-60}" \
        -max_len=65536 -rss_limit_mb=1024 -timeout=20 -print_final_stats=1 || failed+=("$target")
done
[[ ${#failed[@]} -eq 0 ]] || { echo "found something: ${failed[*]}"; exit 1; }
