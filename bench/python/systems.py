"""The systems of bench-python, each inside the process of Python: how it is filled, and its words for the questions."""

import sys

import geopandas
import numpy
import pandas
import pyarrow
import pyarrow.dataset
import shapely

import data
from common import ROOT

RADIUS_M = 6_371_008.7714
NEAREST = 10


def instant(text):
    """A text of RFC 3339, as pandas has it."""
    return pandas.Timestamp(text)


class Meridian:
    """`meridian.open`, on a folder; or `meridian.connect`, to a server on the same data."""

    def __init__(self, database):
        self.events = database["events"]

    @staticmethod
    def fill(database, files):
        """Appends the files as any table of Arrow is appended."""
        events = database.create("events", data.SCHEMA)
        for batch in pyarrow.dataset.dataset([str(file) for file in files]).to_batches():
            table = pyarrow.Table.from_batches([batch])
            events.append(table.set_column(table.column_names.index("id"), "id", table["id"].cast("string")), progress=False)

    def around(self, lon, lat, metres, start, end):
        return self.events.query(near=(lon, lat, metres), datetime=f"{start}/{end}").to_pandas()

    def within(self, polygon, wkt):
        return self.events.query(filter=f"S_INTERSECTS(geom, {wkt})").count()

    def hours(self, box, start, end):
        table = self.events.aggregate("count", "avg(value)", window="PT1H", bbox=box, datetime=f"{start}/{end}")
        return dict(zip(table["window_start"].cast("int64").to_pylist(), zip(table["count"].to_pylist(), table["avg(value)"].to_pylist())))

    def nearest(self, lon, lat):
        return self.events.query(nearest=(lon, lat, NEAREST), properties=["value"]).to_arrow()["id"].to_pylist()


class Duckdb:
    """DuckDB with its spatial extension, all in memory; a box before each exact test, as its documentation advises without an index."""

    def __init__(self, database):
        self.database = database

    @staticmethod
    def fill(database, files):
        """A table in order of time, whose zone maps prune, and one with an R-tree."""
        names = ", ".join(f"'{file}'" for file in files)
        database.execute(f"CREATE TABLE events AS SELECT id::VARCHAR AS id, kind, value, time, lon, lat, ST_Point(lon, lat) AS geom FROM read_parquet([{names}]) ORDER BY time")
        database.execute("CREATE TABLE indexed AS SELECT id, value, lon, lat, geom FROM events ORDER BY ST_Hilbert(geom, ST_Extent(ST_MakeEnvelope(-180, -90, 180, 90)))")
        database.execute("CREATE INDEX place ON indexed USING RTREE (geom)")

    def distance(self, lon, lat):
        # ST_Distance_Sphere has another radius of the earth, and answers would differ at the edge.
        return (f"2 * {RADIUS_M} * asin(sqrt(least(1, power(sin(radians(lat - {lat}) / 2), 2) "
                f"+ cos(radians(lat)) * cos(radians({lat})) * power(sin(radians(lon - {lon}) / 2), 2))))")

    def around(self, lon, lat, metres, start, end):
        west, south, east, north = degrees_around(lon, lat, metres)
        return self.database.execute(
            f"SELECT id, kind, value, time, lon, lat FROM events WHERE time BETWEEN TIMESTAMPTZ '{start}' AND TIMESTAMPTZ '{end}' "
            f"AND lon BETWEEN {west} AND {east} AND lat BETWEEN {south} AND {north} AND {self.distance(lon, lat)} <= {metres}").df()

    def within(self, polygon, wkt):
        return self.database.execute(f"SELECT count(*) FROM indexed WHERE ST_Intersects(geom, ST_GeomFromText('{wkt}'))").fetchone()[0]

    def hours(self, box, start, end):
        west, south, east, north = box
        return {start: (count, mean) for start, count, mean in self.database.execute(
            f"SELECT epoch_us(date_trunc('hour', time)) AS start, count(*), avg(value) FROM events WHERE time BETWEEN TIMESTAMPTZ '{start}' AND TIMESTAMPTZ '{end}' "
            f"AND lon BETWEEN {west} AND {east} AND lat BETWEEN {south} AND {north} GROUP BY start").fetchall()}

    def nearest(self, lon, lat):
        return [id for (id,) in self.database.execute(f"SELECT id FROM events ORDER BY {self.distance(lon, lat)}, id LIMIT {NEAREST}").fetchall()]


class GeoPandas:
    """A GeoDataFrame in order of time, whose spatial index is built before anything is timed."""

    def __init__(self, frame):
        self.frame, self.times = frame, frame["time"].dt.tz_convert(None).to_numpy()
        self.lon, self.lat = frame["lon"].to_numpy(), frame["lat"].to_numpy()

    @staticmethod
    def fill(files):
        """The frame of the files."""
        frame = pyarrow.dataset.dataset([str(file) for file in files]).to_table().to_pandas()
        frame["id"] = frame["id"].astype(str)
        frame = geopandas.GeoDataFrame(frame, geometry=geopandas.points_from_xy(frame["lon"], frame["lat"]), crs="OGC:CRS84")
        frame.sindex.query(frame.geometry.iloc[0])
        return frame

    def between(self, start, end):
        """Rows of an interval: two binary searches, since the frame is in order of time."""
        left, right = (numpy.datetime64(instant(text).tz_convert(None)) for text in (start, end))
        return slice(self.times.searchsorted(left, "left"), self.times.searchsorted(right, "right"))

    def distance(self, lon, lat, rows):
        a, b = numpy.radians(lat), numpy.radians(self.lat[rows])
        h = numpy.sin((b - a) / 2) ** 2 + numpy.cos(a) * numpy.cos(b) * numpy.sin(numpy.radians(self.lon[rows] - lon) / 2) ** 2
        return 2 * RADIUS_M * numpy.arcsin(numpy.sqrt(numpy.minimum(1, h)))

    def around(self, lon, lat, metres, start, end):
        rows = self.between(start, end)
        west, south, east, north = degrees_around(lon, lat, metres)
        lons, lats = self.lon[rows], self.lat[rows]
        some = rows.start + numpy.flatnonzero((lons >= west) & (lons <= east) & (lats >= south) & (lats <= north))
        return self.frame.iloc[some[self.distance(lon, lat, some) <= metres]]

    def within(self, polygon, wkt):
        return len(self.frame.sindex.query(polygon, predicate="intersects"))

    def hours(self, box, start, end):
        west, south, east, north = box
        some = self.frame.iloc[self.between(start, end)]
        some = some[(some["lon"] >= west) & (some["lon"] <= east) & (some["lat"] >= south) & (some["lat"] <= north)]
        groups = some.groupby(some["time"].dt.floor("h"))["value"].agg(["size", "mean"])
        return {int(at.value) // 1000: (int(count), mean) for at, count, mean in zip(groups.index, groups["size"], groups["mean"])}

    def nearest(self, lon, lat):
        # Its index knows distances in the plane only, so candidates are all within a box that surely has them.
        reach = 20_000.0
        while True:
            west, south, east, north = degrees_around(lon, lat, reach)
            some = self.frame.sindex.query(shapely.box(west, south, east, north))
            far = self.distance(lon, lat, some)
            if numpy.count_nonzero(far <= reach) >= NEAREST:
                first = some[numpy.lexsort((self.frame["id"].to_numpy()[some], far))[:NEAREST]]
                return self.frame["id"].to_numpy()[first].tolist()
            reach *= 4


def degrees_around(lon, lat, metres):
    """A box in degrees that holds a circle; the circles asked for are far from poles and the antimeridian."""
    high = numpy.degrees(metres / RADIUS_M) * 1.001
    wide = numpy.degrees(numpy.arcsin(min(1.0, numpy.sin(metres / RADIUS_M) / numpy.cos(numpy.radians(lat))))) * 1.001
    return lon - wide, lat - high, lon + wide, lat + high


def client():
    """The Python client of this tree."""
    sys.path.insert(0, str(ROOT / "clients" / "python" / "src"))
    import meridian
    return meridian
