"""bench-aggregate: count and average by hour, day and month, whole and in a box, beside DuckDB, QuestDB and ClickHouse (chdb).

The events of `bench/data.py`, at several sizes: does the time of an answer grow with the events or with the windows?
Meridian is asked over HTTP, in one collection with places and one without. QuestDB is asked over HTTP. DuckDB and chdb
run inside this process, without a wire. The groups of every question are compared between the systems before anything
is timed.

    make bench-aggregate                                             at the default sizes
    make bench-aggregate ARGS="--rows 1000000 10000000 100000000"    the full sizes
"""

import argparse
import calendar
import datetime
import json
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import data
from common import DRIVER, MERIDIAN, RESULTS, cpu_seconds, drive, need, resident_mb, save, say, steal_and_load
from peers import duckdb_spatial, http, meridian, questdb, questdb_applied, start_meridian, start_questdb

BOX = (-125.0, 30.0, -110.0, 42.0)
YEAR, MONTH = ("2024-01-01T00:00:00Z", "2024-12-31T23:59:59Z"), ("2024-05-01T00:00:00Z", "2024-05-31T23:59:59Z")
# What: (window, interval or None for all three years, in a box?). A month by the hour has 744 windows, the whole 1,095 days and 36 months.
QUESTIONS = {
    "hours of a month, all": ("hour", MONTH, None), "days of a year, all": ("day", YEAR, None), "months, all": ("month", None, None),
    "days, all": ("day", None, None), "one number, all": (None, None, None),
    "hours of a month, box": ("hour", MONTH, BOX), "days of a year, box": ("day", YEAR, BOX), "months, box": ("month", None, BOX)}
ISO, QUESTDB_UNITS = {"hour": "PT1H", "day": "P1D", "month": "P1M"}, {"hour": "1h", "day": "1d", "month": "1M"}
CLICKHOUSE = {"hour": "toUnixTimestamp(toStartOfHour(time))", "day": "toUnixTimestamp(toStartOfDay(time))",
              "month": "toUnixTimestamp(toDateTime(toStartOfMonth(time), 'UTC'))"}


def key_of(start):
    """The start of a window, in seconds since 1970, from what a system calls it."""
    if start is None:
        return 0
    if isinstance(start, str):
        start = datetime.datetime.fromisoformat(start.replace("Z", "+00:00"))
    if isinstance(start, (datetime.date, datetime.datetime)):
        return calendar.timegm(start.timetuple())
    return int(start)


class Meridian:
    """A collection; `place` says whether it has the events' positions.

    `scan` adds a condition on a text that all events meet and no summary can prove. Then every block that the box and
    the interval touch is read and tested event by event. The tree saves that work.
    """

    def __init__(self, server, collection, place, scan=False):
        self.server, self.collection, self.place, self.scan = server, collection, place, scan

    def target(self, what):
        window, interval, box = QUESTIONS[what]
        words = ["function=count,avg(value)"]
        words += ["window=" + ISO[window]] if window else []
        words += [f"datetime={interval[0]}/{interval[1]}"] if interval else []
        words += ["bbox=" + ",".join(map(str, box))] if box else []
        words += ["filter=" + data.quoted("kind <> 'no such kind'")] if self.scan else []
        return f"/collections/{self.collection}/aggregate?" + "&".join(words)

    def ask(self, what, more=""):
        return json.loads(http(self.server, "GET", self.target(what) + more))

    def can(self, what):
        in_box = QUESTIONS[what][2] is not None
        return in_box if self.scan else self.place or not in_box

    def groups(self, answer):
        return {key_of(g["window"].split("/")[0] if "window" in g else None): (g["count"], g["avg(value)"]) for g in answer["groups"]}


class Sql:
    """A system that is asked in SQL: its own word for the start of a window, and for a box."""

    def __init__(self, execute, truncated, server=None):
        self.execute, self.truncated, self.server = execute, truncated, server

    def can(self, _what):
        return True

    def ask(self, what):
        return self.execute(self.sql(what))

    def target(self, what):
        return "/exec?query=" + data.quoted(self.sql(what))

    def sql(self, what):
        window, interval, box = QUESTIONS[what]
        conditions = []
        if interval:
            conditions.append(f"time >= '{interval[0]}' AND time <= '{interval[1]}'")
        if box:
            conditions.append(f"lon >= {box[0]} AND lon <= {box[2]} AND lat >= {box[1]} AND lat <= {box[3]}")
        where = " WHERE " + " AND ".join(conditions) if conditions else ""
        start = self.truncated(window) + " AS start, " if window else ""
        return f"SELECT {start}count(*), avg(value) FROM events{where}" + (" GROUP BY start ORDER BY start" if window else "")

    def groups(self, rows):
        return {key_of(row[0] if len(row) == 3 else None): (row[-2], row[-1]) for row in rows}


def start_chdb(folder, files):
    """ClickHouse inside this process: a MergeTree in order of time."""
    from chdb import session
    clickhouse = session.Session(str(folder / "chdb"))
    clickhouse.query("CREATE DATABASE bench ENGINE = Atomic; USE bench")
    clickhouse.query("CREATE TABLE events (id Int64, kind LowCardinality(String), value Float64, time DateTime64(6, 'UTC'), lon Float64, lat Float64) "
                     "ENGINE = MergeTree ORDER BY time PARTITION BY toYYYYMM(time)")
    for file in files:
        clickhouse.query(f"INSERT INTO events SELECT id, kind, value, time, lon, lat FROM file('{file}', Parquet)")
    clickhouse.query("OPTIMIZE TABLE events FINAL")
    def execute(sql):
        sql = sql.replace("Z'", "'")
        return [tuple(json.loads(line)) for line in str(clickhouse.query(sql, "JSONCompactEachRow")).splitlines()]
    return Sql(execute, CLICKHOUSE.get), clickhouse


def check(systems):
    """The same windows, counts exactly, averages to 1e-9, from all."""
    groups = {}
    for what in QUESTIONS:
        expected = None
        for name, system in systems.items():
            if not system.can(what):
                continue
            got = system.groups(system.ask(what))
            if expected is None:
                expected, first = got, name
                groups[what] = (len(got), sum(count for count, _ in got.values()))
            same = got.keys() == expected.keys() and all(
                got[k][0] == expected[k][0] and abs(got[k][1] - expected[k][1]) <= 1e-9 * max(1, abs(expected[k][1])) for k in got)
            if not same:
                differing = [(k, got.get(k), expected.get(k)) for k in sorted(got.keys() | expected.keys()) if got.get(k) != expected.get(k)]
                sys.exit(f"bench: {what}: {name} and {first} differ in {len(differing)} groups, such as {differing[:3]}")
    say(f"{len(QUESTIONS)} questions answered alike")
    return groups


def timed(system, what, seconds, folder):
    """One question again and again: over one connection of the driver's, or in this process."""
    if system.server:
        file = folder / "question.txt"
        file.write_text(system.target(what) + "\n")
        result = drive(system.server, "http", "{1}", file, seconds, 1)
        return {key: result[key] for key in ("answers", "p50_ms", "p95_ms")} | {"cpu_ms": result["cpu_us"] / 1000}
    took, cpu, began = [], cpu_seconds(os.getpid()), time.time()
    while not took or time.time() - began < seconds:
        sent = time.perf_counter()
        system.ask(what)
        took.append((time.perf_counter() - sent) * 1000)
    took.sort()
    cpu = cpu_seconds(os.getpid()) - cpu
    return {"answers": len(took), "p50_ms": took[len(took) // 2], "p95_ms": took[int(len(took) * 0.95)], "cpu_ms": cpu * 1000 / len(took)}


def one_size(options, rows):
    """All systems at one number of events."""
    files = data.events(rows, options.seed)
    with tempfile.TemporaryDirectory(prefix="bench-aggregate-") as name:
        folder, took = pathlib.Path(name), {}
        def load(what, work):
            began = time.time()
            made = work()
            took[what] = time.time() - began
            say(f"{rows:,} events: {what} loaded in {took[what]:.0f} s")
            return made
        with start_meridian(folder) as ours, start_questdb(folder) as quest, duckdb_spatial() as duck:
            meridian(ours, "create", "events", "--schema", data.SCHEMA.replace(";meridian.id='given'", ""))
            meridian(ours, "create", "plain", "--schema", "kind:String,value:Double,time:Date")
            load("meridian", lambda: meridian(ours, "load", "events", *files, "--quiet", "--ignore-unknown"))
            load("meridian, no place", lambda: meridian(ours, "load", "plain", *files, "--quiet", "--ignore-unknown"))
            names = ", ".join(f"'{f}'" for f in files)
            load("duckdb", lambda: duck.execute(f"CREATE TABLE events AS SELECT * REPLACE (time::TIMESTAMP AS time) FROM read_parquet([{names}]) ORDER BY time"))
            def fill_questdb():
                questdb(quest, "CREATE TABLE events (id LONG, kind SYMBOL, value DOUBLE, time TIMESTAMP, lon DOUBLE, lat DOUBLE) "
                               "TIMESTAMP(time) PARTITION BY MONTH WAL")
                for file in files:
                    questdb(quest, f"INSERT INTO events SELECT id, kind, value, time, lon, lat FROM read_parquet('{file}')")
                questdb_applied(quest, "events", rows)
            load("questdb", fill_questdb)
            clickhouse, session = load("chdb", lambda: start_chdb(folder, files))
            systems = {
                "meridian": Meridian(ours, "events", True), "meridian, no place": Meridian(ours, "plain", False),
                "meridian, scan": Meridian(ours, "events", True, scan=True),
                "duckdb": Sql(lambda sql: duck.execute(sql).fetchall(), lambda w: f"epoch(date_trunc('{w}', time))"),
                "questdb": Sql(lambda sql: questdb(quest, sql), lambda w: f"timestamp_floor('{QUESTDB_UNITS[w]}', time)", quest),
                "chdb": clickhouse}
            groups = check(systems)
            runs = {}
            for round_number in range(options.rounds):
                for what in QUESTIONS:
                    for name, system in systems.items():
                        if system.can(what):
                            runs.setdefault((what, name), []).append(timed(system, what, options.seconds, folder))
                say(f"{rows:,} events, round {round_number + 1}/{options.rounds}: months, all: "
                    + ", ".join(f"{n} {runs['months, all', n][-1]['p50_ms']:.2f} ms" for n in systems if ("months, all", n) in runs))
            explained = {what: systems["meridian"].ask(what, "&explain=true") for what in QUESTIONS}
            memory = {"meridian": resident_mb(ours.pid), "questdb": resident_mb(quest.pid)}
            session.close()
    return {"rows": rows, "load_s": took, "resident_mb": memory, "explained": explained,
            "cells": [{"what": w, "system": s, "windows": groups[w][0], "events": groups[w][1], "runs": r} for (w, s), r in runs.items()]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 3_000_000], help="sizes (the full ones: 1000000 10000000 100000000)")
    parser.add_argument("--seconds", type=float, default=1.0, help="seconds of each cell")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--add", action="store_true", help="keep what an earlier run measured at other sizes")
    options = parser.parse_args()
    need(MERIDIAN, DRIVER, "java", "zstd")
    before = json.loads((RESULTS / "aggregate.json").read_text()) if options.add else {"quiet": [], "sizes": []}
    sizes = [size for size in before["sizes"] if size["rows"] not in options.rows]
    quiet = [*before["quiet"], steal_and_load()]
    for rows in options.rows:
        sizes.append(one_size(options, rows))
        quiet.append(steal_and_load())
    sizes.sort(key=lambda size: size["rows"])
    save("aggregate", {"rows_text": " ".join(str(size["rows"]) for size in sizes), "seconds": options.seconds, "rounds": options.rounds,
                       "seed": options.seed, "quiet": quiet, "sizes": sizes})


if __name__ == "__main__":
    main()
