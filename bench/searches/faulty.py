"""Sources that hang, fail, flap, send garbage, change their schema or have nothing, beside healthy sources."""

import contextlib
import threading
import time

import asker
from common import say
from outside import whole
from rig import Rig, quantiles, search_request
from sources import Kind, fixed, names

DELAY_MS = 20
GOOD = [Kind(f"good{n}", fixed(DELAY_MS), items=2, item_bytes=1_000) for n in range(14)]
FLAP_S = 3
OPEN_MS = 1_000
# A call that hangs is given up before its search is, so that it speaks against the source.
LIMITS = f"timeout_ms = 1500\nretries = 0\nopen_ms = {OPEN_MS}"
TIMEOUT_MS = 2_000
# What a source's fault is told as, while its breaker is closed; what flaps is either.
TOLD = {"hangs-1": "timeout", "half-1": "timeout", "fails-1": "error", "garbage-1": "error", "breaks-1": "error", "changed-1": "error", "empty-1": "complete"}


def fault(kind, more=""):
    return f'[[source.fault]]\nkind = "{kind}"\n{more}'


def faulty(seconds):
    """Each with its fault; the one that flaps is down every other while for so long, and healthy from then on."""
    windows = "".join(fault("down", f"from_s = {at}\nto_s = {at + FLAP_S}\n") for at in range(0, int(seconds), 2 * FLAP_S))
    faults = {"hangs": fault("hang"), "half": fault("half-open"), "fails": "error_share = 1.0\n", "flaps": windows, "garbage": fault("garbage"),
              "breaks": fault("truncated"), "changed": fault("schema")}
    bad = [Kind(name, fixed(DELAY_MS), items=2, item_bytes=1_000, more=more) for name, more in faults.items()]
    return [*bad, Kind("empty", fixed(DELAY_MS), items=0)]


class Breakers(threading.Thread):
    """Looks at the breakers of all providers ten times a second and notes each change."""

    def __init__(self, rig):
        super().__init__(daemon=True)
        self.rig, self.stopped, self.changes = rig, threading.Event(), {}

    def run(self):
        began = time.monotonic()
        while not self.stopped.wait(0.1):
            for provider in self.rig.get("/providers")["providers"]:
                seen = self.changes.setdefault(provider["name"], [])
                if "breaker" in provider and (not seen or seen[-1][1] != provider["breaker"]):
                    seen.append((round(time.monotonic() - began, 1), provider["breaker"]))


def told(answer):
    """How each provider was told: state, results, and why."""
    return {name: {key: packet[key] for key in ("state", "results", "detail")} for name, packet in answer.states.items()}


def faults(options):
    """The same searches with and without the faulty sources, in turn; what is told of each; breakers."""
    seconds = options.fault_seconds
    with contextlib.ExitStack() as stack:
        bad = faulty(seconds)
        rig = Rig(stack, [*GOOD, *bad], limits=LIMITS, pinned=True)
        began = time.monotonic()
        good, every = names(GOOD), names(rig.kinds)
        fresh = asker.ask(rig.server.port, "fresh", providers=every, timeout=TIMEOUT_MS)
        watching = Breakers(rig)
        watching.start()
        probe = asker.Probe(rig.server.port, "p", 0.5, providers=every, timeout=TIMEOUT_MS)
        probe.start()
        requests = search_request("well", providers=good, timeout=TIMEOUT_MS) + search_request("beside", providers=every, timeout=TIMEOUT_MS)
        run = rig.lab("q", f'kind = "constant", rate = {options.fault_rate:g}', seconds=seconds, patience=20, requests=requests, late_ms=100)
        probes = probe.end()
        time.sleep(max(0.0, began + seconds + 2 * FLAP_S - time.monotonic()))
        asker.ask(rig.server.port, "trial", providers=["flaps-1"], timeout=TIMEOUT_MS)
        after = asker.ask(rig.server.port, "after", providers=every, timeout=TIMEOUT_MS)
        watching.stopped.set()
        watching.join()
        calls = rig.calls()
        fails = [call.at_ms / 1e3 for call in calls if call.provider == "fails-1"]
        unlike, ids = whole(probes, rig, calls, good)
        wrong = [f"{name} is told as {packet['state']}" for name, packet in fresh.states.items() if TOLD.get(name, packet["state"]) != packet["state"]]
        wrong += [f"{name} is told as {fresh.states[name]['state']}" for name in good if fresh.states[name]["state"] != "complete"]
        if after.states["flaps-1"]["state"] != "complete":
            wrong.append(f"flaps-1 is well again and is told as {after.states['flaps-1']['state']}")
        well, beside = (run.request == run.requests.index(name) for name in ("well", "beside"))
        # All that is well answers after one time: the last result is late as soon as any of them is.
        found = {"seconds": seconds, "rate": options.fault_rate, "well": quantiles(run.last[well]), "beside": quantiles(run.last[beside]),
                 "well_whole": float(run.sound[well].mean()), "fewer": int((run.packets[beside] < len(GOOD)).sum()), "probes": len(probes), "ids": ids, "unlike": unlike[:10],
                 "fresh": told(fresh), "after": told(after), "wrong": wrong, "breakers": {name: watching.changes.get(name, []) for name in names(bad)},
                 "good_opened": [name for name in good if len(watching.changes.get(name, [])) > 1], "failing_calls_s": [round(at - fails[0], 2) for at in fails],
                 "open_ms": OPEN_MS, "void": run.void}
        say(f"faults: p99 of the last good result {found['well']['p99']:.1f} ms without, {found['beside']['p99']:.1f} ms beside; {wrong or 'all told rightly'}")
        return found
