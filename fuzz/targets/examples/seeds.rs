//! Writes the seed inputs of every target into `fuzz/corpus`: small real ones, from files in this repository and from
//! Meridian's own writers. `cargo run -p fuzz-targets --example seeds`

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "a tool of developers that writes files")]

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fuzz_targets::{
    SCENARIO, connections, files_of_store, objects_of_cluster, partials_of_store, records_of_people,
    records_of_searches, results_of_lab, signed, trees, wire_of_roles, world,
};
use meridian_formats::{Format, writer};
use meridian_model::{Batch, Projection, Seq, Seqs, filter};
use meridian_query::wire::{Count, NearCircle, Question};
use meridian_query::*;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Writes an input.
fn put(target: &str, name: &str, bytes: impl AsRef<[u8]>) {
    let folder = root().join("fuzz/corpus").join(target);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), bytes).unwrap();
}

fn put_all<'a>(target: &str, texts: impl IntoIterator<Item = &'a str>) {
    for (n, text) in texts.into_iter().enumerate() {
        put(target, &format!("seed-{n:02}"), text);
    }
}

/// The first lines of a compressed file.
fn lines(path: &str, count: usize) -> String {
    let packed = std::fs::File::open(root().join("data").join(path)).unwrap();
    let mut head = Vec::new();
    zstd::stream::read::Decoder::new(packed).unwrap().take(64 << 10).read_to_end(&mut head).unwrap();
    String::from_utf8_lossy(&head).split_inclusive('\n').take(count).collect()
}

fn written(format: Format, batch: &Batch) -> Vec<u8> {
    let (mut out, mut writer) = (Vec::new(), writer(format, batch.schema(), None).unwrap());
    let seqs: Vec<Seq> = (0..batch.rows() as u64).map(Seq).collect();
    writer.start(&mut out).and_then(|()| writer.write(batch, &seqs, &mut out)).unwrap();
    writer.finish(&mut out).unwrap();
    out
}

fn formats() {
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

fn languages() {
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

fn issuers() {
    let head = r#"{"alg":"HS256","typ":"JWT"}"#;
    let claims = r#"{"iss":"a","sub":"mary","aud":["b","meridian"],"exp":1700000000.5,"nbf":0,"scope":"read write","realm":{"roles":["gis"]}}"#;
    put("jwt", "whole", signed(head, claims));
    put("jwt", "operator", signed(head, r#"{"iss":"a","sub":"mary","aud":"meridian","exp":9,"operator":true}"#));
    put("jwt", "none", signed(r#"{"alg":"none"}"#, claims));
    put(
        "jwt",
        "critical",
        signed(r#"{"alg":"HS256","crit":["b64"],"b64":false,"jwk":{"kty":"oct","k":"AA"}}"#, claims),
    );
    put_all(
        "key_set",
        [
            r#"{"keys":[{"kid":"a","kty":"OKP","crv":"Ed25519","alg":"EdDSA","use":"sig","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#,
            r#"{"keys":[{"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM","kid":"1"}]}"#,
            r#"{"keys":[{"kty":"RSA","n":"u1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gunVTLw7onLRnrq0_IzW7yWR7QkrmBL7jTKEn5u","e":"AQAB"},{"kty":"oct","k":"AAAA"},{"kty":"new"}]}"#,
        ],
    );
}

fn callers() {
    let token = format!("mrd_0123456789abcdef_{}", "0".repeat(64));
    put("credential", "bearer", format!("Bearer {token}"));
    put("credential", "basic", format!("Basic {}", data_encoding::BASE64.encode(format!("a:{token}").as_bytes())));
    put("credential", "digest", "Digest username=\"a\"");
    put(
        "token_record",
        "token",
        r#"{"id":"0123456789abcdef","tenant":"default","role":"reader","collections":"ships*,ports","created":0,"expires":1700000000000000,"digest":"60e05bd1b195af2f94112fa7197a5c88289058840ce7c6df9693756bc6250f55"}"#,
    );
    let tenant = serde_json::to_string(&meridian_admission::identity::Tenant::new("harbour")).unwrap();
    put("token_record", "tenant", tenant);
    put(
        "flight_command",
        "items",
        r#"{"collection":"quakes","bbox":[1,-2.5,3,4],"filter":{"op":"isNull","args":[{"property":"n"}]},"fields":["n","m"],"parallel":4}"#,
    );
    put(
        "flight_command",
        "aggregate",
        r#"{"collection":"a b","kind":"aggregate","function":"count,max(mag)","window":"P1M","datetime":"../2020-01-01T00:00:00Z"}"#,
    );
    put(
        "flight_command",
        "track",
        r#"{"collection":"ships","kind":"track","track":"ship-3","near":"1,2","radius":500.5}"#,
    );
    put(
        "flight_ticket",
        "whole",
        r#"{"tenant":"default","question":{"collection":"quakes","kind":"items","query":"limit=3"},"snapshot":null,"part":[null,null],"expires":1700000000000000}"#,
    );
    put("cookie", "one", format!("meridian-session=mrs_0123456789abcdef_{}", "0".repeat(64)));
    put("cookie", "several", "theme=dark; meridian-session=one\n__Host-meridian-session=two;a");
    put(
        "forwarded",
        "common",
        "x-forwarded-for: 198.51.100.1, 192.0.2.7:4711\nx-forwarded-for: 10.0.0.9\nx-forwarded-proto: https, http",
    );
    put(
        "forwarded",
        "standard",
        "forwarded: for=192.0.2.7;proto=http, For=\"[2001:db8::7]:99\" ; Proto=https\nforwarded: for=_hidden;by=\"a\\\"b, c\"",
    );
    put("forwarded", "both", "forwarded: for=198.51.100.1\nx-forwarded-for: 192.0.2.7");
}

fn searches() {
    put_all(
        "search",
        [
            r#"{"keywords":"flood (\"new york\" OR boston) -music","limit":5,"deadline_ms":2000}"#,
            r#"{"keywords":"fire","place":{"lon":2.35,"lat":48.85,"radius_m":5000},"datetime":"2024-01-01/..","language":"fr"}"#,
            r#"{"author":"nobody","place":{"address":"Lyon","radius_m":1000},"media":"images","providers":["meridian"]}"#,
            r#"{"keywords":"a","place":{"bbox":[1,2,3,4]},"keep":true,"collection":"results"}"#,
        ],
    );
    put_all(
        "saved_search",
        [
            r#"{"name":"floods","question":{"keywords":"flood","when":["enter","exit"]},"webhook":{"url":"https://example.org/x","secret":"longer than eight"},"poll_s":60}"#,
            r#"{"name":"a","keywords":"flood OR fire"}"#,
        ],
    );
    for file in std::fs::read_dir(root().join("crates/federation/providers")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        put("provider", &name, std::fs::read(&path).unwrap());
    }
    for file in std::fs::read_dir(root().join("crates/federation/fixtures")).unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        if bytes.len() <= 4096 && path.is_file() {
            put("provider_answer", &path.file_name().unwrap().to_string_lossy(), bytes);
        }
    }
    put("provider_answer", "csv", "id,title,time\n1,a,2024-01-01T00:00:00Z\n");
    put(
        "provider_answer",
        "rss",
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><rss><channel><item><id>1</id><title>a &amp; b</title><link>http://x</link></item><item><title><![CDATA[c]]></title></item></channel></rss>",
    );
}

fn questions() {
    let schema = world::schema();
    let all = || filter::Predicate::bind(&filter::parse_text("n > 5 AND name LIKE 'name%'").unwrap(), &schema).unwrap();
    let projection = Projection::all(&meridian_model::Layout::of(&schema));
    let fields = Order::Fields(SortKey::parse("-x,name", &schema).unwrap());
    let questions = [
        Question::Items(Items { predicate: all(), limit: Some(10), ..Items::all(&schema) }),
        Question::Items(Items { order: Order::Near { lon: 1.0, lat: 2.0, k: Some(3) }, ..Items::all(&schema) }),
        Question::Items(Items { order: fields, limit: Some(5), ..Items::all(&schema) }),
        Question::Count(Count { predicate: all(), tested_max: 1000 }),
        Question::Aggregate(fuzz_targets::grouped()),
        Question::Density(Density { predicate: all(), bbox: [-180.0, -90.0, 180.0, 90.0], width: 7, height: 5 }),
        Question::Tile(Tile {
            predicate: all(),
            z: 1,
            row: 0,
            column: 1,
            layer: "a".to_owned(),
            fields: None,
            density: true,
        }),
        Question::Track(Track {
            object: "ship 1".to_owned(),
            predicate: filter::Predicate::all(),
            simplify_m: Some(5.0),
        }),
        Question::Passages(Passages { predicate: all(), after: Some(ByValue::Text("ship 0".to_owned())), limit: 5 }),
        Question::Near(NearCircle { lon: 1.0, lat: 2.0, radius_m: 5e6, k: 5, projection }),
    ];
    for (n, question) in questions.iter().enumerate() {
        put("wire_question", &format!("seed-{n:02}"), question.to_json(&schema, Duration::from_secs(1)).unwrap());
    }
    for (n, question) in questions[..3].iter().enumerate() {
        let Question::Items(items) = question else { continue };
        let asked = Items { limit: Some(2), ..items.clone() };
        let mut rows = meridian_query::items(world::snapshot(), &asked, &world::control()).unwrap();
        assert!(rows.by_ref().all(|hits| hits.is_ok()));
        let after = rows.next_page().unwrap().clone();
        let token = Token { tenant: "t".to_owned(), snapshot: Seqs::one(Seq(3)), question: 5, after }.encode();
        put("page_token", &format!("text-{n}"), &token);
        let bytes = URL_SAFE_NO_PAD.decode(token).unwrap();
        put("page_token", &format!("bytes-{n}"), &bytes[..bytes.len() - 4]);
    }
    for (name, bytes) in partials_of_store() {
        put("partial", name, bytes);
    }
}

fn heads() {
    put_all(
        "conditions",
        [
            "range: bytes=2-5\nif-range: \"3f\"\naccept-encoding: gzip;q=0.5, zstd, *;q=0",
            "if-none-match: W/\"3f\", \"4a\"\nif-modified-since: Tue, 15 Nov 1994 12:45:26 GMT",
            "if-match: \"3f\", *\nrange: bytes=-3\npriority: u=6, i\nmeridian-timeout: 1500\naccept: text/html;q=0.9, */*\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\ntracestate: a=b",
            "if-modified-since: Wed, 16 Nov 1994 12:45:26 GMT\nrange: Bytes = 30-99\ncookie: a=b\nsec-fetch-site: same-origin",
        ],
    );
    put_all(
        "origin",
        [
            "POST /collections/c/items\nhost: 127.0.0.1:7117\norigin: https://app.example\nsec-fetch-site: cross-site",
            "GET http://meridian.example/map\nhost: meridian.example:443\nupgrade: websocket\norigin: http://127.0.0.1:7117",
            "OPTIONS /\nhost: [::1]:7117\norigin: null",
        ],
    );
    put_all(
        "query_string",
        [
            "limit=3&filter=n%20%3E%205+AND+a%3D'%C3%A9'&bbox=1,2,3,4&x",
            "login=anna&password=correct%20horse&next=%2Fmap",
            "/map#c=a&z=3",
            "0000000000001-0000000000002",
            "7-0-3",
        ],
    );
    put_all(
        "discovery",
        [
            r#"{"issuer":"https://login.example.org/","jwks_uri":"https://login.example.org/keys","authorization_endpoint":"https://login.example.org/authorize","token_endpoint":"https://login.example.org/token","authorization_response_iss_parameter_supported":true}"#,
            r#"{"issuer":"https://login.example.org/","jwks_uri":"https://login.example.org/keys"}"#,
        ],
    );
    for (name, bytes) in connections() {
        put("connection", name, bytes);
    }
    for (name, bytes) in records_of_people() {
        put("user_record", name, bytes);
    }
    for (name, bytes) in records_of_searches() {
        put("saved_record", name, bytes);
    }
}

fn cluster() {
    for (target, name, bytes) in objects_of_cluster() {
        put(target, &name, bytes);
    }
    let fixture = std::fs::read(root().join("crates/remote/tests/fixtures/wire-1.json")).unwrap();
    for (target, name, bytes) in wire_of_roles(&serde_json::from_slice(&fixture).unwrap()) {
        put(target, &name, bytes);
    }
    let faults = [
        r#"{"fault":{"corrupt":{"path":"a","detail":"b"}}}"#,
        r#"{"fault":{"partly":[3,{"full":"no room"}]}}"#,
        r#"{"fault":{"io":{"action":"read","path":"a","source":"b","full":true}},"done":true}"#,
        r#"{"value":{"seq":[7],"paths":["/a"],"kept_until":5}}"#,
        r#"{"value":{"deleted":3,"position":[7],"stopped":[5,true,"deadline"]}}"#,
    ];
    put_all("wire_answer", faults);
    put_all(
        "nats_monitor",
        [
            r#"{"server_id":"A","config":{"sync_always":true},"meta_cluster":{"cluster_size":1}}"#,
            r#"{"server_id":"D","config":{"sync_interval":120000000000}}"#,
        ],
    );
}

fn lab() {
    put_all(
        "lab_resp",
        ["*2\r\n$1\r\n0\r\n*3\r\n:1\r\n$-1\r\n+OK\r\n", "%1\r\n+a\r\n=5\r\ntxt:b\r\n", "-WRONGTYPE Operation\r\n"],
    );
    put_all(
        "lab_nats",
        [
            "INFO {\"server_id\":\"A\"}\r\nPING\r\n+OK\r\nMSG a.b 1 7\r\npayload\r\n",
            "HMSG a.b 1 to 16 18\r\nNATS/1.0 503\r\n\r\nab\r\n-ERR 'x'\r\n",
            "MSG a 1 25\r\n{\"stream\":\"S\",\"seq\":7    }\r\n",
        ],
    );
    put("lab_postgres", "rows", b"D\0\0\0\x14\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0Z\0\0\0\x05I");
    put("lab_postgres", "error", b"E\0\0\0\x13C53300\0Mno room\0\0");
    put("lab_websocket", "texts", b"\x81\x05hello\x01\x02ab\x80\x7e\0\x01c\x89\0\x88\x02\x03\xe8");
    put_all(
        "lab_http",
        [
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nx: y\r\n\r\n",
            "HTTP/1.1 503 No\r\ncontent-length: 4\r\nretry-after: 7\r\nconnection: close\r\n\r\nabcd",
            "data: {\"kind\":\"results\",\"features\":[1,2]}\n\n: ping\n\ndata: {\"kind\":\"complete\",\"state\":\"partial\"}\n\n",
            "{\"type\":\"Feature\"}\n\u{1e}{\"type\":\"Feature\"}\n",
        ],
    );
    put("lab_file", "first", SCENARIO);
    for folder in ["bench", "crates/lab-plan", "docs"] {
        for path in files(&root().join(folder)) {
            let is_small = std::fs::metadata(&path).unwrap().len() <= 6 << 10;
            if is_small && path.extension().is_some_and(|end| end == "toml") && !path.ends_with("Cargo.toml") {
                put("lab_file", &path.file_name().unwrap().to_string_lossy(), std::fs::read(&path).unwrap());
            }
        }
    }
    for (name, bytes) in results_of_lab() {
        put("lab_results", &name, bytes);
    }
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn main() {
    heads();
    cluster();
    lab();
    formats();
    languages();
    callers();
    issuers();
    searches();
    questions();
    for (target, name, bytes) in files_of_store() {
        put(target, &name, bytes);
    }
    for (name, bytes) in trees() {
        put("tree", name, bytes);
    }
}
