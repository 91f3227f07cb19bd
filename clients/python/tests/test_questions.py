"""Answers of the server, by way of the client, against plain Python over the file that was loaded."""

from __future__ import annotations

import contextlib
import csv
import datetime as dt
import json
import math
import sqlite3
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import meridian
import pyarrow as pa
import pyarrow.parquet
import pytest

DATA = Path(__file__).parents[3] / "data"
EARTH_M = 6_371_008.8


def rows(path: str) -> list[dict[str, str]]:
    text = subprocess.run(["zstd", "-dc", str(DATA / path)], check=True, capture_output=True, text=True).stdout
    return list(csv.DictReader(text.splitlines()))


@pytest.fixture(scope="module")
def oracle() -> list[dict[str, Any]]:
    """Earthquakes as the file has them."""
    number = lambda text: float(text) if text else None  # noqa: E731
    return [
        {
            "id": row["id"],
            "lon": float(row.get("longitude") or row["lon"]),
            "lat": float(row.get("latitude") or row["lat"]),
            "time": dt.datetime.fromisoformat(row["time"].replace("Z", "+00:00")),
            "mag": number(row["mag"]),
            "net": row["net"] or None,
            "place": row["place"] or None,
            "type": row["type"] or None,
        }
        for row in rows("usgs-earthquakes/earthquakes.csv.zst")
    ]


@pytest.fixture(scope="module")
def quakes(db: meridian.Database) -> meridian.Collection:
    return db["earthquakes"]


def distance(lon: float, lat: float, to: dict[str, Any]) -> float:
    a, b, x, y = map(math.radians, (lat, to["lat"], lon, to["lon"]))
    h = math.sin((b - a) / 2) ** 2 + math.cos(a) * math.cos(b) * math.sin((y - x) / 2) ** 2
    return 2 * EARTH_M * math.asin(math.sqrt(h))


def ids(table: pa.Table) -> list[str]:
    return table.column("id").to_pylist()


def test_a_box_a_time_and_a_filter(quakes: meridian.Collection, oracle: list[dict[str, Any]]) -> None:
    start, end = dt.datetime(2021, 5, 1, tzinfo=dt.timezone.utc), dt.datetime(2024, 6, 1, tzinfo=dt.timezone.utc)
    found = quakes.query(bbox=(138, 34, 142, 37), datetime=(start, end), filter="mag >= 4.5").to_arrow()
    expected = {
        e["id"]
        for e in oracle
        if 138 <= e["lon"] <= 142 and 34 <= e["lat"] <= 37 and start <= e["time"] <= end and (e["mag"] or 0) >= 4.5
    }
    assert set(ids(found)) == expected and len(expected) == found.num_rows > 5


def test_a_box_across_the_antimeridian(quakes: meridian.Collection, oracle: list[dict[str, Any]]) -> None:
    found = quakes.query(bbox=(175, -25, -175, -15)).to_arrow()
    expected = {e["id"] for e in oracle if (e["lon"] >= 175 or e["lon"] <= -175) and -25 <= e["lat"] <= -15}
    assert set(ids(found)) == expected and len(expected) > 100


def test_the_whole_collection_streams_and_pages(quakes: meridian.Collection, oracle: list[dict[str, Any]]) -> None:
    table = quakes.query().to_arrow()
    assert sorted(ids(table)) == sorted(e["id"] for e in oracle)
    by_id = {e["id"]: e for e in oracle}
    for id, time, mag in zip(ids(table), table.column("time").to_pylist(), table.column("mag").to_pylist()):
        assert time == by_id[id]["time"] and mag == by_id[id]["mag"]
    pages = [page for page in quakes.query(datetime="2017-01-01/2018-01-01").pages(1_000)]
    assert [page.num_rows for page in pages[:-1]] == [1_000] * (len(pages) - 1) and len(pages) > 5
    paged = [id for page in pages for id in ids(page)]
    assert sorted(paged) == sorted(e["id"] for e in oracle if e["time"].year == 2017)


def test_pages_stop_at_a_limit(quakes: meridian.Collection) -> None:
    assert [page.num_rows for page in quakes.query(limit=2_500).pages(1_000)] == [1_000, 1_000, 500]
    assert [page.num_rows for page in quakes.query(filter="mag > 99").pages()] == [0]


def test_places_are_where_the_file_has_them(quakes: meridian.Collection, oracle: list[dict[str, Any]]) -> None:
    by_id = {e["id"]: e for e in oracle}
    frame = quakes.query(filter="mag >= 6").to_pandas()
    assert len(frame) > 50
    for id, lon, lat in zip(frame.id, frame.lon, frame.lat):
        assert (lon, lat) == (by_id[id]["lon"], by_id[id]["lat"])
    shapes = quakes.query(filter="mag >= 6").to_geopandas()
    assert shapes.crs.equals("OGC:CRS84")
    assert list(shapes.geometry.x) == list(frame.lon) and list(shapes.geometry.y) == list(frame.lat)
    polars = quakes.query(filter="mag >= 6").to_polars()
    assert polars["lon"].to_list() == list(frame.lon) and polars["time"].to_list() == list(frame.time)


def test_columns_are_the_same_without_events(quakes: meridian.Collection) -> None:
    nothing, something = quakes.query(filter="mag > 99"), quakes.query(limit=5)
    assert list(nothing.to_pandas().columns) == list(something.to_pandas().columns)
    assert nothing.to_polars().columns == something.to_polars().columns
    assert list(nothing.to_geopandas().columns) == list(something.to_geopandas().columns)
    assert nothing.first() is None and list(nothing) == []


def test_integers_with_nulls_stay_integers(quakes: meridian.Collection) -> None:
    frame = quakes.query(properties=["nst"]).to_pandas()
    assert str(frame.nst.dtype) == "Int64" and frame.nst.isna().any()


def test_near_and_nearest(quakes: meridian.Collection, oracle: list[dict[str, Any]]) -> None:
    ordered = sorted((distance(139.69, 35.69, e), e["id"]) for e in oracle)
    within = quakes.query(near=(139.69, 35.69, 300_000)).to_arrow()
    assert ids(within) == [id for far, id in ordered if far <= 300_000]
    nearest = quakes.query(nearest=(139.69, 35.69, 7))
    assert ids(nearest.to_arrow()) == [id for _, id in ordered[:7]]
    for number in (nearest.count, nearest.aggregate, nearest.density, nearest.tracks):
        with pytest.raises(ValueError, match="nearest is for events"):
            number()


def test_order_and_columns(quakes: meridian.Collection, oracle: list[dict[str, Any]]) -> None:
    table = quakes.query(sortby=["-mag", "-time"], limit=50, properties=["mag"]).to_arrow()
    assert table.column_names == ["id", "geometry", "mag"]
    ranked = sorted((e for e in oracle if e["mag"] is not None), key=lambda e: (-e["mag"], -e["time"].timestamp()))
    assert ids(table) == [e["id"] for e in ranked[:50]]


def test_aggregates(quakes: meridian.Collection, oracle: list[dict[str, Any]]) -> None:
    table = quakes.aggregate("count", "max(mag)", "avg(mag)", window="P1M", bbox=(-125, 32, -114, 42))
    months: dict[dt.datetime, list[float | None]] = {}
    for e in oracle:
        if -125 <= e["lon"] <= -114 and 32 <= e["lat"] <= 42:
            month = e["time"].replace(day=1, hour=0, minute=0, second=0, microsecond=0)
            months.setdefault(month, []).append(e["mag"])
    for row in table.to_pylist():
        mags = [m for m in months[row["window_start"]] if m is not None]
        assert row["count"] == len(months[row["window_start"]]) and row["max(mag)"] == max(mags)
        assert math.isclose(row["avg(mag)"], sum(mags) / len(mags), rel_tol=1e-12)
    assert table.num_rows == len(months)
    by_net = {row["net"]: row["count"] for row in quakes.aggregate(by="net").to_pylist()}
    assert by_net == {net: sum(e["net"] == net for e in oracle) for net in {e["net"] for e in oracle}}


def nearest_rank(values: list[float], percent: float) -> float:
    return sorted(values)[max(1, math.ceil(len(values) * percent / 100)) - 1]


def test_percentiles_distinct_counts_and_top_lists(quakes: meridian.Collection, oracle: list[dict[str, Any]]) -> None:
    functions = ["median(mag)", "percentile(mag,95)", "percentile(mag, 99.90)", "distinct(net)", "top(net, 3)", "count"]
    table = quakes.aggregate(*functions)
    estimates = [[function, f"error({function})"] for function in functions[:-1]]
    assert table.column_names == [*(name for names in estimates for name in names), "count"]
    mags = [e["mag"] for e in oracle if e["mag"] is not None]
    [row] = table.to_pylist()
    assert [row[function] for function in functions[:3]] == [nearest_rank(mags, p) for p in (50, 95, 99.9)]
    nets = Counter(e["net"] for e in oracle if e["net"] is not None)
    assert row["distinct(net)"] == len(nets) and row["count"] == len(oracle)
    assert row["top(net, 3)"] == [{"value": net, "count": count} for net, count in nets.most_common(3)]
    assert [row[f"error({function})"] for function in functions[:-1]] == [0.0] * 5


def test_an_estimate_has_its_error(quakes: meridian.Collection, oracle: list[dict[str, Any]]) -> None:
    [row] = quakes.aggregate("distinct(place)", "top(place,2)").to_pylist()
    places = Counter(e["place"] for e in oracle if e["place"] is not None)
    error = row["error(distinct(place))"]
    assert 0 < error < 0.05 and abs(row["distinct(place)"] - len(places)) <= error * len(places)
    low = row["error(top(place,2))"]
    assert 0 < low and all(0 <= places[top["value"]] - top["count"] <= low for top in row["top(place,2)"])


def test_one_text_may_name_several_functions(quakes: meridian.Collection) -> None:
    listed = quakes.aggregate("count, top(type, 2)", "max(mag),median(mag)")
    assert listed.equals(quakes.aggregate("count", "top(type, 2)", "max(mag)", "median(mag)"))
    assert listed.column("max(mag)").to_pylist() == [7.9] and listed.num_columns == 6


def test_each_field_of_by_has_a_column(quakes: meridian.Collection, oracle: list[dict[str, Any]]) -> None:
    table = quakes.aggregate("count", "median(mag)", by=["net", "type"])
    assert table.column_names == ["net", "type", "count", "median(mag)", "error(median(mag))"]
    assert table.equals(quakes.aggregate("count", "median(mag)", by="net,type"))
    mags: dict[tuple[str, str], list[float | None]] = {}
    for e in oracle:
        mags.setdefault((e["net"], e["type"]), []).append(e["mag"])
    found = {(row["net"], row["type"]): (row["count"], row["median(mag)"]) for row in table.to_pylist()}
    known = {key: [mag for mag in group if mag is not None] for key, group in mags.items()}
    assert found == {key: (len(mags[key]), nearest_rank(known[key], 50) if known[key] else None) for key in mags}
    assert quakes.aggregate(by=["net"]).equals(quakes.aggregate(by="net"))
    with pytest.raises(meridian.Invalid, match="nothing"):
        quakes.aggregate(by=["net", "nothing"])


def test_without_groups_an_aggregate_has_the_same_columns(quakes: meridian.Collection) -> None:
    functions = ("count", "avg(mag)", "median(mag)", "percentile(mag,95)", "distinct(net)", "top(type, 2)")
    nothing, something = (
        quakes.aggregate(*functions, window="P1Y", by=("net", "type"), filter=filter) for filter in ("mag > 99", "mag > 7")
    )
    assert nothing.num_rows == 0 < something.num_rows and nothing.column_names == something.column_names
    [row] = quakes.aggregate("median(mag)", "top(type,2)", filter="mag > 99").to_pylist()
    assert row == {"median(mag)": None, "error(median(mag))": 0.0, "top(type,2)": [], "error(top(type,2))": 0.0}


def test_types_do_not_depend_on_what_matches(db: meridian.Database, quakes: meridian.Collection) -> None:
    whole = ["max(mag)", "min(nst)", "percentile(nst, 95)", "top(nst,1)"]
    functions = ["count", "avg(nst)", "sum(mag)", *whole, "distinct(net)", "top(type, 2)"]
    for by in (None, "net", "nst", ["net", "nst"]):
        tables = [quakes.aggregate(*functions, by=by, filter=filter) for filter in ("mag > 99", "mag > 7")]
        assert tables[0].schema == tables[1].schema
        assert pa.concat_tables(tables).num_rows == sum(table.num_rows for table in tables)
    schema = quakes.aggregate(*whole, filter="mag > 99").schema
    assert [schema.field(name).type for name in whole[:3]] == [pa.float64(), pa.int64(), pa.int64()]
    assert schema.field("top(nst,1)").type.value_type.field("value").type == pa.int64()
    none, some = (db["ships"].tracks(filter=filter) for filter in ("sog_kn > 1000", "sog_kn > 20"))
    assert none.schema == some.schema and none.num_rows == 0 < pa.concat_tables([none, some]).num_rows


def test_fields_with_unusual_names_and_events_without_a_start(made: Any) -> None:
    date = {"type": "string", "format": "date-time"}
    ends = {name: {**date, "x-ogc-role": f"primary-interval-{name}"} for name in ("start", "end")}
    text, integer = {"type": "string"}, {"type": "integer"}
    spans = made({"properties": {**ends, "count": text, "a,b": text, "n": integer}})
    rows = [(None, "x", "p"), ("2026-01-01T00:00:00Z", "x", "q"), ("2026-01-01T12:00:00Z", "y", "q")]
    spans.append([{"start": s, "end": "2026-01-02T00:00:00Z", "count": c, "a,b": ab, "n": 1 << 62} for s, c, ab in rows])
    table = spans.aggregate("count", "sum(n)", by="count")
    assert table.column_names == ["count", "count", "sum(n)"]
    assert [column.to_pylist() for column in table.columns] == [["x", "y"], [2, 1], [1 << 63, 1 << 62]]
    for by in ("a,b", ["a,b"]):
        assert spans.aggregate(by=by).to_pylist() == [{"a,b": "p", "count": 1}, {"a,b": "q", "count": 2}]
    days = spans.aggregate("count", window="P1D").to_pylist()
    starts = {day["window_start"] and day["window_start"].isoformat(): day["count"] for day in days}
    assert starts == {None: 1, "2026-01-01T00:00:00+00:00": 2}


def test_density(quakes: meridian.Collection, oracle: list[dict[str, Any]]) -> None:
    grid = quakes.density(width=36, height=18).to_numpy()
    expected = [[0] * 36 for _ in range(18)]
    for e in oracle:
        expected[min(17, int((90 - e["lat"]) // 10))][min(35, int((e["lon"] + 180) // 10))] += 1
    # A place on the edge of two cells may count in either.
    assert grid.sum() == len(oracle) and abs(grid - expected).sum() <= 20


def test_tracks(db: meridian.Database) -> None:
    box = (-74.1, 40.6, -74.0, 40.7)
    passed: dict[str, list[str]] = {}
    for row in rows("us-ais-20220103/ais.csv.zst"):
        if box[0] <= float(row["lon"]) <= box[2] and box[1] <= float(row["lat"]) <= box[3]:
            passed.setdefault(row["vessel"], []).append(row["time"])
    found = db["ships"].tracks(bbox=box).to_pylist()
    assert [track["object"] for track in found] == sorted(passed)
    for track in found:
        times = sorted(dt.datetime.fromisoformat(t.replace("Z", "+00:00")) for t in passed[track["object"]])
        assert (track["count"], track["first"], track["last"]) == (len(times), times[0], times[-1])
    line = db["ships"].query().track(found[0]["object"])
    assert len(line["properties"]["times"]) == line["properties"]["events"] >= found[0]["count"]
    assert db["ships"].query(limit=3).tracks().num_rows == 3


def test_filters_in_json_and_long_ones(quakes: meridian.Collection, oracle: list[dict[str, Any]]) -> None:
    by_json = quakes.query(filter={"op": ">", "args": [{"property": "mag"}, 6.5]}).count()
    assert by_json == quakes.query(filter="mag > 6.5").count() == sum((e["mag"] or 0) > 6.5 for e in oracle)
    some = [e["id"] for e in oracle[:2_000]]
    listed = ", ".join(f"'{id}'" for id in some)
    assert quakes.query(filter=f"id IN ({listed})").count() == len(some)


def packaged(file: Path) -> list[str]:
    """The ids in the layer of a GeoPackage."""
    with contextlib.closing(sqlite3.connect(file)) as database:
        return [found for (found,) in database.execute("SELECT id FROM earthquakes")]


NAMES = ["a.parquet", "a.arrow", "a.arrows", "a.csv", "a.geojson", "a.ndjson", "a.geojsons", "a.gpkg"]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_has_what_the_query_gives(quakes: meridian.Collection, name: str, tmp_path: Path) -> None:
    query, file = quakes.query(filter="mag >= 6.5"), tmp_path / name
    file.write_text("replaced")
    assert query.export(file) == file.stat().st_size
    expected = query.to_arrow()
    texts = {
        ".csv": lambda: [row["id"] for row in csv.DictReader(file.read_text().splitlines())],
        ".geojson": lambda: [feature["id"] for feature in json.loads(file.read_text())["features"]],
        ".ndjson": lambda: [json.loads(line)["id"] for line in file.read_text().splitlines()],
        ".geojsons": lambda: [json.loads(text)["id"] for text in file.read_text().split("\x1e")[1:]],
        ".parquet": lambda: ids(pyarrow.parquet.read_table(file)),
        ".arrow": lambda: ids(pa.ipc.open_file(file).read_all()),
        ".arrows": lambda: ids(pa.ipc.open_stream(file.read_bytes()).read_all()),
        ".gpkg": lambda: packaged(file),
    }
    assert sorted(texts[file.suffix]()) == sorted(ids(expected)) and expected.num_rows > 20


def test_flatgeobuf_is_a_header_and_a_message_for_each_event(quakes: meridian.Collection, tmp_path: Path) -> None:
    file = tmp_path / "a.fgb"
    written = quakes.query(filter="mag >= 6").export(file)
    data = file.read_bytes()
    at, messages = 8, 0
    while at < len(data):
        at += 4 + int.from_bytes(data[at : at + 4], "little")
        messages += 1
    assert data.startswith(b"fgb\x03fgb\x00") and at == len(data) == written
    assert messages == 1 + quakes.query(filter="mag >= 6").to_arrow().num_rows


def test_a_file_is_written_completely_or_not_at_all(quakes: meridian.Collection, tmp_path: Path) -> None:
    file = tmp_path / "quakes.csv"
    file.write_text("as it was")
    with pytest.raises(meridian.Invalid):
        quakes.query(filter="magnitude > 3").export(file)
    with pytest.raises(ValueError, match="ends in .parquet"):
        quakes.query().export(tmp_path / "quakes.txt")
    with pytest.raises(ValueError, match="the command line does: meridian export earthquakes .*quakes.PMTiles"):
        quakes.query().export(tmp_path / "quakes.PMTiles")
    assert [path.name for path in tmp_path.iterdir()] == ["quakes.csv"] and file.read_text() == "as it was"
    quakes.query(filter="mag > 99").export(tmp_path / "none.geojson")
    assert json.loads((tmp_path / "none.geojson").read_text()) == {"type": "FeatureCollection", "features": []}


def test_mistakes_are_refused_before_they_are_sent(quakes: meridian.Collection) -> None:
    with pytest.raises(TypeError, match="unknown condition box"):
        quakes.query(box=(1, 2, 3, 4))  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="bbox"):
        quakes.query(bbox=(1, 2, 3))
    with pytest.raises(ValueError, match="time zone"):
        quakes.query(datetime=dt.datetime(2026, 1, 1))
    with pytest.raises(ValueError, match="limit"):
        quakes.query(limit=5).aggregate("count")
    with pytest.raises(ValueError, match="exclude"):
        quakes.query(near=(1, 2, 3), nearest=(1, 2, 3))
