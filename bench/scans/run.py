"""bench-scans: Accumulo's study of scan servers with real owners, gateways and scan servers, in dilated time.

Processor time and storage are modelled by the simulator's costs and slept, so that servers of eight cores fit on a
small machine. All else is real. A row takes so many times as long as the study's, and every answer is held against the
owner's. A row is void where it uses more than 60 % of the machine's processors, or where its threads wait for a
processor. Its times are then those of the machine. A row in which a scan fails or an answer
differs is void too. Void rows are not kept.

    make bench-scans                             every row, the changes; --plan says how long each takes, and ends
    make bench-scans ARGS="--resume"             goes on after a stop, with the rows that this build has not been measured for
    make bench-scans ARGS="--rows D804 D811"     these rows alone
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import quiet
from changes import changes
from client import Load, digests
from common import MERIDIAN, RESULTS, commit, machine, need, save, say, steal_and_load
from rig import Rig
from rows import FIGURES, ROW_S_MAX, SCENARIO, TIMES, TIMES_SMALL, rows, scenario
from scans import SCANS, SCHEMA, Scans
from waits import Waits

# Above this share of the machine a row says nothing.
USED_MAX = 0.60
# Of the time of all scans, what threads of the study waited for a processor, also where no scan waited for them.
WAITED_MAX = 0.05
CHANGES_S = 120


def reasons_void(used, waited, seen):
    """Why a row says nothing of the servers; empty where it does. `used` and `waited` are shares, as `used_share` and `waited_share` give them."""
    found = [f"{used:.0%} of the machine's processors were in use: at most {USED_MAX:.0%} may be"] if used > USED_MAX else []
    if waited > WAITED_MAX:
        found.append(f"threads waited for a processor for {waited:.1%} of the scans' time: at most {WAITED_MAX:.0%} may be")
    if seen.failed:
        found.append(f"{len(seen.failed)} scans failed, the first: {seen.failed[0]}")
    if seen.differ:
        found.append(f"{len(seen.differ)} answers differ from the owner's, the first of scan {seen.differ[0]}")
    if not seen.complete:
        found.append(f"{len(seen.took)} scans ended in time")
    return found


def used_share(before, after):
    """Share of the machine's processors that the study and the host used. Other programs count as waits, where there were any."""
    passed = after["all"] - before["all"]
    return (after["own"] + after["stolen"] - before["own"] - before["stolen"]) / passed if passed > 0 else 1.0


def waited_share(waited_s, took_s):
    """Share of the scans' time that threads of the study waited for a processor: the most by which waits can have lengthened the mean."""
    return waited_s / sum(took_s) if took_s else 1.0


def forecast(row):
    """What the simulator says of a row."""
    words = [MERIDIAN, "lab", "simulate", SCENARIO, "--json"]
    for text in row.sets():
        words += ["--set", text]
    run = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"bench: {row.name}: lab simulate: {run.stderr.strip()}")
    return json.loads(run.stdout)


def measure(row, options):
    """A row: the processes, a warm-up, and the scans that begin after it."""
    tier = scenario()
    scans = Scans(row, tier, options.distinct, options.seed)
    with tempfile.TemporaryDirectory(prefix="bench-scans-") as folder, Rig(folder, row, tier) as rig:
        rig.load(scans, SCHEMA)
        if row.eventual:
            rig.start_scans(scans)
        # Of an immediate row there is nothing to hold it against: it is what others are held against.
        expected = digests(rig.ports[0], scans, range(options.distinct), eventual=False) if row.eventual else None
        at = {}

        def begins():
            at.update(counters=rig.counters(), reading=quiet.readings(), noise=quiet.Watch(), waits=Waits())
            at["noise"].__enter__()
            at["waits"].__enter__()

        pause_s = tier["clients"]["scan_ms"] / 1e3 * row.times
        warm_s = row.warm_s() if options.warm_s is None else options.warm_s
        load = Load(rig.ports, scans, expected, row.of("threads"), row.scans(options.scans), row.eventual, pause_s, warm_s, ROW_S_MAX, begins, options.seed)
        seen = load.run()
        after, now = quiet.readings(), rig.counters()
        at["noise"].__exit__()
        at["waits"].__exit__()
    used, waited = used_share(at["reading"], after), waited_share(at["waits"].seconds, seen.took)
    took = [seconds * 1e3 / row.times for seconds in seen.took]
    void = reasons_void(used, waited, seen)
    for why in void:
        say(f"VOID: {row.name}: {why}")
    during = {key: now[key] - at["counters"][key] for key in now}
    asked = during["cache_hits"] + during["cache_misses"]
    return {
        "figures": figures(took, during["busy"] / max(during["questions"], 1) * row.workload["probe_scans"]) if took else None,
        "scans": len(took), "held_against": seen.ended - len(seen.failed) if expected else 0, "differ": len(seen.differ), "failed": len(seen.failed), "times": row.times,
        "cache_hits": during["cache_hits"] / asked if asked else None, "counters": during,
        "used": used, "waited": waited, "noise": at["noise"].said, "void": void,
    }


def figures(took_ms, busy_events):
    """The figures of the published tables, in the study's own time."""
    return {"busy_events": round(busy_events), "mean_ms": statistics.fmean(took_ms), "sd_ms": statistics.pstdev(took_ms), "min_ms": min(took_ms), "max_ms": max(took_ms)}


def arguments():
    names = [row.name for row in rows()]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="*", choices=names, metavar="ROW", default=None, help=f"some of {' '.join(names)}; nothing after it: none")
    parser.add_argument("--plan", action="store_true", help="say how long each row takes, and end")
    parser.add_argument("--resume", action="store_true", help="leave out the rows that were measured for this commit at these sizes")
    parser.add_argument("--noisy", action="store_true", help="measure although other programs use the machine; a void row is void all the same")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, help="folder of the figures")
    parser.add_argument("--keep-void", action="store_true", help="keep the figures of void rows, marked, such as to look at a run")
    parser.add_argument("--scans", type=int, default=300, help="min number of scans that are measured in a row")
    parser.add_argument("--distinct", type=int, default=SCANS, help="distinct scans that clients draw from")
    parser.add_argument("--times", type=int, default=TIMES, help="how many times as long everything takes")
    parser.add_argument("--times-small", type=int, default=TIMES_SMALL, help="the same of small scans by scan servers")
    parser.add_argument("--threads", type=int, help="clients, in place of the study's")
    parser.add_argument("--servers", type=int, help="max number of scan servers")
    parser.add_argument("--warm-s", type=float, help="seconds of the warm-up, in place of a scan of each client")
    parser.add_argument("--changes-s", type=float, default=CHANGES_S, help="seconds of the part in which servers come and go; 0: without it")
    parser.add_argument("--no-forecast", action="store_true", help="do not simulate the rows")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def asked(options):
    """The rows that are asked for."""
    found = [row for row in rows(options.times, options.times_small) if options.rows is None or row.name in options.rows]
    for row in found:
        if options.threads:
            row.set = row.set | {"threads": options.threads}
        if options.servers and row.eventual:
            row.set = row.set | {"servers": min(row.of("servers"), options.servers), "initial": min(row.of("initial"), options.servers)}
    return found


def sizes(options):
    """What the figures of a row depend on."""
    return {key: getattr(options, key) for key in ("scans", "distinct", "times", "times_small", "threads", "servers", "warm_s", "seed")}


def main():
    options = arguments()
    path = options.results / "scans.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    found, moving = kept.get("rows", {}), kept.get("changes")
    same = lambda part: part and options.resume and (part["commit"], part["sizes"]) == (commit(), sizes(options))
    left = [row for row in asked(options) if not same(found.get(row.name))]
    for row in left:
        seconds = row.seconds(options.scans)
        say(f"  {row.name:<6} about {seconds / 60:5.1f} minutes, {row.scans(options.scans):,} scans, x{row.times}{'' if seconds <= ROW_S_MAX else ': more than a row may take'}")
    say(f"  all of it about {(sum(row.seconds(options.scans) for row in left) + options.changes_s) / 60:.0f} minutes")
    if options.plan:
        return
    need(MERIDIAN)
    about = lambda: {"commit": commit(), "machine": machine(), "sizes": sizes(options)}
    keep = lambda: save("scans", {"source": FIGURES.name, "rows": found, **({"changes": moving} if moving else {})}, options.results)
    void = []
    for row in left:
        if not options.noisy:
            quiet.wait_until_quiet()
        say(f"{row.name}:")
        before = steal_and_load()
        one = measure(row, options)
        one |= {"published": row.published, "fitted": row.fitted, "set": row.set, "forecast": None if options.no_forecast else forecast(row), "quiet": [before, steal_and_load()], **about()}
        if one["void"] and not options.keep_void:
            void.append(row.name)
            continue
        found[row.name] = one
        # After each row, so that what was measured stays if a later one is stopped.
        keep()
    if options.changes_s and not same(moving):
        say("changes:")
        # Nothing is timed here: a machine in use does no harm.
        moving = changes(options.changes_s, seed=options.seed) | about()
        keep()
    if void:
        sys.exit(f"bench: void, and not kept: {' '.join(void)}")


if __name__ == "__main__":
    main()
