"""The suites of `make test` and `make test-all`: runs all of them, whatever fails, and ends with a table of minutes and a line that counts.

Suites that use every core, or build what later ones drive, run one after the other. The others run two at a time, those
with the largest budget first. Each has its own folder, server and ports, and waits for clocks and other processes while
a core is free. The output of such a suite is printed as a whole when it ends. One that fails runs again, alone: if it
passes then, the last lines name it as one that failed once.

    scripts/test.sh [--all]
"""

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROGRAM = TARGET / "debug/meridian"
# The end-to-end suites drive the program that the workspace's suite has built.
BUILT = {"MERIDIAN_BUILT": "1"}
# How Rust's and Node's test runners count, and how they name what failed.
PASSED = re.compile(r"^(?:test result: .*?(\d+) passed|# pass (\d+)|ℹ pass (\d+))", re.MULTILINE)
FAILED = re.compile(r"^(?:test result: .*?(\d+) failed|# fail (\d+)|ℹ fail (\d+))", re.MULTILINE)
NAMED = re.compile(r"^(?:failed: |not ok \d+ - |✖ )(.+)$", re.MULTILINE)
UNSTEADY = re.compile(r"^unsteady: (.+)$", re.MULTILINE)
# More names of failed tests tell nothing.
NAMES_MAX = 20


@dataclasses.dataclass
class Suite:
    """One line of the table. `minutes` is its budget, for a warm run on two idle cores: what outgrows it goes to LONG; nothing fails for
    being slow. A suite that is counted says itself how many tests passed; any other is one test."""

    minutes: float
    name: str
    command: str
    counted: bool = False
    variables: dict = dataclasses.field(default_factory=lambda: BUILT)


@dataclasses.dataclass
class Outcome:
    suite: Suite
    took: float
    passed: int
    failed: int
    names: list
    unsteady: list


ALONE = [
    Suite(0.2, "format", "cargo fmt --all --check"),
    Suite(0.1, "commits: subjects of at most 72 characters", "scripts/commit_subjects.sh"),
    Suite(0.1, "crates: arrows point down", "python3 tests/arrows.py"),
    Suite(0.1, "modules: no circles", "python3 tests/circles.py"),
    Suite(3, "clippy", "cargo clippy --workspace --all-targets --locked -- -D warnings"),
    Suite(1, "a server without lab, images and map compiles", "cargo check -p meridian-cli --no-default-features --locked"),
    Suite(1, "cargo doc without warnings", "RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --document-private-items --locked --quiet"),
    Suite(13, "workspace: unit, property and end-to-end tests, the server's in three forms", "python3 scripts/cargo_tests.py", counted=True, variables={}),
]
TOGETHER = [
    Suite(4, "dependencies: licences, bans, sources, advisories", "scripts/deny.sh"),
    Suite(0.3, "web: types", "npm --prefix web run --silent check"),
    Suite(0.3, "web: ESLint", "npm --prefix web run --silent lint"),
    Suite(0.2, "TypeScript: ESLint", "npm --prefix clients/typescript run --silent lint"),
    Suite(1, "sizing: the guide's tables are what its inputs give", f"python3 bench/sizing/size.py --check --meridian '{PROGRAM}'"),
    Suite(0.5, "scans: the void rule, the report and a tiny row of the dilated study", f"MERIDIAN='{PROGRAM}' python3 tests/scans.py"),
    Suite(1, "differential: a live server against an oracle", "scripts/differential_test.sh --seed 1 --rounds 12"),
    Suite(1, "readers: DuckDB and pyarrow on the files of a live server", "scripts/readers_test.sh"),
    Suite(1, "flight: pyarrow and DuckDB over Arrow Flight, with TLS and tokens", "scripts/flight_test.sh"),
    Suite(1.5, "Python: the client, its documentation and a notebook against live servers", "scripts/python_test.sh"),
    Suite(1.5, "TypeScript: the client as users install it, in Node and a browser, against live servers", "scripts/typescript_test.sh", counted=True),
    Suite(0.1, "docs: links and anchors of every page", "python3 tests/docs/links.py"),
    Suite(5, "docs: the commands of README and of thirteen pages print what the pages show", "scripts/docs_test.sh"),
    Suite(0.3, "deploy: units, containers and manifests against the program", "scripts/deploy_test.sh"),
    Suite(0.5, "packages: archive and Debian package of the program", "scripts/package_test.sh"),
    Suite(0.5, "CQL2: the standard's abstract tests", "scripts/cql2_test.sh"),
    Suite(4, "OpenAPI: both documents valid, no answer that they do not describe", "scripts/schemathesis_test.sh"),
    Suite(0.2, "web: unit tests", "npm --prefix web run --silent test:unit", counted=True),
    Suite(7.5, "web: browser tests against the real server", "scripts/browser_test.sh", counted=True),
]
CONFORMANCE = Suite(10, "OGC: the conformance suites of Features and Tiles", "scripts/conformance_test.sh")
# What is longer than a change should wait for, one after the other.
LONG = [
    Suite(8, "chaos: crashes, faults and damage from new seeds", "make --no-print-directory chaos FOR=120"),
    Suite(2.5, "soak: writes, deletions and queries at once with little memory", "make --no-print-directory soak FOR=120"),
    Suite(2.5, "differential: new seeds", "make --no-print-directory differential FOR=120"),
    Suite(2.5, "OpenAPI: requests from new seeds", "make --no-print-directory schemathesis FOR=120"),
    Suite(1, "docs: QGIS as its page says", "scripts/docs_test.sh --all docs/qgis.md"),
    Suite(4, "docs: the book, and its links", "make --no-print-directory docs"),
    Suite(1.5, "Python: all notebooks", "scripts/python_test.sh --all"),
    Suite(15, "packages: all of them, installed and run", "make --no-print-directory test-package", variables={}),
    Suite(1, "traces: the OpenTelemetry collector takes them", "scripts/otel_test.sh"),
]


def judged(suite, said, code, took):
    """What the output and the exit code of a suite say."""
    if not suite.counted:
        return Outcome(suite, took, int(code == 0), int(code != 0), [], [])

    def total(pattern):
        return sum(int(number) for found in pattern.findall(said) for number in found if number)

    # A run that breaks off (it does not compile, a test program crashes) is a failure of its own.
    failed = total(FAILED) or int(code != 0)
    # The names stand in the table's last lines too: a long log is often kept by its end only.
    names = sorted(set(NAMED.findall(said)))[:NAMES_MAX] if failed else []
    return Outcome(suite, took, total(PASSED), failed, names, UNSTEADY.findall(said))


def run(suite, show):
    """Runs one suite; each line of its output goes to `show` as it comes."""
    began = time.monotonic()
    process = subprocess.Popen(["bash", "-c", suite.command], cwd=ROOT, env=os.environ | suite.variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    lines = []
    for line in process.stdout:
        lines.append(line)
        show(line)
    outcome = judged(suite, "".join(lines), process.wait(), time.monotonic() - began)
    if outcome.failed:
        show(f"FAILED: {suite.name}\n")
    return outcome


def alone(suite):
    print(f"\n== {suite.name}", flush=True)
    return run(suite, lambda line: print(line, end="", flush=True))


def together(suites):
    """Two at a time. Lines of two suites would mix, so those of each wait for its end."""
    printing = threading.Lock()

    def one(suite):
        lines = []
        outcome = run(suite, lines.append)
        with printing:
            print(f"\n== {suite.name}\n{''.join(lines)}", end="", flush=True)
        return outcome

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(one, sorted(suites, key=lambda suite: -suite.minutes)))
    return [again(outcome) if outcome.failed else outcome for outcome in outcomes]


def again(first):
    """A suite that failed beside another one, alone."""
    print("\nagain, alone:", end="")
    second = alone(first.suite)
    second.took += first.took
    if not second.failed:
        second.unsteady += first.names or [first.suite.name]
    return second


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="the long suites as well")
    options = parser.parse_args()
    began = time.monotonic()
    outcomes = [alone(suite) for suite in ALONE] + together(TOGETHER)
    if os.environ.get("ETS_FEATURES") or os.environ.get("ETS_TILES"):
        outcomes.append(alone(CONFORMANCE))
    else:
        print("\nNOTE: the OGC's conformance suites were NOT run: name their jars in ETS_FEATURES and ETS_TILES")
    if options.all:
        outcomes += [alone(suite) for suite in LONG]

    print("\nminutes  budget  suite")
    for outcome in outcomes:
        minutes = outcome.took / 60
        print(f"{minutes:6.1f}  {outcome.suite.minutes:6.1f}  {outcome.suite.name}{'  (over)' if minutes > outcome.suite.minutes else ''}")
    print(f"{(time.monotonic() - began) / 60:6.1f}          in all, where 25 are allowed warm and 60 cold, without the long suites\n")
    for name in (name for outcome in outcomes for name in outcome.unsteady):
        print(f"NOTE: failed once, and passed when it ran alone: {name}")
    for outcome in outcomes:
        if outcome.failed:
            print("\n".join([f"failed: {outcome.suite.name}", *(f"failed:   {name}" for name in outcome.names)]))
    failed = sum(outcome.failed for outcome in outcomes)
    print(f"{sum(outcome.passed for outcome in outcomes)} passed, {failed} failed")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
