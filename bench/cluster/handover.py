"""The collections pass to another owner on purpose: how long writes wait, beside how long they wait anyway, and whether a request fails."""

import pathlib
import subprocess
import tempfile
import threading
import time

from common import MERIDIAN, median, say
from peers import meridian
from takeover import SCHEMA, Batches, Readers, write
from up import Cluster

WRITERS = 3
# Before and after a handover, so that the gap stands beside what is usual.
STEADY_S = 5


class Writers:
    """Small writes one after another, from several clients; `times` is when each was acknowledged, `failed` what was refused."""

    def __init__(self, port, body):
        self.port, self.body, self.times, self.failed = port, body, [], []
        self.next, self.lock, self.stopped = 1_000_000, threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(WRITERS)]
        for thread in self.threads:
            thread.start()

    def run(self):
        while not self.stopped.is_set():
            with self.lock:
                self.next += 1
                number = self.next
            status, said = write(self.port, number, self.body)
            if status in (200, 201):
                self.times.append(time.monotonic())
            else:
                self.failed.append(f"{status} {said[:120]!r}")

    def end(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join(60)

    def gap(self, begin, end):
        """The longest time without an acknowledgement between two moments."""
        times = sorted(self.times)
        inside = [at for at in times if begin <= at <= end]
        return max((later - earlier for earlier, later in zip(inside, inside[1:])), default=0.0)


def one(log, tail_mb, lease_s, staleness):
    """One cluster, one handover, with so much log behind the owner when it is ordered."""
    with tempfile.TemporaryDirectory(prefix="bench-cluster-") as folder:
        settings = f'[cluster]\nlease = "{lease_s}s"\nstaleness_max = "{staleness}"\n'
        with Cluster(pathlib.Path(folder), 2, log, settings) as cluster:
            meridian(cluster, "create", "events", "--schema", SCHEMA)
            batches, number, sent = Batches(), 0, 0
            while sent < tail_mb << 20:
                body = batches.body(number)
                status, said = write(cluster.port, number, body)
                assert status in (200, 201), said
                number, sent = number + 1, sent + len(body)
            while not any(node["condition"] == "stands_by" for node in cluster.status()["nodes"]):
                time.sleep(0.1)
            before = cluster.status()["owner"]["epoch"]
            scans = [int(node["address"].rsplit(":", 1)[1]) for node in cluster.nodes("scan")]
            writers, readers = Writers(cluster.port, batches.body(0).split(b"\n")[0]), Readers(scans)
            time.sleep(STEADY_S)
            begun = time.monotonic()
            run = subprocess.run([str(MERIDIAN), "cluster", "handover", "--dir", folder], capture_output=True, text=True)
            assert run.returncode == 0, run.stderr
            ended = time.monotonic()
            time.sleep(STEADY_S)
            writers.end()
            reads = readers.end()
            assert cluster.status()["owner"]["epoch"] > before
            # The command returns once the next owner has the lease: its first acknowledgements come after that.
            return {"log": log, "lease_s": lease_s, "bodies_mb": sent / 2**20, "gap_s": writers.gap(begun, ended + 2), "usual_s": writers.gap(begun - STEADY_S, begun),
                    "took_s": ended - begun, "writes": len(writers.times), "failed": writers.failed[:3], "failures": len(writers.failed), "reads": reads}


def handover(options):
    """So many handovers for each log, in turns."""
    rounds = []
    for number in range(options.kills):
        for log in options.logs:
            found = one(log, options.tail_mb, options.lease, "600s")
            say(f"handover {number + 1}, log in {log}: writes wait {found['gap_s'] * 1000:.0f} ms, before it {found['usual_s'] * 1000:.0f} ms at most; the command took {found['took_s']:.1f} s; "
                f"{found['writes']} writes, {found['failures']} failed; {found['reads']['reads']} reads, {found['reads']['failed']} failed")
            rounds.append(found)
    return {"rounds": rounds, "median_s": {log: median([one["gap_s"] for one in rounds if one["log"] == log]) for log in options.logs}}
