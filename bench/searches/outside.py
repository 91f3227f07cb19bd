"""Searches over mock sources that all are well: alone, one a second, at the edge, in bursts and past the edge."""

import contextlib
import threading

import numpy

import asker
from common import say
from rig import Rig, by_word, chains, exactly, peak_mb, quantiles, search_request, slope
from sources import A_CALLS, A_PACKETS, B_ITEMS, B_SOURCES, names, packet_bytes, set_a, set_b

A_CHECK = exactly(A_PACKETS)
B_CHECK = exactly(B_SOURCES * B_ITEMS)
DECLINE = 11
LATE_AFTER_MS = 20_000
# How near to the deadline a source may have been for its state to be a matter of chance.
NEAR_S = 0.25
DESCRIPTORS = 20_000
ROOM = {"search.searches_max": DESCRIPTORS}
WINDOW_S = 0.25
# What users do who are refused.
AGAIN = {"never": "", "at once": "times = 6, wait_s = 0.25, factor = 2", "when told": "times = 6, wait_s = 0.25, factor = 2, after = true"}


def rig_a(stack, options, time=1.0, **settings):
    """Set A, and the sources that do not take the question."""
    return Rig(stack, set_a(time, options.item_bytes), DECLINE, **packet_bytes(options.item_bytes), **settings)


def of_word(tag, run):
    """The words that were asked, in the order of the run's rows."""
    return [f"{tag}{n - 1}" for n in run.n]


def beside_truth(tag, run, calls):
    """How much later than the quickest source the first result came, and than the slowest the last, in seconds; NaN where no call is known."""
    found = by_word(calls)
    first, last = numpy.full(len(run.n), numpy.nan), numpy.full(len(run.n), numpy.nan)
    for row, word in enumerate(of_word(tag, run)):
        if word in found:
            quickest = min(call.delay_ms for call in found[word] if call.page == 1) / 1e3
            first[row], last[row] = run.first[row] - quickest, run.last[row] - max(chains(found[word]).values())
    return first, last


def whole(answers, rig, calls, eligible):
    """What is wrong with answers that should be whole, by packets and by ids; and how many ids were checked."""
    wrong, ids = [], 0
    found = by_word(calls)
    for answer in answers:
        wrong += [f"{answer.word}: {fault}" for fault in answer.faults]
        if answer.end is None:
            wrong += [] if answer.faults else [f"{answer.word}: status {answer.status}"]
            continue
        due = rig.ids(found[answer.word])
        for provider in eligible:
            came = answer.ids.get(provider, [])
            ids += len(came)
            state = answer.states.get(provider, {}).get("state")
            if state not in ("complete", "timeout") or len(set(came)) != len(came) or (state == "complete" and set(came) != due[provider]) or not set(came) <= due[provider]:
                wrong.append(f"{answer.word}: {provider} is {state}, and its ids are not those of its answers")
    return wrong, ids


def by_ids(answers, rig, calls):
    """Checks of searches that ran beside a load: accepted ones are held against the ids of the sources."""
    taken = [answer for answer in answers if answer.status != 429]
    wrong, ids = whole(taken, rig, calls, names(rig.kinds))
    return {"probes": len(taken), "probes_refused": len(answers) - len(taken), "probe_ids": ids, "wrong": wrong[:10]}


def isolated(options):
    """One search at a time; then many at 20 s, which must declare the late sources and no others."""
    with contextlib.ExitStack() as stack:
        rig = rig_a(stack, options)
        # The first search after a start makes the HTTP client, and finds the program's pages on disk.
        asker.ask(rig.server.port, "warm", providers=["first-1"])
        rig.calls()
        run = rig.lab("i", f'kind = "onoff", bursts = {options.searches}, per_burst = 1, gap_s = 1', requests=search_request(check=A_CHECK))
        calls = rig.calls()
        first, last = beside_truth("i", run, calls)
        alone = {"searches": len(run.n), "sound": int(run.sound.sum()), "calls": len(calls), "calls_due": A_CALLS * len(run.n),
                 "first_s": run.first.tolist(), "last_s": run.last.tolist(), "first_later_ms": (first * 1e3).tolist(), "last_later_ms": (last * 1e3).tolist()}
        say(f"isolated: first {run.first.mean():.2f} s, last {run.last.mean():.2f} s, {first.max() * 1e3:.0f} and {last.max() * 1e3:.0f} ms after the sources")
        answers = asker.ask_at_once(rig.server.port, [f"d{n}" for n in range(options.late)], timeout=LATE_AFTER_MS)
        calls = rig.calls()
        found, eligible, judged = by_word(calls), names(rig.kinds), {"late": 0, "in_time": 0, "near": 0}
        wrong, ids = whole(answers, rig, calls, eligible)
        over = []
        for answer in answers:
            over.append((answer.done - answer.sent) * 1e3 - LATE_AFTER_MS)
            pages = {kind.name: kind.pages for kind in rig.kinds}
            for provider, took in chains(found[answer.word]).items():
                asked = sum(call.provider == provider for call in found[answer.word])
                late = asked < pages[provider.split("-")[0]] or took > LATE_AFTER_MS / 1e3
                near = abs(took - LATE_AFTER_MS / 1e3) < NEAR_S
                judged["near" if near else "late" if late else "in_time"] += 1
                state = answer.states[provider]["state"]
                if not near and state != ("timeout" if late else "complete"):
                    wrong.append(f"{answer.word}: {provider} took {took:.2f} s and is {state}")
            due = "partial" if any(state["state"] == "timeout" for state in answer.states.values()) else "complete"
            if answer.end and answer.end["state"] != due:
                wrong.append(f"{answer.word}: it is {answer.end['state']} and should be {due}")
        say(f"at 20 s: {judged}, {len(wrong)} wrong")
        return {"item_bytes": options.item_bytes, "alone": alone, "deadline": {"searches": len(answers), **judged, "ids": ids, "wrong": wrong[:10], "wrong_count": len(wrong), "end_over_ms_max": max(over)}}


def load_of(tag, rig, run, calls, checked=A_CALLS):
    """The figures of a load of searches."""
    first, last = beside_truth(tag, run, calls)
    seconds = float(run.due.max() - run.due.min() + run.done[run.due.argmax()])
    asked = {call.word for call in calls}
    mine = [call for call in calls if call.word.startswith(tag)]
    return {"searches": len(run.n), "outcomes": run.outcomes(), "failures": run.failures(), "calls": len(mine), "calls_due": checked * len(run.n), "words": len({w for w in asked if w.startswith(tag)}),
            "first_ms": quantiles(run.first), "last_ms": quantiles(run.last), "first_later_ms": quantiles(first), "last_later_ms": quantiles(last),
            "slope_first": slope(run.n, run.first), "slope_later": slope(run.n, first), "seconds": seconds, "in_flight": int(run.in_flight.max()) + 1,
            "server_cores": run.used["server_cpu_s"] / seconds, "mock_cores": run.used["mock_cpu_s"] / seconds, "lab_cores": run.lab["cpu"],
            "packet_bytes_s": float(run.bytes.sum()) / seconds, "server_cpu_ms": run.used["server_cpu_s"] * 1e3 / len(run.n), "resident_mb": run.most("target", "resident_bytes") / 2**20,
            "descriptors": int(run.most("target", "descriptors")), "lab_late_p99_ms": run.lab["late_p99_ms"], "void": run.void}


def is_flat(load):
    """As the issue defines it: the 95 % interval of the slope holds 0 and stays under a millisecond a search. Every search is whole."""
    slope = load["slope_first"]
    low, high = slope["slope"] - slope["half"], slope["slope"] + slope["half"]
    return low <= 0 <= high and max(-low, high) < 1e-3 and load["outcomes"] == {"sound": load["searches"]} and load["calls"] == load["calls_due"]


def flat(options):
    """One search a second, and now and then one whose ids are checked."""
    with contextlib.ExitStack() as stack:
        rig = rig_a(stack, options)
        probe = asker.Probe(rig.server.port, "p", options.minutes * 60 / 4, patience=60)
        probe.start()
        run = rig.lab("f", 'kind = "constant", rate = 1', seconds=options.minutes * 60, requests=search_request(check=A_CHECK))
        answers, calls = probe.end(), rig.calls()
        load = load_of("f", rig, run, calls)
        load |= {"item_bytes": options.item_bytes, "flat": is_flat(load), **by_ids(answers, rig, calls)}
        say(f"flat: {load['slope_first']['slope'] * 1e3:+.3f} +- {load['slope_first']['half'] * 1e3:.3f} ms a search")
        return load


def edge(options):
    """Set A at one rate after another while it stays flat. Then the breakpoint with set B on one core, and the cost of a search there."""
    rates = []
    for rate in options.edge_rates:
        with contextlib.ExitStack() as stack:
            rig = rig_a(stack, options, **ROOM, **buffers(options))
            probes = asker.Probes(4, rig.server.port, "p", 2)
            probes.start()
            run = rig.lab("e", f'kind = "constant", rate = {rate:g}', seconds=options.edge_seconds, requests=search_request(check=A_CHECK), late_ms=100)
            peak, answers, calls = peak_mb(rig.server.pid), probes.end(), rig.calls()
            load = load_of("e", rig, run, calls)
            load |= {"rate": rate, "flat": is_flat(load), "limits": buffers(options) | ROOM, "resident_peak_mb": peak, **by_ids(answers, rig, calls)}
            # What was read may take half of the room.
            load["resume_s"] = bytes_of(options.buffer) / 2 / max(load["packet_bytes_s"], 1)
            rates.append(load)
            say(f"edge, set A: {rate:g}/s {'flat' if load['flat'] else 'not flat'}, {load['outcomes']} {load['failures'] or ''}, {load['server_cores']:.2f} cores, {load['resident_peak_mb']:.0f} MB")
        if not load["flat"]:
            break
    with contextlib.ExitStack() as stack:
        rig = Rig(stack, set_b(), pinned=True)
        objectives = '[[objective]]\nmetric = "p95_ms"\nat_most = 500\n[[objective]]\nmetric = "sound_share"\nat_least = 0.99\n'
        ask = {"requests": search_request(check=B_CHECK, limit=B_ITEMS), "late_ms": 100, "patience": 25}
        found = rig.breakpoint("b", 'kind = "constant", rate = 200', "--within", "0.1", "--steps", options.steps, seconds=options.step_seconds, objectives=objectives, **ask)
        at = (found["breakpoint"] or {}).get("value") or found["most_held"] or 100
        rig.calls()
        probe = asker.Probe(rig.server.port, "p", 0.2, limit=B_ITEMS)
        probe.start()
        run = rig.lab("s", f'kind = "constant", rate = {0.8 * at:.0f}', seconds=2 * options.step_seconds, **ask)
        answers, calls = probe.end(), rig.calls()
        load = load_of("s", rig, run, calls, B_SOURCES) | by_ids(answers, rig, calls)
        load["searches_per_cpu_s"] = load["searches"] / run.used["server_cpu_s"]
        say(f"edge, set B: {found['sentence']} {load['searches_per_cpu_s']:.0f} searches a CPU second")
    keep = ("conclusion", "sentence", "breakpoint", "within", "most_held", "unit")
    return {"item_bytes": options.item_bytes, "seconds": options.edge_seconds, "slow": rates, "fast": {"found": {key: found[key] for key in keep}, "at": at, "below": load}}


def buffers(options):
    """The settings that bound the memory of packets."""
    return {"search.buffer_bytes_total": options.buffer, "search.keep": "10s"}


def bytes_of(size):
    """A size as settings have it, in bytes."""
    number, unit = size.split()
    return float(number) * {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]


def bursts(options):
    """Many at once, again and again, with pauses."""
    found = []
    for size in options.sizes:
        for gap in options.gaps:
            with contextlib.ExitStack() as stack:
                rig = rig_a(stack, options, options.time, **ROOM, **buffers(options))
                probe = asker.Probe(rig.server.port, "p", 0.5)
                probe.start()
                run = rig.lab("o", f'kind = "onoff", bursts = {options.bursts}, per_burst = {size}, gap_s = {gap:g}', requests=search_request(check=A_CHECK))
                answers, calls = probe.end(), rig.calls()
                first, _ = beside_truth("o", run, calls)
                number = (run.n - 1) // size
                each = [{"first_s": float(numpy.nanmedian(run.first[number == n])), "later_ms": float(numpy.nanmedian(first[number == n]) * 1e3)} for n in range(options.bursts)]
                found.append({"size": size, "gap_s": gap, "bursts": each, "outcomes": run.outcomes(), "failures": run.failures(), "calls": sum(call.word.startswith("o") for call in calls),
                              "calls_due": A_CALLS * len(run.n), **by_ids(answers, rig, calls), "growth_first": slope(number, run.first), "growth_later": slope(number, first), "resident_peak_mb": peak_mb(rig.server.pid)})
                say(f"{options.bursts} x {size} at once, gap {gap:g} s: {run.outcomes()}, {slope(number, first)['slope'] * 1e3:+.1f} ms a burst")
    return {"item_bytes": options.item_bytes, "time": options.time, "runs": found}


class Refusals(threading.Thread):
    """Asks a few times a second beside a load, looks at the headers of what is refused and keeps what is not."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.stopped, self.count, self.bare, self.after, self.taken = port, threading.Event(), 0, 0, [], []

    def run(self):
        n = 0
        while not self.stopped.wait(0.1):
            n += 1
            with contextlib.suppress(OSError):
                answer = asker.ask(self.port, f"r{n}", limit=B_ITEMS)
                if answer.status == 202:
                    self.taken.append(answer)
                if answer.status == 429:
                    self.count += 1
                    after = answer.headers.get("retry-after")
                    self.bare += not (after and after.isdigit())
                    self.after += [int(after)] if after and after.isdigit() else []


def overload(options, at):
    """Half the edge, then past it, then half again. With users who leave, users who try again at once, and users who wait as long as they are told."""
    found = []
    for times in (2, 5):
        for tries, retry in AGAIN.items():
            with contextlib.ExitStack() as stack:
                rig = Rig(stack, set_b(), pinned=True)
                looking = Refusals(rig.server.port)
                looking.start()
                tag, each = f"x{times}{tries[0]}", options.step_seconds
                rates = f"[{0.5 * at:.0f}, {times * at:.0f}, {0.5 * at:.0f}]"
                run = rig.lab(tag, f'kind = "steps", rates = {rates}, each_s = {each:g}', seconds=3 * each, patience=50, retry=retry, late_ms=1000,
                              requests=search_request(check=B_CHECK, limit=B_ITEMS))
                looking.stopped.set()
                looking.join()
                found.append({"times": times, "retries": tries, **judged(run, each), **by_ids(looking.taken, rig, rig.calls()), "looked_at": looking.count, "without_retry_after": looking.bare,
                              "retry_after_s": sorted(looking.after)[len(looking.after) // 2] if looking.after else None})
                say(f"{times} x the edge, trying again: {tries}: {found[-1]['accepted']} accepted, {found[-1]['whole']:.2%} whole, "
                    f"refused in {found[-1]['refusal_ms']['p99'] if found[-1]['refusal_ms'] else 0:.0f} ms, recovered in {found[-1]['recovery_s']} s")
    return {"at": at, "each_s": options.step_seconds, "runs": found}


def judged(run, each):
    """What became of the step past the edge, and how long the step after it suffered."""
    start = run.due.min()
    step = numpy.minimum(((run.due - start) / each).astype(int), 2)
    past, before = step == 1, (step == 0) & run.sound
    refused = run.outcome == 4
    accepted = past & ~refused & (run.outcome != 7)
    limit = numpy.percentile(run.done[before], 99) * 2 + 0.05 if before.any() else 0.0
    fine = run.sound & (run.done <= limit)
    windows = ((run.due - start - 2 * each) / WINDOW_S).astype(int)
    later = [bool(fine[(step == 2) & (run.attempt == 0) & (windows == n)].mean() >= 0.99) for n in range(int(each / WINDOW_S))]
    good = next((n for n in range(len(later) - 3) if all(later[n:n + 4])), None)
    # A refusal counts from when the request was sent: the wait for a connection of the lab is not the server's.
    return {"arrivals": int((past & (run.attempt == 0)).sum()), "accepted": int(accepted.sum()), "whole": float(run.sound[accepted].mean()) if accepted.any() else 0.0,
            "outcomes": run.outcomes(past), "answers_s": float(run.sound[past].sum() / each), "before_s": float(run.sound[step == 0].sum() / each),
            "refusal_ms": quantiles(run.done[past & refused]), "last_ms": quantiles(run.done[accepted]), "over_deadline": int((run.done[accepted] > 41).sum()),
            "recovery_s": None if good is None else good * WINDOW_S, "void": run.void}
