"""How the figures of bench-aggregate are drawn."""

from tables import apart, middle, quiet, table

TITLE = "Aggregates: count and average by hour, day and month"
COMMAND = "python3 bench/aggregate/run.py --rows {rows_text} --seconds {seconds:g} --rounds {rounds}"


def render(result):
    """A table a size, what Meridian read for it, and the growth from size to size."""
    out = [f"{result['rounds']} rounds of {result['seconds']:g} s a cell; medians in ms. Every system returned the same windows and counts, and averages equal to 1e-9. "
           "Meridian and QuestDB answer over HTTP, DuckDB and chdb inside the client's process.", ""]
    for size in result["sizes"]:
        cells = {(c["what"], c["system"]): c for c in size["cells"]}
        systems = list(dict.fromkeys(c["system"] for c in size["cells"]))
        peers = [s for s in systems if not s.startswith("meridian")]
        rows = []
        for what in dict.fromkeys(c["what"] for c in size["cells"]):
            p50 = {s: middle(cells[what, s]["runs"], "p50_ms") for s in systems if (what, s) in cells}
            best = min(peers, key=p50.get)
            scan = f"{p50['meridian, scan'] / p50['meridian']:.1f}x" if "meridian, scan" in p50 else ""
            rows.append([what, f"{cells[what, 'meridian']['windows']:,}", f"{cells[what, 'meridian']['events']:,}",
                         *(f"{p50[s]:,.2f}" if s in p50 else "" for s in systems), f"{p50[best] / p50['meridian']:.1f}x {best}", scan,
                         ", ".join(apart(cells[what, s]["runs"], "p50_ms") for s in ("meridian", best))])
        out += [f"### {size['rows']:,} events", ""]
        out += table(["question", "windows", "events counted", *systems, "best peer / Meridian", "scan of the matching blocks / Meridian", "rounds apart: Meridian, best peer"], rows)
        loads = ", ".join(f"{name} {seconds:,.0f} s" for name, seconds in size["load_s"].items())
        memory = ", ".join(f"{name} {mb:,.0f} MB" for name, mb in size["resident_mb"].items())
        out += ["", f"Loading took: {loads}. Resident: {memory}.", "", "What Meridian read (`explain=true`):", ""]
        out += [f"- {what}: {', '.join(f'{key} {value:,}' for key, value in counted(explained))}" for what, explained in size["explained"].items()]
        out.append("")
    return [*out, quiet(result)]


def counted(explained):
    """The whole numbers of an explanation."""
    for key, value in explained.items():
        if isinstance(value, dict):
            yield from counted(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            yield key, value
