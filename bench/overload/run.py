"""bench-overload: where the edge is, what comes out past it, who gets it, what a refusal costs, and what a restart loses.

The server has one core and the lab the other. An answer is good when it is correct (by the digest of its body), whole,
and there before the client's deadline. The lab counts the same way. The edge is the highest open-loop rate of a fixed
mix at which 99 % of answers are good. The 99th percentile of the wait must also be at most five times the unloaded one,
and at most 500 ms. Each part can be run alone (`--parts edge flood`); the figures of the others stay as they were. A
run that is stopped keeps its figures too. `--resume` goes on with what this build has not been measured for.
`--old PATH` measures a second build in turns with the first, at the same loads.

    make bench-overload ARGS="--full"              every figure; --plan says how long each part takes, and ends
    make bench-overload ARGS="--full --resume"     goes on after a stop
"""

import argparse
import json
import pathlib
import resource
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import beside
import costs
import data
import drift
import entry
import flood
import floor
import picture
import plan
import quiet
import restart
import shares
from common import MERIDIAN, RESULTS, commit, machine, need, save, say, steal_and_load

PARTS = ["edge", "flood", "peers", "drift", "fairness", "refusal", "floor", "cascade", "restart", "entry"]
FULL = {"rows": 4_000_000, "step_seconds": 20, "steps": 24, "seconds": 60, "share_seconds": 60, "rounds": 5, "refusal_seconds": 20, "cascade_seconds": 60, "drift_seconds": 1_800, "calibrate_seconds": 10,
        "kills": 100, "restart_seconds": 1, "entry_rounds": 25, "entry_seconds": 4}
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


RUN = {"edge": flood.edge, "peers": beside.peers, "fairness": shares.fairness, "refusal": costs.refusal, "floor": floor.floor, "cascade": costs.cascade, "restart": restart.restart, "entry": entry.entry}
PAST = {"flood": flood.flood, "drift": drift.drift}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--full", action="store_true", help="the full sizes; other options are laid over them")
    parser.add_argument("--plan", action="store_true", help="say how long each part takes, and end")
    parser.add_argument("--resume", action="store_true", help="leave out the parts that were measured for this commit at these sizes")
    parser.add_argument("--noisy", action="store_true", help="measure although other programs use the machine")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, help="folder of the figures and pictures")
    parser.add_argument("--old", type=pathlib.Path, help="another build, measured in turns with this one")
    parser.add_argument("--before", type=pathlib.Path, help=f"a build of the last commit before tokens ({entry.BEFORE}) for the part entry; made where it is not named")
    parser.add_argument("--peers", nargs="+", choices=list(beside.PEERS), default=list(beside.PEERS), help="systems of the part peers")
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
    parser.add_argument("--rounds", type=int, default=2, help="rounds of the parts fairness, refusal, floor and cascade")
    parser.add_argument("--refusal-rate", type=float, default=2_000, help="requests a second on top of a full server")
    parser.add_argument("--refusal-seconds", type=float, default=6)
    parser.add_argument("--floor-rate", type=float, default=15_000, help="requests a second that are all refused, of the part floor")
    parser.add_argument("--cascade-seconds", type=float, default=10)
    parser.add_argument("--kills", type=int, default=5, help="kills of the part restart, and as many stops")
    parser.add_argument("--restart-rows", type=int, default=200_000, help="events of each of its three tenants")
    parser.add_argument("--restart-seconds", type=float, default=1, help="load before each of them, on average")
    parser.add_argument("--entry-rounds", type=int, default=5, help="rounds of the part entry")
    parser.add_argument("--entry-seconds", type=float, default=2, help="length of each of its runs")
    options = parser.parse_args()
    if options.full:
        parser.set_defaults(**FULL)
        options = parser.parse_args()
    options.times_most = TIMES_MOST
    return options


def sizes(options):
    """What the figures of a part depend on."""
    return {key: value for key, value in vars(options).items() if isinstance(value, (int, float, list)) and key not in ("parts", "full", "plan", "resume", "noisy", "files", "tenant_files", "restart_files")}


def main():
    options = arguments()
    path = options.results / "overload.json"
    figures = json.loads(path.read_text())["parts"] if path.exists() else {}
    size = json.loads(json.dumps(sizes(options)))
    done = [name for name in options.parts if options.resume and name in figures and (figures[name].get("commit"), figures[name].get("sizes")) == (commit(), size)]
    left = [name for name in PARTS if name in options.parts and name not in done]
    plan.say(options, left, done)
    if options.plan:
        return
    need(MERIDIAN, "taskset", "zstd", *([options.old] if options.old else []), *(["psql"] if "peers" in left else []), *(["nginx"] if "floor" in left else []))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    options.files = data.events(options.rows, options.seed)
    options.tenant_files = data.events(options.tenant_rows, options.seed) if "fairness" in left else []
    options.restart_files = data.events(options.restart_rows, options.seed) if "restart" in left else []
    for name in left:
        if not options.noisy:
            quiet.wait_until_quiet()
        say(f"{name}:")
        before = steal_and_load()
        with quiet.Watch() as watch:
            found = PAST[name](options, past_the_edge(options, figures)) if name in PAST else RUN[name](options)
        figures[name] = found | {"quiet": [before, steal_and_load()], "noise": watch.said, "commit": commit(), "machine": machine(), "sizes": size}
        # After each part, so that what was measured stays if a later one is stopped.
        save("overload", {"parts": figures}, options.results)
        picture.draw(figures, options.results)


if __name__ == "__main__":
    main()
