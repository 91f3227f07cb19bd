"""bench-tracks: lines of 20 to 500 vertices that cross a cell of a grid in a window of time, beside PostGIS.

Storm tracks and ship tracks, resampled, moved and varied by seed. Both systems get the same boxes, test the line itself
and not its envelope, and return whole lines. The count and the sum of ids of every question are compared first.

    make bench-tracks                         at the default sizes
    make bench-tracks ARGS="--rows 200000"    the full size
"""

import argparse
import io
import json
import pathlib
import random
import struct
import sys
import tempfile
import time

import numpy
import pyarrow
import pyarrow.ipc
import pyarrow.parquet

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import data
from common import DRIVER, MERIDIAN, drive, median, need, resident_mb, save, say, steal_and_load
from peers import Postgres, http, meridian, start_meridian

TARGET = "/collections/lines/items?f=arrow&filter=S_INTERSECTS(geom,BBOX({1},{2},{3},{4}))&datetime={5}/{6}"
SCHEMA = "kind:String,start:Date,end:Date,*geom:LineString:srid=4326;meridian.id='given',meridian.interval.start='start',meridian.interval.end='end'"
COLUMNS = "SELECT id, kind, start_at, end_at, geom FROM lines WHERE ST_Intersects(geom, {shape}) AND "
TIMES = {"postgis": "start_at <= {end} AND end_at >= {start}", "postgis, tuned": "tstzrange(start_at, end_at, '[]') && tstzrange({start}, {end}, '[]')"}
HOUR_US = 3_600_000_000


def originals():
    """Storm tracks and ship tracks as arrays of positions, and hours from start to end."""
    storms = data.column_table("atlantic-storms/storms.csv.zst", ["storm_id", "lat", "lon"])
    ships = data.column_table("us-ais-20220103/ais.csv.zst", ["vessel", "lat", "lon"])
    for kind, table, key, hours in (("storm", storms, "storm_id", 6), ("ships", ships, "vessel", 1)):
        lines = {}
        for name, lat, lon in zip(*(table[c].to_pylist() for c in (key, "lat", "lon"))):
            lines.setdefault(name, []).append((lon, lat))
        for line in lines.values():
            if len(line) >= 4:
                yield kind, numpy.array(line), hours * len(line)


def lines(count, seed):
    """{id, kind, start, end, geometry as WKB}: each a track, its vertices counted anew, moved and roughened."""
    rng, sources = numpy.random.default_rng(seed), list(originals())
    for number in range(count):
        kind, track, hours = sources[rng.integers(len(sources))]
        vertices = int(rng.integers(20, 501))
        at, known = numpy.linspace(0, len(track) - 1, vertices), numpy.arange(len(track))
        line = numpy.stack([numpy.interp(at, known, track[:, 0]), numpy.interp(at, known, track[:, 1])], axis=1)
        line += rng.normal(0, 1.0, 2) + rng.normal(0, 0.01, line.shape)
        line = numpy.clip(line, (-179.9, -89.9), (179.9, 89.9)).round(6)
        start = int(rng.integers(0, data.DAYS * 24 * HOUR_US))
        wkb = struct.pack("<BII", 1, 2, vertices) + line.astype("<f8").tobytes()
        yield number, kind, start, start + hours * HOUR_US, wkb


def write_parquet(made, path):
    """GeoParquet of the lines."""
    base = int(data.START.astype("int64"))
    times = lambda at: pyarrow.array([base + m[at] for m in made], pyarrow.timestamp("us", "UTC"))
    geo = {"version": "1.1.0", "primary_column": "geom", "columns": {"geom": {"encoding": "WKB", "geometry_types": ["LineString"]}}}
    table = pyarrow.table({"id": pyarrow.array([str(m[0]) for m in made]), "kind": pyarrow.array([m[1] for m in made]),
                           "start": times(2), "end": times(3), "geom": pyarrow.array([m[4] for m in made], pyarrow.binary())})
    pyarrow.parquet.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), path, row_group_size=20_000)


def load_postgis(server, made):
    """One table; an index on the line, one on the start, and one on line and interval together."""
    server.psql("CREATE EXTENSION postgis")
    server.psql("CREATE TABLE lines (id int8, kind text, start_at timestamptz, end_at timestamptz, geom geometry(LineString, 4326))")
    epoch, rows = int((data.START - numpy.datetime64("2000-01-01", "us")).astype("int64")), [b"PGCOPY\n\xff\r\n\0" + bytes(8)]
    for number, kind, start, end, wkb in made:
        # EWKB: WKB with a flag for the reference system, and the system.
        geom = struct.pack("<BII", 1, 2 | 0x20000000, 4326) + wkb[5:]
        rows.append(struct.pack(f">hiqi5siqiqi{len(geom)}s", 5, 8, number, 5, kind.encode(), 8, epoch + start, 8, epoch + end, len(geom), geom))
    server.psql("COPY lines FROM STDIN (FORMAT binary)", input=b"".join(rows) + b"\xff\xff")
    server.psql("CREATE INDEX ON lines USING gist (geom); CREATE INDEX ON lines (start_at); CREATE INDEX ON lines USING gist (geom, tstzrange(start_at, end_at, '[]'))")
    server.psql("VACUUM ANALYZE lines")


def questions(rng, made, count):
    """(west, south, east, north, start, end): cells that hold a vertex of a line, when it was there or not."""
    asked = []
    for _ in range(count):
        _, _, _, _, wkb = made[rng.randrange(len(made))]
        lon, lat = struct.unpack_from("<dd", wkb, 9 + 16 * rng.randrange((len(wkb) - 9) // 16))
        span = rng.choice([5, 10, 31])
        asked.append((*data.cell(lon, lat, rng.randint(4, 8)), *data.window(rng.randrange(data.DAYS - span), span)))
    return asked


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=30_000, help="lines (the full size: 200000)")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16, 32])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    need(MERIDIAN, DRIVER, "psql", "zstd")
    say(f"making {options.rows:,} lines")
    made = list(lines(options.rows, options.seed))
    asked = questions(random.Random(options.seed), made, options.questions)
    with tempfile.TemporaryDirectory(prefix="bench-tracks-") as name:
        folder, took = pathlib.Path(name), {}
        write_parquet(made, folder / "lines.parquet")
        with start_meridian(folder) as ours, Postgres(folder) as postgres:
            began = time.time()
            meridian(ours, "create", "lines", "--schema", SCHEMA)
            meridian(ours, "load", "lines", folder / "lines.parquet", "--quiet")
            took["meridian"] = time.time() - began
            began = time.time()
            load_postgis(postgres, made)
            took["postgis"] = time.time() - began
            say("loaded: " + ", ".join(f"{n} {s:.0f} s" for n, s in took.items()))
            sql = {n: COLUMNS.format(shape="$1::geometry") + TIMES[n].format(start="$2::timestamptz", end="$3::timestamptz") for n in TIMES}
            ours_file, pg_file = folder / "ours.txt", folder / "pg.txt"
            ours_file.write_text("".join("\t".join(map(str, q)) + "\n" for q in asked))
            pg_file.write_text("".join(f"SRID=4326;{data.box_wkt(*q[:4])}\t{q[4]}\t{q[5]}\n" for q in asked))
            hits = check(ours, postgres, asked, TARGET)
            systems = {"meridian": (ours, "http", TARGET, ours_file)} | {n: (postgres, "pg", sql[n], pg_file) for n in TIMES}
            runs, quiet = {}, [steal_and_load()]
            for round_number in range(options.rounds):
                for connections in options.connections:
                    for name, (server, protocol, template, file) in systems.items():
                        runs.setdefault((connections, name), []).append(drive(server, protocol, template, file, options.seconds, connections))
                    say(f"round {round_number + 1}/{options.rounds}, {connections} connections: p50 ms "
                        + ", ".join(f"{n} {runs[connections, n][-1]['p50_ms']:.1f}" for n in systems))
                quiet.append(steal_and_load())
            memory = {"meridian": resident_mb(ours.pid), "postgis": resident_mb(postgres.pid)}
    save("tracks", {"rows": options.rows, "seconds": options.seconds, "rounds": options.rounds, "questions": options.questions, "seed": options.seed,
                    "vertices": sum((len(m[4]) - 9) // 16 for m in made), "hits": {"median": median(hits), "max": max(hits)}, "load_s": took, "resident_mb": memory,
                    "quiet": quiet, "runs": [{"connections": c, "system": n, "runs": r} for (c, n), r in runs.items()]})


def check(ours, postgres, asked, target):
    """The same lines from both, and from both of PostGIS's ways; how many each question has."""
    hits = []
    for question in asked:
        path = target
        for i, word in enumerate(question, 1):
            path = path.replace(f"{{{i}}}", str(word))
        ids = pyarrow.ipc.open_stream(io.BytesIO(http(ours, "GET", path))).read_all()["id"].to_pylist()
        shape = f"'SRID=4326;{data.box_wkt(*question[:4])}'::geometry"
        for name, times in TIMES.items():
            where = f"ST_Intersects(geom, {shape}) AND " + times.format(start=f"'{question[4]}'::timestamptz", end=f"'{question[5]}'::timestamptz")
            count, total = map(int, postgres.psql(f"SELECT count(*), coalesce(sum(id), 0) FROM lines WHERE {where}").split("|"))
            if (count, total) != (len(ids), sum(map(int, ids))):
                sys.exit(f"bench: {name} has {count} lines, Meridian {len(ids)}: {question}")
        hits.append(len(ids))
    say(f"{len(asked)} questions answered alike")
    return hits


if __name__ == "__main__":
    main()
