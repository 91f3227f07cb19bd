"""How the figures of bench-overload are drawn."""

import statistics

from tables import parts, spread, table

TITLE = "Overload: the edge, what comes out past it, who gets it, what a refusal costs, what a restart loses"
COMMAND = "python3 bench/overload/run.py"
SIDES = {"new": "", "old": "build before"}
# Stands in the results whether or not there are figures.
DEFINITIONS = [
    "The server has one core, the lab the other.",
    "",
    "- **Good** is an answer that is correct (by the digest of its body), whole, and there within 2 s of when it was due, counted at the lab. **Goodput** is good answers a second. Each try of a question is judged by itself.",
    "- **The edge** is the highest open-loop rate (Poisson) of a fixed mix at which 99 % are good, with a 99th percentile of at most five times the unloaded one and of 500 ms.",
    "- **The heavy mix**: 45 % circles about cities, 25 % countries, 10 % tiles, 10 % aggregates, 10 % writes of 500 events; at least 10 ms of processor on average. **The light mix**: 50 % circles, 20 % tiles, "
    "20 % aggregates, 10 % writes of 10 events; some 1 ms.",
    "- **Without an answer** are tries that timed out, broke or could not be sent; a refusal is an answer.",
    ""]


def render(result):
    """Each part that was measured."""
    return DEFINITIONS + parts(result, HEADS, DRAWN)


def of(waits, *names):
    return " / ".join(f"{waits[name]:,.1f}" for name in names) if waits else "none"


def counted(outcomes):
    return ", ".join(f"{count:,} {word}" for word, count in outcomes.items()) or "none"


def void(runs):
    """Runs that say nothing of the server, with what the lab says why."""
    reasons = [reason for run in runs for reason in run["void"]]
    return ["", f"**{sum(bool(run['void']) for run in runs)} of {len(runs)} runs are void**, and their figures say nothing of the server; the first: {reasons[0]}."] if reasons else []


def edge(found):
    rows, costs = [], []
    for side, mixes in found["sides"].items():
        for name, one in mixes.items():
            every, at = one["calibration"]["all"], one["found"]["breakpoint"]
            rows.append([name, SIDES[side], f"{every['cpu_ms']:.2f}", of(every["wait_ms"], "p50", "p99"), f"{one['capacity']:,.1f}", f"{one['limit_ms']:,.0f}", f"**{one['at']:,.1f}**",
                         f"{at['low']:,.1f} to {at['high']:,.1f}" if at else "not narrow", f"{one['at'] / one['capacity']:.0%}", one["found"]["sentence"]])
            costs.append([name, SIDES[side], *(f"{kind}: {cost['cpu_ms']:.2f}" for kind, cost in one["calibration"].items() if kind != "all")])
    width = max(map(len, costs))
    return [f"{found['rows']:,} events; steps of {found['step_seconds']:g} s. Capacity is a core over what an answer of the mix takes of it, one at a time.", "",
            *table(["mix", "", "CPU ms an answer", "unloaded p50 / p99 ms", "capacity/s", "p99 limit ms", "edge/s", "95 %", "of capacity", "what the lab says"], rows), "",
            *table(["mix", "", "CPU ms an answer by kind", *[""] * (width - 3)], [row + [""] * (width - len(row)) for row in costs])]


RUN_HEAD = ["load", "offered/s", "good/s", "of peak", "admitted p50 / p99 ms", "refused", "after p50 / p99 ms", "late", "without an answer", "probe p50 / p99 ms", "back after s", "server CPU s"]


def run_cells(run, peak, base):
    """A flood as cells of a row: `peak` is the highest goodput, `base` the waits at the edge."""
    slower = f" ({run['admitted_ms']['p99'] / base['p99']:.1f}x)" if base and run["admitted_ms"] else ""
    return [f"{run['times']:g}x", f"{run['offered_s']:,.0f}", f"{run['goodput_s']:,.1f}", f"{run['goodput_s'] / peak:.0%}" if peak else "none",
            of(run["admitted_ms"], "p50", "p99") + slower, f"{run['refused']:,}", of(run["refused_ms"], "p50", "p99"), f"{run['late']:,}", f"{run['unanswered']:,}", of(run["probe_ms"], "p50", "p99"),
            "not seen" if run["recovery_s"] is None else f"{run['recovery_s']:g}", f"{run['server_cpu_s']:.1f}"]


def reasons(runs, label):
    """What answers were that are neither sound nor refused."""
    said = [f"{label(run)} {run['times']:g}x, {AGAIN[run['users']]}: " + "; ".join(f"{count:,} {why}" for why, count in run["reasons"].items()) for run in runs if run["reasons"]]
    return [f"Neither sound nor refused: {' · '.join(said)}."] if said else []


def flood(found):
    peak = {}
    for run in found["runs"]:
        key = run["side"], run["mix"]
        peak[key] = max(peak.get(key, 0), run["goodput_s"])
    at_edge = {(run["side"], run["mix"]): run["admitted_ms"] for run in found["runs"] if run["times"] == 1 and run["users"] == "never"}
    rows = []
    for run in sorted(found["runs"], key=lambda r: (r["mix"], r["side"], list(AGAIN).index(r["users"]), r["times"])):
        key = run["side"], run["mix"]
        rows.append([run["mix"], SIDES[run["side"]], AGAIN[run["users"]], *run_cells(run, peak[key], at_edge.get(key))])
    pictures = [line for mix in dict.fromkeys(run["mix"] for run in found["runs"])
                for line in (f"![{mix} mix: good answers a second over questions offered](results/overload-{mix}.svg)", "", f"![{mix} mix: before, during and after the largest flood](results/overload-{mix}-time.svg)", "")]
    return [*pictures,
            f"{found['seconds']:g} s of each load between seconds of silence, and a probe of 20 light questions a second all the time. Users leave who are refused, or ask again up to five times: at once (after 10 ms), or not "
            "before `Retry-After`. Peak is the highest of the mix. p99 of what was admitted counts clients that gave up; in brackets, as a multiple of that at 1x. Back is the time after the flood until the median of the probe is at most "
            "twice what it was (or its 95th percentile), for a second.", "",
            *table(["mix", "", "users", *RUN_HEAD], rows), "",
            *reasons(found["runs"], lambda run: f"{SIDES[run['side']] or 'this build'}, {run['mix']}"), *void(found["runs"])]


def peers(found):
    lines = ["![Good answers as a share of the edge over multiples of it](results/overload-peers.svg)", "",
             "The floods above, over other systems on the server's core, each by multiples of its own edge, with the circles and countries that Meridian is asked for. Digests are checked where a system answers a question twice "
             "with the same bytes, numbers of events otherwise. Statements and commands end after the client's 2 s (`statement_timeout`, `TIMEOUT`).", ""]
    for key, one in found["systems"].items():
        edge, runs = one["edge"], one["runs"]
        peak = max(run["goodput_s"] for run in runs)
        base = next((run["admitted_ms"] for run in runs if run["times"] == 1 and run["users"] == "never"), None)
        rows = [[AGAIN[run["users"]], *run_cells(run, peak, base)] for run in sorted(runs, key=lambda r: (list(AGAIN).index(r["users"]), r["times"]))]
        costs = ", ".join(f"{kind} {cost['cpu_ms']:.1f} ms" for kind, cost in edge["calibration"].items())
        checks = ", ".join(f"{count} by {check}" for check, count in one["checks"].items())
        lines += [f"**{one['name']}**: {', '.join(one['asks'])}; {one['lacks']}. CPU of an answer: {costs}. Edge: {edge['at']:,.1f}/s of a capacity of {edge['capacity']:,.1f}/s. Questions checked: {checks}; "
                  f"{len(one['differing'])} hold another number of events than Meridian's.", "", f"![{one['name']}: before, during and after the largest flood](results/overload-{key}-time.svg)", "",
                  *table(["users", *RUN_HEAD], rows), "", *reasons(runs, lambda run: one["name"]), *void(runs), ""]
    return lines[:-1]


STORE = ("events", "depth", "memory trees", "segments", "log tail bytes")


def drift(found):
    lines = [f"{found['times']} times the edge of the heavy mix ({found['rate']:,.0f} a second) for {found['seconds']:,.0f} s, users who leave, in tenths. Change is that over the run by a fitted line, as a share of the mean.", ""]
    for side, one in found["sides"].items():
        kinds = lambda part: ", ".join(f"{kind} {of(waits, 'p99')}" for kind, waits in part.get("kinds_ms", {}).items())
        rows = [[n + 1, f"{part['goodput_s']:,.1f}", of(part["admitted_ms"], "p50", "p99"), *(of(part[name], "p99") if name in part else "" for name in ("sent_ms", "late_ms")), kinds(part), f"{part['refused']:,}", f"{part['unanswered']:,}", f"{part['resident_mb']:,.0f}",
                 *("" if part.get(name) is None else f"{part[name]:,.0f}" for name in STORE)] for n, part in enumerate(one["tenths"])]
        changes = ", ".join(f"{what.replace('_s', '').replace('_mb', '')} {change['change']:+.1%} ± {change['half']:.1%}" for what, change in one["slopes"].items() if change)
        lines += [*([f"{SIDES[side]}:", ""] if SIDES[side] else []), *table(["tenth", "good/s", "admitted p50 / p99 ms", "p99 from sending", "lab late p99", "p99 ms by kind", "refused", "without an answer", "resident MB", *STORE], rows), "",
                  f"Change: {changes or 'not known'}.", ""]
    return [*lines[:-1], *void(found["sides"].values())]


def fairness(found):
    rows = []
    for side, one in found["sides"].items():
        for heavy, verdict in one["verdicts"].items():
            cells = []
            for who in ("middle", "short"):
                mine = verdict[who]
                cells += [of(mine["alone_ms"], "p95"), of(mine["beside_ms"], "p95"), counted(mine["outcomes"])]
            theirs = verdict["heavy"]
            lost = "none good" if theirs["lost"] is None else f"{theirs['without_s']:,.1f} to {theirs['with_s']:,.1f} ({theirs['lost']:+.1%} lost)"
            rows.append([heavy, SIDES[side], *cells, lost, f"{theirs['light_used']:.1%}", f"{theirs['each'][0]:,} to {theirs['each'][1]:,}"])
    costs = "; ".join((f"{SIDES[side]}: " if SIDES[side] else "") + ", ".join(f"{who} {cost:.1f} ms" for who, cost in one["cost_ms"].items()) for side, one in found["sides"].items())
    return [f"Tenants with {found['rows']:,} events each. The heavy ones offer ten times the capacity, all together; the light one uses 1 % of a core, half of it by questions of 5 to 10 ms and half by short ones. "
            f"{found['rounds']} rounds of {found['seconds']:g} s. CPU of a question: {costs}.", "",
            *table(["heavy tenants", "", "5 to 10 ms: p95 alone", "beside", "outcome", "short: p95 alone", "beside", "outcome", "heavy good/s without and with", "light used", "good answers of each heavy one"], rows),
            *void([run for one in found["sides"].values() for run in one["runs"]])]


def refusal(found):
    rows, idle = [], []
    for side, one in found["sides"].items():
        known = lambda values: spread([value for value in values if value is not None], 1) if any(value is not None for value in values) else "not known"
        column = lambda key: known([run[key] for run in one["runs"]])
        beyond = known([None if None in (run["refused_us"], run["healthz_us"]) else run["refused_us"] - run["healthz_us"] for run in one["runs"]])
        lost = sum(run["conditions"]["refused"]["unanswered"] for run in one["runs"])
        unread = {}
        for run in one["runs"]:
            for word, count in run["conditions"]["nothing"]["unread"].items():
                unread[word] = unread.get(word, 0) + count
        waits = [run["conditions"]["refused"]["refused_ms"] for run in one["runs"] if run["conditions"]["refused"]["refused_ms"]]
        p99 = f"{statistics.median(w['p99'] for w in waits):,.1f}" if waits else "none"
        alone = one["alone_us"]
        rows.append([SIDES[side] or "this build", column("healthz_us"), column("refused_us"), f"**{beyond}**", column("write_us"), column("quota_us"), column("stranger_us"), p99, f"{lost:,}",
                     ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in unread.items())])
        idle.append([SIDES[side] or "this build", *(f"{alone[what]:.1f}" for what in ("healthz", "quota", "stranger")), *(f"**{alone[what] - alone['healthz']:.1f}**" for what in ("quota", "stranger"))])
    return [f"A server that is asked five times what it can answer, always the same question, and {found['rate']:g} requests a second on top, for {found['seconds']:g} s, {found['rounds']} rounds. What a request on top takes of the server's processor is "
            f"what the server took more than without them, less what it answered more. Writes carry {found['body_bytes'] >> 10} KiB and come at a tenth of the rate. 429 goes to a tenant over its quota, 401 to a client with a token that nobody knows. "
            "Beside the full server, a few writes that wait for `100 Continue`. What /healthz costs stands for reading a request: it is read, identified and routed, and answered without work.", "",
            *table(["", "/healthz, µs", "refused (503), µs", "beyond /healthz, µs", "refused write, µs", "over a quota (429), µs", "stranger (401), µs", "refused after, p99 ms", "without an answer", "waited for 100 Continue"], rows), "",
            "An idle server, one request after the other:", "", *table(["", "/healthz, µs", "429, µs", "401, µs", "429 beyond /healthz, µs", "401 beyond /healthz, µs"], idle),
            *void([one for side in found["sides"].values() for run in side["runs"] for one in run["conditions"].values()])]


def floor(found):
    rows = [[name, spread([one["cpu_us"] for one in runs], 1), f"{found['rate'] * found['cpu_us'][name] / 1e6:.0%}", counted(runs[-1]["outcomes"])] for name, runs in found["runs"].items()]
    return [f"{found['rate']:,.0f} requests a second, all refused, for {found['seconds']:g} s, {found['rounds']} rounds in turns. nginx answers each with a constant 503 and writes no log. Meridian identifies the caller's token, finds the quota of "
            "its tenant overdrawn, and answers 429.", "", *table(["", "CPU µs a refusal", "of the core at this rate", "answers of a round"], rows), *void([one for runs in found["runs"].values() for one in runs])]


def cascade(found):
    rows = []
    for side, one in found["sides"].items():
        for what in ("stay", "leave", "leave unseen"):
            mine = [run for run in one["runs"] if run["what"] == what]
            outcomes = {}
            for run in mine:
                for word, count in run["outcomes"].items():
                    outcomes[word] = outcomes.get(word, 0) + count
            grows = {"stay": "1", "leave": f"**{one['grows']:.2f}**", "leave unseen": f"{one['grows_unseen']:.2f}"}[what]
            rows.append([what, SIDES[side], counted(outcomes), spread([run["cpu_per_answer_ms"] for run in mine]), grows])
    return [f"Sixteen connections that ask for circles about cities and sixteen that ask for countries, whole results, one after the other; clients stay, or leave after {found['leave_s']:g} s, or leave behind a relay that reads on, so that the server "
            f"does not hear of it. {found['rounds']} rounds of {found['seconds']:g} s.", "", *table(["clients", "", "outcome", "CPU ms an answered request", "times"], rows),
            *void([run for one in found["sides"].values() for run in one["runs"]])]


def restart(found):
    rows = []
    for how, said in (("kill", "SIGKILL"), ("stop", "SIGTERM")):
        mine = [one for one in found["rounds"] if one["how"] == how]
        total = lambda key: f"{sum(one[key] for one in mine):,}"
        took = found["summary"][how]
        told = f"{total('streams told')} of {total('streams open')}" if how == "stop" else ""
        clean = f"{sum(one['code'] == 0 for one in mine)} with code 0, {sum(one['ready'] is True for one in mine)} ready to the end" if how == "stop" else ""
        rows.append([said, len(mine), total("acknowledged"), f"**{total('lost')}**", total("half"), total("unknown"), f"**{total('hanging')}**", total("cut"), total("wrong"), of(took["serves_ms"], "p50", "p99"), of(took["end_ms"], "p50", "p99"), told, clean])
    return [f"Three tenants with {found['rows']:,} events each; for each two producers of batches of {found['batch']} events, two readers and a stream. The server is ended after about {found['seconds']:g} s of load and started again; it serves "
            "from the first answer to a tenant's read. After each start the batches of the round are compared with those acknowledged: lost, stored in part, or sent by nobody. Hanging is a request without an end after 30 s, cut a response that broke off after its head.", "",
            *table(["ended by", "times", "batches acknowledged", "lost", "in part", "unknown", "hanging", "cut", "wrong answers", "serves after p50 / p99 ms", "ended after p50 / p99 ms", "streams told", ""], rows)]


def entry(found):
    ratio = lambda one: f"{one['middle']:.3f} ({one['low']:.3f} to {one['high']:.3f})"
    quotas = ", ".join(found["quotas"])
    def row(name, figures):
        middle = {side: statistics.median(cpu) for side, cpu in figures["cpu_us"].items()}
        return [name, f"{middle['old']:.1f}", f"{middle['new']:.1f}", f"**{ratio(figures['cpu'])}**", ratio(figures["rate"])]

    rows = [row(f"commit {found['before']}", found["figures"]), *([row("this build, without a token", found["same"])] if "same" in found else [])]
    return [f"Near questions at 0.5 km from 50 connections. Before: commit {found['before']}, without tokens, tenants and quotas, and all else that came since. Now: each request with a token, of a tenant with the quotas {quotas}. {found['rounds']} rounds of "
            f"{found['seconds']:g} s, in turns; the median ratio of the pairs, and the quartiles.", "",
            *table(["compared with", "CPU µs an answer, there", "with a token", "ratio", "rate, ratio"], rows)]


AGAIN = {"never": "leave", "impatient": "again at once", "obedient": "again when told"}
HEADS = {"edge": "The edge", "flood": "Past the edge", "peers": "Other systems past their edges", "drift": "For long", "fairness": "A light tenant beside heavy ones", "refusal": "What a refusal costs", "floor": "What reading and refusing costs at least", "cascade": "Clients who leave", "restart": "Kills and restarts under load",
         "entry": "What identity, admission and metering cost"}
DRAWN = {"edge": edge, "flood": flood, "peers": peers, "drift": drift, "fairness": fairness, "refusal": refusal, "floor": floor, "cascade": cascade, "restart": restart, "entry": entry}
