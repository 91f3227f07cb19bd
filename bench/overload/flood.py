"""Where the edge is, and what comes out past it."""

import numpy

import questions as q
from common import say
from rig import DEADLINE_S, quantiles, users
from side import sides, turns

# Reactions of users to a refusal or a timeout: leave; retry at once; retry, but not before the time that they were told.
AGAIN = {"never": "", "impatient": "times = 5, wait_s = 0.01", "obedient": "times = 5, wait_s = 1, after = true"}
P99_TIMES, P99_MS, GOOD = 5, 500, 0.99
PROBE_RATE, WINDOW_S = 20, 0.25
# Steps of the load: one of silence, then those of the flood, then two of silence. The lab takes no rate of 0, so each step of silence has one question.
STEP_S, SILENCE = 4, 0.001
BEFORE_S, AFTER_S = STEP_S, 2 * STEP_S


def calibrated(side, name, seconds):
    """What an answer of the mix costs: by kind, and all together, by one user with one question at a time."""
    found = {}
    for kind in [*side.kinds(name), None]:
        text, names = side.mix(name, kind)
        run = side.lab(f"{name} {kind or 'all'}", [users("one", 'kind = "closed", users = 1', names, 60)], text, seconds if kind else 2 * seconds, rest=0.5)
        sound = int(run.sound.sum())
        found[kind or "all"] = {"answers": sound, "not_sound": len(run.due) - sound, "reasons": run.reasons(run.due >= 0), "cpu_ms": run.cpu_s * 1e3 / max(sound, 1), "wait_ms": quantiles(run.wait[run.sound])}
    say(f"{side.name}, {name}: " + ", ".join(f"{kind} {one['cpu_ms']:.2f} ms" for kind, one in found.items()))
    return found


def edge_of(side, name, calibration, options):
    """The highest rate of the mix at which the objectives hold."""
    text, names = side.mix(name)
    limit = min(P99_TIMES * calibration["all"]["wait_ms"]["p99"], P99_MS)
    capacity = 1e3 / calibration["all"]["cpu_ms"]
    objectives = f'[[objective]]\nmetric = "p99_ms"\nat_most = {limit:.1f}\n[[objective]]\nmetric = "sound_share"\nat_least = {GOOD}\n'
    found = side.breakpoint(f"edge {name}", [users("users", f'kind = "poisson", rate = {capacity / 2:.2f}', names)], text + objectives, options.step_seconds,
                            options=("--within", "0.1", "--factor", "1.4", "--steps", options.steps, "--most", f"{4 * capacity:.0f}"))
    at = (found["breakpoint"] or {}).get("value") or found["most_held"] or capacity / 2
    say(f"{side.name}, {name}: edge {at:.1f}/s of a capacity of {capacity:.1f}/s, p99 limit {limit:.0f} ms: {found['sentence']}")
    keep = ("conclusion", "sentence", "breakpoint", "within", "most_held", "unit")
    return {"at": at, "limit_ms": limit, "capacity": capacity, "found": {key: found[key] for key in keep}}


def edge(options):
    """Calibration and edge of both mixes, of each side."""
    found = {}
    with sides(options) as both:
        prepare(both, options)
        for number, name in enumerate(options.mixes):
            for side in turns(both, number):
                calibration = calibrated(side, name, options.calibrate_seconds)
                found.setdefault(side.name, {})[name] = {"calibration": calibration, **edge_of(side, name, calibration, options)}
    return {"rows": options.rows, "step_seconds": options.step_seconds, "sides": found}


def prepare(both, options, tenant=None):
    """Data and questions for every side, of a tenant or without tokens; the first tells how many events each question finds."""
    for side in both:
        if tenant:
            side.tenant(tenant, options.files)
        else:
            side.load(options.files)
        side.settle(most=300)
    by_band = q.subjects(q.Asker(both[0], both[0].tokens.get(tenant)), options.seed)
    for side in both:
        side.ready(by_band, side.tokens.get(tenant))
    counts = {side.name: {one.name: one.rows for band in side.questions.values() for one in band if one.kind in ("cities", "countries")} for side in both}
    if any(found != counts[both[0].name] for found in counts.values()):
        raise SystemExit("bench: the two builds find different events")
    say("questions: " + ", ".join(f"{band}: {len(chosen)}" for band, chosen in both[0].questions.items()))


def flood_run(side, name, rate, again, seconds):
    """Silence, then so much load, then silence; a probe of light questions goes on all the time."""
    text, names = side.mix(name)
    light, probes = side.probe()
    rates = [SILENCE, *[round(rate, 2)] * (seconds // STEP_S), SILENCE, SILENCE]
    populations = [users("probe", f'kind = "constant", rate = {PROBE_RATE}', probes),
                   users("flood", f'kind = "steps", rates = {rates}, each_s = {STEP_S}', names, retry=AGAIN[again])]
    return judged(side.lab(f"{name} {again}", populations, text + "\n" + light, len(rates) * STEP_S, rest=0.5), seconds)


def judged(run, seconds):
    """What became of the flood, and how long the probe suffered after it."""
    probe, flood = run.of("probe"), run.of("flood")
    at = run.due - run.due[probe].min() - BEFORE_S
    during = flood & (at >= 0) & (at < seconds)
    admitted = during & ~run.refused & (run.outcome != 7)
    unanswered = flood & numpy.isin(run.outcome, (5, 6, 7))
    before = run.wait[probe & run.sound & (at < 0)]
    limit = max(2 * numpy.median(before), numpy.percentile(before, 95))
    felt = numpy.where(run.sound, run.wait, numpy.inf)
    windows = [felt[probe & (at >= seconds + n * WINDOW_S) & (at < seconds + (n + 1) * WINDOW_S)] for n in range(int(AFTER_S / WINDOW_S))]
    fine = [bool(len(one) and numpy.median(one) <= limit) for one in windows]
    back = next((n for n in range(len(fine) - 3) if all(fine[n:n + 4])), None)
    beside = probe & (at >= 0) & (at < seconds)
    by_second = lambda chosen, when: numpy.histogram(when[chosen], bins=numpy.arange(-BEFORE_S, seconds + AFTER_S + 1))[0].tolist()
    done = at + run.wait
    probes = [numpy.median(one) * 1e3 if len(one := run.wait[probe & run.sound & (at >= n) & (at < n + 1)]) else None for n in range(-BEFORE_S, seconds + AFTER_S)]
    # By the second, from the beginning of the silence before; answers by when they were there.
    series = {"from_s": -BEFORE_S, "offered": by_second(flood & (run.attempt == 0), at), "good": by_second(flood & run.good, done), "refused": by_second(flood & run.refused, done), "probe_ms": probes}
    return {"series": series, "questions": int((during & (run.attempt == 0)).sum()), "tries": int(during.sum()), "offered_s": float((during & (run.attempt == 0)).sum() / seconds),
            "goodput_s": float((run.good & during).sum() / seconds), "late": int((run.sound & ~run.good & during).sum()), "outcomes": run.outcomes(flood), "reasons": run.reasons(flood),
            "admitted": int(admitted.sum()), "admitted_ms": quantiles(run.wait[admitted]), "refused": int((run.refused & during).sum()),
            "statuses": {str(status): int(count) for status, count in zip(*numpy.unique(run.status[run.refused & flood], return_counts=True))},
            "refused_ms": quantiles(run.wait[run.refused & during]), "unanswered": int(unanswered.sum()), "server_cpu_s": run.cpu_s,
            "probe_before_ms": quantiles(before), "probe_ms": quantiles(run.wait[beside & run.sound]), "probe_outcomes": run.outcomes(beside),
            "recovery_s": None if back is None else back * WINDOW_S, "lab_late_ms": run.lab["late_p99_ms"], "lab_cores": run.lab["cpu"], "void": run.void}


def multiples(options, name):
    """Loads and users of a mix: what is wanted of it."""
    return [(times, again) for times in options.times for again in options.users if times <= options.times_most[name]]


def one_flood(side, name, at, times, again, options):
    """One load of one kind of users, as a multiple of an edge."""
    one = flood_run(side, name, times * at, again, max(1, round(options.seconds / STEP_S)) * STEP_S)
    say(f"{side.name}, {name} {times:g}x {again}: {one['goodput_s']:.1f} good/s of {one['offered_s']:.0f}, admitted {shown(one['admitted_ms'])}, "
        f"refused {one['refused']}, unanswered {one['unanswered']}, back after {one['recovery_s']} s, probe {shown(one['probe_ms'])}, {one['server_cpu_s']:.1f} s")
    return {"side": side.name, "mix": name, "times": times, "users": again, "edge": at, **one}


def flood(options, edges):
    """Multiples of the edge of the first side, for each kind of users, both sides in turns."""
    found = []
    with sides(options) as both:
        prepare(both, options)
        for name in options.mixes:
            at = edges["sides"]["new"][name]["at"]
            for number, (times, again) in enumerate(multiples(options, name)):
                for side in turns(both, number):
                    found.append(one_flood(side, name, at, times, again, options))
    return {"rows": options.rows, "seconds": options.seconds, "deadline_s": DEADLINE_S, "runs": found}


def shown(waits):
    return f"p50 {waits['p50']:.0f} p99 {waits['p99']:.0f} ms" if waits else "none"
