"""Saved searches: 100,000 of them while events come in, held against a naive matcher, and 10,000 open streams."""

import contextlib
import datetime
import http.client
import json
import pathlib
import random
import re
import socket
import tempfile
import threading
import time

import numpy

from common import MERIDIAN, Server, cpu_seconds, free_port, say
from peers import meridian, meridian_metrics
from readers import Readers
from rig import peak_mb, quantiles

SPEC = "text:String,time:Date,*geometry:Point:srid=4326;meridian.id='given'"
FLEET = "ship:String:object=true," + SPEC
ID = re.compile(rb'"id":"(?:events|ships)/(e\d+)"')
WHEN = re.compile(rb'"kind":"results","when":"(\w+)"')
# Places and words come in groups of five questions, alarms of a thousand. So an event in a place and with a word answers ten.
GROUP, ALARM = 5, 1_000
# What the five fences of a place tell of a ship. Who asks for no coming hears of it as of a stay.
WHENS = (["enter", "exit"], ["enter", "inside", "exit"], ["exit"], ["inside"], ["enter"])
SHIPS = 2_000
REPORTERS = 4
BATCH = 100
CONNECTIONS = 16
PIPELINED = 32
CANARY_EVERY = 100
COLUMNS = 100
CELLS_WEST, CELLS_SOUTH, SEA_WEST = -100.0, -40.0, 20.0
# Before any run, so that no event is of a time to come.
SAILED = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


class Asked:
    """Standing questions: their bodies, and their fields for a naive matcher. These are a box (or none), a word (or none), and what of a moving object is told (or none)."""

    def __init__(self, count, seed=1):
        rng = random.Random(seed)
        self.places, self.words, self.alarms, self.waters = count * 2 // 5 // GROUP, count * 2 // 5 // GROUP, max(count // 10 // ALARM, 1), max(count // 20 // GROUP, 1)
        self.boxes, self.word, self.kind, self.when = [], [], [], []
        for place in range(self.places):
            west, south = cell(place)
            for _ in range(GROUP):
                least, most = rng.uniform(0.2, 0.4), rng.uniform(0.6, 0.8)
                self.add("place", (west + least, south + least, west + most, south + most), None)
        for word in range(self.words):
            for _ in range(GROUP):
                self.add("word", None, f"word{word}")
        for alarm in range(self.alarms):
            for _ in range(ALARM):
                self.add("alarm", None, f"alarm{alarm}")
        for water in range(self.waters):
            west, south = cell(water, SEA_WEST)
            for when in WHENS:
                least, most = rng.uniform(0.2, 0.4), rng.uniform(0.6, 0.8)
                self.add("fence", (west + least, south + least, west + most, south + most), None, when)
        self.add("canary", None, "canary")
        for n in range(max(count - len(self.word), 0)):
            west, south = cell(rng.randrange(self.places))
            self.add("both", (west, south, west + 1, south + 1), f"rare{n}")

    def add(self, kind, box, word, when=None):
        self.kind.append(kind)
        self.boxes.append(box)
        self.word.append(word)
        self.when.append(when)

    def body(self, n):
        """The request that makes the n-th."""
        question = {"providers": ["meridian"]}
        if self.boxes[n]:
            question["bbox"] = [round(x, 6) for x in self.boxes[n]]
            self.boxes[n] = question["bbox"]
        if self.word[n]:
            question["keywords"] = self.word[n]
        if self.when[n]:
            question["when"] = self.when[n]
        return json.dumps({"name": f"q{n}", "question": question}).encode()

    def some(self, kind, count, rng):
        """Some of a kind."""
        there = [n for n, k in enumerate(self.kind) if k == kind]
        return rng.sample(there, min(count, len(there)))


def cell(place, west=CELLS_WEST):
    """South-west corner of a place's cell of a degree."""
    return west + place % COLUMNS, CELLS_SOUTH + place // COLUMNS % 80


def within(box, events):
    """Which events lie in a box."""
    west, south, east, north = box
    return (west <= events.lon) & (events.lon <= east) & (south <= events.lat) & (events.lat <= north)


class Events:
    """Events that each answer 0, 10 or 1,000 standing questions."""

    collection = "events"

    def __init__(self, questions, matches, count, first, seed):
        rng = random.Random(seed)
        self.matches, self.first, self.count, self.lon, self.lat, words = matches, first, count, numpy.empty(count), numpy.empty(count), []
        for n in range(count):
            west, south = cell(rng.randrange(questions.places))
            # The boxes of a place hold the middle of its cell and none of its corner.
            at = rng.uniform(0.45, 0.55) if matches == 10 else rng.uniform(0.0, 0.15)
            self.lon[n], self.lat[n] = round(west + at, 6), round(south + at, 6)
            quiet = "canary" if n % CANARY_EVERY == 0 else f"calm{n}"
            words.append({0: quiet, 10: f"word{rng.randrange(questions.words)}", 1000: f"alarm{rng.randrange(questions.alarms)}"}[matches])
        self.words = numpy.array(words)

    def body(self, start, end):
        """A batch, as NDJSON."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return "\n".join(
            f'{{"type":"Feature","id":"e{self.first + n}","geometry":{{"type":"Point","coordinates":[{self.lon[n]},{self.lat[n]}]}},'
            f'"properties":{{"text":"something happened here {self.words[n]} and nobody knows why","time":"{now}"}}}}' for n in range(start, end)).encode()

    def expected(self, _):
        """How often an event is to be told."""
        return self.matches * self.count if self.matches else -(-self.count // CANARY_EVERY)

    def answering(self, questions, n):
        """Ids of the events that answer the n-th question: each is held against it."""
        good = numpy.ones(self.count, bool)
        if questions.boxes[n]:
            good &= within(questions.boxes[n], self)
        if questions.word[n]:
            good &= self.words == questions.word[n]
        return {f"e{self.first + int(i)}" for i in numpy.flatnonzero(good)}


class Ships:
    """Events of ships that are at sea, come into a place with fences, stay there, leave it, and go on to another. Batches take turns among the
    connections, and each ship is told of over one of them, so that its events come in their order."""

    collection, matches = "ships", "fences"

    def __init__(self, questions, count, first, seed):
        rng, each, turns, where, newest = random.Random(seed), SHIPS // REPORTERS, [0] * REPORTERS, {}, {}
        self.first, self.count, self.lon, self.lat, self.ship, self.step = first, count, numpy.empty(count), numpy.empty(count), [], []
        # Of each event the one before it of the same ship, or -1.
        self.before = numpy.full(count, -1)
        for n in range(count):
            reporter = n // BATCH % REPORTERS
            step, turn = divmod(turns[reporter], each)
            turns[reporter] += 1
            ship = reporter + REPORTERS * turn
            if step % 4 == 1:
                where[ship] = rng.randrange(questions.waters)
            west, south = cell(where.get(ship, 0), SEA_WEST)
            # The boxes of a place hold the middle of its cell and none of its corner.
            at = rng.uniform(0.45, 0.55) if step % 4 in (1, 2) else rng.uniform(0.0, 0.15)
            self.lon[n], self.lat[n] = round(west + at, 6), round(south + at, 6)
            self.ship.append(ship)
            self.step.append(step)
            self.before[n], newest[ship] = newest.get(ship, -1), n

    def body(self, start, end):
        """A batch, as NDJSON; of a ship each event is a second later than the one before."""
        at = lambda n: (SAILED + datetime.timedelta(seconds=self.step[n])).strftime("%Y-%m-%dT%H:%M:%SZ")
        return "\n".join(
            f'{{"type":"Feature","id":"e{self.first + n}","geometry":{{"type":"Point","coordinates":[{self.lon[n]},{self.lat[n]}]}},'
            f'"properties":{{"ship":"s{self.ship[n]}","text":"somewhere at sea","time":"{at(n)}"}}}}' for n in range(start, end)).encode()

    def told(self, questions, n):
        """What the n-th question is to be told: the word, and which events. Each is held against it, and so is the one before of its ship."""
        if questions.word[n]:
            return []
        good = within(questions.boxes[n], self)
        was, when = (self.before >= 0) & good[self.before], questions.when[n]
        if when is None:
            return [(None, good)]
        kinds = [("enter" if "enter" in when else "inside", good & ~was), ("inside", good & was), ("exit", ~good & was)]
        return [(word, events) for word, events in kinds if word in when]

    def expected(self, questions):
        """How often an event is to be told."""
        return sum(int(events.sum()) for n, kind in enumerate(questions.kind) if kind == "fence" for _, events in self.told(questions, n))

    def answering(self, questions, n):
        """Ids of what the n-th question is to be told, each with its word."""
        return {f"e{self.first + int(i)}" + (f":{word}" if word else "") for word, events in self.told(questions, n) for i in numpy.flatnonzero(events)}


def make(port, bodies):
    """Makes saved searches over a few connections, requests one behind the other; their ids, in order."""
    ids, faults = [None] * len(bodies), []

    def some(start):
        mine = range(start, len(bodies), CONNECTIONS)
        with socket.create_connection(("127.0.0.1", port)) as connection:
            reader = connection.makefile("rb")
            for at in range(0, len(mine), PIPELINED):
                now = mine[at:at + PIPELINED]
                head = "POST /saved-searches HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
                connection.sendall(b"".join(head.format(len(bodies[n])).encode() + bodies[n] for n in now))
                for n in now:
                    status, body = answer(reader)
                    if status != 201:
                        faults.append(body)
                        return
                    ids[n] = json.loads(body)["id"]

    threads = [threading.Thread(target=some, args=(start,)) for start in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise SystemExit(f"bench: a saved search was not made: {faults[0][:400]!r}")
    return ids


def answer(reader):
    """Status and body of the next answer."""
    status, length = int(reader.readline().split()[1]), 0
    while (line := reader.readline()) not in (b"\r\n", b""):
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    return status, reader.read(length)


class Writer:
    """Sends batches at their times, over connections that take turns; when each was acknowledged."""

    def __init__(self, port, collection, bodies, every_s, connections=REPORTERS):
        self.port, self.bodies, self.every, self.acknowledged = port, bodies, every_s, [None] * len(bodies)
        self.path, self.sent, self.faults, self.connections = f"/collections/{collection}/items", [None] * len(bodies), [], connections

    def run(self):
        began = time.monotonic() + 0.1

        def some(start):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            for n in range(start, len(self.bodies), self.connections):
                time.sleep(max(0.0, began + n * self.every - time.monotonic()))
                self.sent[n] = time.monotonic()
                connection.request("POST", self.path, self.bodies[n], {"Content-Type": "application/x-ndjson"})
                response = connection.getresponse()
                body = response.read()
                self.acknowledged[n] = time.monotonic()
                if response.status not in (200, 201):
                    self.faults.append(body)
                    return

        threads = [threading.Thread(target=some, args=(start,)) for start in range(self.connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.faults:
            raise SystemExit(f"bench: events were not taken: {self.faults[0][:400]!r}")
        return max(self.acknowledged) - began


def served(stack, **settings):
    """A Meridian with an empty collection of events."""
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-searches-")))
    config, port = folder / "meridian.toml", free_port()
    config.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items()))
    server = stack.enter_context(Server("meridian", [MERIDIAN, "serve", "--data", folder / "data", "--listen", f"127.0.0.1:{port}", "--config", config], port))
    meridian(server, "create", "events", "--schema", SPEC)
    return server


def settled(server, due, rest=2.0, seconds=300):
    """Waits until `due` matches are told, or none comes any more; when that was, and the figures then."""
    began, last, since = time.monotonic(), -1, time.monotonic()
    while time.monotonic() - began < seconds:
        figures, now = meridian_metrics(server), time.monotonic()
        told = figures["meridian_saved_matches_total"]
        if told != last:
            last, since = told, now
        if told >= due or (figures["meridian_saved_queue_bytes"] == 0 and now - since > rest):
            return since, figures
        time.sleep(0.02)
    raise SystemExit(f"bench: events still wait after {seconds} s")


def standing(options):
    """Standing questions while events come in that each answer 0, 10 or 1,000 of them, and while ships pass through fences."""
    with contextlib.ExitStack() as stack:
        questions, rng = Asked(options.standing), random.Random(2)
        server = served(stack, **{"search.saved_max": len(questions.word)})
        meridian(server, "create", "ships", "--schema", FLEET)
        began = time.monotonic()
        ids = make(server.port, [questions.body(n) for n in range(len(questions.word))])
        made_s = time.monotonic() - began
        say(f"{len(ids):,} saved searches made in {made_s:.1f} s")
        read = [n for kind, count in (("place", 120), ("word", 120), ("alarm", 10), ("both", 20), ("fence", 100), ("canary", 1)) for n in questions.some(kind, count, rng)]
        came = [{} for _ in read]
        twice = [0]

        def take(stream, data, now):
            when = WHEN.search(data)
            for event in ID.findall(data):
                event += b":" + when[1] if when else b""
                twice[0] += event in came[stream]
                came[stream].setdefault(event, now)

        readers = Readers(server.port, [f"/saved-searches/{ids[n]}/packets" for n in read], take)
        readers.start()
        readers.opened.wait()
        first, modes = 0, []
        for matches in (0, 10, 1000):
            count = options.alarms if matches == 1000 else int(options.event_rate * options.event_seconds)
            events = Events(questions, matches, count, first, seed=matches)
            first += count
            modes.append(measured(server, questions, events, read, came, options))
        ships = Ships(questions, int(options.event_rate * options.event_seconds), first, seed=3)
        modes.append(measured(server, questions, ships, read, came, options))
        readers.end()
        return {"standing": len(ids), "fences": questions.kind.count("fence"), "ships": SHIPS, "made_s": made_s, "read": len(read), "modes": modes,
                "resident_peak_mb": peak_mb(server.pid), "gaps": readers.gaps, "twice": twice[0], "refused": readers.refused, "ended": readers.ended, "rate": options.event_rate}


def measured(server, questions, events, read, came, options):
    """One kind of events."""
    count, expected = events.count, events.expected(questions)
    bodies = [events.body(at, min(at + BATCH, count)) for at in range(0, count, BATCH)]
    before, cpu = meridian_metrics(server), cpu_seconds(server.pid)
    # Events that answer a thousand searches come as fast as they are acknowledged. The part measures how many packets a second can be made.
    every = 0.0 if events.matches == 1000 else BATCH / options.event_rate
    writer = Writer(server.port, events.collection, bodies, every)
    wrote_s = writer.run()
    end, after = settled(server, before["meridian_saved_matches_total"] + expected)
    cpu = cpu_seconds(server.pid) - cpu
    due = [{event.encode() for event in events.answering(questions, n)} for n in read]
    wait_for(lambda: sum(len(d - c.keys()) for d, c in zip(due, came)) == 0)
    number = lambda event: int(event[1:].partition(b":")[0]) - events.first
    missing = sum(len(d - c.keys()) for d, c in zip(due, came))
    foreign = sum(0 <= number(event) < count for d, c in zip(due, came) for event in c.keys() - d)
    waits = [c[event] - writer.acknowledged[number(event) // BATCH] for d, c in zip(due, came) for event in d & c.keys()]
    figure = lambda name: after[name] - before[name]
    # A match is counted just before its packet is made.
    took = max([end, *(at for c in came for event, at in c.items() if 0 <= number(event) < count)]) - min(writer.sent)
    result = {"matches": events.matches, "events": count, "wrote_s": wrote_s, "event_rate": count / (wrote_s + every), "matched": int(figure("meridian_saved_matches_total")),
              "matched_due": expected, "dropped": int(figure("meridian_saved_events_dropped_total")), "looked_at_s": took, "server_cpu_us": cpu * 1e6 / count,
              "checked_ids": sum(map(len, due)), "missing": missing, "foreign": foreign, "wait_ms": quantiles(numpy.maximum(waits, 0)) if waits else None,
              "sent_wait_ms": quantiles([a - s for a, s in zip(writer.acknowledged, writer.sent)]), "deliveries_s": figure("meridian_saved_matches_total") / took}
    say(f"{events.matches} matches: {result['event_rate']:,.0f} events/s, {result['deliveries_s']:,.0f} matches/s, p99 {result['wait_ms']['p99']:.1f} ms, "
        f"{missing} missing, {foreign} foreign, {result['dropped']} dropped")
    return result


def wait_for(done, seconds=10):
    """Waits until something is so, or the time is over."""
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        time.sleep(0.1)


def streams(options):
    """Many open streams, each of a saved search of its own, with a packet a second each."""
    count, seconds = options.streams, options.stream_seconds
    with contextlib.ExitStack() as stack:
        server = served(stack, **{"requests.connections_max": count + 100, "search.saved_max": count})
        bodies = [json.dumps({"name": f"s{n}", "question": {"providers": ["meridian"], "keywords": f"stream{n}"}}).encode() for n in range(count)]
        ids = make(server.port, bodies)
        empty = peak_mb(server.pid)
        readers = Readers(server.port, [f"/saved-searches/{id}/packets" for id in ids], lambda *_: None)
        readers.start()
        readers.opened.wait()
        say(f"{count:,} streams open")
        connection, began, cpu, most_ms = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60), time.monotonic(), cpu_seconds(server.pid), 0.0
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        for second in range(seconds):
            body = "\n".join(f'{{"type":"Feature","id":"e{second * count + n}","geometry":{{"type":"Point","coordinates":[1,2]}},"properties":{{"text":"stream{n}","time":"{now}"}}}}'
                             for n in range(count)).encode()
            time.sleep(max(0.0, began + second - time.monotonic()))
            sent = time.monotonic()
            connection.request("POST", "/collections/events/items", body, {"Content-Type": "application/x-ndjson"})
            response = connection.getresponse()
            said = response.read()
            if response.status not in (200, 201):
                raise SystemExit(f"bench: events were not taken: {said[:400]!r}")
            wait_for(lambda: readers.packets >= (second + 1) * count, 20)
            most_ms = max(most_ms, (time.monotonic() - sent) * 1e3)
        took = time.monotonic() - began
        found = {"streams": count, "seconds": seconds, "packets": readers.packets, "packets_due": count * seconds, "gaps": readers.gaps, "refused": readers.refused,
                 "ended": readers.ended, "resident_before_mb": empty, "resident_peak_mb": peak_mb(server.pid), "server_cores": (cpu_seconds(server.pid) - cpu) / took,
                 "round_ms_max": most_ms, "took_s": took}
        readers.end()
        say(f"{count:,} streams: {found['packets']:,} of {found['packets_due']:,} packets, {found['resident_peak_mb']:.0f} MB, {found['server_cores']:.2f} cores")
        return found
