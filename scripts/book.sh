#!/usr/bin/env bash
# The documentation as a site with a search, in target/book: `make docs`. mdBook comes from crates.io, once, into the target folder.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
mdbook=$target/tools/bin/mdbook
version=0.5.4

if [[ $("$mdbook" --version 2> /dev/null) != *"$version" ]]; then
    echo "installing mdbook into $target/tools (some minutes, once)"
    cargo install mdbook --locked --quiet --version "$version" --no-default-features --features search --root "$target/tools"
fi
"$mdbook" build --dest-dir "$target/book"
python3 tests/docs/links.py "$target/book"
echo "the documentation is in $target/book/index.html"
