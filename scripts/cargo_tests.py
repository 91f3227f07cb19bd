"""The workspace's tests, three test programs at a time: many of them wait for clocks and other processes while a core is free.

The server's tests run in three forms: embedded, over a gateway, and over a gateway to collections of four partitions.

`cargo test` runs one program after the other. This builds them with it, and runs them side by side, the ones that took
longest last time first. The output of each is printed as a whole when it ends. Documentation tests come last, through
Cargo. The modules of the program's tests run as programs of their own: they are linked once, and one that waits holds
up no other.

A failed test runs again, alone, when all others are done: on a busy machine a process may miss a deadline. One that passes then is named as unsteady,
with the output of its failure, and the last lines of `make test` name it too. One that fails again fails the run.

    python3 scripts/cargo_tests.py [--jobs 3]
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
TOOK = TARGET / "test-seconds.json"
CARGO = ["cargo", "test", "--workspace", "--locked"]
GATEWAY = {"MERIDIAN_TEST_GATEWAY": "1"}
# Tests that hold for one partition alone: they name its position, its files, its segments, or memory that is counted for it
# (docs/testing.md, "Partitions").
OF_ONE_PARTITION = [
    "confirmed::a_key_with_another_body_is_refused_and_the_same_events_in_another_form_are_the_same",
    "faults::",
    "metadata::operators_see_what_a_question_meets_and_what_a_write_costs",
    "readers::",
    "streaming::a_small_answer_leaves_as_one_piece",
    "truth::the_number_matched_is_given_for_every_box_and_every_distance",
]
# More forms of a program: their names, variables and arguments.
FORMS = {
    "crates/api server": [
        ("over a gateway", GATEWAY, []),
        ("over a gateway to four partitions", GATEWAY | {"MERIDIAN_TEST_PARTITIONS": "4"}, [word for test in OF_ONE_PARTITION for word in ("--skip", test)]),
    ],
}
# Programs whose modules run as programs.
BY_MODULE = ["crates/cli program"]
# More failed tests of one program than this are no accident.
AGAIN_MAX = 3
# A program that takes longer hangs.
MAX_S = 30 * 60


def built():
    """Each test program in each form: its name, its command, the folder of its package, in which Cargo runs it, and variables."""
    run = subprocess.run([*CARGO, "--no-run", "--message-format", "json-render-diagnostics"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if run.returncode != 0:
        sys.exit(run.returncode)
    found = []
    for line in run.stdout.splitlines():
        one = json.loads(line)
        if one["reason"] == "compiler-artifact" and one["profile"]["test"] and one["executable"]:
            folder = pathlib.Path(one["manifest_path"]).parent
            name = f"{folder.relative_to(ROOT)} {one['target']['name']}"
            if name in BY_MODULE:
                found += [(f"{name} {module}", [one["executable"], "--exact", *tests], folder, {}) for module, tests in modules(one["executable"])]
                continue
            found.append((name, [one["executable"]], folder, {}))
            found += [(f"{name}, {form}", [one["executable"], *arguments], folder, more) for form, more, arguments in FORMS.get(name, [])]
    return found


def modules(executable):
    """The modules of a test program that hold tests, each with the names of those."""
    listed = subprocess.run([executable, "--list", "--format", "terse"], stdout=subprocess.PIPE, text=True, check=True).stdout
    names = [line.removesuffix(": test") for line in listed.splitlines() if line.endswith(": test")]
    return [(module, list(tests)) for module, tests in itertools.groupby(sorted(names), key=lambda name: name.partition("::")[0])]


def run(program):
    """Runs one: its output, whether it passed, and its seconds."""
    _, command, folder, more = program
    began = time.monotonic()
    try:
        done = subprocess.run(command, cwd=folder, env=os.environ | {"CARGO_MANIFEST_DIR": str(folder)} | more, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=MAX_S)
        said, passed = done.stdout, done.returncode == 0
    except subprocess.TimeoutExpired as late:
        said, passed = (late.stdout or b"") + f"\nended: it ran for {MAX_S} s\n".encode(), False
    return said.decode(errors="replace"), passed, time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=3, help="test programs at a time")
    options = parser.parse_args()
    programs = built()
    try:
        took = json.loads(TOOK.read_text())
    except (OSError, ValueError):
        took = {}
    # What is not known yet may take long.
    programs.sort(key=lambda program: -took.get(program[0], 60.0))
    failed, printing = [], threading.Lock()

    def one(program):
        said, passed, seconds = run(program)
        with printing:
            took[program[0]] = seconds
            names = re.findall(r"^test (.+?)(?: - should panic)? \.\.\. FAILED$", said, re.MULTILINE)
            if not passed:
                failed.append((program, names))
            if names:
                # Counted below, once they have run again.
                said = re.sub(r"^test result: FAILED\. (\d+) passed; \d+ failed;", r"test result: partly. \1 passed; 0 failed;", said, flags=re.MULTILINE)
            print(f"\n== {program[0]}: {seconds:.0f} s\n{said.strip()}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, programs))
    TOOK.write_text(json.dumps({name: round(took[name], 1) for name, *_ in programs}, indent=0))
    docs = subprocess.run([*CARGO, "--doc", "--no-fail-fast"], cwd=ROOT).returncode
    wrong = bool(docs)
    for (name, command, folder, more), names in failed:
        again, passed = "", False
        if 0 < len(names) <= AGAIN_MAX:
            again, passed, _ = run((name, [command[0], "--exact", *names], folder, more))
            print(f"\n== {name}, what failed, alone\n{again.strip()}")
        wrong |= not passed
        print(f"{'unsteady' if passed else 'failed'}: {name}: {', '.join(names) or 'broke off'}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
