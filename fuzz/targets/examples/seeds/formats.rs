//! Events in every format, and the languages about them.

use crate::corpus::{lines, put, put_all, written};
use fuzz_targets::world;
use meridian_formats::Format;
use meridian_model::filter;

pub fn formats() {
    let batch = world::events(0, 8);
    for (target, format) in [
        ("geojson", Format::GeoJson),
        ("geojson_seq", Format::GeoJsonSeq),
        ("ndjson", Format::NdJson),
        ("csv", Format::Csv),
        ("arrow", Format::Arrow),
        ("geoparquet", Format::GeoParquet),
    ] {
        put(target, "written", written(format, &batch));
        put(target, "empty", b"");
    }
    put("geojson", "packed.zst", zstd::bulk::compress(&written(Format::GeoJson, &batch), 3).unwrap());
    put("ndjson", "capitals", lines("natural-earth/capitals_110m.geojsonl.zst", 3));
    put("geojson_seq", "capitals", lines("natural-earth/capitals_110m.geojsonl.zst", 2).replace('{', "\u{1e}{"));
    for (name, path) in [
        ("storms", "atlantic-storms/storms.csv.zst"),
        ("air", "beijing-air-quality/air_quality.csv.zst"),
        ("places", "geonames-postal-places/postal_places.tsv.zst"),
        ("ships", "us-ais-20220103/ais.csv.zst"),
        ("earthquakes", "usgs-earthquakes/earthquakes.csv.zst"),
        ("mentions", "ticker-mentions/mentions.csv.zst"),
    ] {
        put("csv", name, lines(path, 4));
    }
    for width in [57, 58, 61] {
        let mut fields = vec![String::new(); width];
        fields[0] = "410412347".into();
        fields[1] = "20260131".into();
        fields[4] = "2026.0849".into();
        let (lat, added) = if width == 61 { (56, 59) } else { (53, 56) };
        (fields[lat], fields[lat + 1]) = ("48.85".into(), "2.35".into());
        fields[added] = if width == 61 { "20260131120000" } else { "20260131" }.into();
        put("gdelt", &format!("export-{width}"), fields.join("\t") + "\n");
    }
    let shapes = [
        "POINT(1 2)",
        "POINT EMPTY",
        "LINESTRING(0 0,1 1,170 10)",
        "POLYGON((0 0,4 0,4 4,0 0),(1 0.5,2 0.5,2 1,1 0.5))",
        "MULTIPOINT((1 2),(3 4))",
        "MULTILINESTRING((0 0,1 1),(2 2,3 3))",
        "MULTIPOLYGON(((0 0,1 0,1 1,0 0)),((5 5,6 5,6 6,5 5)))",
        "SRID=4326;POINT Z(1 2 3)",
        "0101000000000000000000f03f0000000000000040",
    ];
    put_all("wkt", shapes);
    let point = |order: u8, kind: u32, tail: &[f64]| {
        let number = |x: u32| if order == 1 { x.to_le_bytes() } else { x.to_be_bytes() };
        let mut bytes = vec![order];
        bytes.extend(number(kind));
        tail.iter().for_each(|x| bytes.extend(if order == 1 { x.to_le_bytes() } else { x.to_be_bytes() }));
        bytes
    };
    put("wkb", "little", point(1, 1, &[1.0, 2.0]));
    put("wkb", "big", point(0, 1, &[1.0, 2.0]));
    put("wkb", "height", point(1, 1001, &[1.0, 2.0, 3.0]));
    let many = |kind: u32, parts: &[Vec<u8>]| {
        [&[1][..], &kind.to_le_bytes(), &(parts.len() as u32).to_le_bytes(), &parts.concat()].concat()
    };
    let pair = |x: f64, y: f64| [x.to_le_bytes(), y.to_le_bytes()].concat();
    let line = many(2, &[pair(0.0, 0.0), pair(1.0, 1.0), pair(2.0, 0.0), pair(0.0, 0.0)]);
    // A ring is a line without its header.
    let polygon = many(3, &[line[5..].to_vec()]);
    put("wkb", "polygon", &polygon);
    put("wkb", "polygons", many(6, &[polygon.clone(), polygon]));
    put("wkb", "lines", many(5, std::slice::from_ref(&line)));
    put("wkb", "line", line);
    put("wkb", "points", many(4, &[point(1, 1, &[1.0, 2.0])]));
}

const FILTERS: [&str; 16] = [
    "n > 5 AND name = 'name of 7'",
    "x BETWEEN 0.1 AND 2e1 OR n IN (1, 2, 3)",
    "name NOT LIKE '%of _7%' AND NOT on = TRUE",
    "CASEI(name) LIKE CASEI('%Of\\%%')",
    "name IS NOT NULL",
    "at >= DATE('2023-11-15') AND at < TIMESTAMP('2024-01-01T00:00:00Z')",
    "S_INTERSECTS(geometry, POINT(36.319836 32.288087))",
    "S_WITHIN(geometry, BBOX(-118, 33.8, -117.9, 34))",
    "S_CROSSES(geometry, LINESTRING(43.72992 -79.2998, 43.73005 -79.2991))",
    "S_DISJOINT(geometry, MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5))))",
    "S_INTERSECTS(geometry, GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(0 0, 1 1)))",
    "S_INTERSECTS(geometry, POLYGON((0 0, 4 0, 4 4, 0 0), (1 0.5, 2 0.5, 2 1, 1 0.5)))",
    "T_INTERSECTS(at, INTERVAL('1969-07-16T05:32:00Z', '..'))",
    "T_DURING(INTERVAL(at, at), INTERVAL('2005-01-10', '2024-02-10'))",
    "A_CONTAINS(tags, ('a', 'b')) OR A_OVERLAPS(tags, ('c'))",
    "ship = 'ship 1' AND \"say \"\"hi\"\"\" = 'it''s 日本'",
];

pub fn languages() {
    put_all("cql2_text", FILTERS);
    for (n, text) in FILTERS.iter().enumerate() {
        let json = filter::to_json(&filter::parse_text(text).unwrap());
        put("cql2_json", &format!("seed-{n:02}"), json.to_string());
    }
    put_all(
        "schema_spec",
        [
            "name:String:index=true,age:Integer,dtg:Date:default=true,*geom:Point:srid=4326",
            "Who:String, What:java.lang.Long, When:Date, tags:List[String], *Where:MultiPolygon ; geomesa.index.dtg='When',geomesa.z3.interval=day",
            "a,b:UUID,c:Date;geomesa.ignore.dtg='true'",
            "ship:String:object=true,a:Date:nillable=false,b:Date;meridian.interval.start='a',meridian.interval.end='b',meridian.mode=latest,meridian.id=given,meridian.title='t'",
        ],
    );
    let document = meridian_model::schema_json::to_json(&world::schema(), "t", "/schema");
    put("json_schema", "schema", document.to_string());
    put("json_schema", "empty", r#"{"type":"object","properties":{}}"#);
    put_all(
        "parameters",
        [
            "2023-11-14T22:13:20Z/2023-11-15T22:13:20Z",
            "../2023-11-14T22:13:20.123456+01:00",
            "2023-11-14",
            "P1DT2H",
            "P1M Europe/Berlin",
            "PT15M UTC",
            "count,sum(n),avg(x),min(n)",
            "-at,name,id",
            "enter,exit",
            "00000000c0005",
        ],
    );
}
