"""Reads what `meridian files` lists with pyarrow and DuckDB, and compares both with Meridian's own answers over HTTP.

usage: readers.py MERIDIAN URL COLLECTION NUMBER WEST,SOUTH,EAST,NORTH
"""

import json
import math
import struct
import subprocess
import sys
import urllib.parse
import urllib.request

import duckdb
import duckdb_extension_spatial
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

meridian, url, collection, number, box = sys.argv[1:]
west, south, east, north = map(float, box.split(","))


def own(**parameters):
    """Count, sum, min and max as Meridian has them."""
    function = f"count,sum({number}),min({number}),max({number})"
    query = urllib.parse.urlencode({"function": function, **parameters})
    with urllib.request.urlopen(f"{url}/collections/{collection}/aggregate?{query}") as answer:
        (group,) = json.load(answer)["groups"]
    return [group["count"], *(group[f"{f}({number})"] for f in ("sum", "min", "max"))]


def same(what, found, expected):
    print(f"{what}: {found} and {expected}")
    assert found[0] == expected[0] > 0, what
    assert math.isclose(found[1], expected[1], rel_tol=1e-12), what
    assert found[2:] == expected[2:], what


def check_geo(path):
    """The rules of GeoParquet 1.1 for the metadata of one file."""
    file = pq.ParquetFile(path)
    geo = json.loads(file.metadata.metadata[b"geo"])
    assert geo["version"] == "1.1.0"
    primary = geo["primary_column"]
    assert list(geo["columns"]) == [primary]
    column = geo["columns"][primary]
    assert column["encoding"] == "WKB"
    kinds = {"Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection"}
    assert set(column["geometry_types"]) <= kinds and len(set(column["geometry_types"])) == len(column["geometry_types"])
    # Left out, the system is OGC:CRS84 and edges are planar; rings in any order need no `orientation`.
    assert "crs" not in column or column["crs"]["id"] == {"authority": "OGC", "code": "CRS84"}
    assert column.get("edges", "planar") == "planar"
    assert column.get("orientation", "counterclockwise") == "counterclockwise"
    w, s, e, n = column["bbox"]
    assert -180 <= w <= e <= 180 and -90 <= s <= n <= 90
    # The geometry column is a binary one at the root; the covering has four numbers of one type.
    physical = {file.schema.column(i).path: file.schema.column(i).physical_type for i in range(len(file.schema))}
    assert physical[primary] == "BYTE_ARRAY"
    paths = [".".join(column["covering"]["bbox"][side]) for side in ("xmin", "ymin", "xmax", "ymax")]
    assert len({path.rsplit(".", 1)[0] for path in paths}) == 1
    assert len({physical[path] for path in paths}) == 1 and physical[paths[0]] in ("FLOAT", "DOUBLE")
    # Pages can be skipped by their boxes.
    for group in range(file.num_row_groups):
        for i in range(file.metadata.num_columns):
            chunk = file.metadata.row_group(group).column(i)
            assert chunk.has_offset_index and chunk.compression == "ZSTD"
            if chunk.path_in_schema in paths:
                assert chunk.has_column_index and chunk.statistics.has_min_max


files = subprocess.run(
    [meridian, "files", collection, "--url", url], check=True, capture_output=True, text=True
).stdout.splitlines()
assert files
for path in files:
    check_geo(path)

everything, inside = own(), own(bbox=box)

table = ds.dataset(files).to_table(columns=["id", "geometry", "bbox", number])
assert len(set(table["id"].to_pylist())) == table.num_rows


def totals(rows):
    values = rows[number]
    return [rows.num_rows, math.fsum(values.drop_null().to_pylist()), pc.min(values).as_py(), pc.max(values).as_py()]


def lies_inside(shape):
    order, kind, lon, lat = struct.unpack("<BIdd", shape.as_py())
    assert (order, kind) == (1, 1)
    return west <= lon <= east and south <= lat <= north


same("pyarrow, all", totals(table), everything)
# The boxes choose, the points decide.
sides = table["bbox"].combine_chunks()
near = pc.and_(
    pc.and_(pc.less_equal(sides.field("xmin"), east), pc.greater_equal(sides.field("xmax"), west)),
    pc.and_(pc.less_equal(sides.field("ymin"), north), pc.greater_equal(sides.field("ymax"), south)),
)
chosen = table.filter(near)
same("pyarrow, in the box", totals(chosen.filter([lies_inside(shape) for shape in chosen["geometry"]])), inside)

spatial = f"{duckdb_extension_spatial.__path__[0]}/extensions/v{duckdb.__version__}/spatial.duckdb_extension"
db = duckdb.connect()
db.execute(f"LOAD '{spatial}'")
select = f'SELECT count(*), fsum("{number}"), min("{number}"), max("{number}") FROM read_parquet(?)'
same("DuckDB, all", list(db.execute(select, [files]).fetchone()), everything)
where = f"WHERE ST_Intersects(geometry, ST_MakeEnvelope({west}, {south}, {east}, {north}))"
same("DuckDB, in the box", list(db.execute(f"{select} {where}", [files]).fetchone()), inside)
