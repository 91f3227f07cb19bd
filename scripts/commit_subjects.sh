#!/usr/bin/env bash
# Commit subjects have at most 72 characters. The rule began after commit 880a348, so only younger commits are checked: by their time,
# which works in a shallow clone too. A copy without history passes.
set -uo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C.UTF-8

long=0
while read -r hash subject; do
    ((${#subject} <= 72)) && continue
    echo "$hash: ${#subject} characters, expected at most 72: $subject"
    long=1
done < <(git log --no-merges --since=2026-11-23T14:20:17Z --format='%h %s' 2> /dev/null)
exit $long
