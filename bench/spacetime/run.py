"""bench-spacetime: what happened here, then; the whole result delivered, beside PostGIS, DuckDB and QuestDB.

Real events with their clustering, replicated over three years (`bench/data.py`). There are three families of questions.
Circles lie around ten cities (10 to 650 km, 6 days to 14 months), as polygons. The others are countries by month, and
cells of a grid (levels 4 to 8, 5 to 31 days). All systems get the same polygons, planar in degrees, and must return the
same events; QuestDB has no polygons, and is asked for cells alone. The count and the sum of ids of every question are
compared before anything is timed. Questions with fewer than 10,000 hits are timed apart.

    make bench-spacetime                           at the default sizes
    make bench-spacetime ARGS="--rows 10000000"    the full size
"""

import argparse
import io
import pathlib
import random
import sys
import tempfile
import threading
import time
import urllib.parse

import pyarrow.ipc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import data
from common import DRIVER, MERIDIAN, drive, median, need, resident_mb, save, say, steal_and_load
from peers import Postgres, duckdb_spatial, http, meridian, questdb, questdb_applied, start_meridian, start_questdb

RADII_KM, SPANS_DAYS, LARGE = [10, 25, 50, 100, 200, 400, 650], [6, 30, 90, 180, 425], 10_000
# Circles with many a corner cost every system alike; a cell is a box, and is asked as each system asks for boxes.
WHERE = "ST_Intersects(geom, {shape}) AND time BETWEEN {start} AND {end}"
POSTGRES = ("SELECT id, kind, value, time, geom FROM {table} WHERE "
            + WHERE.format(shape="$1::geometry", start="$2::timestamptz", end="$3::timestamptz"))


def questions(rng, count):
    """By family: (polygon as WKT, start, end, box or None)."""
    families = {"cities": [], "countries": [], "cells": []}
    for _ in range(count):
        name, span = rng.choice(list(data.CITIES)), rng.choice(SPANS_DAYS)
        ring = data.circle(*data.CITIES[name], rng.choice(RADII_KM))
        families["cities"].append((data.wkt([[ring]]), *data.window(rng.randrange(data.DAYS - span), span), None))
    shapes = list(data.countries())
    chosen = rng.sample(shapes, max(1, count // 12 - 2)) + [s for s in shapes if s[0] in ("Japan", "United States of America")]
    for _, polygons in chosen:
        year = rng.randrange(3)
        for month in range(12):
            families["countries"].append((data.wkt(polygons), *data.window(year * 365 + month * 30.4, 30.4), None))
    sources = list(data.originals())
    for _ in range(count):
        _, _, _, lons, lats, _ = rng.choice(sources)
        at, level, span = rng.randrange(len(lons)), rng.randint(4, 8), rng.choice([5, 10, 31])
        box = data.cell(lons[at], lats[at], level)
        families["cells"].append((data.box_wkt(*box), *data.window(rng.randrange(data.DAYS - span), span), box))
    for family in families.values():
        rng.shuffle(family)
    return families


class System:
    """One system under test, loaded: `measure` answers what `common.drive` answers, `checked` is (count, sum of ids) of a question."""

    def boxes_only(self):
        """Whether it can only ask for boxes."""
        return False


class Driven(System):
    """A server that the driver asks: a template, and a line of words for each question."""

    def measure(self, asked, seconds, connections, folder):
        file = folder / "questions.txt"
        file.write_text("".join("\t".join(self.words(q)) + "\n" for q in asked))
        return drive(self.server, self.protocol, self.template, file, seconds, connections)


class Meridian(Driven):
    """A collection loaded over HTTP; answers as Arrow streams or as NDJSON."""

    protocol = "http"

    def __init__(self, server, form):
        self.server, self.template = server, f"/collections/events/items?f={form}&{{1}}"

    def words(self, question):
        shape, start, end, box = question
        place = "bbox=" + ",".join(map(str, box)) if box else "filter=" + data.quoted(f"S_INTERSECTS(geom,{shape})")
        return [f"{place}&datetime={start}/{end}"]

    def checked(self, question):
        answer = http(self.server, "GET", self.template.replace("{1}", self.words(question)[0]))
        ids = pyarrow.ipc.open_stream(io.BytesIO(answer)).read_all()["id"]
        return len(ids), sum(map(int, ids.to_pylist()))


class Postgis(Driven):
    """A table with an index; rows in binary."""

    protocol = "pg"

    def __init__(self, server, table):
        self.server, self.table, self.template = server, table, POSTGRES.format(table=table)

    def words(self, question):
        return ["SRID=4326;" + question[0], question[1], question[2]]

    def checked(self, question):
        shape, start, end = (f"'{w}'" for w in self.words(question))
        where = WHERE.format(shape=shape + "::geometry", start=start, end=end)
        count, total = self.server.psql(f"SELECT count(*), coalesce(sum(id), 0) FROM {self.table} WHERE {where}").split("|")
        return int(count), int(total)


class Questdb(Driven):
    """Boxes only: QuestDB has no polygons. Rows as CSV, its streaming form."""

    protocol = "http"

    def __init__(self, server):
        self.server, self.template = server, "/exp?query={1}"

    def boxes_only(self):
        return True

    def where(self, question):
        _, start, end, (w, s, e, n) = question
        return f"time BETWEEN '{start}' AND '{end}' AND lon >= {w} AND lon <= {e} AND lat >= {s} AND lat <= {n}"

    def words(self, question):
        return [urllib.parse.quote("SELECT id, kind, value, time, lon, lat FROM events WHERE " + self.where(question), safe="")]

    def checked(self, question):
        count, total = questdb(self.server, "SELECT count(), sum(id) FROM events WHERE " + self.where(question))[0]
        return count, total or 0


class Duckdb(System):
    """In this process, a cursor a thread, answers as Arrow tables: no wire at all."""

    server = None

    def __init__(self, database, table, prefilter):
        self.database, self.table, self.prefilter = database, table, prefilter

    def where(self, question):
        shape, start, end, box = question
        points = [tuple(map(float, p.split())) for p in shape.replace("MULTIPOLYGON", "").replace("(", "").replace(")", "").split(",")]
        west, south, east, north = box or (min(p[0] for p in points), min(p[1] for p in points), max(p[0] for p in points), max(p[1] for p in points))
        near = f"lon BETWEEN {west} AND {east} AND lat BETWEEN {south} AND {north} AND " if self.prefilter else ""
        exact = "" if box and self.prefilter else f"ST_Intersects(geom, ST_GeomFromText('{shape}')) AND "
        return near + exact + f"time BETWEEN TIMESTAMPTZ '{start}' AND TIMESTAMPTZ '{end}'"

    def checked(self, question):
        return self.database.execute(f"SELECT count(*), coalesce(sum(id), 0)::BIGINT FROM {self.table} WHERE {self.where(question)}").fetchone()

    def measure(self, asked, seconds, connections, _folder):
        asked = [f"SELECT id, kind, value, time, lon, lat FROM {self.table} WHERE {self.where(q)}" for q in asked]
        took, started = [], time.process_time()
        warm = time.time() + seconds / 5
        end = warm + seconds
        def ask(first):
            cursor, at, measured = self.database.cursor(), first, 0
            # A question may take longer than the whole phase: each thread has one that counts.
            while (sent := time.time()) < end or not measured:
                cursor.execute(asked[at % len(asked)]).to_arrow_table()
                at += 1
                if sent >= warm:
                    took.append(time.time() - sent)
                    measured += 1
        threads = [threading.Thread(target=ask, args=(i * len(asked) // connections,)) for i in range(connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        elapsed, took = time.time() - warm, sorted(took)
        at = lambda q: took[min(int(len(took) * q), len(took) - 1)] * 1000
        return {"answers": len(took), "per_second": len(took) / elapsed, "cpu_us": (time.process_time() - started) * 1e6 / max(len(took), 1),
                "p50_ms": at(0.5), "p95_ms": at(0.95), "p99_ms": at(0.99)}


def load_postgis(server, files):
    """Two tables: as anyone would (an index on the place, one on the time), and tuned (a partition a month, clustered by place)."""
    server.psql("CREATE EXTENSION postgis; CREATE EXTENSION btree_gist")
    server.psql("CREATE TABLE taken (id int8, kind text, value float8, time timestamptz, lon float8, lat float8)")
    for file in files:
        server.psql("COPY taken FROM STDIN (FORMAT binary)", input=data.postgres_copy(file))
    columns = "id int8 NOT NULL, kind text, value float8, time timestamptz NOT NULL, geom geometry(Point, 4326)"
    fill = "SELECT id, kind, value, time, ST_SetSRID(ST_MakePoint(lon, lat), 4326) FROM taken"
    server.psql(f"CREATE TABLE events ({columns}); INSERT INTO events {fill}; CREATE INDEX ON events USING gist (geom); CREATE INDEX ON events (time)")
    server.psql(f"CREATE TABLE tuned ({columns}) PARTITION BY RANGE (time)")
    months = [f"{2023 + m // 12}-{m % 12 + 1:02}-01" for m in range(37)]
    for start, end in zip(months, months[1:]):
        name = "tuned_" + start[:7].replace("-", "_")
        server.psql(f"CREATE TABLE {name} PARTITION OF tuned FOR VALUES FROM ('{start}Z') TO ('{end}Z')")
    server.psql(f"INSERT INTO tuned {fill} ORDER BY time")
    for start in months[:-1]:
        name = "tuned_" + start[:7].replace("-", "_")
        server.psql(f"CREATE INDEX {name}_at ON {name} USING gist (geom, time); CLUSTER {name} USING {name}_at")
    server.psql("DROP TABLE taken")
    for table in ("events", "tuned"):
        server.psql(f"VACUUM ANALYZE {table}")


def load_duckdb(database, files):
    """Two tables: in order of time (zone maps prune), and with an R-tree on the place."""
    names = ", ".join(f"'{f}'" for f in files)
    database.execute(f"CREATE TABLE events AS SELECT *, ST_Point(lon, lat) AS geom FROM read_parquet([{names}]) ORDER BY time")
    database.execute("CREATE TABLE indexed AS SELECT * FROM events ORDER BY ST_Hilbert(geom, ST_Extent(ST_MakeEnvelope(-180, -90, 180, 90)))")
    database.execute("CREATE INDEX place ON indexed USING RTREE (geom)")


def load_questdb(server, files, rows):
    """A table partitioned by month, from the same Parquet files."""
    questdb(server, "CREATE TABLE events (id LONG, kind SYMBOL, value DOUBLE, time TIMESTAMP, lon DOUBLE, lat DOUBLE) TIMESTAMP(time) PARTITION BY MONTH WAL")
    for file in files:
        questdb(server, f"INSERT INTO events SELECT id, kind, value, time, lon, lat FROM read_parquet('{file}')")
    questdb_applied(server, "events", rows)


def check(systems, families):
    """Hits of every question; ends the bench where a system returns other events."""
    hits, first = {}, next(iter(systems.values()))
    for family, asked in families.items():
        for question in asked:
            expected = first.checked(question)
            hits[question] = expected[0]
            for name, system in systems.items():
                if system.boxes_only() and question[3] is None:
                    continue
                if (got := system.checked(question)) != expected:
                    sys.exit(f"bench: {name} has (count, sum of ids) {got}, {next(iter(systems))} {expected}: {family} {question[0][:200]} {question[1:]}")
        say(f"{family}: {len(asked)} questions answered alike")
    return hits


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="events (the full size: 10000000)")
    parser.add_argument("--seconds", type=float, default=1.5, help="measured seconds of each run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--questions", type=int, default=120, help="questions of a family")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8, 16])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    need(MERIDIAN, DRIVER, "psql", "java", "zstd")
    files = data.events(options.rows, options.seed)
    families = questions(random.Random(options.seed), options.questions)
    with tempfile.TemporaryDirectory(prefix="bench-spacetime-") as name:
        folder = pathlib.Path(name)
        with start_meridian(folder) as ours, Postgres(folder) as postgres, start_questdb(folder) as quest, duckdb_spatial() as duck:
            took = {}
            def load(what, work):
                began = time.time()
                work()
                took[what] = time.time() - began
                say(f"{what} loaded in {took[what]:.0f} s")
            meridian(ours, "create", "events", "--schema", data.SCHEMA)
            load("meridian", lambda: meridian(ours, "load", "events", *files, "--quiet"))
            load("postgis", lambda: load_postgis(postgres, files))
            load("duckdb", lambda: load_duckdb(duck, files))
            load("questdb", lambda: load_questdb(quest, files, options.rows))
            systems = {
                "meridian": Meridian(ours, "arrow"), "meridian, ndjson": Meridian(ours, "ndjson"),
                "postgis": Postgis(postgres, "events"), "postgis, tuned": Postgis(postgres, "tuned"),
                "duckdb": Duckdb(duck, "events", True), "duckdb, r-tree": Duckdb(duck, "indexed", False), "questdb": Questdb(quest)}
            hits = check({n: s for n, s in systems.items() if n != "meridian, ndjson"}, families)
            measure(options, folder, systems, families, hits, took)


def measure(options, folder, systems, families, hits, took):
    """Every class of questions at every concurrency, system after system, round after round."""
    runs, classes, quiet = {}, {}, [steal_and_load()]
    for family, asked in families.items():
        for size, chosen in (("small", [q for q in asked if hits[q] < LARGE]), ("large", [q for q in asked if hits[q] >= LARGE])):
            if len(chosen) >= 3:
                classes[family, size] = chosen
    for round_number in range(options.rounds):
        for (family, size), asked in classes.items():
            for connections in options.connections:
                for name, system in systems.items():
                    if not system.boxes_only() or family == "cells":
                        result = system.measure(asked, options.seconds, connections, folder)
                        runs.setdefault((family, size, connections, name), []).append(result)
                line = ", ".join(f"{n} {runs[family, size, connections, n][-1]['p50_ms']:.1f}" for n in systems if (family, size, connections, n) in runs)
                say(f"round {round_number + 1}/{options.rounds} {family} {size} x {connections}: p50 ms {line}")
        quiet.append(steal_and_load())
        keep(options, systems, classes, hits, took, runs, quiet, round_number + 1)


def keep(options, systems, classes, hits, took, runs, quiet, rounds):
    """Saves what has been measured so far: a long run that breaks off has not been for nothing."""
    memory = {n: resident_mb(s.server.pid) for n, s in systems.items() if s.server and "," not in n}
    save("spacetime", {
        "rows": options.rows, "seconds": options.seconds, "rounds": rounds, "questions": options.questions, "seed": options.seed,
        "load_s": took, "resident_mb": memory, "quiet": quiet,
        "classes": [{"family": f, "size": s, "questions": len(q), "hits_median": median([hits[x] for x in q]), "hits_max": max(hits[x] for x in q)}
                    for (f, s), q in classes.items()],
        "runs": [{"family": f, "size": s, "connections": c, "system": n, "runs": r} for (f, s, c, n), r in runs.items()]})


if __name__ == "__main__":
    main()
