"""Where the time of one bench's load goes: the server under `perf` (Debian: linux-perf), the heaviest symbols printed.

`python3 bench/profile.py spacetime cities small 1` and so on; `ingest ndjson 1 64`; `tracks 1 --rows 200000`;
`near 50 --rows 5000000`; `aggregate 'hours of a month, all'`; `scaling 'near, as many hits'`.
Rates printed here are those of a server under a profiler; those of RESULTS.md are not.
"""

import argparse
import contextlib
import importlib
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import data
from common import DRIVER, MERIDIAN, cpu_seconds, drive, need, say, settle
from peers import meridian, start_meridian

GROUPS = {"kernel": r"\[k\]", "allocator": r"mi_|malloc|_rjem|cfree|free\b|realloc|calloc", "copies": r"mem(cpy|move|set|cmp)|memchr"}


def bench(name):
    """The module of a bench."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / name))
    return importlib.import_module("run")


@contextlib.contextmanager
def recorded(pid, folder, callers):
    """Samples of a process while the block runs."""
    file = folder / "perf.data"
    more = ["--call-graph", "dwarf,16384"] if callers else []
    perf = subprocess.Popen(["perf", "record", "-q", "-F", "299" if callers else "1999", *more, "-p", str(pid), "-o", file], stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    yield file
    perf.terminate()
    perf.wait()


def printed(file, top, callers):
    """The heaviest symbols, and sums by group."""
    if callers:
        subprocess.run(["perf", "report", "-i", file, "--stdio", "--children", "--percent-limit", "1.5", "-g", "none"], stderr=subprocess.DEVNULL)
        return
    run = subprocess.run(["perf", "report", "-i", file, "--stdio", "--sort", "sym", "--percent-limit", "0.2"], capture_output=True, text=True)
    lines = [line.strip() for line in run.stdout.splitlines() if re.match(r"\s+\d", line)]
    for name, pattern in GROUPS.items():
        print(f"{sum(float(line.split('%')[0]) for line in lines if re.search(pattern, line)):5.1f} %  {name}")
    run = subprocess.run(["perf", "report", "-i", file, "--stdio", "--sort", "comm", "--percent-limit", "1"], capture_output=True, text=True)
    print("threads:", "; ".join(" ".join(line.split()) for line in run.stdout.splitlines() if re.match(r"\s+\d", line)))
    print("\n".join(re.sub(r"::h[0-9a-f]{16}", "", line) for line in lines[:top]))


def spacetime(options, folder, words):
    """FAMILY SIZE CONNECTIONS: the questions of bench-spacetime."""
    run = bench("spacetime")
    files, families = data.events(options.rows), run.questions(random.Random(1), 120)
    with start_meridian(folder) as server:
        meridian(server, "create", "events", "--schema", data.SCHEMA)
        meridian(server, "load", "events", *files, "--quiet")
        system, form = run.Meridian(server, "arrow"), run.Meridian(server, "ndjson" if options.ndjson else "arrow")
        hits = {q: system.checked(q)[0] for family in families.values() for q in family}
        for family, size, connections in zip(words[::3], words[1::3], words[2::3]):
            asked = [q for q in families[family] if (hits[q] < run.LARGE) == (size == "small")]
            form.measure(asked, 1, int(connections), folder)
            with recorded(server.pid, folder, options.callers) as file:
                found = form.measure(asked, options.seconds, int(connections), folder)
            say(f"\n== spacetime {family} {size} x {connections}: {len(asked)} questions, {found['per_second']:.0f}/s, p50 {found['p50_ms']:.2f} ms, p95 {found['p95_ms']:.2f}, CPU {found['cpu_us']:.0f} us")
            printed(file, options.top, options.callers)


def ingest(options, folder, words):
    """ENCODING BATCH CONNECTIONS: the batches of bench-ingest."""
    run = bench("ingest")
    system = run.Meridian(folder)
    with system.server as server:
        for encoding, batch, connections in zip(words[::3], words[1::3], words[2::3]):
            system.empty()
            argv = [DRIVER, "ingest", "--encoding", encoding, "--address", f"127.0.0.1:{server.port}", "--batch", batch, "--events", options.rows,
                    "--seconds", options.seconds, "--connections", connections, "--target", run.TARGETS[encoding]]
            driver = subprocess.Popen([str(a) for a in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            driver.stdout.readline()
            before = cpu_seconds(server.pid)
            with recorded(server.pid, folder, options.callers) as file:
                driver.stdin.write("go\n")
                driver.stdin.close()
                line = driver.stdout.readline()
                driver.wait()
            say(f"\n== ingest {encoding} {batch} x {connections}, CPU {cpu_seconds(server.pid) - before:.2f} s: {line[:300]}")
            printed(file, options.top, options.callers)


def near(options, folder, words):
    """RADIUS_KM: the questions of bench-near, drawn from the data."""
    run = bench("near")
    rows = run.places(options.rows, 1)
    files = run.questions(folder, rows, 1)
    with run.start_meridian(folder, rows, "local") as server:
        for radius in words:
            driven(options, folder, server, f"near {radius} km", "/api/v0/places/near/{2}/{1}/{3}", files["data", float(radius) if "." in radius else int(radius)], 50)


def tracks(options, folder, words):
    """CONNECTIONS: the questions of bench-tracks."""
    run = bench("tracks")
    made = list(run.lines(options.rows, 1))
    file = folder / "questions.txt"
    file.write_text("".join("\t".join(map(str, q)) + "\n" for q in run.questions(random.Random(1), made, 200)))
    run.write_parquet(made, folder / "lines.parquet")
    with start_meridian(folder) as server:
        meridian(server, "create", "lines", "--schema", run.SCHEMA)
        meridian(server, "load", "lines", folder / "lines.parquet", "--quiet")
        settle(server.pid)
        for connections in words:
            driven(options, folder, server, f"tracks x {connections}", run.TARGET, file, int(connections))


def aggregate(options, folder, words):
    """WHAT: questions of bench-aggregate by name, over one connection."""
    run, file = bench("aggregate"), folder / "questions.txt"
    with loaded(options, folder) as server:
        for what in words:
            file.write_text(run.Meridian(server, "events", True).target(what) + "\n")
            driven(options, folder, server, what, "{1}", file, 1)


def scaling(options, folder, words):
    """WHAT: questions of bench-scaling by name, over one connection."""
    run, file = bench("scaling"), folder / "questions.txt"
    asked = run.questions(random.Random(1), options.rows, 1_000_000)
    with loaded(options, folder) as server:
        for what in words:
            file.write_text("".join(target + "\n" for target in asked[what][1]))
            run.asked(server, asked[what][1])
            driven(options, folder, server, what, "{1}", file, 1)


@contextlib.contextmanager
def loaded(options, folder):
    """Meridian with the events of `bench/data.py`, idle."""
    with start_meridian(folder) as server:
        meridian(server, "create", "events", "--schema", data.SCHEMA.replace(";meridian.id='given'", ""))
        meridian(server, "load", "events", *data.events(options.rows), "--quiet", "--ignore-unknown")
        settle(server.pid, most=600)
        yield server


def driven(options, folder, server, what, template, file, connections):
    """One load, warmed, recorded and printed."""
    drive(server, "http", template, file, 1, connections)
    with recorded(server.pid, folder, options.callers) as samples:
        found = drive(server, "http", template, file, options.seconds, connections)
    say(f"\n== {what}: {found['per_second']:.0f}/s, p50 {found['p50_ms']:.2f} ms, CPU {found['cpu_us']:.0f} us, {found['bytes_mean']:.0f} bytes")
    printed(samples, options.top, options.callers)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("load", choices=["spacetime", "ingest", "near", "tracks", "aggregate", "scaling"])
    parser.add_argument("words", nargs="+", help="what of the load, several of a kind one after the other")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--top", type=int, default=40)
    parser.add_argument("--ndjson", action="store_true")
    parser.add_argument("--callers", action="store_true", help="whole stacks; slower")
    options = parser.parse_args()
    need(MERIDIAN, DRIVER, "perf")
    with tempfile.TemporaryDirectory(prefix="bench-profile-") as folder:
        globals()[options.load](options, pathlib.Path(folder), options.words)


if __name__ == "__main__":
    main()
