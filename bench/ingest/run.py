"""bench-ingest: how fast events are taken in durably, beside QuestDB, PostgreSQL and the bare disk.

Events {symbol, type, price, time} in batches of 1, 100 and 10,000 over one connection, then single events over 64
connections. Each system speaks its own best protocol, bodies are made before the clock starts, a batch counts once it is
acknowledged. Processor seconds are taken from right before the first batch until the server is idle again. So flushes
and merges left for later are paid for.

    make bench-ingest                                        at the default sizes
    make bench-ingest ARGS="--rows 10000000 --seconds 30"    the full size
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from common import DRIVER, MERIDIAN, Server, cpu_seconds, free_port, need, resident_mb, save, say, settle, steal_and_load, written_bytes
from peers import Postgres, http, meridian, meridian_metrics, questdb, questdb_applied, start_meridian, start_questdb

SCHEMA = "symbol:String,type:Long,price:Double,time:Date"
TABLE = "symbol text, type int8, price float8, time timestamptz"
QUESTDB_TABLE = "(symbol SYMBOL, type LONG, price DOUBLE, timestamp TIMESTAMP) TIMESTAMP(timestamp) PARTITION BY DAY WAL"
TARGETS = {"arrow": "/collections/events/items", "ndjson": "/collections/events/items", "ilp": "/write?precision=u"}


class Meridian:
    """A collection of events without a place."""

    durable = "fdatasync"

    def __init__(self, folder):
        self.server = start_meridian(folder)

    def empty(self):
        """A new, empty collection."""
        if any(c["id"] == "events" for c in json.loads(http(self.server, "GET", "/collections?f=json"))["collections"]):
            http(self.server, "DELETE", "/collections/events")
        meridian(self.server, "create", "events", "--schema", SCHEMA)

    def count(self, _expected):
        """Events that a question sees."""
        return json.loads(http(self.server, "GET", "/collections/events/aggregate?function=count"))["groups"][0]["count"]

    def rest(self):
        """Has everything archived, as it would be some time later."""
        meridian(self.server, "files", "events")
        settle(self.server.pid)

    def chain(self):
        """Bytes taken and bytes written so far, by stage."""
        found = meridian_metrics(self.server)
        return {stage: found[f"meridian_{stage}_bytes_total"] for stage in ("log", "flush", "merge", "rest_written", "sidecar")} | {
            "taken": found["meridian_bytes_taken_total"]}


class Questdb:
    """A write-ahead-log table partitioned by day."""

    def __init__(self, folder, sync):
        self.durable = "sync" if sync else "nothing synced"
        self.server = start_questdb(folder, sync)

    def empty(self):
        """A new, empty table."""
        questdb(self.server, "DROP TABLE IF EXISTS events")
        questdb(self.server, f"CREATE TABLE events {QUESTDB_TABLE}")

    def count(self, expected):
        """Waits for the log to be applied."""
        questdb_applied(self.server, "events", expected)
        return questdb(self.server, "SELECT count() FROM events")[0][0]


class Postgresql:
    """A table without any index: the least work that PostgreSQL can do."""

    durable = "fdatasync"

    def __init__(self, folder):
        self.server = Postgres(folder)

    def empty(self):
        """A new, empty table."""
        self.server.psql(f"DROP TABLE IF EXISTS events; CREATE TABLE events ({TABLE})")

    def count(self, _expected):
        """Rows."""
        return int(self.server.psql("SELECT count(*) FROM events"))


SYSTEMS = {
    "meridian": (Meridian, ["arrow", "ndjson"]),
    "questdb sync": (lambda folder: Questdb(folder, True), ["ilp"]),
    "questdb default": (lambda folder: Questdb(folder, False), ["ilp"]),
    "postgres": (Postgresql, ["copy", "insert"]),
}


def ingest(system, encoding, batch, events, seconds, connections):
    """One measured load into an emptied collection."""
    system.empty()
    server = system.server
    settle(server.pid)
    argv = [DRIVER, "ingest", "--encoding", encoding, "--address", f"127.0.0.1:{server.port}", "--batch", batch, "--events", events,
            "--seconds", seconds, "--connections", connections, "--target", TARGETS.get(encoding, "/")]
    driver = subprocess.Popen([str(a) for a in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if driver.stdout.readline() != "ready\n":
        sys.exit("bench: the driver did not start")
    cpu, written = cpu_seconds(server.pid), written_bytes(server.pid)
    chain = system.chain() if hasattr(system, "chain") else {}
    driver.stdin.write("go\n")
    driver.stdin.close()
    result = json.loads(driver.stdout.readline())
    driver.wait()
    if result["errors"]:
        sys.exit(f"bench: {server.name}, {encoding}, batches of {batch}: {result['first_error']}")
    result["server_cpu_s"] = cpu_seconds(server.pid) - cpu
    result["settle_s"] = settle(server.pid)
    result["server_cpu_settled_s"] = cpu_seconds(server.pid) - cpu
    result["resident_mb"] = resident_mb(server.pid)
    if chain:
        system.rest()
        result["chain"] = {stage: now - chain[stage] for stage, now in system.chain().items()}
    result["written_bytes"] = written_bytes(server.pid) - written
    seen = system.count(result["events"])
    if seen != result["events"]:
        sys.exit(f"bench: {server.name} acknowledged {result['events']:,} events and shows {seen:,}")
    return result


def raw(folder, encoding, batch, events, seconds, recycled):
    """The bare disk: the same bytes, one sync a batch."""
    argv = [DRIVER, "raw", "--file", folder / "raw", "--encoding", encoding, "--batch", batch, "--events", events, "--seconds", seconds]
    run = subprocess.run([str(a) for a in argv] + ["--recycled"] * recycled, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"bench: {run.stderr.strip()}")
    return json.loads(run.stdout)


class Null:
    """The ceiling of single events over HTTP: a handler that does nothing."""

    durable = "nothing kept"

    def __init__(self, _folder):
        port = free_port()
        self.server = Server("null", [DRIVER, "null", "--listen", f"127.0.0.1:{port}"], port)
        self.empty = lambda: None
        self.count = lambda expected: expected


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000, help="most events of a cell (the full size: 10000000)")
    parser.add_argument("--seconds", type=float, default=4.0, help="most seconds of a cell (the full size: 30)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 100, 10_000])
    parser.add_argument("--connections", type=int, default=64, help="writers of single events")
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS))
    parser.add_argument("--name", default="ingest", help="the file of bench/results to write")
    options = parser.parse_args()
    need(MERIDIAN, DRIVER, "psql", "java")
    # Single events and small batches are made for as long as the fastest could take them, not for all rows.
    most = {1: int(20_000 * options.seconds), 100: int(1_000_000 * options.seconds)}
    cells, quiet = {}, [steal_and_load()]
    def keep(system, encoding, batch, connections, result):
        cells.setdefault((system, encoding, batch, connections), []).append(result)
        say(f"{system}, {encoding}, {batch:,} x {connections}: {result['events_per_second']:,.0f} events/s, p50 {result['p50_ms']:.2f} ms, "
            f"CPU {result.get('server_cpu_settled_s', 0) / max(result['events'], 1) * 1e6:,.2f} s a million")
    for round_number in range(options.rounds):
        say(f"round {round_number + 1} of {options.rounds}")
        for name in options.systems:
            start, encodings = SYSTEMS[name]
            with tempfile.TemporaryDirectory(prefix="bench-ingest-") as folder:
                system = start(pathlib.Path(folder))
                with system.server:
                    for batch, connections in [(b, 1) for b in options.batches] + [(1, options.connections)]:
                        for encoding in encodings:
                            events = min(options.rows, most.get(batch, options.rows) * (3 if connections > 1 else 1))
                            result = ingest(system, encoding, batch, events, options.seconds, connections)
                            keep(name, encoding, batch, connections, result | {"durable": system.durable})
        with tempfile.TemporaryDirectory(prefix="bench-ingest-") as folder:
            for batch in options.batches:
                for encoding in ("arrow", "ndjson"):
                    for recycled in (False, True):
                        result = raw(pathlib.Path(folder), encoding, batch, min(options.rows, most.get(batch, options.rows)), options.seconds / 2, recycled)
                        keep("disk, written over" if recycled else "disk, appended", encoding, batch, 1, result | {"durable": "fdatasync"})
            null = Null(folder)
            with null.server:
                result = ingest(null, "ndjson", 1, int(200_000 * options.seconds), options.seconds, options.connections)
                keep("null handler", "ndjson", 1, options.connections, result | {"durable": null.durable})
        quiet.append(steal_and_load())
    save(options.name, {
        "rows": options.rows, "seconds": options.seconds, "rounds": options.rounds, "connections": options.connections, "quiet": quiet,
        "cells": [{"system": s, "encoding": e, "batch": b, "connections": c, "runs": runs} for (s, e, b, c), runs in cells.items()],
    })


if __name__ == "__main__":
    main()
