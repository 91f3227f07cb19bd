"""An owner is killed with a tail of log behind it: how long until a write is acknowledged again, and whether reads fail meanwhile."""

import http.client
import json
import os
import pathlib
import signal
import tempfile
import threading
import time

from common import MERIDIAN, median, say
from peers import meridian
from up import Cluster, size_of

SCHEMA = "reading:Double,text:String,*geom:Point:srid=4326"
BATCH = 2_000
# Long enough for any takeover that is worth a figure.
GONE_S = 120


class Batches:
    """Events of some 500 bytes, so that a tail of 64 MiB is soon there."""

    def __init__(self):
        self.text = "lorem ipsum dolor sit amet " * 14

    def body(self, number):
        line = lambda n: {"type": "Feature", "geometry": {"type": "Point", "coordinates": [(n % 3600) / 10 - 180, (n % 1700) / 10 - 85]}, "properties": {"reading": n, "text": f"{number} {n} {self.text}"}}
        return "\n".join(json.dumps(line(n)) for n in range(BATCH)).encode()


def ask(port, method, path, body=None, timeout=30, **headers):
    """Status and body; status 0 where there was no answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        return 0, repr(error).encode()
    finally:
        connection.close()


def write(port, number, body, timeout=30):
    return ask(port, "POST", "/collections/events/items", body, timeout, **{"Content-Type": "application/x-ndjson", "Idempotency-Key": f"b{number}"})


class Readers:
    """Reads from scan servers, until they are stopped; `failed` is what was not answered with 200."""

    def __init__(self, ports):
        self.counts, self.failed, self.stopped = {"reads": 0}, [], threading.Event()
        self.threads = [threading.Thread(target=self.read, args=(port,), daemon=True) for port in ports]
        for thread in self.threads:
            thread.start()

    def read(self, port):
        while not self.stopped.is_set():
            status, said = ask(port, "GET", "/collections/events/aggregate?function=count")
            self.counts["reads"] += 1
            if status != 200:
                self.failed.append(f"{status} {said[:120]!r}")
            time.sleep(0.02)

    def end(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join(60)
        return {**self.counts, "failed": len(self.failed), "first": self.failed[:3]}


def one(log, tail_mb, lease_s, staleness):
    """One cluster, one kill."""
    with tempfile.TemporaryDirectory(prefix="bench-cluster-") as folder:
        settings = f'[cluster]\nlease = "{lease_s}s"\nstaleness_max = "{staleness}"\n'
        with Cluster(pathlib.Path(folder), 2, log, settings) as cluster:
            meridian(cluster, "create", "events", "--schema", SCHEMA)
            batches, acknowledged, sent = Batches(), 0, 0
            # Scan servers have something to answer from before the kill.
            number = 0
            status, said = write(cluster.port, number, batches.body(number))
            assert status in (200, 201), said
            acknowledged += 1
            scans = [int(node["address"].rsplit(":", 1)[1]) for node in cluster.nodes("scan")]
            while any(ask(port, "GET", "/collections/events/aggregate?function=count")[0] != 200 for port in scans):
                time.sleep(0.1)
            while sent < tail_mb << 20:
                number += 1
                body = batches.body(number)
                status, said = write(cluster.port, number, body)
                if status in (200, 201):
                    acknowledged, sent = acknowledged + 1, sent + len(body)
            before = cluster.status()["collections"][0]
            log_mb = size_of(folder, "/wal/" if log == "bucket" else "jetstream") / 2**20
            readers = Readers(scans)
            time.sleep(0.5)
            owner = cluster.owner()
            os.kill(owner["pid"], signal.SIGKILL)
            killed = time.monotonic()
            number, small, tried = number + 1, batches.body(0).split(b"\n")[0], 0
            while time.monotonic() - killed < GONE_S:
                tried += 1
                status, said = write(cluster.port, number, small, timeout=10)
                if status in (200, 201):
                    break
                time.sleep(0.02)
            took = time.monotonic() - killed
            assert status in (200, 201), f"no write was acknowledged {GONE_S} s after the kill: {said[:300]!r}"
            reads = readers.end()
            status, said = ask(cluster.port, "GET", "/collections/events/aggregate?function=count")
            held = json.loads(said)["groups"][0]["count"]
            return {"log": log, "took_s": took, "lease_s": lease_s, "tail_entries": before["tail"].get("entries"), "tail_mb": log_mb, "bodies_mb": sent / 2**20, "tries": tried, "reads": reads,
                    "acknowledged_events": acknowledged * BATCH + 1, "held_events": held}


def takeover(options):
    """So many kills for each log, in turns."""
    rounds = []
    for number in range(options.kills):
        for log in options.logs:
            found = one(log, options.tail_mb, options.lease, "600s")
            say(f"kill {number + 1}, log in {log}: a write is acknowledged after {found['took_s']:.2f} s (lease {options.lease} s), {found['reads']['reads']} reads, {found['reads']['failed']} failed; "
                f"{found['held_events']:,} of {found['acknowledged_events']:,} events")
            rounds.append(found)
    return {"rounds": rounds, "median_s": {log: median([one["took_s"] for one in rounds if one["log"] == log]) for log in options.logs}}
