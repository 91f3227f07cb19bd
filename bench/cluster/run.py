"""bench-cluster: what a cluster's log takes in beside bare NATS, and what takeovers, handovers and overload do to its clients.

Parts: the rate of writes (`ingest`), bytes of the log (`bytes`), the time to an acknowledgement (`latency`), how long a takeover takes (`takeover`), how
long writes wait in a handover (`handover`), twice the log's rate (`overload`), and the space-time study over 1, 2 and 4 gateways (`spacetime`).

All processes share one machine, so the figures show ratios and waits, not what separate machines give. Each part can be run alone (`--parts takeover`);
the figures of the others stay as they were.

    make bench-cluster                            at the default sizes
    make bench-cluster ARGS="--parts takeover"    one of its parts
"""

import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import gateways
import handover
import ingest
import latency
import overload
import takeover
from common import DRIVER, MERIDIAN, RESULTS, commit, need, save, say, steal_and_load

PARTS = {"ingest": ingest.ingest, "bytes": ingest.log_bytes, "latency": latency.latency, "takeover": takeover.takeover, "handover": handover.handover, "overload": overload.overload, "spacetime": gateways.gateways}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the parts ingest and latency")
    parser.add_argument("--seconds", type=float, default=5, help="length of each of its loads")
    parser.add_argument("--sizes", nargs="+", choices=list(ingest.BATCHES), default=list(ingest.BATCHES))
    parser.add_argument("--kills", type=int, default=5, help="kills of the part takeover, and handovers of the part handover, for each log")
    parser.add_argument("--logs", nargs="+", choices=["bucket", "nats"], default=["bucket", "nats"])
    parser.add_argument("--tail-mb", type=int, default=64, help="bytes written before each kill or handover, as bodies")
    parser.add_argument("--lease", type=int, default=3, help="seconds of the owner's lease")
    parser.add_argument("--overload-seconds", type=float, default=60, help="length of the part overload; its figures are of 600")
    parser.add_argument("--capacity-seconds", type=float, default=10, help="how long the part overload looks for the rate that it doubles")
    parser.add_argument("--study-seconds", type=float, default=20, help="length of each load of the part spacetime")
    options = parser.parse_args()
    need(str(MERIDIAN), "go", *([str(DRIVER)] if {"ingest", "bytes", "latency", "overload"} & set(options.parts) else []))
    path = RESULTS / "cluster.json"
    parts = json.loads(path.read_text())["parts"] if path.exists() else {}
    for name in options.parts:
        say(f"part {name}")
        before = steal_and_load()
        found = PARTS[name](options)
        parts[name] = {"commit": commit(), "quiet": [before, steal_and_load()], "found": found}
        given = " ".join(sys.argv[1:])
        save("cluster", {"options": given, "parts": parts})


if __name__ == "__main__":
    main()
