"""How the figures of bench-mixed are drawn."""

from tables import middle, quiet, spread, table

TITLE = "Mixed: reads and writes at once, one writer and 250, memory over time"
COMMAND = "python3 bench/mixed/run.py --rows {rows} --seconds {seconds:g} --rounds {rounds}"


def render(result):
    """Rates by phase, then memory by phase."""
    found = {(r["system"], r["phase"]): r["runs"] for r in result["runs"]}
    systems, phases = (list(dict.fromkeys(r[key] for r in result["runs"])) for key in ("system", "phase"))
    def cell(system, phase):
        runs = found[system, phase]
        rates = [r.get("events_per_second", r["per_second"]) for r in runs]
        return f"{spread(rates)}; {middle(runs, 'p50_ms'):,.2f} / {middle(runs, 'p99_ms'):,.2f} ms"
    out = [f"{result['rows']:,} events loaded first; {result['rounds']} rounds, {result['seconds']:g} s a phase. Reads: every event of a random 200 ms, eight connections, "
           "answers a second. Writes: events a second, acknowledged after a sync. Then p50 / p99 of an answer.", "",
           *table(["phase", *systems], [[p, *(cell(s, p) for s in systems)] for p in phases]), ""]
    marks = list(dict.fromkeys(phase for _, _, phase in result["memory"][systems[0]][-1] if phase))
    rows = []
    for mark in marks:
        cells = []
        for system in systems:
            taken = [mb for _, mb, phase in result["memory"][system][-1] if phase == mark]
            cells.append(f"{max(taken):,.0f}, {taken[-1]:,.0f}" if taken else "")
        rows.append([mark, *cells])
    out += ["### Resident memory by phase, last round: most and last, MB", "", *table(["phase", *systems], rows), ""]
    if result.get("installs"):
        most = max(i["max"] for i in result["installs"])
        out += [f"Putting the outcome of flushes and merges in place, for which writes wait, took Meridian {middle(result['installs'], 'total'):,.2f} s in a round of all phases, "
                f"{most * 1e3:,.1f} ms at most at a time.", ""]
    return [*out, quiet(result)]
