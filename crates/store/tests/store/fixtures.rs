//! Small stores written by each version, kept in `tests/fixtures/VERSION`, and opened by every run.
//!
//! `make fixture` writes that of the version at hand, once: from then on the files never change, and every later version
//! must open them. Beside each stands `expected.json`: what is in it, counted by whoever wrote it and not by the store.

use meridian_formats::{BatchLimits, Format, ReadOptions};
use meridian_model::time::format_instant;
use meridian_model::{Batch, Field, FieldColumn, FieldType, Projection, Schema, Seq, schema_spec};
use meridian_store::seams::{Clock, ManualClock, RealDisk, Seams, SeededRandom};
use meridian_store::{Collection, Options, Settings, Snapshot, Store, Write};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// 2026-01-01T00:00:00Z.
const NEW_YEAR: i64 = 1_767_225_600_000_000;
const HOUR: i64 = 3_600_000_000;

/// What a version's store holds, by collection.
type Expected = BTreeMap<String, Content>;

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Content {
    position: u64,
    fields: usize,
    /// Events that the collection shows, with their field `n`.
    shown: BTreeMap<String, i64>,
    /// All live events: more in a collection of mode `latest`.
    history: BTreeMap<String, i64>,
    /// Vertices of all shapes that are not kept as points.
    vertices: usize,
    /// Idempotency keys, and the events of each.
    keys: BTreeMap<String, u64>,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn open(data: &Path) -> (Store, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(NEW_YEAR));
    let options = Options { background: false, segment_rows_min: 32, ..Options::at(data) };
    let seams = Seams {
        disk: Arc::new(RealDisk),
        clock: clock.clone() as Arc<dyn Clock>,
        random: Arc::new(SeededRandom::new(1)),
    };
    (Store::open(options, seams).unwrap(), clock)
}

/// One event: a feature of GeoJSON in a line.
fn feature(id: &str, shape: &str, n: i64, more: &str) -> String {
    let at = format_instant(NEW_YEAR - 720 * HOUR + n * HOUR);
    format!(r#"{{"type":"Feature","id":"{id}","geometry":{shape},"properties":{{"n":{n},"at":"{at}"{more}}}}}"#)
}

fn point(n: i64) -> String {
    format!(r#"{{"type":"Point","coordinates":[{},{}]}}"#, n * 37 % 360 - 180, n * 17 % 180 - 90)
}

fn line(n: i64, vertices: i64) -> String {
    let vertex = |i: i64| format!("[{:.2},{:.2}]", n * 3 % 170 + i % 7, (i as f64) / 10.0 - 20.0);
    let vertices: Vec<String> = (0..vertices).map(vertex).collect();
    format!(r#"{{"type":"LineString","coordinates":[{}]}}"#, vertices.join(","))
}

fn batch(schema: &Arc<Schema>, features: &[String]) -> Batch {
    let mut text = String::new();
    features.iter().for_each(|f| writeln!(text, "{f}").unwrap());
    let input = Box::new(std::io::Cursor::new(text.into_bytes()));
    let mut reader = meridian_formats::reader(Format::NdJson, input, schema.clone(), &ReadOptions::default()).unwrap();
    reader.next_batch(&BatchLimits { rows: 10_000, bytes: 1 << 24 }).unwrap().unwrap()
}

/// A collection as it is made, and what it is expected to hold.
struct Maker {
    collection: Arc<Collection>,
    content: Content,
}

impl Maker {
    fn new(store: &Store, name: &str, spec: &str, settings: Settings) -> Maker {
        let collection = store.create("default", name, schema_spec::parse(spec).unwrap(), settings).unwrap();
        Maker { collection, content: Content::default() }
    }

    /// Writes events under ids that are given, or that the store makes; gives the ids.
    fn write(&mut self, key: Option<&str>, events: &[(String, i64, String)]) -> Vec<String> {
        let schema = self.collection.schema();
        let features: Vec<String> = events.iter().map(|(_, _, feature)| feature.clone()).collect();
        let mut write = Write::new(batch(&schema, &features)).replacing();
        if let Some(key) = key {
            write = write.with_key(key);
            self.content.keys.insert(key.to_owned(), events.len() as u64);
        }
        let written = self.collection.write(write).unwrap();
        self.content.position = written.position;
        let given = schema.id == meridian_model::IdRole::Given;
        let id = |i: usize| if given { events[i].0.clone() } else { Seq::new(written.position, i).to_id() };
        let ids: Vec<String> = (0..events.len()).map(id).collect();
        for (id, (_, n, _)) in ids.iter().zip(events) {
            self.content.history.insert(id.clone(), *n);
        }
        ids
    }

    fn delete(&mut self, ids: &[String]) {
        let deleted = self.collection.delete(ids).unwrap();
        self.content.position = deleted.position;
        self.content.history.retain(|id, _| !ids.contains(id));
    }

    fn done(mut self) -> Content {
        self.content.fields = self.collection.schema().fields.len();
        if self.content.shown.is_empty() {
            self.content.shown = self.content.history.clone();
        }
        self.content
    }
}

fn rest(collection: &Collection) {
    collection.files(Instant::now() + Duration::from_secs(60), &|| false).unwrap();
}

/// Points with given ids: at rest, in a segment, replaced, deleted, of an older schema, in the log.
fn sightings(store: &Store) -> Content {
    let spec = "name:String,n:Long,x:Double,sure:Boolean,tags:List[String],at:Date,*geom:Point:srid=4326;\
                geomesa.index.dtg='at',meridian.id='given'";
    let mut maker = Maker::new(store, "sightings", spec, Settings::default());
    let event = |n: i64, round: i64| {
        let shape = if n % 11 == 0 { "null".to_owned() } else { point(n) };
        let more = format!(
            r#","name":"name {}","x":{},"sure":{},"tags":["t{}","round {round}"]"#,
            n % 9,
            n as f64 / 7.0,
            n % 2 == 0,
            n % 5
        );
        (format!("s{n}"), n, feature(&format!("s{n}"), &shape, n, &more))
    };
    let events = |range: std::ops::Range<i64>, round| range.map(|n| event(n, round)).collect::<Vec<_>>();
    maker.write(Some("first"), &events(0..60, 1));
    rest(&maker.collection);
    maker.write(None, &events(50..90, 2));
    maker.collection.flush().unwrap();
    maker.delete(&["s5", "s6", "s75"].map(String::from));
    maker.collection.flush().unwrap();
    let later = Field { name: "later".into(), kind: FieldType::Text, required: false, title: None };
    maker.collection.add_fields(vec![later]).unwrap();
    maker.write(Some("second"), &events(90..105, 3));
    maker.write(None, &events(85..88, 4));
    maker.delete(&["s10", "s100"].map(String::from));
    maker.done()
}

/// Mode latest with ids that are made: hidden rows in a file, and a late event in the log.
fn ships(store: &Store) -> Content {
    let spec = "ship:String:object=true,n:Long,at:Date,*geom:Point:srid=4326;\
                geomesa.index.dtg='at',meridian.id='made',meridian.mode='latest'";
    let mut maker = Maker::new(store, "ships", spec, Settings::default());
    let event = |n: i64| (String::new(), n, feature("", &point(n), n, &format!(r#","ship":"ship {}""#, n % 8)));
    let mut ids = BTreeMap::new();
    for range in [0..40, 40..70, 76..90, 70..76] {
        let events: Vec<_> = range.clone().map(event).collect();
        ids.extend(range.clone().zip(maker.write(None, &events)));
        if range.end < 80 && range.start != 70 {
            maker.collection.flush().unwrap();
        }
    }
    maker.delete(&[ids[&89].clone()]);
    // The event of each ship with the greatest `n` is its newest; the last of ship 1 is deleted.
    maker.content.shown =
        (0..8).map(|ship| (0..89).rev().find(|n| n % 8 == ship).unwrap()).map(|n| (ids[&n].clone(), n)).collect();
    maker.done()
}

/// Lines, one of them long enough to be indexed in pieces, over intervals.
fn routes(store: &Store) -> Content {
    let spec = "n:Long,at:Date,until:Date,*geom:LineString:srid=4326;\
                meridian.interval.start='at',meridian.interval.end='until',meridian.id='given'";
    let mut maker = Maker::new(store, "routes", spec, Settings::default());
    let vertices = |n: i64| if n == 7 { 90 } else { 2 + n % 5 };
    let events: Vec<_> = (0..24)
        .map(|n| {
            let until = format_instant(NEW_YEAR - 700 * HOUR + n * HOUR);
            let id = format!("r{n}");
            (id.clone(), n, feature(&id, &line(n, vertices(n)), n, &format!(r#","until":"{until}""#)))
        })
        .collect();
    maker.write(None, &events[..18]);
    rest(&maker.collection);
    maker.write(None, &events[18..]);
    maker.content.vertices = (0..24).map(|n| vertices(n) as usize).sum();
    maker.done()
}

/// No place: a log with an expiry.
fn readings(store: &Store) -> Content {
    let spec = "n:Long,v:Double,at:Date;geomesa.index.dtg='at',meridian.id='made'";
    let settings = Settings { retention: Some(Duration::from_secs(700 * 3600)), ..Settings::default() };
    let mut maker = Maker::new(store, "readings", spec, settings);
    let event = |n: i64| (String::new(), n, feature("", "null", n, &format!(r#","v":{}"#, n * n)));
    let first = maker.write(None, &(0..50).map(event).collect::<Vec<_>>());
    maker.collection.flush().unwrap();
    maker.write(None, &(50..60).map(event).collect::<Vec<_>>());
    // Events of the first twenty hours are older than 700 hours at the new year.
    let expired = maker.collection.expire().unwrap().unwrap();
    assert_eq!(expired.expired, 20);
    maker.content.position = expired.position;
    maker.content.history.retain(|id, _| !first[..20].contains(id));
    maker.done()
}

/// Writes the store of this version.
fn write(dir: &Path) {
    assert!(!dir.exists(), "{} is there: what a released version wrote never changes", dir.display());
    let data = dir.join("data");
    let (store, _) = open(&data);
    let mut expected = Expected::new();
    expected.insert("sightings".into(), sightings(&store));
    expected.insert("ships".into(), ships(&store));
    expected.insert("routes".into(), routes(&store));
    expected.insert("readings".into(), readings(&store));
    // Not closed: what is in memory stays in the log.
    drop(store);
    std::fs::remove_file(data.join("LOCK")).unwrap();
    for entry in ["sightings", "ships", "routes", "readings"] {
        let log = data.join("tenants/default").join(entry).join("p0/log");
        for file in std::fs::read_dir(log).unwrap().map(|f| f.unwrap().path()) {
            // To be used again: what it holds means nothing.
            if file.extension().is_some_and(|e| e == "spare") {
                std::fs::remove_file(file).unwrap();
            }
        }
    }
    std::fs::write(dir.join("expected.json"), serde_json::to_vec(&expected).unwrap()).unwrap();
}

/// Copies a folder; gives the endings of its files.
fn copy(from: &Path, to: &Path) -> Vec<String> {
    std::fs::create_dir_all(to).unwrap();
    let mut endings = Vec::new();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|e| (e.path(), e.file_name().into_string().unwrap())).unwrap();
        if path.is_dir() {
            endings.extend(copy(&path, &to.join(&name)));
        } else {
            std::fs::copy(&path, to.join(&name)).unwrap();
            endings.push(name.rsplit('.').next().unwrap().to_owned());
        }
    }
    endings
}

/// Ids and `n` of what a snapshot shows, and the vertices of its shapes.
fn shown(snapshot: &Snapshot) -> (BTreeMap<String, i64>, usize) {
    let n = snapshot.schema.fields.iter().position(|field| field.name == "n").unwrap();
    let (mut found, mut vertices) = (BTreeMap::new(), 0);
    for part in snapshot.parts.iter() {
        let rows = 0..part.rows();
        let batch = part.read(rows.clone(), &Projection::all(&snapshot.layout)).unwrap();
        let (seqs, visible) = (part.seqs(rows.clone()).unwrap(), part.visible(rows).unwrap());
        let Some(FieldColumn::Int(n)) = batch.field(n) else { panic!("n is no number") };
        for (row, seq) in seqs.into_iter().enumerate().filter(|(row, _)| visible.value(*row)) {
            assert_eq!(found.insert(batch.id_of(row, Seq(seq)), n.value(row)), None, "an id stands twice");
            // The WKB of a line: nine bytes, then two numbers for each vertex.
            vertices += batch.wkb().map_or(0, |wkb| (wkb.value(row).len() - 9) / 16);
        }
    }
    (found, vertices)
}

fn content(collection: &Collection, keys: &BTreeMap<String, u64>) -> Content {
    let (shown_now, vertices) = shown(&collection.snapshot());
    let mut content = Content {
        position: collection.position(),
        fields: collection.schema().fields.len(),
        shown: shown_now,
        history: shown(&collection.history()).0,
        vertices,
        keys: BTreeMap::new(),
    };
    for key in keys.keys() {
        // A key that is remembered stores nothing, whatever comes with it.
        let again = batch(&collection.schema(), &[feature("again", "null", 1, "")]);
        let written = collection.write(Write::new(again).with_key(key)).unwrap();
        content.keys.insert(key.clone(), written.duplicates);
    }
    content
}

#[test]
fn stores_of_every_version_hold_what_was_written_to_them_and_take_more() {
    let ours = fixtures().join(env!("CARGO_PKG_VERSION"));
    if std::env::var_os("MERIDIAN_WRITE_FIXTURE").is_some() {
        write(&ours);
    }
    assert!(ours.exists(), "there is no store of this version in {}: make fixture", fixtures().display());
    for entry in std::fs::read_dir(fixtures()).unwrap() {
        let from = entry.unwrap().path();
        let folder = tempfile::tempdir().unwrap();
        let endings = copy(&from.join("data"), folder.path());
        for kind in ["json", "MANIFEST", "NEWEST", "log", "rows", "segment", "parquet", "dead", "hidden", "keys"] {
            assert!(endings.iter().any(|e| e == kind), "{} has no {kind}", from.display());
        }
        let expected: Expected = serde_json::from_slice(&std::fs::read(from.join("expected.json")).unwrap()).unwrap();
        // As it lies there, after everything was flushed and merged, and after another start.
        for round in 0..3 {
            let (store, clock) = open(folder.path());
            assert_eq!(store.check(), [], "{}", from.display());
            assert_eq!(store.collections().len(), expected.len());
            for (name, expected) in &expected {
                let collection = store.collection("default", name).unwrap();
                let found = content(&collection, &expected.keys);
                assert_eq!(&found, expected, "{name} of {}, round {round}", from.display());
                if round == 1 {
                    clock.advance(20 * 60_000_000);
                    collection.flush().unwrap();
                    while collection.maintain_segments().unwrap() {}
                    rest(&collection);
                    assert_eq!(&content(&collection, &expected.keys), expected, "{name} of {}, merged", from.display());
                }
            }
        }
        let (store, _) = open(folder.path());
        for name in expected.keys() {
            let collection = store.collection("default", name).unwrap();
            let shape = match name.as_str() {
                "routes" => line(1, 3),
                "readings" => "null".to_owned(),
                _ => point(1),
            };
            let more = batch(&collection.schema(), &[feature("more", &shape, 1, "")]);
            assert_eq!(collection.write(Write::new(more)).unwrap().written, 1, "{name} of {}", from.display());
        }
    }
}
