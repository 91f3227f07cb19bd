#!/usr/bin/env bash
# Installs Debian packages for programs that are missing: need.sh PROGRAM=PACKAGE...
# A program is a command, or a path of a file that must be there.
set -euo pipefail

missing=()
for pair in "$@"; do
    program=${pair%%=*} package=${pair#*=}
    if [[ $program == /* ]]; then [[ -e $program ]] || missing+=("$package")
    else command -v "$program" > /dev/null || missing+=("$package"); fi
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
    if command -v sudo > /dev/null && sudo -n true 2> /dev/null; then as_root=(sudo -n)
    else
        echo "these Debian packages are needed: ${missing[*]}" >&2
        echo "run as root, or install them first: apt-get install --no-install-recommends ${missing[*]}" >&2
        exit 1
    fi
fi
if ! command -v apt-get > /dev/null; then
    echo "these packages are needed (by their Debian names): ${missing[*]}; there is no apt-get here to install them" >&2
    exit 1
fi
# Suites run side by side, and apt-get gives up where another one runs.
exec 9< "$0"
flock 9
echo "installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
