"""The tables of docs/sizing.md: `make sizing` writes them, and `make test` holds them against what this gives.

Measured numbers come from bench/results, prices and assumptions from inputs.toml, and the rest from the simulator (`lab simulate` and `lab cost` over
tier.toml). The same inputs give the same tables, byte by byte.
"""

import argparse
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GUIDE = ROOT / "docs" / "sizing.md"
PICTURE = ROOT / "docs" / "images" / "sizing.svg"
INPUTS = tomllib.loads((HERE / "inputs.toml").read_text())
TIER = tomllib.loads((HERE / "tier.toml").read_text())
PRICES, ASSUMED, SIMULATED = INPUTS["prices"], INPUTS["assumed"], INPUTS["simulated"]
TERA = 1e12
PROCESSOR_S = PRICES["machine_hour"] / PRICES["machine_processors"] / 3600
SIZES = [1e9, 1e10, 1e11, 1e12]
NAMES = {1e8: "10^8", 1e9: "10^9", 1e10: "10^10", 1e11: "10^11", 1e12: "10^12"}
# Families of questions of bench-spacetime, by the names that the guide has for them.
QUESTIONS = [("a country and a month, few events", "countries", "small"), ("a circle, few events", "cities", "small"), ("a circle, many events", "cities", "large"), ("a country and a month, many events", "countries", "large")]
KEPT = {"few": ("countries", "small"), "many": ("countries", "large")}


def results(name):
    return json.loads((ROOT / "bench" / "results" / f"{name}.json").read_text())


class Measured:
    """What benches have measured; each with the sentence that says where."""

    def __init__(self):
        footprint, scaling, space = results("footprint"), results("scaling"), results("spacetime")
        events = footprint["sets"]["events"]
        endings = events["systems"]["meridian"]["endings"]
        each = lambda *names: sum(endings[name] for name in names) / events["count"]
        # The spare file of the log is of a data folder, and in no bucket.
        self.event_bytes = each(".rows", ".parquet", ".segment", ".keys", "MANIFEST")
        self.index_bytes, self.rows_bytes = each(".segment"), each(".rows")
        largest = scaling["sizes"][-1]
        self.load_events, self.load_cpu_us = largest["rows"], largest["load_cpu_s"] / largest["rows"] * 1e6
        self.answers = {}
        for run in space["runs"]:
            if run["system"] == "meridian" and run["connections"] == 1:
                rounds = run["runs"]
                self.answers[run["family"], run["size"]] = {
                    "cpu_ms": statistics.median(one["cpu_us"] for one in rounds) / 1e3,
                    "p50_ms": statistics.median(one["p50_ms"] for one in rounds),
                    "bytes": statistics.median(one["bytes_mean"] for one in rounds),
                }
        for one in space["classes"]:
            if (one["family"], one["size"]) in self.answers:
                self.answers[one["family"], one["size"]]["hits"] = one["hits_median"]
        self.commits = {"footprint": footprint, "scaling": scaling, "spacetime": space}
        self.segment_rows = 1 << int(re.search(r"segment_rows_max: 1 << (\d+)", (ROOT / "crates/store/src/options.rs").read_text())[1])

    def source(self, name):
        one = self.commits[name]
        return f"bench-{name}, {one['date']}, commit {one['commit']}, {one['machine'].split(',')[0]}"


def money(dollars):
    """Three digits; whole dollars from a hundred on."""
    if dollars >= 100:
        return f"{dollars:,.0f}"
    return f"{dollars:.2f}" if dollars >= 1 else f"{dollars:.2g}"


def number(x):
    """Three digits."""
    if x >= 100:
        return f"{x:,.0f}"
    return f"{x:.1f}" if x >= 10 else f"{x:.2f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def inputs_table(measured):
    rows = [
        ("bytes of an event in the bucket", f"{measured.event_bytes:.1f} B", "measured", measured.source("footprint") + ": rows, archive and trees of 10^7 events {id, kind, value, time, place}"),
        ("of these, trees and keys", f"{measured.index_bytes:.1f} B", "measured", "the same"),
        ("processor time of a loaded event", f"{measured.load_cpu_us:.2f} µs", "measured", measured.source("scaling") + ": 10^8 events, flushes and merges included, one process"),
    ]
    for name, family, size in QUESTIONS:
        one = measured.answers[family, size]
        rows.append((f"processor time of {name}", f"{one['cpu_ms']:.2f} ms", "measured", measured.source("spacetime") + f": {one['hits']:,.0f} events at the median, of 10^7; warm, one process"))
    rows += [
        ("max rows of a segment", f"{measured.segment_rows:,}", "of the code", "`crates/store/src/options.rs`"),
        ("a machine of 8 processors", f"{PRICES['machine_hour']} {PRICES['currency']}/h", "price", f"{PRICES['region']}, {PRICES['machine_date']}: {PRICES['machine_source']}"),
        ("a gigabyte for a month", f"{PRICES['store_gigabyte_month']} {PRICES['currency']}", "price", f"a stored page, read {PRICES['store_date']}: {PRICES['store_source']}"),
        ("1,000 creates or listings; 1,000 reads", f"{PRICES['create_thousand']}; {PRICES['read_thousand']} {PRICES['currency']}", "price", "the same"),
        ("a gigabyte to the internet", f"{PRICES['internet_gigabyte']} {PRICES['currency']}", "price", "the same; within a region nothing"),
        ("first byte of a read of the store", f"{ASSUMED['first_byte_ms']} ms", "assumed", ""),
        ("dependent reads of a cold question", ASSUMED["dependent_reads"], "assumed", "the bound that issue 21 sets"),
        ("share of cold questions", f"{ASSUMED['cold_share']:.0%}", "assumed", "follows from the size of caches, which was not measured"),
        ("bytes of a read of rows", f"{ASSUMED['read_bytes']:,}", "assumed", ""),
        ("busy timeout; servers of a first attempt", f"{ASSUMED['busy_ms']} ms; {ASSUMED['initial']}", "assumed", "those of the scan-server study ([simulate.md](simulate.md#scan-tiers))"),
        ("questions at once on a scan server", ASSUMED["places"], "assumed", "two for each processor"),
        ("events of a partition", f"{ASSUMED['partition_events']:.0e}".replace("e+0", " × 10^"), "assumed", "40 times what was measured in one process"),
        ("share of an owner's processors for writes", f"{ASSUMED['owner_share']:.0%}", "assumed", ""),
    ]
    return table(["number", "value", "", "from"], rows)


def storage_table(measured):
    rows = []
    for events in SIZES:
        size = events * measured.event_bytes
        partitions = max(1, math.ceil(events / ASSUMED["partition_events"]))
        segments = math.ceil(events / measured.segment_rows)
        processor_h = events * measured.load_cpu_us / 1e6 / 3600
        rate = PRICES["machine_processors"] * ASSUMED["owner_share"] / (measured.load_cpu_us / 1e6)
        rows.append((NAMES[events], number(size / TERA), number(events * measured.index_bytes / TERA), partitions, f"{segments:,}", money(size / 1e9 * PRICES["store_gigabyte_month"]), number(processor_h), money(processor_h * 3600 * PROCESSOR_S), number(events / rate / 3600)))
    return table(["events", "TB in the bucket", "of them trees", "partitions", "segments (min)", "store, USD a month", "load: processor hours", "load: USD", "load by one owner, hours"], rows)


def terabyte_table(measured):
    events = TERA / measured.event_bytes
    load_s = events * measured.load_cpu_us / 1e6
    answer = measured.answers["countries", "large"]
    scan_s = events * answer["cpu_ms"] / 1e3 / answer["hits"]
    reads = TERA / ASSUMED["read_bytes"]
    rows = [
        ("events in it", f"10^12 B / {measured.event_bytes:.1f} B = {events:.2e}", ""),
        ("to load it: processors", f"{events:.2e} × {measured.load_cpu_us:.2f} µs = {number(load_s)} s, at {PROCESSOR_S:.2e} USD", money(load_s * PROCESSOR_S)),
        ("to keep it for a month", f"1,000 GB × {PRICES['store_gigabyte_month']} USD", money(1000 * PRICES["store_gigabyte_month"])),
        ("to scan all of it once: processors", f"{events:.2e} × {answer['cpu_ms'] * 1e3 / answer['hits']:.3f} µs = {number(scan_s)} s", money(scan_s * PROCESSOR_S)),
        ("to scan all of it once: reads", f"10^12 B / {ASSUMED['read_bytes']:,} B = {reads:,.0f} reads", money(reads / 1000 * PRICES["read_thousand"])),
        ("to send it to the internet once", f"1,000 GB × {PRICES['internet_gigabyte']} USD", money(1000 * PRICES["internet_gigabyte"])),
    ]
    return table(["a terabyte", "arithmetic", "USD"], rows)


def question_table(measured):
    rows = []
    for name, family, size in QUESTIONS:
        one = measured.answers[family, size]
        # Beyond the dependent reads, those of the rows.
        reads = ASSUMED["dependent_reads"] + math.floor(one["hits"] * measured.rows_bytes / ASSUMED["read_bytes"])
        cold = reads / 1000 * PRICES["read_thousand"] * 1e6
        processor = one["cpu_ms"] / 1e3 * PROCESSOR_S * 1e6
        sent = one["bytes"] / 1e9 * PRICES["internet_gigabyte"] * 1e6
        rows.append((name, f"{one['hits']:,.0f}", f"{one['cpu_ms']:.2f}", number(one["bytes"] / 1e3), money(processor), reads, money(cold), money(processor + ASSUMED["cold_share"] * cold), money(sent)))
    return table(["a million questions", "events (median)", "processor, ms", "kB of an answer", "processors, USD", "reads of a cold one", "reads if all are cold, USD", f"together, {ASSUMED['cold_share']:.0%} cold, USD", "to the internet, USD more"], rows)


def storage_ms(measured, workload):
    """Mean time that a question waits for the store."""
    first = ASSUMED["dependent_reads"] * ASSUMED["first_byte_ms"]
    rows = measured.answers[KEPT[workload]]["hits"] * measured.rows_bytes
    # Rows beyond the first read come side by side, one more wait for them all.
    more = ASSUMED["first_byte_ms"] if rows > ASSUMED["read_bytes"] else 0
    return ASSUMED["cold_share"] * (first + more)


def simulate(meridian, measured, workload, servers, clients):
    changes = {
        # Enough scans for a mean, and few enough for a thousand servers.
        "warm_up_scans": 1, "measured_scans": max(3, min(200, SIMULATED["scans"] // clients)),
        "workload": workload, "servers": servers, "threads": clients, "initial": min(ASSUMED["initial"], servers), "busy_ms": ASSUMED["busy_ms"], "tablets": ASSUMED["tablets"],
        "machine.cores": PRICES["machine_processors"], "machine.executor_threads": ASSUMED["places"], "machine.batch_entries": ASSUMED["batch_events"],
        f"workloads.{workload}.cpu_ms": round(measured.answers[KEPT[workload]]["cpu_ms"], 2), f"workloads.{workload}.storage_ms": round(storage_ms(measured, workload), 2),
        f"workloads.{workload}.turnaround_ms": ASSUMED["turnaround_ms"],
    }
    sets = [part for key, value in changes.items() for part in ("--set", f"{key}={value}")]
    said = subprocess.run([meridian, "lab", "simulate", HERE / "tier.toml", "--json", *sets], capture_output=True, text=True)
    if said.returncode:
        raise SystemExit(f"lab simulate: {said.stderr.strip()}")
    return json.loads(said.stdout)


def simulated_rows(meridian, measured, runs):
    for workload, servers, clients in runs:
        found = simulate(meridian, measured, workload, servers, clients)
        cpu_ms = measured.answers[KEPT[workload]]["cpu_ms"]
        rate = clients / found["mean_ms"] * 1e3
        busy = rate * cpu_ms / 1e3 / (servers * PRICES["machine_processors"])
        hour = servers * PRICES["machine_hour"]
        yield (workload, f"{servers:,}", f"{clients:,}", number(found["mean_ms"]), number(found["sd_ms"]), number(found["max_ms"]), found["busy_events"], f"{rate:,.0f}", f"{busy:.0%}", money(hour), money(hour / (rate * 3600) * 1e6))


HEAD = ["question", "scan servers", "clients", "mean, ms", "deviation", "max", "busy answers a 1,000", "answers/s", "processors in use", "USD/h", "USD a million"]


def sizes_table(meridian, measured, largest):
    each = SIMULATED["clients_per_server"]
    runs = [(workload, servers, servers * each) for workload in KEPT for servers in SIMULATED["servers"] if servers <= largest]
    return table(HEAD, simulated_rows(meridian, measured, runs))


def load_table(meridian, measured):
    servers = SIMULATED["load_servers"]
    runs = [("many", servers, servers * each) for each in SIMULATED["load_clients"]]
    return table(HEAD, simulated_rows(meridian, measured, runs))


def cost_table(meridian, picture):
    """What `lab cost` says of each promise; its picture goes to a path."""
    with tempfile.TemporaryDirectory() as folder:
        said = subprocess.run([meridian, "lab", "cost", HERE / "cost", "--json", "--out", folder], capture_output=True, text=True)
        # 1: some promise is kept by no size, which the table says.
        if said.returncode not in (0, 1):
            raise SystemExit(f"lab cost: {said.stderr.strip()}")
        picture[PICTURE] = (pathlib.Path(folder) / "cost.svg").read_text()
    rows = []
    for offer in json.loads(said.stdout)["offers"]:
        best = offer["cheapest"]
        if best is None:
            rows.append((offer["pattern"], offer["promise"], f"none of up to {offer['bills'][-1]['size']}", "", ""))
        else:
            rows.append((offer["pattern"], offer["promise"], best["size"], money(best["per_day"]), money(best["per_thousand_satisfied"] * 1000)))
    return table(["clients", "promise", "scan servers", "USD a day", "USD a million kept"], rows)


def agree(measured):
    """The files that `lab` reads as they stand have the numbers of inputs.toml and of the benches."""
    cost = tomllib.loads((HERE / "cost" / "cost.toml").read_text())
    expected = {
        "cost.toml: prices.machine_hour": (cost["prices"]["machine_hour"], PRICES["machine_hour"]),
        "tier.toml: busy_ms": (TIER["busy_ms"], ASSUMED["busy_ms"]),
        "tier.toml: initial": (TIER["initial"], ASSUMED["initial"]),
        "tier.toml: tablets": (TIER["tablets"], ASSUMED["tablets"]),
        "tier.toml: machine.cores": (TIER["machine"]["cores"], PRICES["machine_processors"]),
        "tier.toml: machine.executor_threads": (TIER["machine"]["executor_threads"], ASSUMED["places"]),
        "tier.toml: machine.batch_entries": (TIER["machine"]["batch_entries"], ASSUMED["batch_events"]),
    }
    for workload in KEPT:
        work = TIER["workloads"][workload]
        expected[f"tier.toml: workloads.{workload}.cpu_ms"] = (work["cpu_ms"], round(measured.answers[KEPT[workload]]["cpu_ms"], 2))
        expected[f"tier.toml: workloads.{workload}.storage_ms"] = (work["storage_ms"], round(storage_ms(measured, workload), 2))
        expected[f"tier.toml: workloads.{workload}.turnaround_ms"] = (work["turnaround_ms"], ASSUMED["turnaround_ms"])
    return [f"{name} is {found}: expected {wanted}" for name, (found, wanted) in expected.items() if found != wanted]


def replaced(text, tables):
    for name, content in tables.items():
        begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        before, found, rest = text.partition(begin)
        _, ended, after = rest.partition(end)
        if not found or not ended:
            raise SystemExit(f"{GUIDE}: it has no place for {name}: expected {begin.strip()} and {end.strip()}")
        text = before + begin + content + end + after
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--meridian", default=str(ROOT / "target" / "release" / "meridian"), help="the program")
    parser.add_argument("--check", action="store_true", help="write nothing, and end with 1 if the guide has other tables")
    options = parser.parse_args()
    measured, files = Measured(), {}
    wrong = agree(measured)
    if wrong:
        raise SystemExit("\n".join(wrong))
    tables = {
        "inputs": inputs_table(measured),
        "storage": storage_table(measured),
        "terabyte": terabyte_table(measured),
        "questions": question_table(measured),
        "sizes": sizes_table(options.meridian, measured, max(SIMULATED["servers"])),
        "load": load_table(options.meridian, measured),
        "cost": cost_table(options.meridian, files),
    }
    files[GUIDE] = replaced(GUIDE.read_text(), tables)
    stale = [path for path, content in files.items() if not path.is_file() or path.read_text() != content]
    if not options.check:
        for path in stale:
            path.write_text(files[path])
    names = ", ".join(str(path.relative_to(ROOT)) for path in stale)
    print(f"{'differs from what bench/sizing/size.py gives' if options.check else 'written'}: {names}" if stale else "the sizing guide is what its inputs give")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
