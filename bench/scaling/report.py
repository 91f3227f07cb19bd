"""How the figures of bench-scaling are drawn."""

from tables import apart, quiet, table

TITLE = "Scaling: what grows with the events"
COMMAND = "python3 bench/scaling/run.py --rows {rows_text} --seconds {seconds:g} --rounds {rounds}"


def render(result):
    """The picture, and the figures under it."""
    sizes = result["sizes"]
    out = ["![Growth of answers, load, opening and memory with the events](results/scaling.svg)", "",
           "Median of an answer in ms at each size; exponents by least squares on logarithms, of the time and of the bytes answered. "
           "Fixed questions have results that grow with the events; the others were shrunk so that results stay as many.", ""]
    rows = []
    for what, fitted in result["exponents"].items():
        times = [f"{s['questions'][what]['p50_ms']:,.2f}" for s in sizes]
        widest = max((s["questions"][what]["runs"] for s in sizes), key=lambda runs: float(apart(runs, "p50_ms").rstrip("%")))
        rows.append([what, *times, f"n^{fitted['exponent']:.2f}", f"n^{fitted['bytes_exponent']:.2f}", apart(widest, "p50_ms")])
    out += table(["question", *(f"{s['rows']:,}" for s in sizes), "time", "bytes answered", "rounds apart, at most"], rows)
    rows = [["load, events/s", *(f"{s['rows'] / s['load_s']:,.0f}" for s in sizes)],
            ["server CPU s a million loaded", *(f"{s['load_cpu_s'] / s['rows'] * 1e6:,.2f}" for s in sizes)],
            ["start to first answer, ms", *(f"{s['open_ms']:,.0f}" for s in sizes)],
            ["resident after loading, MB", *(f"{s['loaded_mb']:,.0f}" for s in sizes)],
            ["resident after the questions, MB", *(f"{s['queried_mb']:,.0f}" for s in sizes)]]
    return [*out, "", *table(["", *(f"{s['rows']:,}" for s in sizes)], rows), "", quiet(result)]
