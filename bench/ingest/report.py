"""How the figures of bench-ingest are drawn."""

from tables import middle, quiet, spread, table

TITLE = "Ingest: events taken in, each batch acknowledged before the next"
COMMAND = "python3 bench/ingest/run.py --rows {rows} --seconds {seconds:g} --rounds {rounds} --connections {connections}"


def render(result):
    """A table a batch size, the chain of writes, the memory."""
    out = [f"Up to {result['rows']:,} events {{symbol, type, price, time}} a cell, or {result['seconds']:g} s; {result['rounds']} rounds. "
           "Server CPU is counted until the server is idle again, so that flushes and merges are counted; "
           "the client is one thread with bodies made beforehand.", ""]
    kinds = sorted({(c["connections"], c["batch"]) for c in result["cells"]})
    for connections, batch in kinds:
        cells = [c for c in result["cells"] if (c["connections"], c["batch"]) == (connections, batch)]
        out += [f"### Batches of {batch:,}, {connections} connection{'s' * (connections > 1)}", ""]
        rows = []
        for c in sorted(cells, key=lambda c: -middle(c["runs"], "events_per_second")):
            runs = c["runs"]
            cpu = f"{middle([cpu_per_million(r) for r in runs], 'cpu'):,.2f} s" if "server_cpu_s" in runs[0] else ""
            client = middle([{"cpu": r["client_cpu_s"] / r["seconds"]} for r in runs], "cpu")
            rows.append([c["system"], c["encoding"], runs[0]["durable"], spread([r["events_per_second"] for r in runs]),
                         f"{middle(runs, 'p50_ms'):.2f} / {middle(runs, 'p99_ms'):.2f}", cpu, f"{client:.0%}"])
        out += table(["system", "how", "synced before the answer", "events/s", "p50 / p99 ms a batch", "server CPU per million", "client CPU of a core"], rows)
        out.append("")
    out += ["### Bytes written for a byte taken, until all is archived (Meridian)", ""]
    rows = []
    for c in result["cells"]:
        chains = [r["chain"] for r in c["runs"] if "chain" in r]
        if chains:
            share = lambda stage: f"{sum(x.get(stage, 0) for x in chains) / sum(x['taken'] for x in chains):.2f}"
            disk = sum(r["written_bytes"] for r in c["runs"]) / sum(r["bytes_sent"] for r in c["runs"])
            rows.append([f"{c['encoding']}, {c['batch']:,} x {c['connections']}", share("log"), share("flush"), share("merge"), share("rest_written"), share("sidecar"), f"{disk:.2f}",
                         f"{middle(c['runs'], 'resident_mb'):,.0f} MB"])
    out += table(["load", "log", "flushes", "merges", "to rest", "sidecars", "to disk for a byte on the wire", "resident after the load"], rows)
    return [*out, "", quiet(result)]


def cpu_per_million(run):
    """Seconds of the server's processor time for a million events."""
    return {"cpu": run["server_cpu_settled_s"] / run["events"] * 1e6}
