"""The workspace's tests, two test programs at a time: many of them wait for clocks and other processes while a core is free.

`cargo test` runs one program after the other. This builds them with it, runs them side by side, the ones that took longest last time first, and prints
the output of each as a whole when it ends. Documentation tests come last, through Cargo.

    python3 scripts/cargo_tests.py [--jobs 2]
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
TOOK = TARGET / "test-seconds.json"
CARGO = ["cargo", "test", "--workspace", "--locked"]
# A program that takes longer hangs.
MAX_S = 30 * 60


def built():
    """Each test program: its name, its file, and the folder of its package, in which Cargo runs it."""
    run = subprocess.run([*CARGO, "--no-run", "--message-format", "json-render-diagnostics"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if run.returncode != 0:
        sys.exit(run.returncode)
    found = []
    for line in run.stdout.splitlines():
        one = json.loads(line)
        if one["reason"] == "compiler-artifact" and one["profile"]["test"] and one["executable"]:
            folder = pathlib.Path(one["manifest_path"]).parent
            found.append((f"{folder.relative_to(ROOT)} {one['target']['name']}", one["executable"], folder))
    return found


def run(program):
    """Runs one: its output, whether it passed, and its seconds."""
    _, file, folder = program
    began = time.monotonic()
    try:
        done = subprocess.run([file], cwd=folder, env=os.environ | {"CARGO_MANIFEST_DIR": str(folder)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=MAX_S)
        said, passed = done.stdout, done.returncode == 0
    except subprocess.TimeoutExpired as late:
        said, passed = (late.stdout or b"") + f"\nended: it ran for {MAX_S} s\n".encode(), False
    return said.decode(errors="replace"), passed, time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2, help="test programs at a time")
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
            print(f"\n== {program[0]}: {seconds:.0f} s\n{said.strip()}", flush=True)
            if not passed:
                failed.append(program[0])

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, programs))
    TOOK.write_text(json.dumps({name: round(took[name], 1) for name, *_ in programs}, indent=0))
    docs = subprocess.run([*CARGO, "--doc", "--no-fail-fast"], cwd=ROOT).returncode
    for name in failed:
        print(f"failed: {name}")
    sys.exit(1 if failed or docs else 0)


if __name__ == "__main__":
    main()
