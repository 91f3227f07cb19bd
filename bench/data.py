"""Data that several benches share: real events with their clustering, replicated with seeded jitter, and trades; both in order of time.

Earthquakes (where the earth moves), ships (along coasts and rivers) and postal places (where people live) are drawn
40 : 30 : 30. Each copy lies a few kilometres from its original, at a random moment of three years. The trades are the ones
that the driver sends. Files are kept under the target folder: the same rows and seed are made once.
"""

import io
import json
import math
import shutil
import urllib.parse

import numpy
import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from common import ROOT, TARGET, read_zst, say

START, DAYS = numpy.datetime64("2023-01-01T00:00:00", "us"), 3 * 365
TRADES_START, SYMBOLS = numpy.datetime64("2026-01-01T00:00:00", "us"), 100
PART = 1_000_000
SCHEMA = "kind:String,value:Double,time:Date,*geom:Point:srid=4326;meridian.id='given'"
CITIES = {
    "Tokyo": (139.69, 35.69), "Los Angeles": (-118.24, 34.05), "New York": (-74.01, 40.71), "London": (-0.13, 51.51),
    "Paris": (2.35, 48.86), "Mexico City": (-99.13, 19.43), "Houston": (-95.37, 29.76), "Anchorage": (-149.9, 61.22),
    "Istanbul": (28.98, 41.01), "Jakarta": (106.85, -6.21)}


def column_table(path, columns, delimiter=","):
    """Some columns of a zstd CSV."""
    options = pyarrow.csv.ConvertOptions(include_columns=columns)
    with pyarrow.input_stream(str(ROOT / "data" / path), compression="zstd") as source:
        return pyarrow.csv.read_csv(source, parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter), convert_options=options)


def originals():
    """(share, name, jitter in degrees, longitudes, latitudes, values) of each source."""
    sources = [
        (0.4, "quake", 0.05, "usgs-earthquakes/earthquakes.csv.zst", ("longitude", "latitude", "mag"), ","),
        (0.3, "ships", 0.05, "us-ais-20220103/ais.csv.zst", ("lon", "lat", "sog_kn"), ","),
        (0.3, "place", 0.02, "geonames-postal-places/postal_places.tsv.zst", ("lon", "lat", "accuracy"), "\t"),
    ]
    for share, kind, jitter, path, columns, delimiter in sources:
        table = column_table(path, list(columns), delimiter)
        lon, lat, value = (pyarrow.compute.fill_null(table[c].cast("float64"), 0).to_numpy() for c in columns)
        yield share, kind, jitter, lon, lat, value


def kept(name, rows, seed, slices):
    """Parquet files of what `slices` makes of rows and seed."""
    folder = TARGET / "bench-data" / f"{name}-{rows}-{seed}"
    if not (folder / "done").exists():
        say(f"making {rows:,} {name}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for part, table in enumerate(slices(rows, seed)):
            pyarrow.parquet.write_table(table, folder / f"part-{part:04}.parquet", compression="zstd")
        (folder / "done").touch()
    return sorted(folder.glob("*.parquet"))


def events(rows, seed=1):
    """Parquet files of {id, kind, value, time, lon, lat}, each a slice of the three years, rows in order of time."""
    return kept("events", rows, seed, event_slices)


def event_slices(rows, seed):
    """Table after table."""
    sources = list(originals())
    for part, first in enumerate(range(0, rows, PART)):
        yield slice_of(sources, numpy.random.default_rng([seed, part]), first, min(PART, rows - first), rows)


def slice_of(sources, rng, first, count, rows):
    """The events from `first` on: `count` of them, and that share of the three years."""
    kind = rng.choice(len(sources), count, p=[s[0] for s in sources])
    lon, lat, value = numpy.empty(count), numpy.empty(count), numpy.empty(count)
    for i, (_, _, jitter, lons, lats, values) in enumerate(sources):
        at = numpy.flatnonzero(kind == i)
        drawn = rng.integers(0, len(lons), len(at))
        lon[at] = lons[drawn] + rng.normal(0, jitter, len(at))
        lat[at] = lats[drawn] + rng.normal(0, jitter, len(at))
        value[at] = values[drawn]
    span = DAYS * 86_400_000_000
    time = numpy.sort(rng.integers(first * span // rows, (first + count) * span // rows, count))
    names = pyarrow.array([s[1] for s in sources])
    return pyarrow.table({
        "id": numpy.arange(first, first + count), "kind": names.take(pyarrow.array(kind)), "value": value,
        "time": pyarrow.array(START + time.astype("timedelta64[us]"), pyarrow.timestamp("us", "UTC")),
        "lon": numpy.clip(lon.round(6), -180, 180), "lat": numpy.clip(lat.round(6), -89.9, 89.9)})


def trades(rows, seed=1):
    """Parquet files of {id, symbol, type, price, time}: the events that bench-ingest sends, numbered."""
    return kept("trades", rows, seed, trade_slices)


def trade_slices(rows, seed):
    """Table after table, of the same random numbers as in bench/driver/src/bodies.rs, four for each event."""
    symbols = pyarrow.array([f"SY{i:02}" for i in range(SYMBOLS)])
    cents, now = numpy.full(SYMBOLS, 10_000), 0
    for first in range(0, rows, PART):
        count = min(PART, rows - first)
        draws = split_mix(seed, 4 * first, 4 * count).reshape(count, 4) % numpy.array([SYMBOLS, 21, 2_000, 8], "uint64")
        which, step, gap, kind = draws.astype("int64").T
        price = numpy.empty(count)
        for symbol in range(SYMBOLS):
            at = numpy.flatnonzero(which == symbol)
            walk = numpy.append(cents[symbol], step[at] - 10).cumsum()
            price[at], cents[symbol] = walk[1:] / 100, walk[-1]
        time = now + (1 + gap).cumsum()
        now = time[-1]
        yield pyarrow.table({
            "id": numpy.arange(first, first + count), "symbol": symbols.take(pyarrow.array(which)), "type": kind, "price": price,
            "time": pyarrow.array(TRADES_START + time.astype("timedelta64[us]"), pyarrow.timestamp("us", "UTC"))})


def split_mix(seed, first, count):
    """Numbers of SplitMix64 (Steele, Lea and Flood, 2014): `count` of them, after the first `first`."""
    z = numpy.arange(first + 1, first + count + 1, dtype="uint64") * 0x9E3779B97F4A7C15 + seed
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return z ^ (z >> 31)


def postgres_csv(path):
    """A file's rows as PostgreSQL's COPY takes them as CSV."""
    out = io.BytesIO()
    pyarrow.csv.write_csv(pyarrow.parquet.read_table(path), out, pyarrow.csv.WriteOptions(include_header=False))
    return out.getvalue()


def postgres_copy(path):
    """A file of events as rows of PostgreSQL's binary COPY: id int8, kind text, value float8, time, lon and lat float8."""
    table = pyarrow.parquet.read_table(path)
    kinds = table["kind"].to_numpy(zero_copy_only=False).astype("S")
    epoch = numpy.datetime64("2000-01-01", "us")
    micros = (table["time"].cast(pyarrow.timestamp("us")).to_numpy() - epoch).astype("int64")
    # Every kind has five letters, so that a row has one length and a whole file is one array.
    row = numpy.dtype([("n", ">i2"), ("l0", ">i4"), ("id", ">i8"), ("l1", ">i4"), ("kind", "S5"), ("l2", ">i4"), ("value", ">f8"),
                       ("l3", ">i4"), ("time", ">i8"), ("l4", ">i4"), ("lon", ">f8"), ("l5", ">i4"), ("lat", ">f8")])
    out = numpy.empty(len(kinds), row)
    out["n"], out["kind"], out["l1"], out["time"] = 6, kinds, 5, micros
    for length in ("l0", "l2", "l3", "l4", "l5"):
        out[length] = 8
    for name in ("id", "value", "lon", "lat"):
        out[name] = table[name].to_numpy()
    return b"PGCOPY\n\xff\r\n\0" + bytes(8) + out.tobytes() + b"\xff\xff"


def circle(lon, lat, km, corners=64):
    """A ring of corners that far from a point, on a sphere of the earth's mean radius."""
    ring, d, at = [], km / 6371.0088, math.radians(lat)
    for i in range(corners):
        bearing = 2 * math.pi * i / corners
        y = math.asin(math.sin(at) * math.cos(d) + math.cos(at) * math.sin(d) * math.cos(bearing))
        x = math.radians(lon) + math.atan2(math.sin(bearing) * math.sin(d) * math.cos(at), math.cos(d) - math.sin(at) * math.sin(y))
        ring.append((math.degrees(x), math.degrees(y)))
    return [*ring, ring[0]]


def wkt(polygons):
    """A MULTIPOLYGON of lists of rings, six decimals."""
    ring = lambda points: "(" + ",".join(f"{x:.6f} {y:.6f}" for x, y in points) + ")"
    return "MULTIPOLYGON(" + ",".join("(" + ",".join(map(ring, rings)) + ")" for rings in polygons) + ")"


def cell(lon, lat, level):
    """The cell of a grid of 2^level by 2^level cells over the world that holds a point: west, south, east, north."""
    width, height = 360 / 2**level, 180 / 2**level
    west, south = math.floor((lon + 180) / width) * width - 180, math.floor((lat + 90) / height) * height - 90
    return west, south, west + width, south + height


def box_wkt(west, south, east, north):
    """A box as a polygon."""
    return wkt([[[(west, south), (east, south), (east, north), (west, north), (west, south)]]])


def countries():
    """Name and polygons of each country."""
    for line in read_zst(ROOT / "data" / "natural-earth" / "countries_110m_pop.geojsonl.zst"):
        feature = json.loads(line)
        shape = feature["geometry"]
        yield feature["properties"]["name"], shape["coordinates"] if shape["type"] == "MultiPolygon" else [shape["coordinates"]]


def window(first_day, days):
    """Start and end of a window as RFC 3339, from a day of the three years."""
    start = START + numpy.timedelta64(int(first_day * 86_400), "s")
    end = start + numpy.timedelta64(int(days * 86_400), "s")
    return [str(t.astype("datetime64[s]")) + "Z" for t in (start, end)]


def quoted(text):
    """Text as it stands in a URL."""
    return urllib.parse.quote(text, safe="")
