#!/usr/bin/env bash
# The engine for Python (crates/python) as a wheel: scripts/python_wheel.sh FOLDER [OPTION OF MATURIN...]. One wheel serves every Python
# from 3.10 on. On Linux ziglang links it against an old glibc, so that it runs on systems since 2014.
set -euo pipefail
wheels=$(realpath -m "$1")
shift
cd "$(dirname "$0")/.."
source scripts/python_tools.sh
python_tools maturin maturin==1.16.0 ziglang==0.17.1

old_glibc=()
[[ $(uname -s) != Linux ]] || old_glibc=(--zig --compatibility manylinux2014)
mkdir -p "$wheels"
rm -f "$wheels"/meridian_engine-*.whl
PATH=$tools/bin:$PATH "$tools/bin/maturin" build --release --locked --quiet "${old_glibc[@]}" --interpreter python3 \
    --manifest-path crates/python/Cargo.toml --out "$wheels" "$@"
ls "$wheels"/meridian_engine-*.whl
