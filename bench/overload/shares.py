"""A light tenant beside heavy ones."""

import numpy

import questions as q
from common import say
from rig import DEADLINE_S, quantiles, users
from side import sides, turns

DEADLINE_MS = int(DEADLINE_S * 1e3)
HEAVY = (1, 8)
SHARE, TIMES = 0.01, 10
# The light tenant uses half of its share for short questions, and the other half for questions of 5 to 10 ms.
BANDS = {"short": "light", "middle": "middle"}


def asked_by(side, who, chosen):
    """The questions of a tenant: all tenants have the same collection under the same name, so lines are counted, whose order may differ."""
    return "\n".join(q.asked(one._replace(name=f"{who} {n}"), 1, None, DEADLINE_MS) for n, one in enumerate(chosen)), [f"{who} {n}" for n in range(len(chosen))]


def chosen(side, band):
    return [one for one in side.questions[band] if one.kind in ("cities", "countries")]


class Tenants:
    """The tenants of one side, what their questions cost, and conditions to run them in."""

    def __init__(self, side, options):
        self.side, self.options = side, options
        self.requests, self.names, self.cost = {}, {}, {}
        for who, band in {"heavy": "heavy", **BANDS}.items():
            self.requests[who], self.names[who] = asked_by(side, who, chosen(side, band))
            run = side.lab(f"calibrate {who}", [users("one", 'kind = "closed", users = 1', self.names[who], 60, target="light")], self.requests[who], options.calibrate_seconds,
                           targets=side.target("light", "light"), rest=0.5)
            self.cost[who] = run.cpu_s / max(int(run.sound.sum()), 1)
        say(f"{side.name}, fairness: " + ", ".join(f"{who} {cost * 1e3:.2f} ms" for who, cost in self.cost.items()))

    def run(self, heavy, light):
        """So many heavy tenants, that share ten times the capacity, and the light one or not."""
        side, populations = self.side, []
        for n in range(heavy):
            populations.append(users(f"heavy{n}", f'kind = "poisson", rate = {TIMES / self.cost["heavy"] / heavy:.3f}', self.names["heavy"], target=f"heavy{n}"))
        if light:
            populations += [users(who, f'kind = "constant", rate = {SHARE / 2 / self.cost[who]:.4f}', self.names[who], target="light") for who in BANDS]
        targets = "".join(side.target(name, name) for name in [*(["light"] if light else []), *(f"heavy{n}" for n in range(heavy))])
        wanted = [*(["heavy"] if heavy else []), *(BANDS if light else [])]
        run = side.lab(f"{heavy} heavy, light {light}", populations, "\n".join(self.requests[who] for who in wanted), self.options.share_seconds, targets=targets, rest=0.5)
        found = {"heavy": heavy, "light": light, "seconds": self.options.share_seconds, "server_cpu_s": run.cpu_s, "void": run.void}
        if heavy:
            theirs = run.of(*(f"heavy{n}" for n in range(heavy)))
            each = [int((run.good & run.of(f"heavy{n}")).sum()) for n in range(heavy)]
            found |= {"heavy_good_s": float((run.good & theirs).sum() / self.options.share_seconds), "heavy_each": each, "heavy_outcomes": run.outcomes(theirs)}
        for who in BANDS if light else ():
            mine = run.of(who)
            found[who] = {"waits": run.wait[mine & run.sound].tolist(), "outcomes": run.outcomes(mine), "reasons": run.reasons(mine), "cpu_s": self.cost[who] * int((run.sound & mine).sum())}
        return found


def fairness(options):
    """The light tenant alone, beside one and beside eight heavy ones, and the heavy ones without it; rounds of all, both sides in turns."""
    conditions = [(0, True), *((heavy, light) for heavy in HEAVY for light in (False, True))]
    found = {}
    with sides(options) as both:
        for side in both:
            for name in ("light", *(f"heavy{n}" for n in range(max(HEAVY)))):
                side.tenant(name, options.tenant_files)
            side.settle(most=300)
        by_band = q.subjects(q.Asker(both[0], both[0].tokens["light"]), options.seed)
        for side in both:
            side.ready(by_band, side.tokens["light"])
        tenants = {side.name: Tenants(side, options) for side in both}
        runs = {side.name: [] for side in both}
        for number in range(options.rounds):
            for condition in conditions:
                for side in turns(both, number):
                    one = tenants[side.name].run(*condition)
                    runs[side.name].append(one)
                    light = ", ".join(f"{who} p95 {p95(one[who]['waits']):.1f} ms {one[who]['outcomes']}" for who in BANDS if who in one)
                    say(f"{side.name}, {condition[0]} heavy: {one.get('heavy_good_s', 0):.1f} good/s; {light}")
        found = {side.name: {"cost_ms": {who: cost * 1e3 for who, cost in tenants[side.name].cost.items()}, "runs": runs[side.name], "verdicts": verdicts(runs[side.name])} for side in both}
    return {"rows": options.tenant_rows, "seconds": options.share_seconds, "rounds": options.rounds, "deadline_s": DEADLINE_S, "sides": found}


def p95(waits):
    return float(numpy.percentile(waits, 95) * 1e3) if len(waits) else float("nan")


def verdicts(runs):
    """By number of heavy tenants: the light one's waits beside those alone, and what the heavy ones lost to it."""
    found = {}
    pick = lambda heavy, light: [run for run in runs if (run["heavy"], run["light"]) == (heavy, light)]
    for heavy in HEAVY:
        beside, without, alone = pick(heavy, True), pick(heavy, False), pick(0, True)
        one = {}
        for who in BANDS:
            joined = lambda some: [wait for run in some for wait in run[who]["waits"]]
            outcomes = {}
            for run in beside:
                for word, count in run[who]["outcomes"].items():
                    outcomes[word] = outcomes.get(word, 0) + count
            one[who] = {"alone_ms": quantiles(numpy.array(joined(alone))), "beside_ms": quantiles(numpy.array(joined(beside))), "outcomes": outcomes}
        before, after = (numpy.median([run["heavy_good_s"] for run in some]) for some in (without, beside))
        used = numpy.median([sum(run[who]["cpu_s"] for who in BANDS) / run["seconds"] for run in beside])
        each = [count for run in without for count in run["heavy_each"]]
        one["heavy"] = {"without_s": float(before), "with_s": float(after), "lost": float(1 - after / before) if before else None, "light_used": float(used), "each": [min(each), max(each)]}
        found[str(heavy)] = one
    return found
