#!/usr/bin/env bash
# Licences, bans, sources and advisories of the dependencies, by cargo-deny: from crates.io, once, into the target folder.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=${CARGO_TARGET_DIR:-target}/tools

if [[ ! -x $tools/bin/cargo-deny ]]; then
    echo "installing cargo-deny into $tools (some minutes, once)"
    cargo install cargo-deny --locked --quiet --root "$tools"
fi
"$tools/bin/cargo-deny" check licenses bans sources
code=0
said=$("$tools/bin/cargo-deny" check advisories 2>&1) || code=$?
if [[ $code -ne 0 ]] && grep -q "failed to fetch advisory database" <<< "$said"; then
    echo "NOTE: the advisory database cannot be reached from here: licences, bans and sources were checked, advisories were NOT"
elif [[ $code -ne 0 ]]; then
    echo "$said"
    exit $code
fi
