"""Servers that come and go under load: added, stopped (SIGTERM) and killed, with no scan that fails or answers differently."""

import random
import signal
import tempfile
import threading
import time

from client import Load, digests
from common import say
from rig import Rig
from rows import Row, scenario
from scans import SCHEMA, Scans

# Small enough for one machine, and slow enough that a server which ends has scans under way.
SERVERS, SERVERS_MIN, SERVERS_MAX, CLIENTS, TIMES, SCANS = 6, 3, 8, 48, 10, 200
SET = {"workload": "large", "servers": SERVERS, "initial": 3, "busy_ms": 33, "threads": CLIENTS}
ACTS = ["add", "stop", "kill"]


class Acts(threading.Thread):
    """Does one of them every so often, until it is ended."""

    def __init__(self, rig, every_s, seed):
        super().__init__(daemon=True)
        self.rig, self.every_s, self.rng, self.ended = rig, every_s, random.Random(seed), threading.Event()
        self.done = {act: 0 for act in ACTS}

    def run(self):
        turn = 0
        while not self.ended.wait(self.every_s):
            act = ACTS[turn % len(ACTS)]
            turn += 1
            there = len(self.rig.scans)
            if act == "add" and there >= SERVERS_MAX or act != "add" and there <= SERVERS_MIN:
                act = "stop" if act == "add" else "add"
            if act == "add":
                self.rig.add().wait_ready()
            else:
                server = self.rig.scans.pop(self.rng.randrange(there))
                server.end(signal.SIGTERM if act == "stop" else signal.SIGKILL)
            self.done[act] += 1
            say(f"  {act}: {len(self.rig.scans)} servers")

    def end(self):
        self.ended.set()
        self.join(180)


def changes(seconds, every_s=3.0, clients=CLIENTS, seed=1):
    """A load of `seconds` seconds, with an act every `every_s`."""
    row = Row("changes", SET | {"threads": clients}, {}, False, TIMES)
    scans = Scans(row, scenario(), SCANS, seed)
    with tempfile.TemporaryDirectory(prefix="bench-scans-") as folder, Rig(folder, row, scenario()) as rig:
        rig.load(scans, SCHEMA)
        rig.start_scans(scans)
        expected = digests(rig.ports[0], scans, range(SCANS), eventual=False)
        acts, began = Acts(rig, every_s, seed), time.monotonic()
        load = Load(rig.ports, scans, expected, clients, wanted=10**9, eventual=True, most_s=seconds, begins=acts.start, seed=seed)
        seen = load.run()
        acts.end()
        counters = rig.counters()
        return {"seconds": time.monotonic() - began, "clients": clients, "times": TIMES, "scans": seen.ended, "failed": len(seen.failed), "differ": len(seen.differ), "first": seen.failed[:3],
                "done": acts.done, "attempts_failed": counters["failed"], "busy": counters["busy"], "attempts": counters["attempts"]}
