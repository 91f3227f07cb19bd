"""Kills and stops under the load of three tenants. Acknowledged writes are there, no request is left without an end, and the time to serve again is measured.

For each tenant two producers write batches and keep what was acknowledged, two readers ask, and one stream is open. After each start a reader holds
the batches of the round before against what is stored. What got no response may be there whole or not at all.
"""

import contextlib
import http.client
import json
import random
import signal
import threading
import time

import questions as q
from common import say
from rig import quantiles
from side import sides

TENANTS = ("airport", "harbour", "station")
SCHEMA = "round:Long,batch:String,time:Date,*geom:Point:srid=4326"
PRODUCERS, READERS, BATCH = 2, 2, 50
# How long a client waits before it counts as left hanging, and a server before it counts as gone for good.
HANGING_S, GONE_S = 30, 120
QUESTIONS = ("/collections/rounds/items?f=ndjson&limit=1000", "/collections/rounds/aggregate?function=count&by=round", "/collections/events/items?f=ndjson&bbox=135,30,145,40&limit=5000")
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGTERM}


class Cut(Exception):
    """A response that broke off after its head."""


GONE = (OSError, http.client.HTTPException, Cut)


class Client:
    """A connection of a tenant, opened again where it breaks."""

    def __init__(self, side, tenant):
        self.port, self.headers, self.connection = side.port, {"Authorization": f"Bearer {side.tokens[tenant]}"}, None

    def ask(self, method, path, body=None, **headers):
        """Status and body; raises one of `GONE` where the server is."""
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANGING_S)
        try:
            self.connection.request(method, path, body, self.headers | headers)
            answer = self.connection.getresponse()
            try:
                return answer.status, answer.read()
            except (ConnectionError, http.client.HTTPException) as error:
                raise Cut from error
        except GONE:
            self.connection.close()
            self.connection = None
            raise


class Load:
    """The clients of one round. `acknowledged` and `unanswered` are names of batches by tenant."""

    def __init__(self, side, number, seed):
        self.side, self.number, self.stopped, self.lock = side, number, threading.Event(), threading.Lock()
        self.acknowledged, self.unanswered = ({tenant: set() for tenant in TENANTS} for _ in range(2))
        self.counts = {"reads": 0, "refused": 0, "wrong": 0, "cut": 0, "closed": 0, "hanging": 0, "streams told": 0, "streams open": 0}
        self.wrong = []
        work = [(self.produce, PRODUCERS), (self.read, READERS), (self.follow, 1)]
        self.threads = [threading.Thread(target=one, args=(tenant, random.Random(f"{seed} {number} {tenant} {n}"), n), daemon=True) for tenant in TENANTS for one, count in work for n in range(count)]
        for thread in self.threads:
            thread.start()

    def count(self, what, why=None):
        with self.lock:
            self.counts[what] += 1
            if why and len(self.wrong) < 10:
                self.wrong.append(why)

    def broken(self, error):
        """A request without a whole response. Where the connection closed before any of it, the client cannot tell and asks again."""
        self.count("hanging" if isinstance(error, TimeoutError) else "cut" if isinstance(error, Cut) else "closed")

    def produce(self, tenant, rng, n):
        client, made = Client(self.side, tenant), 0
        while not self.stopped.is_set():
            made += 1
            name = f"{self.number}-{n}-{made}"
            line = json.dumps({"type": "Feature", "geometry": {"type": "Point", "coordinates": [round(rng.uniform(-180, 180), 6), round(rng.uniform(-80, 80), 6)]},
                               "properties": {"round": self.number, "batch": name, "time": "2026-01-01T00:00:00Z"}})
            try:
                status, said = client.ask("POST", "/collections/rounds/items", "\n".join([line] * BATCH), **{"Content-Type": "application/x-ndjson", "Idempotency-Key": name})
            except GONE as error:
                self.unanswered[tenant].add(name)
                self.broken(error)
                return
            if status in (200, 201):
                self.acknowledged[tenant].add(name)
            else:
                self.unanswered[tenant].add(name)
                self.count("refused") if status in (429, 503) else self.count("wrong", f"write: {status} {said[:200]!r}")

    def read(self, tenant, rng, n):
        client = Client(self.side, tenant)
        while not self.stopped.is_set():
            path = rng.choice(QUESTIONS)
            try:
                status, said = client.ask("GET", path)
            except GONE as error:
                self.broken(error)
                return
            known = "reads" if status == 200 else "refused" if status in (429, 503) else "wrong"
            self.count(known, f"{path}: {status} {said[:200]!r}" if known == "wrong" else None)

    def follow(self, tenant, rng, n):
        connection = http.client.HTTPConnection("127.0.0.1", self.side.port, timeout=HANGING_S)
        with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(connection):
            connection.request("GET", "/collections/rounds/stream", headers={"Authorization": f"Bearer {self.side.tokens[tenant]}"})
            answer, last = connection.getresponse(), b""
            self.count("streams open")
            try:
                while line := answer.readline():
                    last = line if line.startswith(b"data:") else last
            except TimeoutError:
                self.count("hanging")
            if b'"closing"' in last:
                self.count("streams told")

    def end(self):
        """Waits for all of them; who is not done by then is left hanging."""
        self.stopped.set()
        until = time.time() + HANGING_S + 5
        for thread in self.threads:
            thread.join(max(0, until - time.time()))
            self.counts["hanging"] += thread.is_alive()


def diff(side, load):
    """Batches of a round that are lost, half there, or that nobody sent."""
    found = {"lost": 0, "half": 0, "unknown": 0}
    for tenant in TENANTS:
        asker = q.Asker(side, side.tokens[tenant])
        groups = json.loads(asker.get(f"/collections/rounds/aggregate?function=count&by=batch&filter=round%3D{load.number}"))["groups"]
        there = {group["by"]: group["count"] for group in groups}
        sent = load.acknowledged[tenant] | load.unanswered[tenant]
        found["lost"] += sum(there.get(name, 0) == 0 for name in load.acknowledged[tenant])
        found["half"] += sum(count != BATCH for name, count in there.items() if name in sent)
        found["unknown"] += sum(name not in sent for name in there)
    return found


def ended(side, how, grace):
    """Ends the server. Returns its exit code, the seconds until its end, and whether it was ready to a new client after the order to stop."""
    began, ready = time.time(), None
    side.server.process.send_signal(SIGNALS[how])
    while side.server.process.poll() is None and time.time() - began < grace:
        if how == "stop" and ready is not False:
            connection = http.client.HTTPConnection("127.0.0.1", side.port, timeout=1)
            try:
                connection.request("GET", "/readyz")
                ready = connection.getresponse().status == 200
            except (OSError, http.client.HTTPException):
                ready = False
            finally:
                connection.close()
        time.sleep(0.002)
    return side.server.process.wait(grace), time.time() - began, ready


def started(side):
    """Starts the server again: seconds from then until the first answer to a read of a tenant."""
    began = time.time()
    side.start()
    while time.time() - began < GONE_S:
        with contextlib.suppress(*GONE):
            if Client(side, TENANTS[0]).ask("GET", "/collections/events/items?limit=1")[0] == 200:
                return time.time() - began
        time.sleep(0.002)
    raise SystemExit(f"bench: the server serves nothing {GONE_S} s after its start")


def one_round(side, number, how, options):
    """A load of some seconds, the end of the server, a start, and what is there then."""
    load = Load(side, number, options.seed)
    time.sleep(random.Random(f"{options.seed} {number}").uniform(0.5, 1.5) * options.restart_seconds)
    code, took, ready = ended(side, how, GONE_S)
    load.end()
    serves = started(side)
    batches = sum(map(len, load.acknowledged.values()))
    return {"how": how, "code": code, "end_s": took, "ready": ready, "serves_s": serves, "acknowledged": batches, "unanswered": sum(map(len, load.unanswered.values())),
            **load.counts, **diff(side, load), "errors": load.wrong}


def restart(options):
    """So many kills, and as many stops, in turns."""
    with sides(options) as both:
        side = both[0]
        for tenant in TENANTS:
            side.tenant(tenant, options.restart_files)
            side.command("create", "rounds", "--schema", SCHEMA, "--url", side.url, token=side.tokens[tenant])
        side.settle(most=300)
        rounds = []
        for number in range(2 * options.kills):
            one = one_round(side, number, ("kill", "stop")[number % 2], options)
            rounds.append(one)
            if number % 10 < 2 or one["lost"] or one["hanging"] or one["wrong"]:
                say(f"{one['how']} {number // 2 + 1} of {options.kills}: serves after {one['serves_s'] * 1e3:.0f} ms, ended after {one['end_s'] * 1e3:.0f} ms; {one['acknowledged']} batches acknowledged, "
                    f"{one['lost']} lost, {one['half']} half there, {one['unknown']} unknown, {one['hanging']} hanging, {one['wrong']} wrong {one['errors']}")
        summary = {how: {"serves_ms": quantiles([one["serves_s"] for one in rounds if one["how"] == how]), "end_ms": quantiles([one["end_s"] for one in rounds if one["how"] == how])} for how in SIGNALS}
    return {"rows": options.restart_rows, "kills": options.kills, "seconds": options.restart_seconds, "batch": BATCH, "rounds": rounds, "summary": summary}
