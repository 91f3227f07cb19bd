"""Does a server that is asked too much stay as it is, or does something grow until it fails?"""

import numpy

import questions as q
from common import say
from flood import prepare
from rig import quantiles, users
from side import sides

TIMES, PARTS, MIX = 5, 10, "heavy"
METRICS = {"events": "meridian_events", "depth": "meridian_depth", "memory trees": "meridian_memory_trees", "segments": "meridian_segments", "log tail bytes": "meridian_log_tail_bytes"}


def drift(options, edges):
    """Five times the edge of the heavy mix for long, in tenths; one side after the other."""
    found = {}
    with sides(options) as both:
        prepare(both, options)
        rate = TIMES * edges["sides"]["new"][MIX]["at"]
        for side in both:
            text, names = side.mix(MIX)
            sampler = f'\n[[sampler]]\nkind = "prometheus"\nname = "store"\nurl = "{side.url}/metrics"\nmetrics = {list(METRICS.values())}\n'
            run = side.lab("drift", [users("flood", f'kind = "poisson", rate = {rate:.2f}', names)], text + sampler, options.drift_seconds)
            found[side.name] = tenths(run, options.drift_seconds)
            say(f"{side.name}, drift: good/s {[round(one['goodput_s'], 1) for one in found[side.name]['tenths']]}, p99 ms {[round(one['admitted_ms']['p99']) for one in found[side.name]['tenths'] if one['admitted_ms']]}, resident MB {[round(one['resident_mb']) for one in found[side.name]['tenths']]}")
    return {"rows": options.rows, "seconds": options.drift_seconds, "times": TIMES, "rate": rate, "sides": found}


def tenths(run, seconds):
    each, began, parts = seconds / PARTS, run.due.min(), []
    for n in range(PARTS):
        inside = lambda at: (at >= began + n * each) & (at < began + (n + 1) * each)
        mine = inside(run.due)
        sampled = lambda source, metric: [value for at, value in run.samples[source, metric] if inside(at)]
        middle = lambda values: float(numpy.median(values)) if values else None
        admitted = mine & ~run.refused & (run.outcome != 7)
        parts.append({"goodput_s": float((run.good & mine).sum() / each), "admitted_ms": quantiles(run.wait[admitted]), "refused": int((run.refused & mine).sum()),
                      "sent_ms": quantiles((run.wait - run.late)[admitted]), "late_ms": quantiles(run.late[mine & ~numpy.isnan(run.late)]),
                      "kinds_ms": {kind: quantiles(run.wait[admitted & run.asking(f"{MIX} {kind}")]) for kind in q.MIXES[MIX]},
                      "unanswered": int((mine & numpy.isin(run.outcome, (5, 6, 7))).sum()), "resident_mb": (middle(sampled("target", "resident_bytes")) or 0) / 2**20,
                      **{name: middle(sampled("store", metric)) for name, metric in METRICS.items()}})
    return {"tenths": parts, "server_cpu_s": run.cpu_s, "slopes": {what: slope([one[what] for one in parts]) for what in ("goodput_s", "resident_mb")}
            | {"p99": slope([one["admitted_ms"]["p99"] for one in parts if one["admitted_ms"]])}, "reasons": run.reasons(run.due > 0), "void": run.void}


def slope(values):
    """Change over the whole run as a share of the mean, and half of its 95 % interval (Student's t of eight degrees of freedom)."""
    if len(values) < PARTS or not numpy.mean(values):
        return None
    x, y = numpy.arange(PARTS), numpy.array(values) / numpy.mean(values)
    (gradient, offset), spread = numpy.polyfit(x, y, 1), ((x - x.mean()) ** 2).sum()
    error = numpy.sqrt(((y - gradient * x - offset) ** 2).sum() / (PARTS - 2) / spread)
    return {"change": float(gradient * (PARTS - 1)), "half": float(2.306 * error * (PARTS - 1))}
