"""bench-footprint: bytes on disk and in memory for an event, time to open, and what an idle server takes.

Four sets: the events of `bench/data.py`, the trades of bench-ingest, the lines of bench-tracks, the places of
bench-near. Every system has the same columns and the same id column, with an index or key on it where it can have one.
PostGIS has the other indexes of the set's own bench. Sizes are taken once each system has settled (merged, vacuumed,
applied). A cold start runs from the start of the process to the first answer of a small box. The page cache is dropped
first where that is allowed.

    make bench-footprint                               at the default sizes
    make bench-footprint ARGS="--sets trades lines"    some of the sets
"""

import argparse
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import pyarrow
import pyarrow.parquet

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import data
from common import MERIDIAN, cpu_seconds, median, need, resident_mb, save, say, settle, steal_and_load
from ingest import run as ingest
from near import run as near
from peers import Postgres, duckdb_spatial, http, meridian, questdb, questdb_applied, start_meridian, start_questdb
from tracks import run as tracks

BOX = "/collections/events/items?bbox=139.6,35.6,139.8,35.8&datetime=2024-03-01T00:00:00Z/2024-03-02T00:00:00Z&f=ndjson"
POINT = ("lon, lat", "ST_Point(lon, lat)")
BOXES = ("{'xmin': ST_XMin(geometry)::FLOAT, 'ymin': ST_YMin(geometry)::FLOAT, "
         "'xmax': ST_XMax(geometry)::FLOAT, 'ymax': ST_YMax(geometry)::FLOAT} AS bbox")
# DuckDB has no server: this process opens a file, reads every column of it and waits.
READER = """
import duckdb, sys
duckdb.connect(sys.argv[1], read_only=True).execute(sys.argv[2]).fetchall()
print("read", flush=True)
sys.stdin.read()
"""


@dataclasses.dataclass(kw_only=True)
class Set:
    """Rows of one kind, and how each system has them.

    name      of the collection and the tables
    what      the report says the rows are
    files     of Parquet, for all but PostGIS
    schema    that Meridian gets
    postgis   what makes and fills the table on a server, indexed and vacuumed; what is selected to read it
    questdb   its columns; what is selected of the files for them; what is selected to read them
    geometry  the columns that GeoParquet has as one; that one
    """

    name: str
    count: int
    what: str
    files: list
    schema: str
    postgis: tuple
    questdb: tuple | None = None
    geometry: tuple | None = None


def events(options, _folder):
    """The events of bench-spacetime."""
    files = data.events(options.rows, options.seed)
    return Set(
        name="events", count=options.rows, files=files, schema=data.SCHEMA, geometry=POINT,
        what="events {id, kind, value, time, place}; the id is text everywhere, PostGIS has a key on it, an index on the place and one on the time",
        postgis=(lambda server: load_events(server, files), "sum(value)"),
        questdb=("(id VARCHAR, kind SYMBOL, value DOUBLE, time TIMESTAMP, lon DOUBLE, lat DOUBLE) TIMESTAMP(time) PARTITION BY MONTH WAL",
                 "id::varchar, kind, value, time, lon, lat", "sum(value), sum(lon), sum(lat)"))


def trades(options, _folder):
    """The events of bench-ingest, with an id: Meridian cannot be without one."""
    files = data.trades(options.rows, options.seed)
    return Set(
        name="trades", count=options.rows, files=files, schema=ingest.SCHEMA + ";meridian.id='given'",
        what="events {id, symbol, type, price, time} as bench-ingest sends them; the id is text everywhere, PostGIS has a key on it and, as there, no other index",
        postgis=(lambda server: load_trades(server, files), "sum(price)"),
        questdb=(ingest.QUESTDB_TABLE.replace("(", "(id VARCHAR, ", 1), 'id::varchar, symbol, "type", price, time', 'sum("type"), sum(price)'))


def lines(options, folder):
    """The lines of bench-tracks."""
    made, file = list(tracks.lines(options.lines, options.seed)), folder / "lines.parquet"
    tracks.write_parquet(made, file)
    return Set(
        name="lines", count=options.lines, files=[file], schema=tracks.SCHEMA, geometry=("geom", "geom"),
        what="lines {id, kind, start, end, line} of 20 to 500 vertices; PostGIS is as in bench-tracks: its id is a number without a key, "
             "and it has an index on the line, one on the start, and one on line and interval together",
        postgis=(lambda server: tracks.load_postgis(server, made), "sum(ST_NPoints(geom))"))


def places(options, folder):
    """The places of bench-near."""
    rows, file = near.places(options.places, options.seed), folder / "places.parquet"
    *texts, lat, lon = zip(*rows)
    texts = {name: [text or None for text in column] for name, column in zip(("name", "city", "state", "zip"), texts)}
    pyarrow.parquet.write_table(pyarrow.table({"id": [f"p{i}" for i in range(len(rows))], **texts, "lon": lon, "lat": lat}), file)
    return Set(
        name="places", count=options.places, files=[file], geometry=POINT,
        schema="name:String,city:String,state:String,zip:String,*geom:Point:srid=4326;meridian.id='given'",
        what="places {id, name, city, state, zip, place}; the id is text everywhere, PostGIS is as in bench-near: a key on the id, an index on the place, in its order",
        postgis=(lambda server: near.load_postgis(server, rows), "sum(ST_X(geog::geometry))"))


SETS = {"events": events, "trades": trades, "lines": lines, "places": places}


def load_events(server, files):
    """A primary key on the id, a GiST index on the place, a B-tree on the time."""
    server.psql("CREATE EXTENSION postgis")
    server.psql("CREATE TABLE taken (id int8, kind text, value float8, time timestamptz, lon float8, lat float8)")
    for file in files:
        server.psql("COPY taken FROM STDIN (FORMAT binary)", input=data.postgres_copy(file))
    server.psql("CREATE TABLE events AS SELECT id::text AS id, kind, value, time, ST_SetSRID(ST_MakePoint(lon, lat), 4326)::geometry(Point, 4326) AS geom FROM taken")
    server.psql("DROP TABLE taken; ALTER TABLE events ADD PRIMARY KEY (id); CREATE INDEX ON events USING gist (geom); CREATE INDEX ON events (time)")
    server.psql("VACUUM ANALYZE events")


def load_trades(server, files):
    """The table of bench-ingest, with a primary key on the id."""
    server.psql(f"CREATE TABLE trades (id text, {ingest.TABLE})")
    for file in files:
        server.psql("COPY trades FROM STDIN (FORMAT csv)", input=data.postgres_csv(file))
    server.psql("ALTER TABLE trades ADD PRIMARY KEY (id)")
    server.psql("VACUUM ANALYZE trades")


def disk_bytes(folder, leave_out=None):
    """Bytes that files take, sparse ones as far as they are filled, without folders of that beginning; and by ending."""
    total, endings = 0, {}
    for file in pathlib.Path(folder).rglob("*"):
        if file.is_file() and not (leave_out and any(part.startswith(leave_out) for part in file.relative_to(folder).parts)):
            taken = min(file.stat().st_blocks * 512, file.stat().st_size)
            total += taken
            endings[file.suffix or file.name] = endings.get(file.suffix or file.name, 0) + taken
    return total, endings


def drop_page_cache():
    """Whether the kernel was told to forget files; only root may."""
    os.sync()
    try:
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("1")
    except OSError:
        return False
    return True


def opened(folder, rounds):
    """Milliseconds from the start of Meridian to its first answer, page cache cold and warm; idle memory after it."""
    found = {"cold_ms": [], "warm_ms": [], "idle_mb": []}
    for _ in range(rounds):
        for kind in ("cold_ms", "warm_ms"):
            if kind == "cold_ms" and not drop_page_cache():
                continue
            began = time.perf_counter()
            with start_meridian(folder) as server:
                http(server, "GET", BOX)
                found[kind].append((time.perf_counter() - began) * 1000)
                if kind == "warm_ms":
                    settle(server.pid)
                    found["idle_mb"].append(resident_mb(server.pid))
    return found


def empty_idle(rounds):
    """Milliseconds from start to first answer, and memory, of a server without data."""
    found = {"start_ms": [], "cold_ms": [], "idle_mb": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            if drop_page_cache():
                began = time.perf_counter()
                with start_meridian(pathlib.Path(folder)) as server:
                    http(server, "GET", "/healthz")
                    found["cold_ms"].append((time.perf_counter() - began) * 1000)
            began = time.perf_counter()
            with start_meridian(pathlib.Path(folder)) as server:
                http(server, "GET", "/healthz")
                found["start_ms"].append((time.perf_counter() - began) * 1000)
                settle(server.pid)
                found["idle_mb"].append(resident_mb(server.pid))
    return found


def weigh_meridian(folder, each):
    """Loaded, settled, all read; the archived Parquet files apart from the cache that serves and the log."""
    with start_meridian(folder) as server:
        meridian(server, "create", each.name, "--schema", each.schema)
        began, cpu = time.time(), cpu_seconds(server.pid)
        meridian(server, "load", each.name, *each.files, "--quiet")
        settle(server.pid)
        load_s, load_cpu_s, loaded_mb = time.time() - began, cpu_seconds(server.pid) - cpu, resident_mb(server.pid)
        # Lists the archived files, and folds away what is not live.
        at_rest = sum(pathlib.Path(file).stat().st_size for file in meridian(server, "files", each.name).splitlines())
        http(server, "GET", f"/collections/{each.name}/items?f=arrow")
        read_mb = resident_mb(server.pid)
    total, endings = disk_bytes(folder / "meridian")
    return {"disk": total, "endings": endings, "at_rest": at_rest, "load_s": load_s, "load_cpu_s": load_cpu_s, "resident_loaded_mb": loaded_mb, "resident_queried_mb": read_mb}


def weigh_postgis(folder, each):
    """A table with its indexes, and alone."""
    load, read = each.postgis
    with Postgres(folder) as server:
        load(server)
        total, alone = server.psql(f"SELECT pg_total_relation_size('{each.name}'), pg_table_size('{each.name}')").split("|")
        server.psql(f"SELECT {read} FROM {each.name}")
        return {"disk": int(total), "table_alone": int(alone), "resident_queried_mb": resident_mb(server.pid)}


def weigh_questdb(folder, each):
    """A partitioned table; it has no index on an id or a place."""
    columns, select, read = each.questdb
    with start_questdb(folder) as server:
        questdb(server, f"CREATE TABLE {each.name} {columns}")
        for file in each.files:
            questdb(server, f"INSERT INTO {each.name} SELECT {select} FROM read_parquet('{file}')")
        questdb_applied(server, each.name, each.count)
        questdb(server, f"SELECT {read} FROM {each.name}")
        settle(server.pid)
        return {"disk": disk_bytes(folder / "questdb" / "db", "wal")[0], "resident_queried_mb": resident_mb(server.pid)}


def weigh_files(folder, each):
    """DuckDB's database file; Parquet of the same columns; and GeoParquet as DuckDB writes it, without and with the boxes of a covering."""
    names = ", ".join(f"'{f}'" for f in each.files)
    select = f"SELECT * REPLACE (id::VARCHAR AS id) FROM read_parquet([{names}])"
    kept = {"duckdb": folder / "kept.duckdb", "parquet, zstd": folder / "plain.parquet"}
    with duckdb_spatial() as database:
        database.execute(f"ATTACH '{kept['duckdb']}' AS kept; CREATE TABLE kept.{each.name} AS {select}; CHECKPOINT kept; DETACH kept")
        if each.geometry:
            columns, geometry = each.geometry
            select = f"SELECT * EXCLUDE ({columns}), {geometry} AS geometry FROM ({select})"
            for name, more in {"geoparquet, zstd": "", "geoparquet and boxes, zstd": f", {BOXES}"}.items():
                kept[name] = folder / f"{name}.parquet"
                database.execute(f"COPY (SELECT *{more} FROM ({select})) TO '{kept[name]}' (FORMAT PARQUET, COMPRESSION ZSTD)")
    schema = pyarrow.parquet.read_schema(each.files[0])
    schema = schema.set(schema.get_field_index("id"), pyarrow.field("id", pyarrow.string()))
    with pyarrow.parquet.ParquetWriter(kept["parquet, zstd"], schema, compression="zstd") as writer:
        for file in each.files:
            writer.write_table(pyarrow.parquet.read_table(file).cast(schema))
    found = {name: {"disk": file.stat().st_size} for name, file in kept.items()}
    found["duckdb"]["resident_queried_mb"] = duckdb_resident(kept["duckdb"], each.name)
    return found


def duckdb_resident(file, table):
    """Memory of a process that has read all of a table."""
    argv = [sys.executable, "-c", READER, file, f"SELECT bit_xor(hash(t)) FROM {table} t"]
    with subprocess.Popen([str(a) for a in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        if reader.stdout.readline() != "read\n":
            sys.exit(f"bench: DuckDB did not read {file}")
        return resident_mb(reader.pid)


def weigh(each, rounds):
    """One set in every system that can hold it; how Meridian opens the events."""
    systems = {}
    work = {"meridian": weigh_meridian, "postgis": weigh_postgis} | ({"questdb": weigh_questdb} if each.questdb else {})
    for name, weigh_one in work.items():
        with tempfile.TemporaryDirectory(prefix="bench-footprint-") as folder:
            systems[name] = weigh_one(pathlib.Path(folder), each)
            if (name, each.name) == ("meridian", "events"):
                systems[name]["open"] = opened(pathlib.Path(folder), rounds)
            say(f"{each.name}, {name}: {systems[name]['disk'] / each.count:,.1f} bytes on disk each")
    with tempfile.TemporaryDirectory(prefix="bench-footprint-") as folder:
        systems |= weigh_files(pathlib.Path(folder), each)
    return {"count": each.count, "what": each.what, "systems": systems}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--rows", type=int, default=1_000_000, help="events, and trades (the full size: 10000000)")
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--places", type=int, default=650_000)
    parser.add_argument("--rounds", type=int, default=3, help="starts that are timed")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    need(MERIDIAN, "psql", "java", "zstd")
    quiet, sets = [steal_and_load()], {}
    for name in options.sets:
        with tempfile.TemporaryDirectory(prefix="bench-footprint-") as folder:
            sets[name] = weigh(SETS[name](options, pathlib.Path(folder)), options.rounds)
        quiet.append(steal_and_load())
    empty = empty_idle(options.rounds)
    say(f"empty: {median(empty['idle_mb']):.1f} MB, first answer after {median(empty['start_ms']):.0f} ms")
    save("footprint", {"options": f"--sets {' '.join(sets)} --rows {options.rows} --lines {options.lines} --places {options.places} --rounds {options.rounds}",
                       "seed": options.seed, "quiet": quiet, "sets": sets, "empty": empty, "binary_bytes": MERIDIAN.stat().st_size})


if __name__ == "__main__":
    main()
