"""bench-footprint: bytes on disk and in memory for an event, time to open, and what an idle server takes.

The events of `bench/data.py`, every system with the same columns and the same id column with an index or key on it
where it can have one. Sizes are taken once each system has settled (merged, vacuumed, applied). A cold start runs from the
start of the process to the first answer of a small box, after the page cache has been dropped where that is allowed.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import pyarrow.parquet

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import data
from common import MERIDIAN, cpu_seconds, median, need, resident_mb, save, say, settle, steal_and_load
from peers import Postgres, duckdb_spatial, http, meridian, questdb, questdb_applied, start_meridian, start_questdb

BOX = "/collections/events/items?bbox=139.6,35.6,139.8,35.8&datetime=2024-03-01T00:00:00Z/2024-03-02T00:00:00Z&f=ndjson"


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
    """Seconds from the start of Meridian to its first answer, page cache cold and warm; memory at rest after it."""
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


def weigh_meridian(folder, files, rounds):
    """Loaded, settled, stopped, opened again; the files at rest apart from the cache that serves."""
    with start_meridian(folder) as server:
        meridian(server, "create", "events", "--schema", data.SCHEMA)
        began, cpu = time.time(), cpu_seconds(server.pid)
        meridian(server, "load", "events", *files, "--quiet")
        settle(server.pid)
        load_s, load_cpu_s, loaded_mb = time.time() - began, cpu_seconds(server.pid) - cpu, resident_mb(server.pid)
        # Lists the files at rest where this version writes them, and folds away what is not live.
        listed = subprocess.run([MERIDIAN, "files", "events", "--url", f"http://127.0.0.1:{server.port}"], capture_output=True, text=True)
        http(server, "GET", "/collections/events/items?f=arrow")
        after_mb = resident_mb(server.pid)
    total, endings = disk_bytes(folder / "meridian")
    at_rest = sum(pathlib.Path(f).stat().st_size for f in listed.stdout.split()) if listed.returncode == 0 else None
    return {"disk": total, "endings": endings, "at_rest": at_rest, "load_s": load_s, "load_cpu_s": load_cpu_s, "resident_loaded_mb": loaded_mb,
            "resident_queried_mb": after_mb, "open": opened(folder, rounds)}


def weigh_postgis(folder, files):
    """A primary key on the id, a GiST index on the place, a B-tree on the time."""
    with Postgres(folder) as server:
        server.psql("CREATE EXTENSION postgis")
        server.psql("CREATE TABLE taken (id int8, kind text, value float8, time timestamptz, lon float8, lat float8)")
        for file in files:
            server.psql("COPY taken FROM STDIN (FORMAT binary)", input=data.postgres_copy(file))
        server.psql("CREATE TABLE events AS SELECT id::text AS id, kind, value, time, ST_SetSRID(ST_MakePoint(lon, lat), 4326)::geometry(Point, 4326) AS geom FROM taken")
        server.psql("DROP TABLE taken; ALTER TABLE events ADD PRIMARY KEY (id); CREATE INDEX ON events USING gist (geom); CREATE INDEX ON events (time)")
        server.psql("VACUUM FULL ANALYZE events")
        sizes = server.psql("SELECT pg_total_relation_size('events'), pg_relation_size('events')").split("|")
        server.psql("SELECT sum(value) FROM events")
        return {"disk": int(sizes[0]), "table_alone": int(sizes[1]), "resident_queried_mb": resident_mb(server.pid)}


def weigh_questdb(folder, files, rows):
    """A table partitioned by month; it has no index on an id or a place."""
    with start_questdb(folder) as server:
        questdb(server, "CREATE TABLE events (id VARCHAR, kind SYMBOL, value DOUBLE, time TIMESTAMP, lon DOUBLE, lat DOUBLE) TIMESTAMP(time) PARTITION BY MONTH WAL")
        for file in files:
            questdb(server, f"INSERT INTO events SELECT id::varchar, kind, value, time, lon, lat FROM read_parquet('{file}')")
        questdb_applied(server, "events", rows)
        questdb(server, "SELECT sum(value) FROM events")
        settle(server.pid)
        return {"disk": disk_bytes(folder / "questdb" / "db", "wal")[0], "resident_queried_mb": resident_mb(server.pid)}


def weigh_duckdb(folder, files):
    """A database file in order of time; Parquet of the same columns; and GeoParquet as DuckDB writes it, without and with the boxes of a covering."""
    names = ", ".join(f"'{f}'" for f in files)
    select = f"SELECT id::VARCHAR AS id, kind, value, time, lon, lat FROM read_parquet([{names}]) ORDER BY time"
    with duckdb_spatial() as database:
        database.execute(f"ATTACH '{folder}/events.duckdb' AS kept; CREATE TABLE kept.events AS {select}; CHECKPOINT kept; DETACH kept")
        boxes = "{'xmin': lon::FLOAT, 'ymin': lat::FLOAT, 'xmax': lon::FLOAT, 'ymax': lat::FLOAT} AS bbox"
        for file, more in {"geo": "", "covered": f", {boxes}"}.items():
            database.execute(f"COPY (SELECT id, kind, value, time, ST_Point(lon, lat) AS geometry{more} FROM ({select})) TO '{folder}/{file}.parquet' (FORMAT PARQUET, COMPRESSION ZSTD)")
    tables = [pyarrow.parquet.read_table(f) for f in files]
    with pyarrow.parquet.ParquetWriter(folder / "plain.parquet", tables[0].cast(target(tables[0].schema)).schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table.cast(target(table.schema)))
    files = {"duckdb": "events.duckdb", "parquet, zstd": "plain.parquet", "geoparquet, zstd": "geo.parquet", "geoparquet and boxes, zstd": "covered.parquet"}
    return {name: {"disk": (folder / file).stat().st_size} for name, file in files.items()}


def target(schema):
    """The schema with the id as text, as the others have it."""
    return schema.set(schema.get_field_index("id"), pyarrow.field("id", pyarrow.string()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="events (the full size: 10000000)")
    parser.add_argument("--rounds", type=int, default=3, help="starts that are timed")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    need(MERIDIAN, "psql", "java", "zstd")
    files, quiet, systems = data.events(options.rows, options.seed), [steal_and_load()], {}
    weigh = {"meridian": lambda folder: weigh_meridian(folder, files, options.rounds), "postgis": lambda folder: weigh_postgis(folder, files),
             "questdb": lambda folder: weigh_questdb(folder, files, options.rows)}
    for name, work in weigh.items():
        with tempfile.TemporaryDirectory(prefix="bench-footprint-") as folder:
            systems[name] = work(pathlib.Path(folder))
            say(f"{name}: {systems[name]['disk'] / options.rows:,.1f} bytes on disk an event")
    with tempfile.TemporaryDirectory(prefix="bench-footprint-") as folder:
        systems |= weigh_duckdb(pathlib.Path(folder), files)
    empty = empty_idle(options.rounds)
    say(f"empty: {median(empty['idle_mb']):.1f} MB, first answer after {median(empty['start_ms']):.0f} ms")
    save("footprint", {"rows": options.rows, "rounds": options.rounds, "seed": options.seed, "quiet": [*quiet, steal_and_load()], "systems": systems,
                       "empty": empty, "binary_bytes": MERIDIAN.stat().st_size})


if __name__ == "__main__":
    main()
