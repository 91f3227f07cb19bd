"""bench-python: four questions of a notebook, answered inside the process: Meridian, DuckDB with spatial, GeoPandas.

The events of `bench/data.py`. The first two questions are a circle in a window of time as a frame of pandas, and the
count in a country's polygon. The others are count and average by hour in a box, and the ten nearest. Meridian is
`meridian.open`, and for comparison `meridian.connect` to a server on the same machine. Every question is asked of every
system before anything is timed, and the answers are compared.

    make bench-python                      at the default sizes
    make bench-python ARGS="--rounds 1"    shorter
"""

import argparse
import contextlib
import math
import os
import pathlib
import random
import sys
import tempfile
import time

import shapely

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import data
from common import MERIDIAN, cpu_seconds, need, save, say, steal_and_load
from peers import duckdb_spatial, start_meridian
from systems import Duckdb, GeoPandas, Meridian, client

RADII_M, SPANS_DAYS = [10_000, 50_000, 200_000], [6, 30, 90]
HALF_BOX = 2.0  # degrees


def questions(rng, count):
    """By kind, calls of a system's method of that name."""
    asked = {"around": [], "within": [], "hours": [], "nearest": []}
    shapes = [(name, polygons) for name, polygons in data.countries()]
    for _ in range(count):
        lon, lat = rng.choice(list(data.CITIES.values()))
        lon, lat = round(lon + rng.uniform(-0.5, 0.5), 4), round(lat + rng.uniform(-0.5, 0.5), 4)
        span = rng.choice(SPANS_DAYS)
        start, end = data.window(rng.randrange(data.DAYS - span), span)
        asked["around"].append((lon, lat, rng.choice(RADII_M), start, end))
        asked["hours"].append(((lon - HALF_BOX, lat - HALF_BOX, lon + HALF_BOX, lat + HALF_BOX), start, end))
        asked["nearest"].append((lon, lat))
        wkt = data.wkt(rng.choice(shapes)[1])
        asked["within"].append((shapely.from_wkt(wkt), wkt))
    return asked


def comparable(kind, answer):
    """An answer without what may differ between systems: the order of rows, the names of columns."""
    if kind == "around":
        rows = answer[["id", "kind", "value", "lon", "lat"]].sort_values("id")
        return list(rows.itertuples(index=False, name=None)), sorted(answer["time"].dt.tz_convert("UTC").astype("int64").tolist())
    return sorted(answer) if kind == "nearest" else answer


def same(kind, one, other):
    """Averages to 1e-9, everything else exactly."""
    if kind != "hours":
        return one == other
    return one.keys() == other.keys() and all(
        one[at][0] == other[at][0] and math.isclose(one[at][1], other[at][1], rel_tol=1e-9, abs_tol=1e-9) for at in one)


def check(systems, asked):
    """Ends the bench where two systems answer differently; else how large the answers of each kind are."""
    sizes = {}
    for kind, calls in asked.items():
        for call in calls:
            expected = None
            for name, system in systems.items():
                got = comparable(kind, getattr(system, kind)(*call))
                if expected is None:
                    expected, first = got, name
                    sizes.setdefault(kind, []).append(got if kind == "within" else len(got[0]) if kind == "around" else len(got))
                elif not same(kind, expected, got):
                    sys.exit(f"bench: {kind}{call[-2:]}: {name} and {first} answer differently: {str(got)[:300]} and {str(expected)[:300]}")
    say(f"{sum(map(len, asked.values()))} questions answered alike by {len(systems)} systems")
    return sizes


def timed(system, kind, calls, seconds):
    """All questions of a kind, again and again."""
    took, cpu, began = [], cpu_seconds(os.getpid()), time.time()
    while not took or time.time() - began < seconds:
        for call in calls:
            sent = time.perf_counter()
            getattr(system, kind)(*call)
            took.append((time.perf_counter() - sent) * 1000)
    took.sort()
    cpu = cpu_seconds(os.getpid()) - cpu
    return {"answers": len(took), "p50_ms": took[len(took) // 2], "p95_ms": took[int(len(took) * 0.95)], "cpu_ms": cpu * 1000 / len(took)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--questions", type=int, default=40, help="of each kind")
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds of each cell")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=pathlib.Path, help="folder of the figures [default: bench/results]")
    options = parser.parse_args()
    need(MERIDIAN, "zstd")
    meridian, files = client(), data.events(options.rows, options.seed)
    asked = questions(random.Random(options.seed), options.questions)
    with tempfile.TemporaryDirectory(prefix="bench-python-") as name, contextlib.ExitStack() as ends:
        folder, load_s, quiet = pathlib.Path(name), {}, [steal_and_load()]

        def load(what, work):
            began = time.time()
            made = work()
            load_s[what] = time.time() - began
            say(f"{what} loaded in {load_s[what]:.1f} s")
            return made

        own = ends.enter_context(meridian.open(folder / "own"))
        server = ends.enter_context(start_meridian(folder))
        remote = meridian.connect(f"http://127.0.0.1:{server.port}")
        duck = ends.enter_context(duckdb_spatial())
        load("meridian.open", lambda: Meridian.fill(own, files))
        load("meridian.connect", lambda: Meridian.fill(remote, files))
        load("duckdb", lambda: Duckdb.fill(duck, files))
        frame = load("geopandas", lambda: GeoPandas.fill(files))
        systems = {"meridian.open": Meridian(own), "meridian.connect": Meridian(remote), "duckdb": Duckdb(duck), "geopandas": GeoPandas(frame)}
        sizes, runs = check(systems, asked), {}
        for round_number in range(options.rounds):
            for kind, calls in asked.items():
                for system in systems:
                    runs.setdefault((kind, system), []).append(timed(systems[system], kind, calls, options.seconds))
                say(f"round {round_number + 1}/{options.rounds} {kind}: p50 ms " + ", ".join(f"{s} {runs[kind, s][-1]['p50_ms']:.2f}" for s in systems))
            quiet.append(steal_and_load())
    result = {"rows": options.rows, "questions": options.questions, "seconds": options.seconds, "rounds": options.rounds, "seed": options.seed,
              "load_s": load_s, "quiet": quiet, "sizes": {kind: [min(all_), sorted(all_)[len(all_) // 2], max(all_)] for kind, all_ in sizes.items()},
              "cells": [{"kind": kind, "system": system, "runs": all_} for (kind, system), all_ in runs.items()]}
    save("python", result, *([options.results] if options.results else []))


if __name__ == "__main__":
    main()
