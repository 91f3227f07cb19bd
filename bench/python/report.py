"""How the figures of bench-python are drawn."""

from tables import apart, middle, quiet, table

TITLE = "Python: questions of a notebook, inside the process"
COMMAND = "python3 bench/python/run.py --rows {rows} --questions {questions} --seconds {seconds:g} --rounds {rounds}"
DEFINITIONS = [
    "The same questions to `meridian.open`, DuckDB with its spatial extension and GeoPandas, all inside the process of Python, and to `meridian.connect` with a "
    "server on the same machine. DuckDB and GeoPandas keep the events in memory; Meridian keeps them in a folder, durably. Answers are compared before anything is timed.",
    ""]
KINDS = {
    "around": ("a circle in a window of time, as a frame of pandas", "events"), "within": ("the count in a country's polygon", "events counted"),
    "hours": ("count and average by hour, in a box and a window of time", "hours"), "nearest": ("the ten nearest", "events")}


def render(result):
    """A row a question."""
    cells = {(cell["kind"], cell["system"]): cell["runs"] for cell in result["cells"]}
    systems = list(result["load_s"])
    peers = [system for system in systems if not system.startswith("meridian")]
    rows = []
    for kind, (what, of) in KINDS.items():
        p50 = {system: middle(cells[kind, system], "p50_ms") for system in systems}
        best = min(peers, key=p50.get)
        low, mid, high = result["sizes"][kind]
        rows.append([what, f"{mid:,} {of} [{low:,}..{high:,}]", *(f"{p50[s]:,.2f}" for s in systems), f"{p50[best] / p50['meridian.open']:.1f}x {best}",
                     ", ".join(apart(cells[kind, s], "p50_ms") for s in ("meridian.open", best))])
    loads = ", ".join(f"{system} {seconds:,.1f} s" for system, seconds in result["load_s"].items())
    return [*DEFINITIONS, f"{result['rows']:,} events, {result['questions']} questions of each kind, {result['rounds']} rounds of {result['seconds']:g} s a cell; medians in ms.", "",
            *table(["question", "answer: median [min..max]", *systems, "best peer / meridian.open", "rounds apart: meridian.open, best peer"], rows), "",
            f"Loading took: {loads}.", "", quiet(result)]
