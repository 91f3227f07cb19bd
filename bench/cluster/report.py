"""How the figures of bench-cluster are drawn."""

from tables import spread, table

TITLE = "Cluster: the log beside bare NATS, bytes an event, takeovers, handovers, the space-time study"
COMMAND = "python3 bench/cluster/run.py {options}"


def render(result):
    """A table a part."""
    out = ["All processes of a cluster share this machine's cores and its disk: the figures show ratios and waits, not what separate machines give.", ""]
    for name, draw in (("ingest", ingest), ("bytes", log_bytes), ("latency", latency), ("takeover", takeover), ("handover", handover), ("overload", overload), ("spacetime", spacetime)):
        if name in result["parts"]:
            part = result["parts"][name]
            out += [*draw(part["found"]), "", quiet(part), ""]
    return out[:-1]


def quiet(part):
    """The commit and how busy the machine was."""
    before, after = part["quiet"]
    return f"Commit {part['commit']}. Load average {before['load1']:.1f} before and {after['load1']:.1f} after; taken by the host {(after['steal_ticks'] - before['steal_ticks']) / 100:,.0f} s of processor time."


def ingest(found):
    """Writes by size of the body."""
    out = ["### Writes", "", f"{found['producers']} producers, one Arrow batch in flight each; `nats bench` with as many clients and messages of the same bytes, one in flight each. "
           "Every server syncs each message (`sync_interval: always`).", ""]
    lines = []
    for size in dict.fromkeys(one["size"] for one in found["rounds"]):
        of_size = [one for one in found["rounds"] if one["size"] == size]
        for name in dict.fromkeys(one["system"] for one in of_size):
            runs = [one for one in of_size if one["system"] == name]
            middle = found["median_mb"][size]
            bare = middle.get(f"nats bench {name[-2:]}") if name.startswith("cluster, NATS") else None
            cpu = ", ".join(f"{role} {sum(run['cpu_s'][role] for run in runs) / len(runs):.1f} s" for role in runs[0]["cpu_s"] if any(run["cpu_s"][role] for run in runs))
            lines.append([size, name, spread([run["mb_per_second"] for run in runs], 1), f"{middle[name] / bare:.0%}" if bare else "", spread([run["per_second"] for run in runs]),
                          f"{runs[0]['p50_ms']:.1f} / {runs[0]['p99_ms']:.1f}" if "p50_ms" in runs[0] else "", cpu])
    return [*out, *table(["body", "system", "MB/s", "of bare NATS", "writes/s", "p50 / p99 ms", "processor time"], lines)]


def log_bytes(found):
    """Bytes of the log an event."""
    names = list(next(iter(found.values())))
    lines = [[batch, *(f"{of[name]:,.0f}" for name in names), *(f"{of[name] / of['embedded']:.2f}" for name in names[1:])] for batch, of in found.items()]
    return ["### Bytes of the log", "", "Files of the log after 400 writes, for an event; NATS with its own framing and index.", "",
            *table(["events a write", *names, *(f"{name} / embedded" for name in names[1:])], lines)]


def takeover(found):
    """Time until a write is acknowledged again."""
    lines = []
    for log in dict.fromkeys(one["log"] for one in found["rounds"]):
        runs = [one for one in found["rounds"] if one["log"] == log]
        reads, failed = sum(run["reads"]["reads"] for run in runs), sum(run["reads"]["failed"] for run in runs)
        lost = sum(run["acknowledged_events"] - run["held_events"] for run in runs)
        lines.append([log, len(runs), f"{runs[0]['tail_mb']:.0f} MB", f"{runs[0]['lease_s']} s", spread([run["took_s"] for run in runs], 2), f"{failed} of {reads:,}", lost])
    return ["### Takeover", "", "The owner is killed (SIGKILL) after writes that it has not flushed. Reads go to scan servers meanwhile.", "",
            *table(["log", "kills", "log before the kill", "lease", "first acknowledgement after, s", "reads that failed", "events lost"], lines)]


def handover(found):
    """How long writes wait."""
    lines = []
    for log in dict.fromkeys(one["log"] for one in found["rounds"]):
        runs = [one for one in found["rounds"] if one["log"] == log]
        failed = sum(run["failures"] + run["reads"]["failed"] for run in runs)
        asked = sum(run["writes"] + run["failures"] + run["reads"]["reads"] for run in runs)
        lines.append([log, len(runs), f"{runs[0]['lease_s']} s", spread([1000 * run["usual_s"] for run in runs]), spread([1000 * run["gap_s"] for run in runs]),
                      spread([run["took_s"] for run in runs], 1), f"{failed} of {asked:,}"])
    return ["### Handover", "", "`meridian cluster handover` while clients write one event after another and read from scan servers. The gap is the longest time without an acknowledgement.", "",
            *table(["log", "handovers", "lease", "longest wait before, ms", "gap, ms", "command, s", "requests that failed"], lines)]


def overload(found):
    """Twice the log's rate."""
    lines = []
    for one in found["rounds"]:
        statuses = ", ".join(f"{status} {count:,}" for status, count in sorted(one["statuses"].items(), key=lambda of: -of[1]))
        refusal = one["refusal_s"] and f"{1000 * one['refusal_s']['50']:.1f} / {1000 * one['refusal_s']['99']:.0f}"
        new = one["after"]["elections"] - one["before"]["elections"]
        kept = "kept" if one["after"]["epoch"] == one["before"]["epoch"] else "changed"
        back = "never" if one["back_s"] is None else f"{one['back_s']:.1f} s"
        lines.append([one["log"], f"{one['seconds']:.0f} s", f"{one['rate']:.0f}", f"{one['offered']:.0f}", f"{one['acknowledged_per_second']:.0f}", statuses, refusal or "none",
                      f"{one['write_s']['50']:.2f} / {one['write_s']['99']:.2f}", f"{kept}, {new}", f"{one['lost']}, {one['doubled']}", back])
    return ["### Overload of the log", "", "Batches of 100 KB, open loop, at twice the rate that 64 clients reach with one in flight each; three nodes. Leaders are the owner of the collections, and "
            "what the servers of the log elected meanwhile. Events are held against what was acknowledged, batch by batch. Back is the time until small writes take at most twice their usual time, "
            "for a second on end.", "",
            *table(["log", "for", "rate, batches/s", "offered", "acknowledged", "answers", "refusals p50 / p99, ms", "writes p50 / p99, s", "owner, elections", "batches lost, doubled", "back after"], lines)]


def latency(found):
    """Acknowledgements at half of the load."""
    of = {(one["size"], one["place"], one["system"]): one for one in found["median"]}
    lines = []
    for size in dict.fromkeys(one["size"] for one in found["median"]):
        for replicas, place in ((replicas, place) for replicas in (1, 3) for place in dict.fromkeys(one["place"] for one in found["median"] if one["size"] == size)):
            ours, theirs = of[size, place, f"cluster R{replicas}"], of[size, place, f"NATS R{replicas}"]
            lines.append([size, str(replicas), place, f"{ours['rate']:.0f}", f"{ours['p50_ms']:.1f} / {ours['p99_ms']:.1f}", f"{theirs['p50_ms']:.1f} / {theirs['p99_ms']:.1f}", f"{ours['p99_ms'] / theirs['p99_ms']:.1f}x"])
    return ["### Acknowledgements at half of the load", "", "Arrow bodies at half of the rate that two producers reach with one in flight each, open loop, beside the same bytes published to bare NATS at the same rate. "
            "Times count from when a batch was due.", "",
            *table(["body", "replicas", "files", "batches/s", "cluster p50 / p99, ms", "NATS p50 / p99, ms", "p99, cluster/NATS"], lines)]


def spacetime(found):
    """The study's loads by number of gateways."""
    lines = []
    for load in dict.fromkeys(one["load"] for one in found["rounds"]):
        of_load = [one for one in found["rounds"] if one["load"] == load]
        for request in of_load[0]["seen"]:
            cells = []
            for one in of_load:
                seen = one["seen"][request]
                failed = sum(count for outcome, count in seen["outcomes"].items() if outcome != "sound")
                cells.append(f"{seen['per_second']:,.1f}; {seen['p95_ms']:,.0f}" + (f"; {failed} failed" if failed else ""))
            lines.append([load, request, *cells])
    counts = list(dict.fromkeys(one["gateways"] for one in found["rounds"]))
    return ["### The space-time study", "", f"Loads of `bench/studies` over clusters of as many nodes, {found['seconds']:g} s each: users without a pause, over all gateways. Immediate reads, so one owner answers all. "
            "In a cell: requests a second; 95th percentile in ms. The first load is measured again after all others.", "",
            *table(["load", "request", *(f"{count} gateway{'s' if count > 1 else ''}" for count in counts)], lines), *forecasts(found)]


def forecasts(found):
    """What the simulator says of the same loads."""
    if not found.get("forecasts"):
        return []
    measured = {(one["load"], one["gateways"]): sum(of["per_second"] for of in one["seen"].values()) for one in found["rounds"]}
    lines = []
    for one in found["forecasts"]:
        here = [f"{said['per_second']:,.0f} / {measured[one['load'], said['gateways']]:,.0f}" for said in one["here"]]
        alone = [f"{said['per_second']:,.0f}; {said['p95_ms']:.1f}" for said in one["alone"]]
        times = ", ".join(f"{role} {1e6 * seconds:.0f}" for role, seconds in one["cpu_s"].items())
        lines.append([one["load"], times, *here, *alone])
    counts = [f"here, {said['gateways']}: forecast / measured" for said in found["forecasts"][0]["here"]] + [f"own machines, {said['gateways']}" for said in found["forecasts"][0]["alone"]]
    return ["", "What `meridian lab simulate bench/studies/gateways.toml` says with the processor times of one gateway: requests a second on this machine, beside what was measured; and with two "
            "processors for each gateway and for the owner (requests a second; 95th percentile in ms).", "", *table(["load", "processor time of a request, us", *counts], lines)]
