"""What a refusal costs, and what clients cost who leave before their answer."""

import contextlib
import socket
import statistics
import threading
import time

import numpy

import questions as q
from common import say
from flood import prepare
from relay import Relay
from rig import DEADLINE_S, quantiles, users
from side import sides, turns

# Load that keeps the server refusing, as a multiple of what it can answer, and what comes on top of it.
FULL = 5
CONDITIONS = ("nothing", "healthz", "refused", "writes", "quota", "stranger")
# Who asks: a tenant that the server is too full for, one that is always over its quota, and a client whose token nobody knows.
ASKER, TARGETS = "asker", {"quota": "capped", "stranger": "stranger"}
STRANGER = "mrd_0123456789abcdef_" + "A" * 43
BODY_BYTES = 64 << 10
# A share of requests without an answer above which nothing is said of the cost of a refusal.
UNANSWERED = 0.01
BATCHES = '\n[generate.batch]\nkind = "id"\nto = 1000000000000000\n'
LEAVE_S, CONNECTIONS = 2.0, 16
# No client leaves while a refusal is measured.
PATIENCE_S = 30


def written(count):
    """A batch of some bytes. Its ids are drawn for each request: one that is there already would be a conflict."""
    line = '{"type":"Feature","id":"w{batch}-%06d","geometry":{"type":"Point","coordinates":[1,2]},"properties":{"time":"2027-01-01T00:00:00Z","object":"o","value":1}}'
    return "\n".join(line % n for n in range(count // len(line % 0)))


class Refusals:
    """A side that is asked one question over and over, so that all answers cost the same."""

    def __init__(self, side, options):
        self.side, self.options = side, options
        middle = sorted((one for one in side.questions["heavy"] if one.kind == "cities"), key=lambda one: one.rows)
        self.question = middle[len(middle) // 2]
        self.extras = {"healthz": q.request("extra", "/healthz", check="status = 200"), "refused": q.asked(self.question._replace(name="extra"), 1, side.digests),
                       "writes": q.request("extra", q.INGEST_PATH, method="POST", body=written(BODY_BYTES), headers={"content-type": "application/x-ndjson"}),
                       "quota": q.request("extra", "/collections"), "stranger": q.request("extra", "/collections", check="status = 401"), "nothing": ""}
        self.costs = {what: self.alone(what) for what in CONDITIONS if what != "nothing"}

    def targets(self, *conditions):
        names = dict.fromkeys(TARGETS.get(what, ASKER) for what in conditions)
        return "".join(self.side.target(name, name) for name in names)

    def alone(self, what):
        """Processor seconds an answer, or a refusal, asked one after the other."""
        one = users("one", 'kind = "closed", users = 1', ["extra"], 60, target=TARGETS.get(what, ASKER))
        run = self.side.lab(what, [one], self.extras[what] + BATCHES, self.options.calibrate_seconds, targets=self.targets(what), rest=0.5)
        return run.cpu_s / max(int((run.sound | run.refused).sum()), 1)

    def run(self, what):
        """A server that is full, and so many more requests of a kind."""
        options, asked = self.options, q.asked(self.question._replace(name="full"), 1, self.side.digests)
        populations = [users("full", f'kind = "constant", rate = {FULL / self.costs["refused"]:.1f}', ["full"], PATIENCE_S, target=ASKER)]
        if what != "nothing":
            rate = options.refusal_rate if what != "writes" else options.refusal_rate / 10
            populations.append(users("extra", f'kind = "constant", rate = {rate}', ["extra"], PATIENCE_S, target=TARGETS.get(what, ASKER)))
        with Expecting(self.side, self.question.path, what == "nothing") as expecting:
            run = self.side.lab(f"full, {what}", populations, asked + self.extras[what] + BATCHES, options.refusal_seconds, targets=self.targets("nothing", what), rest=1)
        full = run.of("full")
        extra = run.of("extra") if what != "nothing" else full & ~full
        return {"what": what, "cpu_s": run.cpu_s, "answered": int((run.sound & full).sum() + ((run.sound & extra).sum() if what == "refused" else 0)), "refused": int(run.refused.sum()),
                "extra": int(extra.sum()), "extra_sound": int((run.sound & extra).sum()), "extra_refused": int((run.refused & extra).sum()), "outcomes": run.outcomes(full | extra), "reasons": run.reasons(full | extra), "unanswered": int(numpy.isin(run.outcome, (5, 6, 7)).sum()),
                "refused_ms": quantiles(run.wait[run.refused]), "unread": expecting.found, "lab_cores": run.lab["cpu"], "void": run.void}


class Expecting(threading.Thread):
    """Writes with a body that waits for `100 Continue`, beside a server that is full: is it asked for a body that is then refused?"""

    def __init__(self, side, path, wanted):
        super().__init__(daemon=True)
        self.side, self.wanted, self.stopped = side, wanted, threading.Event()
        self.found = {"refused_unread": 0, "asked_for_body": 0, "kept": 0, "other": 0} if wanted else None

    def __enter__(self):
        if self.wanted:
            self.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        if self.wanted:
            self.join()

    def run(self):
        head = (f"POST {q.INGEST_PATH} HTTP/1.1\r\nHost: 127.0.0.1:{self.side.port}\r\nAuthorization: Bearer {self.side.tokens[ASKER]}\r\nContent-Type: application/x-ndjson\r\nContent-Length: 8388608\r\nExpect: 100-continue\r\n\r\n")
        while not self.stopped.wait(0.2):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.side.port), 10) as one:
                one.settimeout(10)
                one.sendall(head.encode())
                said = one.recv(65_536)
                if said.startswith((b"HTTP/1.1 503", b"HTTP/1.1 429")):
                    self.found["refused_unread"] += 1
                    self.found["kept"] += b"connection: close" not in said.lower()
                elif said.startswith(b"HTTP/1.1 100"):
                    self.found["asked_for_body"] += 1
                else:
                    self.found["other"] += 1


def refusal(options):
    """A full server alone, and with more on top: /healthz, the same question, writes, requests over a quota, requests of a stranger. All in rounds, both sides in turns."""
    with sides(options) as both:
        prepare(both, options, ASKER)
        for side in both:
            side.tenant(TARGETS["quota"], quotas=["requests_per_second=1"])
            side.tokens[TARGETS["stranger"]] = STRANGER
        rigs, runs = {side.name: Refusals(side, options) for side in both}, {side.name: [] for side in both}
        for number in range(options.rounds):
            for side in turns(both, number):
                rounds = {what: rigs[side.name].run(what) for what in CONDITIONS}
                runs[side.name].append({"conditions": rounds, **weighed(rounds, rigs[side.name])})
                last = runs[side.name][-1]
                micros = lambda key: "not known" if last[key] is None else f"{last[key]:.1f} us"
                say(f"{side.name}: healthz {micros('healthz_us')}, refused {micros('refused_us')}, a refused write of {BODY_BYTES >> 10} KiB {micros('write_us')}, over a quota {micros('quota_us')}, of a stranger {micros('stranger_us')}; "
                    f"answered {[rounds[what]['answered'] for what in CONDITIONS]}, refused {[rounds[what]['refused'] for what in CONDITIONS]}, {rounds['nothing']['unread']}")
        return {"rows": options.rows, "rate": options.refusal_rate, "seconds": options.refusal_seconds, "rounds": options.rounds, "body_bytes": BODY_BYTES,
                "sides": {name: {"answer_ms": rig.costs["refused"] * 1e3, "write_ms": rig.costs["writes"] * 1e3, "alone_us": {what: rig.costs[what] * 1e6 for what in ("healthz", "quota", "stranger")}, "runs": runs[name]} for name, rig in rigs.items()}}


def weighed(rounds, rig):
    """Microseconds of the server's processor for each request on top: the extra time of a full server, less the cost of its extra answers."""
    base = rounds["nothing"]
    # An answer of a full server may cost more than one by itself. Refusals of the base load are a small part of it, and the same in all conditions.
    answer = base["cpu_s"] / max(base["answered"], 1)

    def more(what, count, beside=0.0):
        one = rounds[what]
        # Where requests got no answer at all, their work is in no count.
        if one["unanswered"] > UNANSWERED * one["extra"] or not count:
            return None
        return (one["cpu_s"] - base["cpu_s"] - answer * (one["answered"] - base["answered"]) - beside) * 1e6 / count

    writes = rounds["writes"]
    # So many more were refused; where they took the places of the base load, that was refused instead.
    return {"answer_full_ms": answer * 1e3, "healthz_us": more("healthz", rounds["healthz"]["extra_sound"]), "refused_us": more("refused", rounds["refused"]["refused"] - base["refused"]),
            "write_us": more("writes", writes["extra_refused"], rig.costs["writes"] * writes["extra_sound"]),
            "quota_us": more("quota", rounds["quota"]["extra_refused"]), "stranger_us": more("stranger", rounds["stranger"]["extra_sound"])}


def cascade(options):
    """Circles and countries over 16 and 16 connections. Users stay, or leave after 2 s, or leave behind a relay that does not tell the server."""
    found = {}
    with sides(options) as both:
        prepare(both, options)
        relays = {side.name: Relay(side.port) for side in both}
        runs = {side.name: [] for side in both}
        for number in range(options.rounds):
            for what, patience in (("stay", 60), ("leave", LEAVE_S), ("leave unseen", LEAVE_S)):
                for side in turns(both, number):
                    one = leaving(side, what, patience, options, relays[side.name])
                    runs[side.name].append(one)
                    say(f"{side.name}, {what}: {one['answered']} answered, {one['cpu_per_answer_ms']:.0f} ms each, {one['outcomes']}")
        for relay in relays.values():
            relay.close()
        for name, mine in runs.items():
            middle = {what: statistics.median(one["cpu_per_answer_ms"] for one in mine if one["what"] == what) for what in ("stay", "leave", "leave unseen")}
            found[name] = {"runs": mine, "grows": middle["leave"] / middle["stay"], "grows_unseen": middle["leave unseen"] / middle["stay"]}
    return {"rows": options.rows, "seconds": options.cascade_seconds, "rounds": options.rounds, "leave_s": LEAVE_S, "sides": found}


def leaving(side, what, patience, options, relay):
    populations, text = [], []
    for kind in ("cities", "countries"):
        chosen = [one for one in side.questions["huge"] if one.kind == kind]
        text += [q.asked(one, 1, side.digests) for one in chosen]
        populations.append(users(kind, f'kind = "closed", users = {CONNECTIONS}', [one.name for one in chosen], patience))
    target = side.target().replace(f":{side.port}", f":{relay.port}") if what == "leave unseen" else ""
    began = time.time()
    run = side.lab(what, populations, "\n".join(text), options.cascade_seconds, targets=target, rest=2)
    answered = int(run.sound.sum())
    return {"what": what, "answered": answered, "asked": len(run.due), "outcomes": run.outcomes(run.due >= 0), "reasons": run.reasons(run.due >= 0), "server_cpu_s": run.cpu_s, "took_s": time.time() - began,
            "cpu_per_answer_ms": run.cpu_s * 1e3 / max(answered, 1), "wait_ms": quantiles(run.wait[run.sound]), "void": run.void, "deadline_s": DEADLINE_S}
