"""What is appended comes back, from every kind of frame."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Callable
from typing import Any

import geopandas
import meridian
import numpy
import pandas
import polars
import pyarrow as pa
import pytest
from shapely.geometry import LineString, Point

UTC = dt.timezone.utc
SCHEMA = {
    "properties": {
        "id": {"type": "string", "x-ogc-role": "id"},
        "place": {"format": "geometry-point", "x-ogc-role": "primary-geometry"},
        "seen": {"type": "string", "format": "date-time", "x-ogc-role": "primary-instant"},
        "ship": {"type": "string", "x-meridian-object": True},
        "crew": {"type": "integer"},
        "speed": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["id", "seen"],
}
Make = Callable[..., meridian.Collection]


def columns() -> dict[str, list[Any]]:
    return {
        "id": ["a", "b", "c"],
        "lon": [4.25, -179.5, 0.1],
        "lat": [52.0, -16.75, 51.5],
        "seen": [dt.datetime(2026, 1, d, 12, 30, 15, 123456, tzinfo=UTC) for d in (1, 2, 3)],
        "ship": ["Ålesund", "Bø", None],
        "crew": [12, None, 9_007_199_254_740_993],
        "speed": [1.5, 0.1, None],
    }


def table() -> pa.Table:
    held = columns()
    return pa.table({**held, "crew": pa.array(held["crew"], pa.int64()), "tags": [["x", "y"], [], None]})


def kept(collection: meridian.Collection) -> list[dict[str, Any]]:
    found = collection.query().to_polars().sort("id").to_dicts()
    return [{name: value for name, value in row.items() if name != "tags"} for row in found]


def expected() -> list[dict[str, Any]]:
    held = columns()
    return [{name: held[name][n] for name in held} for n in range(3)]


def test_arrow(made: Make) -> None:
    boats = made(SCHEMA)
    outcome = boats.append(table())
    assert (outcome.written, outcome.duplicates) == (3, 0)
    assert kept(boats) == expected()
    assert boats.query(sortby="id", limit=9).to_arrow().column("tags").to_pylist() == [["x", "y"], [], None]
    # What a query gives can be appended as it is.
    again = made(SCHEMA)
    again.append(boats.query().to_arrow())
    assert kept(again) == expected()


def test_batches_are_cut_as_the_table_is(made: Make) -> None:
    small = [pa.RecordBatch.from_pydict({"seen": ["2026-01-01T00:00:00Z"] * n, "n": list(range(n))}) for n in (30_000, 45_000, 1)]
    made_of = {"properties": {"seen": SCHEMA["properties"]["seen"], "n": {"type": "integer"}}}  # type: ignore[index]
    streamed = made(made_of)
    reader = pa.RecordBatchReader.from_batches(small[0].schema, small)
    assert streamed.append(reader, key="k").written == 75_001 == len(streamed)
    outcome = streamed.append(pa.Table.from_batches(small), key="k")
    assert (outcome.written, outcome.duplicates) == (0, 75_001)
    assert len(streamed) == 75_001


def test_pandas(made: Make) -> None:
    boats = made(SCHEMA)
    frame = pandas.DataFrame(columns())
    frame["crew"] = pandas.array(columns()["crew"], dtype="Int64")
    boats.append(frame)
    assert kept(boats) == expected()
    again = made(SCHEMA)
    whole = boats.query().to_pandas()
    again.append(whole)
    pandas.testing.assert_frame_equal(again.query(sortby="id", limit=9).to_pandas(), whole.sort_values("id", ignore_index=True))


def test_polars(made: Make) -> None:
    boats = made(SCHEMA)
    boats.append(polars.DataFrame(columns()))
    assert kept(boats) == expected()
    again = made(SCHEMA)
    again.append(boats.query().to_polars())
    assert kept(again) == expected()


def test_geopandas(made: Make) -> None:
    boats = made(SCHEMA)
    held = {**columns(), "crew": pandas.array([12, None, 9_007_199_254_740_993], dtype="Int64")}
    points = [Point(x, y) for x, y in zip(held.pop("lon"), held.pop("lat"))]
    boats.append(geopandas.GeoDataFrame(held, geometry=points, crs="EPSG:4326"))
    assert [row["lon"] for row in kept(boats)] == [4.25, -179.5, 0.1]
    again = made(SCHEMA)
    again.append(boats.query().to_geopandas())
    assert kept(again) == kept(boats)


def test_another_reference_system_is_reprojected(made: Make) -> None:
    boats = made({"properties": {"where": {"format": "geometry-linestring", "x-ogc-role": "primary-geometry"}}})
    line = geopandas.GeoDataFrame({"where": [LineString([(0, 0), (111_319.49079327357, 0)]), None]}, geometry="where", crs="EPSG:3857")
    assert boats.append(line).written == 2
    shapes = boats.query().to_geopandas().geometry
    (found,) = [shape for shape in shapes if shape is not None]
    assert [round(x, 9) for x, _ in found.coords] == [0.0, 1.0]


def test_features(made: Make) -> None:
    boats = made(SCHEMA)
    features = [
        {
            "type": "Feature",
            "id": f"f{n}",
            "geometry": {"type": "Point", "coordinates": [n / 10, 50]},
            "properties": {"seen": "2026-01-01T00:00:00Z", "crew": n},
        }
        for n in range(5)
    ]
    assert boats.append(feature for feature in features[:3]).written == 3
    assert boats.append({"type": "FeatureCollection", "features": features[3:]}).written == 2
    found = {feature["id"]: feature for feature in boats.query()}
    assert {id: f["geometry"] for id, f in found.items()} == {f["id"]: f["geometry"] for f in features}
    assert boats.get("f3") is not None and boats.get("f3")["properties"]["crew"] == 3  # type: ignore[index]
    assert boats.get("f9") is None
    with pytest.raises(TypeError, match="cannot append a int"):
        boats.append(7)


def test_a_schema_from_a_frame_takes_the_frame(made: Make) -> None:
    for data in (table(), pandas.DataFrame(columns()), polars.DataFrame(columns())):
        boats = made(meridian.schema_of(data, time="seen", object="ship"))
        boats.append(data)
        assert boats.query(bbox=(0, 50, 10, 55), datetime="2026-01-01").count() == 1
        assert boats.schema["properties"]["ship"]["x-meridian-object"] is True
    held = geopandas.GeoDataFrame({"n": [1]}, geometry=[LineString([(0, 0), (1, 1)])], crs="EPSG:4326")
    assert made(meridian.schema_of(held)).append(held).written == 1
    texts = pa.table({"seen": ["2026-01-01T00:00:00Z"], "lon": [1.0], "lat": [2.0]})
    described = meridian.schema_of(texts, time="seen")
    assert described["properties"]["seen"] == {"type": "string", "format": "date-time", "x-ogc-role": "primary-instant"}
    kept = made(described)
    assert kept.append(texts).written == 1 and kept.query(datetime="2026-01-01").count() == 1
    # A field that is named as a coordinate keeps the points as they are.
    named = made({"type": "object", "properties": {**described["properties"], "lon": {"type": "number"}}})
    properties = {"seen": "2026-01-01T00:00:00Z", "lon": 3}
    named.append([{"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": properties}])
    assert set(named.query().to_pandas().columns) >= {"geometry", "lon"}
    with pytest.raises(ValueError, match="there is no column 'when'"):
        meridian.schema_of(table(), time="when")


def test_a_schema_is_of_what_can_be_kept(made: Make) -> None:
    columns = {"n": [3, 1, 3], "x": [0.5, None, 0.5], "on": [dt.datetime(2026, 1, 1, tzinfo=UTC)] * 3, "word": ["a", None, "b"]}
    coded = pa.table({name: pa.array(values).dictionary_encode() for name, values in columns.items()})
    for data in (coded, coded.to_reader(), pandas.DataFrame(columns).astype("category")):
        described = meridian.schema_of(coded if isinstance(data, pa.RecordBatchReader) else data)
        assert [field["type"] for field in described["properties"].values()] == ["integer", "number", "string", "string"]
        boats = made(described)
        boats.append(data)
        assert sorted(boats.query().to_arrow().column("n").to_pylist()) == [1, 3, 3]
    words = pa.array([["a"], [], None], pa.list_(pa.large_string()))
    assert made(meridian.schema_of(pa.table({"words": words}))).append(pa.table({"words": words})).written == 3
    one = decimal.Decimal(1)
    for kept_by_none in (pa.array([[1]]), pa.array([one], pa.decimal256(50, 2)), pa.array([b"x"]), pa.array([{"a": 1}])):
        with pytest.raises(ValueError, match="column 'c': .* cannot be kept"):
            meridian.schema_of(pa.table({"c": kept_by_none}))


def test_values_of_dictionaries(made: Make) -> None:
    boats = made(SCHEMA)
    seen = columns()["seen"][0]
    nothing = (None, float("nan"), pandas.NA, pandas.NaT, numpy.float32("nan"), numpy.datetime64("NaT"), decimal.Decimal("NaN"))
    boats.append([{"id": f"none {n}", "seen": seen, "crew": value, "ship": value} for n, value in enumerate(nothing)])
    assert boats.query(filter="crew IS NULL AND ship IS NULL").count() == len(nothing)
    scalars = {"crew": numpy.int32(7), "speed": numpy.float32(0.5), "ship": numpy.str_("s"), "tags": numpy.array(["x", "y"])}
    named = uuid.UUID(int=7)
    boats.append([{"id": named, "seen": pandas.Timestamp(seen), "place": Point(4, 52), **scalars}])
    boats.append([{"type": "Feature", "id": "f", "geometry": Point(), "properties": {"seen": seen, "ship": decimal.Decimal("1.50")}}])
    found = {event["id"]: event for event in boats.query()}
    assert found[str(named)]["geometry"] == {"type": "Point", "coordinates": [4, 52]}
    stored = found[str(named)]["properties"]
    assert [stored[name] for name in ("crew", "speed", "ship", "tags")] == [7, 0.5, "s", ["x", "y"]]
    assert found["f"]["geometry"] is None and found["f"]["properties"]["ship"] == "1.50"
    for value in (b"x", object(), dt.timedelta(1), numpy.timedelta64(1, "ns"), {"a", "b"}, 1j):
        for event in ({"id": "bad", "seen": seen, "ship": value}, {"type": "Feature", "properties": {"ship": [value]}}):
            with pytest.raises(TypeError, match=f"ship: a {type(value).__name__} cannot be appended"):
                boats.append([event])
    for number in (float("inf"), decimal.Decimal("sNaN")):
        with pytest.raises(ValueError, match=f"speed: {number} is no number"):
            boats.append([{"id": "bad", "seen": seen, "speed": number}])
    with pytest.raises(TypeError, match="tags: a timedelta64 cannot be appended"):
        boats.append([{"id": "bad", "seen": seen, "tags": numpy.array([1], "timedelta64[ns]")}])
    assert len(boats) == len(nothing) + 2
    # An array of instants is a list of what each of them is alone.
    for unit in ("D", "s", "ns"):
        instants = numpy.array(["2026-01-31", "2026-02-01"], f"datetime64[{unit}]")
        boats.append([{"id": unit, "seen": seen, "tags": instants, "ship": instants[0]}])
        stored = boats.get(unit)["properties"]  # type: ignore[index]
        assert stored["tags"] == [str(instant) for instant in instants] and stored["ship"] == stored["tags"][0]


def test_mistakes_are_counted_over_all_parts(made: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("meridian.collection.ROWS", 4)
    monkeypatch.setattr("meridian.collection.BYTES", 150)
    boats = made({"properties": {"id": {"type": "string", "x-ogc-role": "id"}, "n": {"type": "integer"}}})
    events: list[dict[str, Any]] = [{"id": f"{n}".zfill(40), "n": n} for n in range(8)]
    # The second half of the second part.
    events[6]["n"], events[7]["n"] = "line 1", 1.5
    with pytest.raises(meridian.Invalid) as caught:
        boats.append(events)
    assert caught.value.line == 7 and [mistake["line"] for mistake in caught.value.details["errors"]] == [7, 8]
    assert '2 mistakes, nothing of this part was written; the first: line 7: n: the text "line 1"' in str(caught.value) and len(boats) == 6
    with pytest.raises(meridian.Invalid, match="2 mistakes, nothing was written; the first: line 1: n"):
        boats.append(events[6:])
    monkeypatch.setattr("meridian.collection.BYTES", 1 << 20)
    with pytest.raises(meridian.Conflict, match="nothing of this part was written"):
        boats.append([{"id": f"other {n}"} for n in range(4)] + events[:1])
    boats.delete(filter="TRUE")
    events[6], events[7] = {"id": "x", "n": 1}, {"id": "x", "n": 2}
    with pytest.raises(meridian.Invalid, match="feature 8: .* of event 7:") as again:
        boats.append(pa.Table.from_pylist(events))
    assert again.value.details["feature"] == 8 == again.value.details["errors"][0]["feature"]


def test_data_in_place_of_a_schema_is_named(made: Make) -> None:
    for data in (table(), pandas.DataFrame(columns()), polars.DataFrame(columns())):
        with pytest.raises(TypeError, match=rf"a {type(data).__name__} is no schema: .*meridian\.schema_of\(data\)"):
            made(data)


def test_a_bad_event_is_named_and_nothing_of_its_part_is_stored(made: Make) -> None:
    boats = made(SCHEMA)
    bad = table().set_column(2, "lat", pa.array([52.0, 99.0, 51.5]))
    with pytest.raises(meridian.Invalid) as caught:
        boats.append(bad)
    assert caught.value.line == 2 and "lat" in str(caught.value)
    assert len(boats) == 0
    boats.append(table())
    with pytest.raises(meridian.Conflict):
        boats.append(table())


def test_a_key_says_what_was_stored(made: Make) -> None:
    boats = made(SCHEMA)
    assert boats.append(table(), key="load-17").written == 3
    again = boats.append(table(), key="load-17")
    assert (again.written, again.duplicates) == (0, 3)
    with pytest.raises(meridian.Invalid) as caught:
        boats.append(table().slice(0, 2), key="load-17")
    assert caught.value.kind == "key-reused"
    with pytest.raises(ValueError, match="key: "):
        boats.append(table(), key="")


def test_large_parts_are_halved(made: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("meridian.collection.BYTES", 4_000)
    boats = made({"properties": {"note": {"type": "string"}}})
    notes = pa.table({"note": [f"{n:01000d}" for n in range(50)]})
    assert boats.append(notes, key="k").written == 50
    assert boats.append(notes, key="k").duplicates == 50
    assert sorted(boats.query().to_arrow().column("note").to_pylist()) == notes.column("note").to_pylist()


def test_deletions_and_settings(made: Make) -> None:
    boats = made(SCHEMA)
    boats.append(table())
    with pytest.raises(meridian.Invalid, match="which events"):
        boats.delete()
    assert boats.delete(filter="crew = 12") == 1
    assert len(boats) == 2
    assert "flag" not in boats.schema["properties"]
    boats.change({"properties": {"flag": {"type": "string"}}})
    assert boats.schema["properties"]["flag"] == {"type": "string"}
    with pytest.raises(meridian.Conflict) as caught:
        boats.change({"retention": "P1D"})
    assert caught.value.details["removes"] == 2
    boats.change({"retention": "P1D"}, confirm=2)
    assert boats.describe()["retention"] == "P1D"


def test_sums_of_integers_keep_their_digits(made: Make) -> None:
    held = made({"properties": {"n": {"type": "integer"}}})
    held.append(pa.table({"n": [2**62 + 1] * 3}))
    assert held.aggregate("sum(n)").column("sum(n)")[0].as_py() == decimal.Decimal(3 * (2**62 + 1))


def test_created_twice_and_dropped(db: meridian.Database) -> None:
    made = db.create("twice", "when:Date,*geom:Point:srid=4326")
    assert "twice" in db and made.geometry == made.points == "geom"
    db.create("twice", "when:Date,*geom:Point:srid=4326")
    # Nothing was written yet, so it takes another schema; then it does not.
    assert "other" in db.create("twice", "other:Date,*geom:Point:srid=4326").schema["properties"]
    db["twice"].append([{"other": "2026-01-31T12:00:00Z"}])
    with pytest.raises(meridian.Conflict):
        db.create("twice", "when:Date,*geom:Point:srid=4326")
    assert db.drop("twice") is True and db.drop("twice") is False and "twice" not in db


def test_a_collection_made_meanwhile_keeps_its_types(db: meridian.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"properties": {"crew": {"type": "integer"}}}
    db.create("meanwhile", schema)
    try:
        # Another client has made it since this one found none.
        monkeypatch.setattr(meridian.Collection, "exists", lambda self: False)
        more = {"properties": {"crew": {"type": "integer"}, "note": {"type": "string"}}}
        for other in ({"properties": {"crew": {"type": "number"}}}, more, "crew:Integer"):
            with pytest.raises(meridian.Conflict):
                db.create("meanwhile", other)
        assert db["meanwhile"].schema["properties"]["crew"]["type"] == "integer"
        assert db.create("meanwhile", schema).name == "meanwhile"
    finally:
        db.drop("meanwhile")


def test_renamed(db: meridian.Database) -> None:
    made = db.create("former", "seen:Date,note:String")
    made.append([{"seen": "2026-01-31T12:00:00Z", "note": "kept"}])
    db.create("taken", "when:Date")
    with pytest.raises(meridian.Conflict):
        db.rename("former", "taken")
    renamed = db.rename("former", "newer")
    try:
        assert renamed.name == "newer" and len(renamed) == 1 and "former" not in db
        with pytest.raises(meridian.NotFound):
            db.rename("former", "other")
    finally:
        db.drop("newer")
        db.drop("taken")
