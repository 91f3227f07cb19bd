"""How the figures of bench-tracks are drawn."""

from tables import apart, middle, quiet, spread, table

TITLE = "Tracks: lines that cross a cell in a window of time"
COMMAND = "python3 bench/tracks/run.py --rows {rows} --seconds {seconds:g} --rounds {rounds} --questions {questions}"


def render(result):
    """A row a concurrency and system."""
    found = {(r["connections"], r["system"]): r["runs"] for r in result["runs"]}
    rows = []
    for (connections, system), runs in found.items():
        ours = found[connections, "meridian"]
        lead = "" if system == "meridian" else f"{middle(ours, 'per_second') / middle(runs, 'per_second'):.1f}x"
        rows.append([connections, system, spread([r["per_second"] for r in runs]), f"{middle(runs, 'p50_ms'):,.2f} / {middle(runs, 'p95_ms'):,.2f} / {middle(runs, 'p99_ms'):,.2f}", apart(runs, "p50_ms", "p95_ms"),
                     f"{middle(runs, 'p99_ms') / middle(runs, 'p50_ms'):.1f}", f"{middle(runs, 'cpu_us') / 1000:,.2f}", f"{middle(runs, 'bytes_mean') / 1e3:,.0f}", lead])
    loads = ", ".join(f"{n} {s:,.0f} s" for n, s in result["load_s"].items())
    memory = ", ".join(f"{n} {mb:,.0f} MB" for n, mb in result["resident_mb"].items())
    return [f"{result['rows']:,} lines with {result['vertices']:,} vertices; {result['questions']} cells of levels 4 to 8 in windows of 5 to 31 days; a question has "
            f"{result['hits']['median']:,.0f} lines (median), {result['hits']['max']:,} at most, the same from all. Whole lines are delivered: Arrow over HTTP, binary rows.", "",
            *table(["connections", "system", "answers/s", "p50 / p95 / p99 ms", "rounds apart (p50, p95)", "p99 / p50", "server CPU ms an answer", "kB an answer", "Meridian / this"], rows), "",
            f"Loading took: {loads}. Resident after the run: {memory}.", quiet(result)]
