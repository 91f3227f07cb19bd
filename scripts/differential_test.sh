#!/usr/bin/env bash
# A real server against an oracle of plain lists (tests/differential): generated collections, writes, restarts and
# questions. Options go to the tester: --seed N --rounds N --seconds S.
set -euo pipefail
source "$(dirname "$0")/program.sh"

# A tester that cannot fail says nothing: with a wrong oracle it must.
if python3 tests/differential "$meridian" --seed 1 --rounds 1 --break > /dev/null; then
    echo "the tester did not notice that its oracle was wrong"
    exit 1
fi
python3 tests/differential "$meridian" "$@"
