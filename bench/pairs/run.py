"""bench-pairs: two builds of Meridian held against each other, part by part.

Question: does a change cost anything? Both servers hold the same data and take turns, in an order that alternates from round to
round, so that a drift of the machine touches both alike. The figure is the ratio of processor time an answer (new over old), since
noise elsewhere touches it least, and of the rate beside it; the median of the rounds, and the quartiles.

    python3 bench/pairs/run.py --old PATH --new PATH [--rounds 15] [--parts near-0.5 one ...]
"""

import argparse
import contextlib
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from common import DRIVER, Server, cpu_seconds, drive, free_port, say, steal_and_load

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "near"))
import run as near

PLACES, EVENTS = 100_000, 1_000_000
SCHEMA = "symbol:String,type:Long,price:Double,time:Date"


class Side:
    """One build: a server with places, and one that events are written to."""

    def __init__(self, name, binary, folder, rows):
        self.name, self.binary, self.folder = name, binary, folder
        near.MERIDIAN = binary
        self.near = near.start_meridian(folder, rows, "ephemeral")

    @contextlib.contextmanager
    def empty(self):
        """A server on an empty folder."""
        port, data = free_port(), self.folder / "events"
        shutil.rmtree(data, ignore_errors=True)
        with Server(self.name, [self.binary, "serve", "--listen", f"127.0.0.1:{port}", "--data", data], port) as server:
            yield server


def ask(side, files, radius, seconds):
    """Near questions from 50 connections: processor microseconds an answer, answers a second."""
    result = drive(side.near, "http", "/api/v0/places/near/{2}/{1}/{3}", files["data", radius], seconds)
    return result["cpu_us"], result["answers"] / result["seconds"]


def write(side, batch, encoding, seconds):
    """Batches from one connection into an empty server: processor microseconds a batch, batches a second."""
    with side.empty() as server:
        make = urllib.request.Request(f"http://127.0.0.1:{server.port}/collections/events", SCHEMA.encode(), {"Content-Type": "text/plain"}, method="PUT")
        urllib.request.urlopen(make).read()
        argv = [DRIVER, "ingest", "--encoding", encoding, "--address", f"127.0.0.1:{server.port}", "--target", "/collections/events/items",
                "--batch", batch, "--events", EVENTS if batch > 1 else 100_000, "--seconds", seconds]
        driver = subprocess.Popen([str(a) for a in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if driver.stdout.readline() != "ready\n":
            sys.exit("bench: the driver did not start")
        before = cpu_seconds(server.pid)
        driver.stdin.write("go\n")
        driver.stdin.close()
        result = json.loads(driver.stdout.readline())
        driver.wait()
        if result["errors"]:
            sys.exit(f"bench: {side.name}: {result['first_error']}")
        batches = result["events"] / batch
        return (cpu_seconds(server.pid) - before) * 1e6 / batches, batches / result["seconds"]


PARTS = {
    "near-0.5": lambda side, files, seconds: ask(side, files, 0.5, seconds),
    "near-5": lambda side, files, seconds: ask(side, files, 5, seconds),
    "near-50": lambda side, files, seconds: ask(side, files, 50, seconds),
    "one": lambda side, files, seconds: write(side, 1, "ndjson", seconds),
    "ndjson-10000": lambda side, files, seconds: write(side, 10_000, "ndjson", seconds),
    "arrow-10000": lambda side, files, seconds: write(side, 10_000, "arrow", seconds),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", required=True, type=pathlib.Path, help="the build that is there")
    parser.add_argument("--new", required=True, type=pathlib.Path, help="the build with the change")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-pairs-") as folder:
        folder = pathlib.Path(folder)
        rows = near.places(PLACES, 1)
        files = near.questions(folder, rows, 1, 5_000)
        sides = []
        for name, binary in (("old", args.old), ("new", args.new)):
            (folder / name).mkdir()
            sides.append(Side(name, binary.resolve(), folder / name, rows))
        print("| part | processor µs, old | new | new/old (quartiles) | rate, new/old (quartiles) |\n|---|---|---|---|---|", flush=True)
        for part in args.parts:
            found = {"old": [], "new": []}
            for round in range(args.rounds):
                for side in sides if round % 2 == 0 else sides[::-1]:
                    found[side.name].append(PARTS[part](side, files, args.seconds))
            columns = []
            for at in (0, 1):
                ratios = [n[at] / o[at] for o, n in zip(found["old"], found["new"])]
                low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
                columns.append(f"{middle:.3f} ({low:.3f} to {high:.3f})")
            cpu = [statistics.median(f[0] for f in found[side]) for side in ("old", "new")]
            print(f"| {part} | {cpu[0]:.1f} | {cpu[1]:.1f} | {columns[0]} | {columns[1]} |", flush=True)
        say(steal_and_load())
        for side in sides:
            side.near.__exit__()


if __name__ == "__main__":
    main()
