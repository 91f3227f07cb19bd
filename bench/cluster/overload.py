"""The log is offered twice what it takes, for minutes: leaders kept, events lost or doubled, how soon a refusal comes, and how soon writes are usual again."""

import http.client
import itertools
import json
import pathlib
import queue
import re
import tempfile
import threading
import time

from common import median, say
from peers import meridian
from up import Cluster

SCHEMA = "batch:Integer,reading:Double,text:String"
# A body of some 100 KB: the size at which the rate of the log is held against `nats bench`.
EVENTS = 200
TEXT = "lorem ipsum dolor sit amet " * 14
# More than the rate times the time that a gateway lets a write wait, so that the rate does not fall when answers are late. A batch for which
# no client is free after so many seconds is not sent, and counted.
CLIENTS, LATE_S = 900, 2
# As many writes at a time fill the groups of the log: more of them gain nothing.
CAPACITY_CLIENTS = 64
# Small writes one after another, before and after: what is usual.
PROBE_S, BACK_MAX_S = 5, 15
# Numbers of probes, so that no batch has the same key.
PROBES_FROM = 10**8


# All numbers of batches have as many digits, so that a body is made by replacing them: the clients share the servers' processors.
FIRST = 10_000_000
TEMPLATE = "\n".join(json.dumps({"batch": FIRST, "reading": n, "text": TEXT}) for n in range(EVENTS)).encode()


def body(number):
    """A batch of events that name it."""
    return TEMPLATE.replace(str(FIRST).encode(), str(number).encode())


class Client:
    """One connection to a gateway, opened again when it breaks."""

    def __init__(self, port):
        self.port, self.connection = port, None

    def post(self, number, content, timeout=60):
        """Status (0: no answer) and seconds until it was there."""
        begun = time.monotonic()
        try:
            self.connection = self.connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
            self.connection.request("POST", "/collections/events/items", content, {"Content-Type": "application/x-ndjson", "Idempotency-Key": f"b{number}"})
            answer = self.connection.getresponse()
            answer.read()
            if answer.will_close:
                self.close()
            return answer.status, time.monotonic() - begun
        except (OSError, http.client.HTTPException):
            self.close()
            return 0, time.monotonic() - begun

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None


class Load:
    """Batches at a rate from many clients; `ended` has for each its number, status, seconds, and how late it was sent."""

    def __init__(self, port, first):
        self.due, self.ended, self.next = queue.SimpleQueue(), [], first
        self.threads = [threading.Thread(target=self.run, args=(Client(port),), daemon=True) for _ in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self, client):
        while (item := self.due.get()) is not None:
            number, at = item
            late = time.monotonic() - at
            status, took = ("not sent", 0) if late > LATE_S else client.post(number, body(number))
            self.ended.append((number, status, took, late))

    def send(self, rate, seconds):
        """Open loop: a batch is due whether or not earlier ones were answered."""
        begun, sent = time.monotonic(), 0
        while (now := time.monotonic()) - begun < seconds:
            while sent < (now - begun) * rate:
                self.due.put((self.next, now))
                self.next, sent = self.next + 1, sent + 1
            time.sleep(0.002)

    def end(self):
        for _ in self.threads:
            self.due.put(None)
        for thread in self.threads:
            thread.join(120)


def percentile(values, p):
    """A percentile, in order of size."""
    return sorted(values)[min(len(values) - 1, int(len(values) * p / 100))]


def capacity(port, first, seconds):
    """Batches a second that many clients get acknowledged, one in flight each; their numbers; and the next free number."""
    numbers, lock, count = itertools.count(first), threading.Lock(), []
    until = time.monotonic() + seconds

    def run(client):
        while time.monotonic() < until:
            with lock:
                number = next(numbers)
            status, _ = client.post(number, body(number))
            if status in (200, 201):
                count.append(number)

    threads = [threading.Thread(target=run, args=(Client(port),)) for _ in range(CAPACITY_CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(count) / seconds, count, next(numbers)


def probes(port, first, seconds):
    """Small writes one after another: when each ended, its seconds, whether it was acknowledged."""
    client, found, number = Client(port), [], first
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        status, took = client.post(number, json.dumps({"batch": -1, "reading": number, "text": ""}).encode())
        found.append((time.monotonic(), took, status in (200, 201)))
        number += 1
        time.sleep(0.02)
    return found


def back(found, usual):
    """Seconds until writes take at most twice the usual for one second on end; None: never."""
    begun = found[0][0] - found[0][1]
    good_since = None
    for at, took, acknowledged in found:
        if not acknowledged or took > max(2 * usual, 0.05):
            good_since = None
            continue
        good_since = good_since if good_since is not None else at - took
        if at - good_since >= 1:
            return good_since - begun
    return None


def elections(folder):
    """Leaders chosen so far, by what the servers of the log print."""
    return sum(len(re.findall(r"new (?:stream|consumer|metadata) leader", path.read_text(errors="replace"))) for path in pathlib.Path(folder).rglob("*.log"))


def held(port, end):
    """Events of each batch, a range of batches at a time: a list of groups is bounded."""
    found, step = {}, 2_000
    for begin in range(FIRST, end, step):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        connection.request("GET", f"/collections/events/aggregate?function=count&by=batch&filter=batch%20BETWEEN%20{begin}%20AND%20{begin + step - 1}")
        answer = connection.getresponse()
        said = answer.read()
        assert answer.status == 200, said[:300]
        found |= {int(group["by"]): group["count"] for group in json.loads(said)["groups"]}
        connection.close()
    return found


def one(log, options):
    """One cluster: its rate, then twice that, then what is left."""
    with tempfile.TemporaryDirectory(prefix="bench-cluster-") as folder, Cluster(pathlib.Path(folder), 3, log) as cluster:
        meridian(cluster, "create", "events", "--schema", SCHEMA)
        _, warm, first = capacity(cluster.port, FIRST, 2)
        rate, kept, first = capacity(cluster.port, first, options.capacity_seconds)
        usual = median([took for _, took, _ in probes(cluster.port, PROBES_FROM, PROBE_S)])
        before = {"epoch": cluster.status()["owner"]["epoch"], "elections": elections(folder)}
        say(f"overload, log in {log}: {rate:.0f} batches/s is the rate; now {2 * rate:.0f}/s for {options.overload_seconds:.0f} s")
        load = Load(cluster.port, first)
        load.send(2 * rate, options.overload_seconds)
        ended_at = time.monotonic()
        after = probes(cluster.port, 2 * PROBES_FROM, BACK_MAX_S)
        load.end()
        now = {"epoch": cluster.status()["owner"]["epoch"], "elections": elections(folder)}
        statuses = {}
        for _, status, _, _ in load.ended:
            statuses[str(status)] = statuses.get(str(status), 0) + 1
        acknowledged = {number for number, status, _, _ in load.ended if status in (200, 201)} | set(warm) | set(kept)
        refused = {number for number, status, _, _ in load.ended if status in (429, 503)}
        there = held(cluster.port, load.next)
        refusals = [took for _, status, took, _ in load.ended if status in (429, 503)]
        taken = [took for _, status, took, _ in load.ended if status in (200, 201)]
        return {
            "log": log, "rate": rate, "offered": 2 * rate, "seconds": options.overload_seconds, "batches": len(load.ended), "statuses": statuses,
            "acknowledged_per_second": len(taken) / options.overload_seconds, "late_s": percentile([late for *_, late in load.ended], 99),
            "refusal_s": {p: percentile(refusals, p) for p in (50, 99)} if refusals else None, "write_s": {p: percentile(taken, p) for p in (50, 99)} if taken else None,
            "usual_s": usual, "back_s": back(after, usual), "waited_s": time.monotonic() - ended_at, "before": before, "after": now,
            "lost": sum(1 for number in acknowledged if there.get(number, 0) < EVENTS), "doubled": sum(1 for count in there.values() if count > EVENTS),
            "kept_though_refused": sum(1 for number in refused if there.get(number, 0) and number not in acknowledged),
        }


def overload(options):
    """Each log once: the run is long."""
    found = []
    for log in options.logs:
        one_found = one(log, options)
        say(f"overload, log in {log}: {json.dumps(one_found)}")
        found.append(one_found)
    return {"rounds": found}
