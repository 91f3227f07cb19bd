"""How the figures of bench-spacetime are drawn."""

from tables import apart, middle, quiet, spread, table

TITLE = "Space and time: what happened here, then"
COMMAND = "python3 bench/spacetime/run.py --rows {rows} --seconds {seconds:g} --rounds {rounds} --questions {questions}"
FAMILIES = {"cities": "Circles around ten cities", "countries": "Countries, a month each", "cells": "Cells of a grid"}


def render(result):
    """Latencies at one connection, then throughput at each concurrency."""
    loads = ", ".join(f"{name} {seconds:,.0f} s" for name, seconds in result["load_s"].items())
    memory = ", ".join(f"{name} {mb:,.0f} MB" for name, mb in result["resident_mb"].items())
    out = [f"{result['rows']:,} events; {result['rounds']} rounds of {result['seconds']:g} s. Every system returned the same events for every question "
           "(count and sum of ids). \"small\" has fewer than 10,000 hits. Meridian answers with Arrow streams (and, beside it, NDJSON) over HTTP, "
           "PostgreSQL with binary rows, QuestDB with CSV, DuckDB with Arrow tables inside the client's own process.", ""]
    found = {(r["family"], r["size"], r["connections"], r["system"]): r["runs"] for r in result["runs"]}
    systems = list(dict.fromkeys(r["system"] for r in result["runs"]))
    connections = sorted({r["connections"] for r in result["runs"]})
    rows = []
    for c in result["classes"]:
        key = (c["family"], c["size"])
        one = {s: found[*key, connections[0], s] for s in systems if (*key, connections[0], s) in found}
        peers = {s: runs for s, runs in one.items() if not s.startswith("meridian")}
        lead = []
        for figure in ("p95_ms", "p50_ms"):
            best = min(peers, key=lambda s: middle(peers[s], figure))
            lead.insert(0, f"{middle(peers[best], figure) / middle(one['meridian'], figure):.1f}x {best}")
        cells = [f"{middle(one[s], 'p50_ms'):,.2f} / {middle(one[s], 'p95_ms'):,.2f}" if s in one else "" for s in systems]
        apart_by = ", ".join(apart(one[s], "p50_ms") for s in ("meridian", best))
        rows.append([FAMILIES[c["family"]], c["size"], c["questions"], f"{c['hits_median']:,.0f}, {c['hits_max']:,}", *cells, *lead, apart_by])
    out += [f"### p50 / p95 in ms, {connections[0]} connection", ""]
    out += table(["questions", "", "how many", "hits: median, most", *systems, "best peer / Meridian, p50", "p95", "rounds apart at p50: Meridian, best peer"], rows)
    rows = []
    for c in result["classes"]:
        for n in connections:
            runs = {s: found.get((c["family"], c["size"], n, s)) for s in systems}
            rows.append([FAMILIES[c["family"]], c["size"], n, *(spread([r["per_second"] for r in runs[s]], 1) if runs[s] else "" for s in systems)])
    out += ["", "### Answers per second", "", *table(["questions", "", "connections", *systems], rows), ""]
    rows = []
    for c in result["classes"]:
        runs = {s: found.get((c["family"], c["size"], connections[0], s)) for s in systems}
        rows.append([FAMILIES[c["family"]], c["size"], *(f"{middle(runs[s], 'cpu_us') / 1000:,.2f}" if runs[s] else "" for s in systems)])
    out += ["### Server processor milliseconds an answer (DuckDB: client included)", "", *table(["questions", "", *systems], rows), ""]
    return [*out, f"Loading took: {loads}. Resident after the run: {memory}.", quiet(result)]
