"""bench-pairs: two builds of Meridian held against each other, part by part.

Question: does a change cost anything? Both servers hold the same data and take turns, in an order that alternates from
round to round. So a drift of the machine touches both alike. The main figure is the ratio of processor time an answer
(new over old), because noise elsewhere affects it little. The ratio of the rates is beside it. Both are medians of the
rounds, with the quartiles. With `--tenant` the new build is asked with a token, for a tenant that has every quota of
what is used a second. The figure then shows what tokens, admission and metering cost a request.

    python3 bench/pairs/run.py --old PATH --new PATH [--rounds 15] [--parts near-0.5 one ...] [--tenant]
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from common import DRIVER, Server, cpu_seconds, drive, free_port, save, say, steal_and_load

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "near"))
import run as near

PLACES, EVENTS = 100_000, 1_000_000
SCHEMA = "symbol:String,type:Long,price:Double,time:Date"
# Quotas that are counted and never reached, and one at a time that 50 connections never reach.
QUOTAS = {"requests_per_second": 10**9, "events_per_second": 10**9, "scanned_bytes_per_second": 10**15, "result_bytes_per_second": 10**15, "concurrent_requests": 10**6}


class Side:
    """One build: a server with places, and one that events are written to."""

    def __init__(self, name, binary, folder, rows, connections, tenant=False):
        self.name, self.binary, self.folder, self.connections = name, binary, folder, connections
        near.MERIDIAN = binary
        self.near = near.start_meridian(folder, rows, "ephemeral", self.admit if tenant else None)

    def admit(self, url):
        """Makes a tenant with quotas on a server without tokens: a token of it."""
        operator = self.said("token", "create", "--role", "operator", "--url", url).split()[-1]
        self.said("tenant", "create", "harbour", *(word for quota, limit in QUOTAS.items() for word in ("--quota", f"{quota}={limit}")), "--url", url, token=operator)
        return self.said("token", "create", "--tenant", "harbour", "--role", "admin", "--url", url, token=operator).split()[-1]

    def said(self, *words, token=None):
        run = subprocess.run([self.binary, *words], capture_output=True, text=True, env=os.environ | ({"MERIDIAN_TOKEN": token} if token else {}))
        if run.returncode != 0:
            sys.exit(f"bench: meridian {words[0]} {words[1]}: {run.stderr}")
        return run.stdout

    @contextlib.contextmanager
    def empty(self):
        """A server on an empty folder."""
        port, data = free_port(), self.folder / "events"
        shutil.rmtree(data, ignore_errors=True)
        with Server(self.name, [self.binary, "serve", "--listen", f"127.0.0.1:{port}", "--data", data], port) as server:
            yield server


def ask(side, address, file, seconds, connections=50):
    """Questions from `connections` connections: processor microseconds an answer, answers a second."""
    result = drive(side.near, "http", address, file, seconds, connections, token=side.near.token)
    return result["cpu_us"], result["answers"] / result["seconds"]


def near_of(radius):
    return lambda side, files, seconds: ask(side, "/api/v0/places/near/{2}/{1}/{3}", files["data", radius], seconds)


def of_places(address, name):
    """Questions to the same places through the doors of collections."""
    return lambda side, files, seconds: ask(side, f"/collections/places/{address}", files[name], seconds, side.connections)


def boxes_and_tiles(folder, rows, count=5_000):
    """Boxes of half a degree around places, and the tiles of three zooms that hold places."""
    chosen = random.Random(7).choices(rows, k=count)
    boxes = [f"{max(lon - 0.25, -180):.4f},{max(lat - 0.25, -90):.4f},{min(lon + 0.25, 180):.4f},{min(lat + 0.25, 90):.4f}" for *_, lat, lon in chosen]
    tiles = []
    for number, (*_, lat, lon) in enumerate(chosen):
        zoom = (4, 7, 10)[number % 3]
        y = (1 - math.asinh(math.tan(math.radians(max(min(lat, 85), -85)))) / math.pi) / 2
        tiles.append(f"{zoom}\t{int(y * 2**zoom)}\t{min(int((lon + 180) / 360 * 2**zoom), 2**zoom - 1)}")
    files = {"boxes": folder / "boxes.txt", "tiles": folder / "tiles.txt"}
    files["boxes"].write_text("".join(line + "\n" for line in boxes))
    files["tiles"].write_text("".join(line + "\n" for line in tiles))
    return files


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
    "near-0.5": near_of(0.5),
    "near-5": near_of(5),
    "near-50": near_of(50),
    "items": of_places("items?bbox={1}&limit=100", "boxes"),
    "aggregate": of_places("aggregate?function=count&by=state&bbox={1}", "boxes"),
    "tile": of_places("tiles/WebMercatorQuad/{1}/{2}/{3}", "tiles"),
    "one": lambda side, files, seconds: write(side, 1, "ndjson", seconds),
    "ndjson-10000": lambda side, files, seconds: write(side, 10_000, "ndjson", seconds),
    "arrow-10000": lambda side, files, seconds: write(side, 10_000, "arrow", seconds),
}


def compared(old, new, parts, rounds, seconds, connections=4, tenant=False):
    """Both builds in turns: for each part the processor microseconds of each side, and the ratios new over old of those and of the rate."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="bench-pairs-") as folder, contextlib.ExitStack() as stack:
        folder = pathlib.Path(folder)
        rows = near.places(PLACES, 1)
        files = near.questions(folder, rows, 1, 5_000) | boxes_and_tiles(folder, rows)
        sides = []
        for name, binary in (("old", old), ("new", new)):
            (folder / name).mkdir()
            sides.append(Side(name, binary.resolve(), folder / name, rows, connections, tenant and name == "new"))
            stack.enter_context(sides[-1].near)
        for part in parts:
            runs = {"old": [], "new": []}
            for number in range(rounds):
                for side in sides if number % 2 == 0 else sides[::-1]:
                    runs[side.name].append(PARTS[part](side, files, seconds))
            ratios = [[n[at] / o[at] for o, n in zip(runs["old"], runs["new"])] for at in (0, 1)]
            found[part] = {"cpu_us": {side: [run[0] for run in runs[side]] for side in runs}, "cpu": quartiles(ratios[0]), "rate": quartiles(ratios[1])}
            say(shown(part, found[part]))
    return found


def quartiles(ratios):
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return {"low": low, "middle": middle, "high": high}


def shown(part, found):
    """A part as a row of the table."""
    cpu = [f"{statistics.median(found['cpu_us'][side]):.1f}" for side in ("old", "new")]
    return f"| {part} | {' | '.join(cpu)} | " + " | ".join(f"{found[key]['middle']:.3f} ({found[key]['low']:.3f} to {found[key]['high']:.3f})" for key in ("cpu", "rate")) + " |"


HEAD = "| part | processor µs, old | new | new/old (quartiles) | rate, new/old (quartiles) |\n|---|---|---|---|---|"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", required=True, type=pathlib.Path, help="the build that is there")
    parser.add_argument("--new", required=True, type=pathlib.Path, help="the build with the change")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=2)
    # Few by default: with many, the builds differ in how many they let wait.
    parser.add_argument("--connections", type=int, default=4, help="connections that ask for items, aggregates and tiles")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--tenant", action="store_true", help="the new build is asked with a token of a tenant with quotas; for the parts near")
    parser.add_argument("--save", nargs=2, metavar=("OLD", "NEW"), help="keep the figures for RESULTS.md, with the commits of both builds")
    args = parser.parse_args()
    found = compared(args.old, args.new, args.parts, args.rounds, args.seconds, args.connections, args.tenant)
    print(HEAD, *(shown(part, one) for part, one in found.items()), sep="\n")
    say(steal_and_load())
    if args.save:
        save("pairs", {"old": args.save[0], "new": args.save[1], "rounds": args.rounds, "seconds": args.seconds, "parts": found})


if __name__ == "__main__":
    main()
