"""The log is offered twice what it takes, for minutes. Recorded: leaders kept, events lost or doubled, the time to a
refusal, and the time until writes are usual again."""

import functools
import http.client
import json
import pathlib
import re
import tempfile
import time

from common import median, say
from flood import acknowledged, flood, percentile
from peers import meridian
from up import Cluster

SCHEMA = "batch:Integer,reading:Double,text:String"
# A body of some 100 KB: the size at which the rate of the log is held against `nats bench`.
EVENTS = 200
TEXT = "lorem ipsum dolor sit amet " * 14
# More than the rate times the time that a gateway lets a write wait, so that the rate does not fall when answers are late. A batch for which
# no client is free for 2 s is not sent, and counted.
CLIENTS = 900
# As many writes at a time fill the groups of the log: more of them gain nothing.
CAPACITY_CLIENTS = 64
# Small writes one after another, before and after: what is usual.
PROBE_S, BACK_MAX_S = 5, 15
# Numbers of probes, so that no batch has the same key.
PROBES_FROM = 10**8
# Statuses of the driver that are none of HTTP.
NAMES = {0: "no answer", -1: "not sent"}


# The number of a batch, which the driver replaces: all have as many digits.
FIRST = 10_000_000
TEMPLATE = "\n".join(json.dumps({"batch": FIRST, "reading": n, "text": TEXT}) for n in range(EVENTS)).encode()


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
        folder = pathlib.Path(folder)
        meridian(cluster, "create", "events", "--schema", SCHEMA)
        events = functools.partial(flood, cluster.port, folder, "/collections/events/items", "application/x-ndjson", TEMPLATE)
        warm = events(FIRST, 2, CAPACITY_CLIENTS)
        first = FIRST + len(warm)
        kept = events(first, options.capacity_seconds, CAPACITY_CLIENTS)
        rate, first = len(acknowledged(kept)) / options.capacity_seconds, first + len(kept)
        usual = median([took for _, took, _ in probes(cluster.port, PROBES_FROM, PROBE_S)])
        before = {"epoch": cluster.status()["owner"]["epoch"], "elections": elections(folder)}
        say(f"overload, log in {log}: {rate:.0f} batches/s is the rate; now {2 * rate:.0f}/s for {options.overload_seconds:.0f} s")
        ended = events(first, options.overload_seconds, CLIENTS, 2 * rate)
        after = probes(cluster.port, 2 * PROBES_FROM, BACK_MAX_S)
        now = {"epoch": cluster.status()["owner"]["epoch"], "elections": elections(folder)}
        statuses = {}
        for _, status, _, _ in ended:
            statuses[NAMES.get(status, str(status))] = statuses.get(NAMES.get(status, str(status)), 0) + 1
        stored = acknowledged(ended) | acknowledged(warm) | acknowledged(kept)
        refused = {number for number, status, _, _ in ended if status in (429, 503)}
        there = held(cluster.port, first + len(ended))
        refusals = [took for _, status, took, _ in ended if status in (429, 503)]
        taken = [took for _, status, took, _ in ended if status in (200, 201)]
        return {
            "log": log, "rate": rate, "offered": 2 * rate, "seconds": options.overload_seconds, "batches": len(ended), "statuses": statuses,
            "acknowledged_per_second": len(taken) / options.overload_seconds, "late_s": percentile([late for *_, late in ended], 99),
            "refusal_s": {p: percentile(refusals, p) for p in (50, 99)} if refusals else None, "write_s": {p: percentile(taken, p) for p in (50, 99)} if taken else None,
            "usual_s": usual, "back_s": back(after, usual), "before": before, "after": now,
            "lost": sum(1 for number in stored if there.get(number, 0) < EVENTS), "doubled": sum(1 for count in there.values() if count > EVENTS),
            "kept_though_refused": sum(1 for number in refused if there.get(number, 0) and number not in stored),
        }


def overload(options):
    """Each log once: the run is long."""
    found = []
    for log in options.logs:
        one_found = one(log, options)
        say(f"overload, log in {log}: {json.dumps(one_found)}")
        found.append(one_found)
    return {"rounds": found}
