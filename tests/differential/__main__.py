"""Holds a real server against plain lists: collections, writes, restarts and questions made from a seed.

usage: differential MERIDIAN [--seed N] [--rounds N] [--seconds S]

Each round makes one collection on a server of its own, writes to it, and asks. The oracle shares no code with Meridian.
A mismatch ends the run with its seed, the smallest question that still differs, and the events that matter.
"""

import argparse
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

import filters
import questions
from model import World


class Failed(Exception):
    """An answer that no question should have."""


class Client:
    """A server over a folder, and one collection of it."""

    Failed = Failed

    def __init__(self, program, folder):
        self.program, self.folder, self.server = program, folder, None
        self.collection = None
        self.start()

    def start(self):
        command = [self.program, "serve", "--listen", "127.0.0.1:0", "--data", f"{self.folder}/data"]
        log = open(f"{self.folder}/log", "a")
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        line = ""
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)", line)):
            line = self.server.stdout.readline()
            if not line:
                raise Failed("the server did not start: " + open(f"{self.folder}/log").read())
        self.connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=60)

    def stop(self, how):
        self.connection.close()
        self.server.send_signal(how)
        self.server.wait()
        self.server.stdout.close()

    def ask(self, method, path, body=None, kind="application/geo+json"):
        headers = {} if body is None else {"Content-Type": kind}
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        self.connection.request(method, path, data, headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers

    def path(self, path):
        """Of the collection; the links of an answer are whole."""
        if path.startswith("http"):
            parts = urllib.parse.urlsplit(path)
            return f"{parts.path}?{parts.query}"
        return f"/collections/{self.collection}{path}"

    def get(self, path, _):
        status, text, _ = self.ask("GET", self.path(path))
        return status, json.loads(text)

    def text(self, path):
        status, text, _ = self.ask("GET", self.path(path))
        if status != 200:
            raise Failed(f"status {status}: {text}")
        return text

    def ok(self, path):
        return json.loads(self.text(path))

    def write(self, method, path, body=None, kind="application/geo+json"):
        status, text, headers = self.ask(method, self.path(path), body, kind)
        if status >= 300:
            raise Failed(f"{method} {path} of {json.dumps(body)}: {status} {text}")
        return json.loads(text) if text else {}, headers


def position(told, headers):
    return int(told["position"] if "position" in told else headers["Meridian-Position"])


def write(rng, client, world):
    """One write, and what it leaves in the oracle; what was done, in words."""
    choices = ["post"] * 5 + ["delete filter"]
    if world.events:
        choices += ["delete"] + (["put", "patch"] if world.given else [])
    choice = rng.choice(choices)
    if choice == "post":
        events = [world.event() for _ in range(rng.choice([1, 2, 20, 150, 150, 1_000]))]
        body = {"type": "FeatureCollection", "features": [world.feature(event) for event in events]}
        told, headers = client.write("POST", "/items", body)
        first = position(told, headers) << 24
        for n, event in enumerate(events):
            world.take(event, first + n)
        return f"post of {len(events)}"
    if choice == "delete filter":
        expr = filters.make(rng, world, 1)
        gone = questions.matching(world, {"kind": "items", "filter": expr})
        if len(gone) > len(world.events) // 3:
            return "nothing"
        query = urllib.parse.urlencode({"filter": filters.write(expr)[0]})
        told, _ = client.write("DELETE", f"/items?{query}")
        world.remove({event["id"] for event in gone})
        if told.get("deleted") != len(gone):
            raise Failed(f"DELETE {filters.write(expr)[0]} took {told}, the oracle {len(gone)}")
        return f"deletion of {len(gone)}"
    event = rng.choice(world.events)
    if choice == "delete":
        client.write("DELETE", f"/items/{event['id']}")
        world.remove({event["id"]})
        return f"deletion of {event['id']}"
    if choice == "put":
        new = world.event() | {"id": event["id"]}
        told, headers = client.write("PUT", f"/items/{event['id']}", world.feature(new))
    else:
        changed = {"n": world.value("n"), "name": world.value("name")}
        new = event | {"properties": event["properties"] | changed}
        body = {"properties": changed}
        told, headers = client.write("PATCH", f"/items/{event['id']}", body, "application/merge-patch+json")
    world.take(new, position(told, headers) << 24)
    return f"{choice} of {event['id']}"


def play(program, seed, breaks):
    """One round; the number of questions that agreed."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        client = Client(program, folder)
        done = []
        try:
            world = World(rng, f"w{seed}")
            client.collection = world.name
            client.write("PUT", "", world.schema(), "application/schema+json")
            asked = 0
            for _ in range(rng.randint(3, 8)):
                done.append(write(rng, client, world))
                if rng.random() < 0.15:
                    how = rng.choice([signal.SIGTERM, signal.SIGKILL])
                    client.stop(how)
                    client.start()
                    done.append(f"restart by {how.name}")
                for _ in range(12):
                    question = questions.make(rng, world)
                    if breaks and world.events:
                        world.events[-1]["properties"]["n"] = 123_456
                    asked += 1
                    if questions.check(client, world, question):
                        report(seed, client, world, done, questions.shrink(client, world, question))
            return asked
        except Failed as failed:
            print(f"seed {seed}: after {done}: {failed}")
            sys.exit(1)
        finally:
            client.stop(signal.SIGKILL)


def report(seed, client, world, done, question):
    print(f"MISMATCH at seed {seed} (again with --seed {seed} --rounds 1)")
    kind = {"geometry": world.geometry, "time": world.time, "given ids": world.given, "latest": world.latest}
    print(f"  collection: {kind}; writes: {', '.join(done)}")
    print(f"  question: {question}")
    print(f"  as sent: {question['kind']} {questions.sends(question)}")
    print(f"  {questions.check(client, world, question)}")
    sys.exit(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("meridian")
    parser.add_argument("--seed", type=int, default=None, help="the first seed; of the clock by default")
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--break", dest="breaks", action="store_true", help="makes the oracle wrong: the run must fail")
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else int(time.time()) % 1_000_000 * 1_000
    rounds = given.rounds if given.rounds is not None or given.seconds else 10
    started, played, asked = time.monotonic(), 0, 0
    os.environ.setdefault("MERIDIAN_LOG", "warn")
    while (rounds is None or played < rounds) and (given.seconds is None or time.monotonic() - started < given.seconds):
        asked += play(given.meridian, seed + played, given.breaks)
        played += 1
    print(f"differential: {asked} questions over {played} collections agree, from seed {seed}")


main()
