"""bench-overload: where the edge is, what comes out past it, who gets it, and what a refusal costs.

The server has one core and the lab the other. An answer is good when it is correct (by the digest of its body), whole, and there before the client's
deadline, as the lab counts it. The edge is the highest open-loop rate of a fixed mix at which 99 % are good, with a 99th percentile of at most five times the
unloaded one and of 500 ms. Each part can be run alone (`--parts edge flood`); the figures of the others stay as they were. `--old PATH` measures a
second build in turns with the first, at the same loads.
"""

import argparse
import json
import pathlib
import resource
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import costs
import data
import drift
import flood
import picture
import shares
from common import MERIDIAN, RESULTS, commit, machine, need, save, say, steal_and_load

PARTS = ["edge", "flood", "drift", "fairness", "refusal", "cascade"]
FULL = {"rows": 4_000_000, "step_seconds": 20, "steps": 24, "seconds": 60, "share_seconds": 60, "rounds": 5, "refusal_seconds": 20, "cascade_seconds": 60, "drift_seconds": 1_800, "calibrate_seconds": 10}
# The light mix is wanted up to 5x.
TIMES_MOST = {"heavy": 10, "light": 5}


def past_the_edge(options, figures):
    """The edge that was found, now or before, or that is said."""
    edges = figures.get("edge")
    if options.edge:
        edges = {"sides": {"new": {name: {"at": at} for name, at in zip(options.mixes, options.edge)}}}
    if not edges or any(name not in edges["sides"]["new"] for name in options.mixes):
        sys.exit("bench: where the edge is must be known for the parts flood and drift: run the part edge, or say it with --edge")
    return edges


RUN = {"edge": flood.edge, "fairness": shares.fairness, "refusal": costs.refusal, "cascade": costs.cascade}
PAST = {"flood": flood.flood, "drift": drift.drift}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--full", action="store_true", help="the sizes of the issue; other options are laid over them")
    parser.add_argument("--old", type=pathlib.Path, help="another build, measured in turns with this one")
    parser.add_argument("--rows", type=int, default=2_000_000, help="events that are asked for")
    parser.add_argument("--tenant-rows", type=int, default=1_000_000, help="events of each of the nine tenants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mixes", nargs="+", choices=list(TIMES_MOST), default=list(TIMES_MOST))
    parser.add_argument("--calibrate-seconds", type=float, default=2, help="one user, for each kind of question")
    parser.add_argument("--step-seconds", type=float, default=5, help="length of each step of the search for the edge")
    parser.add_argument("--steps", type=int, default=12, help="most steps of it")
    parser.add_argument("--edge", type=float, nargs="+", help="the edge of each of --mixes, where it is known")
    parser.add_argument("--times", type=float, nargs="+", default=[1, 2, 5, 10], help="multiples of the edge")
    parser.add_argument("--users", nargs="+", choices=list(flood.AGAIN), default=list(flood.AGAIN), help="what users do who are refused")
    parser.add_argument("--seconds", type=float, default=8, help="length of each flood")
    parser.add_argument("--drift-seconds", type=float, default=30, help="length of the part drift")
    parser.add_argument("--share-seconds", type=float, default=10, help="length of each run with tenants")
    parser.add_argument("--rounds", type=int, default=2, help="rounds of the parts fairness, refusal and cascade")
    parser.add_argument("--refusal-rate", type=float, default=2_000, help="requests a second on top of a full server")
    parser.add_argument("--refusal-seconds", type=float, default=6)
    parser.add_argument("--cascade-seconds", type=float, default=10)
    options = parser.parse_args()
    if options.full:
        parser.set_defaults(**FULL)
        options = parser.parse_args()
    options.times_most = TIMES_MOST
    return options


def main():
    options = arguments()
    need(MERIDIAN, "taskset", "zstd", *([options.old] if options.old else []))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    options.files = data.events(options.rows, options.seed)
    options.tenant_files = data.events(options.tenant_rows, options.seed) if "fairness" in options.parts else []
    path = RESULTS / "overload.json"
    figures = json.loads(path.read_text())["parts"] if path.exists() else {}
    for name in (part for part in PARTS if part in options.parts):
        say(f"{name}:")
        before = steal_and_load()
        found = PAST[name](options, past_the_edge(options, figures)) if name in PAST else RUN[name](options)
        figures[name] = found | {"quiet": [before, steal_and_load()], "commit": commit(), "machine": machine()}
        # After each part, so that what was measured stays if a later one is stopped.
        save("overload", {"parts": figures})
        if name == "flood":
            picture.draw(figures["flood"], RESULTS / "overload.svg")


if __name__ == "__main__":
    main()
