"""Reads what an OGC conformance suite (TestNG) found: conformance.py SUITE testng-results.xml...

Ends with 1 on a failure that is not a known fault of the suite, and when the suite ran too little to say anything.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

# Fewest test methods that must pass, so that a suite that gave up at its first request is no success.
PASSES_MIN = {"features": 300, "tiles": 12}

# Faults of the suites themselves: suite, method, what it was called with, and why the server is right. Seen in the
# requests of ets-ogcapi-features10 1.9.
BBOX = "verifyBboxCrsParameter"
KNOWN_FAULTS = [
    ("features", BBOX, r"EPSG/0/4326 ", "sends longitude before latitude, where EPSG:4326 has latitude first"),
    ("features", BBOX, r"^countries .*EPSG/0/3857 ", "sends an infinity for the south pole"),
    ("features", BBOX, r"^capitals .*EPSG/0/3857 ", "rounds the box to seven decimals, which cuts off the westernmost"),
]


def fault(suite, name, values):
    """Why a failure is the suite's own, or None."""
    found = (why for s, method, called, why in KNOWN_FAULTS if (s, method) == (suite, name) and re.search(called, values))
    return next(found, None)


def methods(paths):
    """Status, name and message of every test method that ran; configuration methods only where they failed."""
    for path in paths:
        for method in ElementTree.parse(path).getroot().iter("test-method"):
            status = method.get("status")
            if method.get("is-config") == "true" and status == "PASS":
                continue
            message = method.findtext(".//message") or ""
            values = " ".join(value.text.strip() for value in method.iter("value") if value.text)
            yield status, method.get("name"), " ".join(message.split()), values


def main():
    suite, paths = sys.argv[1], sys.argv[2:]
    counts, bad = {"PASS": 0, "FAIL": 0, "SKIP": 0}, 0
    for status, name, message, values in methods(paths):
        counts[status] = counts.get(status, 0) + 1
        if status == "PASS":
            continue
        reason = fault(suite, name, values) if status == "FAIL" else None
        if reason is None and status == "FAIL":
            bad += 1
        note = f" (fault of the suite: {reason})" if reason else ""
        print(f"{status} {name}{note}: {message[:300]} {values[:120]}")
    print(f"{suite}: {counts['PASS']} passed, {counts['FAIL']} failed ({bad} of them ours), {counts['SKIP']} not applicable")
    if counts["PASS"] < PASSES_MIN[suite]:
        sys.exit(f"{suite}: only {counts['PASS']} tests passed, expected {PASSES_MIN[suite]} or more: did the suite run at all?")
    sys.exit(1 if bad else 0)


main()
