"""bench-searches: searches over mock sources whose log is the truth, saved searches while events come in, and searx beside it.

Each part can be run alone (`--parts flat edge`); the figures of the others stay as they were. The defaults end within a
quarter of an hour; `--full` takes some two and a half hours (`bench/README.md` says where they go).

    make bench-searches                             at the default sizes
    make bench-searches ARGS="--parts flat edge"    some of its parts
"""

import argparse
import json
import pathlib
import resource
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import faulty
import outside
import peer
import standing
from common import MERIDIAN, RESULTS, commit, machine, need, save, say, steal_and_load

PARTS = ["isolated", "flat", "edge", "overload", "bursts", "faults", "standing", "streams", "peer"]
FULL = {"searches": 10, "late": 40, "minutes": 10, "edge_rates": [25, 50, 75, 100, 125, 150, 200], "edge_seconds": 180, "step_seconds": 10, "steps": 48, "time": 1.0,
        "bursts": 10, "gaps": [30, 45, 60], "fault_seconds": 120, "event_seconds": 60, "alarms": 5_000, "stream_seconds": 300, "rounds": 5, "peer_seconds": 10}


def overload(options, figures):
    """Past the edge that was found, now or before."""
    at = options.edge or figures.get("edge", {}).get("fast", {}).get("at")
    if not at:
        sys.exit("bench: where the edge is must be known for the part overload: run the part edge, or say it with --edge")
    return outside.overload(options, at)


def beside(before, runs):
    """Bursts of an earlier run, each with the commit that it is of, except bursts that were run again."""
    cell = lambda run: (run["size"], run["gap_s"])
    kept = [{"commit": before["commit"]} | run for run in before["runs"] if cell(run) not in map(cell, runs)] if before else []
    return sorted(kept + runs, key=cell)


RUN = {"isolated": outside.isolated, "flat": outside.flat, "edge": outside.edge, "bursts": outside.bursts, "faults": faulty.faults, "standing": standing.standing,
       "streams": standing.streams, "peer": peer.peer}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--full", action="store_true", help="the full sizes; other options are laid over them")
    parser.add_argument("--item-bytes", type=int, default=9_000, help="text of each of the 93 results of the slow sources; each fills a packet")
    parser.add_argument("--searches", type=int, default=2, help="isolated searches")
    parser.add_argument("--late", type=int, default=20, help="searches with a deadline of 20 s")
    parser.add_argument("--minutes", type=float, default=1, help="one search a second for so long")
    parser.add_argument("--edge-rates", type=float, nargs="+", default=[100], help="searches a second with the slow sources; ends with the first that is not flat")
    parser.add_argument("--edge-seconds", type=float, default=45, help="length of each")
    parser.add_argument("--buffer", default="256 MiB", help="search.buffer_bytes_total at the edge and in bursts")
    parser.add_argument("--steps", type=int, default=10, help="most steps of the breakpoint with fast sources")
    parser.add_argument("--step-seconds", type=float, default=5, help="length of each, and of each step past the edge")
    parser.add_argument("--edge", type=float, help="the edge with fast sources, where it is not to be looked for")
    parser.add_argument("--time", type=float, default=0.2, help="delays of the sources in bursts, as a share of the published ones")
    parser.add_argument("--bursts", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 200], help="searches of a burst")
    parser.add_argument("--gaps", type=float, nargs="+", default=[3], help="seconds between bursts")
    parser.add_argument("--add", action="store_true", help="bursts of other sizes and gaps that were run before stay")
    parser.add_argument("--fault-rate", type=float, default=100, help="searches a second with and without faulty sources")
    parser.add_argument("--fault-seconds", type=float, default=24)
    parser.add_argument("--standing", type=int, default=100_000, help="saved searches")
    parser.add_argument("--event-rate", type=float, default=10_000)
    parser.add_argument("--event-seconds", type=float, default=10)
    parser.add_argument("--alarms", type=int, default=500, help="events that answer a thousand saved searches each")
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--stream-seconds", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=2, help="rounds beside searx")
    parser.add_argument("--peer-seconds", type=float, default=5)
    options = parser.parse_args()
    if options.full:
        parser.set_defaults(**FULL)
        options = parser.parse_args()
    return options


def main():
    options = arguments()
    need(MERIDIAN, "taskset")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    path = RESULTS / "searches.json"
    figures = json.loads(path.read_text())["parts"] if path.exists() else {}
    for name in (part for part in PARTS if part in options.parts):
        say(f"{name}:")
        before = steal_and_load()
        found = overload(options, figures) if name == "overload" else RUN[name](options)
        ran = {"quiet": [before, steal_and_load()], "commit": commit(), "machine": machine(), "users": "each its own"}
        if name == "bursts":
            found["runs"] = beside(figures.get(name), [run | {"commit": ran["commit"]} for run in found["runs"]]) if options.add else found["runs"]
        figures[name] = found | ran
        # After each part, so that what was measured stays if a later one is stopped.
        save("searches", {"parts": figures})


if __name__ == "__main__":
    main()
