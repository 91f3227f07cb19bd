//! `f=gpkg` of the real server and of a gateway: the events that GeoJSON has, and no file left whatever ends the response.

use crate::common::clients::dawdler;
use crate::common::mount::Mount;
use crate::common::owners::Cluster;
use crate::common::{MERIDIAN, PATIENCE, Server, agent, data, meridian};
use geo_types::{Geometry, LineString, Polygon};
use meridian_model::geometry::from_wkb;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROWS: usize = 60_000;

/// A response: its status, its `Link`, its length if it has one, and its body.
struct Response {
    status: u16,
    link: String,
    length: Option<usize>,
    body: Vec<u8>,
}

fn get(url: &str) -> Response {
    let mut response = agent().get(url).call().unwrap();
    let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let (link, length) = (header("link").unwrap_or_default(), header("content-length"));
    let mut body = Vec::new();
    response.body_mut().with_config().limit(u64::MAX).reader().read_to_end(&mut body).unwrap();
    Response { status: response.status().as_u16(), link, length: length.map(|length| length.parse().unwrap()), body }
}

/// Returns the events of a response as GeoPackage, by id, as SQLite reads them.
#[track_caller]
fn packaged(response: &Response) -> BTreeMap<String, Value> {
    assert_eq!((response.status, response.length), (200, Some(response.body.len())));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &response.body).unwrap();
    let database = Connection::open_with_flags(file.path(), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let text = |query: &str| database.query_row(query, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(text("PRAGMA integrity_check"), "ok");
    let layer = text("SELECT table_name FROM gpkg_contents");
    let mut columns = database.prepare("SELECT name, type FROM pragma_table_info(?1)").unwrap();
    let columns = columns.query_map([&layer], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let columns: Vec<(String, String)> = columns.map(Result::unwrap).collect();
    let mut events = database.prepare(&format!("SELECT * FROM \"{layer}\"")).unwrap();
    let mut rows = events.query([]).unwrap();
    let mut found = BTreeMap::new();
    while let Some(row) = rows.next().unwrap() {
        let (mut id, mut shape, mut properties) = (String::new(), Value::Null, Map::new());
        for (at, (name, kind)) in columns.iter().enumerate() {
            match (name.as_str(), kind.as_str(), row.get_ref(at).unwrap()) {
                ("fid", ..) | (_, _, ValueRef::Null) => {}
                ("id", _, ValueRef::Text(text)) => id = String::from_utf8(text.to_vec()).unwrap(),
                ("geom", _, ValueRef::Blob(blob)) => shape = geometry(&blob[8..]),
                (name, kind, value) => _ = properties.insert(name.to_owned(), plain(kind, value)),
            }
        }
        found.insert(id, json!({ "geometry": shape, "properties": properties }));
    }
    found
}

fn plain(kind: &str, value: ValueRef<'_>) -> Value {
    match (kind, value) {
        ("BOOLEAN", ValueRef::Integer(n)) => (n == 1).into(),
        (_, ValueRef::Integer(n)) => (n as f64).into(),
        (_, ValueRef::Real(x)) => x.into(),
        (_, ValueRef::Text(text)) => shortest(std::str::from_utf8(text).unwrap()).into(),
        (kind, value) => panic!("{value:?} in a column of type {kind}"),
    }
}

/// Returns the JSON of a shape.
fn geometry(wkb: &[u8]) -> Value {
    let ring = |line: &LineString<f64>| -> Value { line.coords().map(|at| json!([at.x, at.y])).collect() };
    let polygon =
        |one: &Polygon<f64>| -> Value { std::iter::once(one.exterior()).chain(one.interiors()).map(ring).collect() };
    match from_wkb(wkb).unwrap() {
        Geometry::Point(at) => json!({ "type": "Point", "coordinates": [at.x(), at.y()] }),
        Geometry::Polygon(one) => json!({ "type": "Polygon", "coordinates": polygon(&one) }),
        Geometry::MultiPolygon(all) => {
            json!({ "type": "MultiPolygon", "coordinates": all.iter().map(polygon).collect::<Value>() })
        }
        other => panic!("{other:?}"),
    }
}

/// Returns a time without zeros at the end of its seconds, and any other text as it is.
fn shortest(text: &str) -> String {
    match text.strip_suffix('Z') {
        Some(bare) if bare.contains('.') => format!("{}Z", bare.trim_end_matches('0').trim_end_matches('.')),
        _ => text.to_owned(),
    }
}

/// Returns the same without nulls, and with all numbers as floats.
fn normal(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::String(text) => shortest(text).into(),
        Value::Array(list) => list.iter().map(normal).collect(),
        Value::Object(members) => {
            members.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name, normal(value))).collect()
        }
        other => other.clone(),
    }
}

/// Returns the events of GeoJSON, by id.
fn expected(url: &str) -> BTreeMap<String, Value> {
    let document: Value = serde_json::from_slice(&get(url).body).unwrap();
    let event = |feature: &Value| {
        let (geometry, properties) = (normal(&feature["geometry"]), normal(&feature["properties"]));
        let event = json!({ "geometry": geometry, "properties": properties });
        (feature["id"].as_str().unwrap().to_owned(), event)
    };
    document["features"].as_array().unwrap().iter().map(event).collect()
}

/// Compares both formats for queries of a collection of countries and one of notes.
fn compare(server: &Server) {
    for (collection, query, least) in [
        ("countries", "limit=10000", 150),
        ("countries", "limit=10000&bbox=-20,30,40,70", 30),
        ("countries", "limit=10000&filter=pop_est%3E50000000", 10),
        ("notes", "limit=10000&filter=n%3C4000", 4_000),
        ("notes", "limit=10000&properties=at,ok&datetime=2026-01-01T01:00:00Z/2026-01-01T01:30:00Z", 20),
        ("notes", "limit=10000&near=10,10&radius=200000", 100),
        ("notes", "limit=20&sortby=-n", 20),
        ("notes", "limit=10&filter=n%3C0", 0),
    ] {
        let items = format!("{}/collections/{collection}/items?{query}", server.url);
        let (found, expected) = (packaged(&get(&format!("{items}&f=gpkg"))), expected(&format!("{items}&f=json")));
        assert!(expected.len() >= least, "{query}: {} events", expected.len());
        assert_eq!(found, expected, "{collection}: {query}");
    }
    // Without a limit there is no page: all of them come at once.
    assert_eq!(packaged(&get(&format!("{}/collections/notes/items?f=gpkg", server.url))).len(), ROWS);
}

fn load(server: &Server) {
    let countries = data("natural-earth/countries_110m_pop.geojsonl.zst").display().to_string();
    meridian(&["load", "countries", &countries, "--url", &server.url]).ended(0);
    server.create("notes", "n:Integer,x:Double,ok:Boolean,note:String,at:Date,*geom:Point");
    let (filler, mut csv) = ("é".repeat(60), String::from("n,x,ok,note,at,lon,lat\n"));
    for n in 0..ROWS {
        let (minute, millis) = (n % 1_440, n % 4 * 250);
        let at = format!("2026-01-01T{:02}:{:02}:00.{millis:03}Z", minute / 60, minute % 60);
        let ok = if n % 3 == 0 { String::new() } else { (n % 3 == 1).to_string() };
        let _ = writeln!(csv, "{n},{},{ok},{filler} {n},{at},{},{}", n as f64 / 8.0, n % 180, n % 90);
    }
    let (status, said) = server.post("/collections/notes/items", "text/csv", None, csv.as_bytes()).unwrap();
    assert_eq!(status, 201, "{said}");
}

/// Returns the number of open files, without a name, in which a server makes GeoPackages. SQLite has a second one each.
fn open_files(server: &Server) -> usize {
    let files = std::fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap();
    let links = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    links.filter(|link| link.to_string_lossy().contains("meridian-gpkg-")).count()
}

#[track_caller]
fn becomes(server: &Server, is: impl Fn(usize) -> bool) {
    let begun = Instant::now();
    while !is(open_files(server)) {
        assert!(begun.elapsed() < PATIENCE, "{} open files", open_files(server));
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sends a request whose response takes long to find, and then has no event.
fn slow(server: &Server) -> TcpStream {
    let filter: Vec<String> = (0..120).map(|n| format!("note%20LIKE%20'%25y{n}%25z%25'")).collect();
    let path = format!("/collections/notes/items?f=gpkg&filter={}", filter.join("%20OR%20"));
    let mut stream = TcpStream::connect(server.address()).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    stream
}

/// Checks that a client that goes away, while its file is made or while it is sent, leaves none.
fn leave(server: &Server) {
    let making = slow(server);
    becomes(server, |files| files > 0);
    drop(making);
    becomes(server, |files| files == 0);
    let mut reader = dawdler(server.address().parse().unwrap(), "/collections/notes/items?f=gpkg");
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.contains("200"), "{line}");
    // The database is closed, and what no buffer holds is still to be sent.
    becomes(server, |files| files == 1);
    drop(reader);
    becomes(server, |files| files == 0);
}

/// Returns the names in a folder.
fn names(folder: &Path) -> Vec<std::ffi::OsString> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn a_geopackage_has_the_events_of_geojson_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let answers = folder.path().join("answers");
    let server = Server::start(folder.path());
    load(&server);
    compare(&server);
    let (mut url, mut ids) = (format!("{}/collections/countries/items?f=gpkg&limit=50", server.url), Vec::new());
    loop {
        let page = get(&url);
        ids.extend(packaged(&page).into_keys());
        let Some((next, _)) = page.link.split_once('>') else { break };
        url = next.trim_start_matches('<').to_owned();
    }
    let pages = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), pages > 150), (pages, true), "pages repeat no event");
    leave(&server);
    assert_eq!(names(&answers), Vec::<std::ffi::OsString>::new());

    // Nor does a kill, and what one left in the moment before a name was removed goes at the next start.
    let making = slow(&server);
    becomes(&server, |files| files > 0);
    server.kill();
    drop(making);
    assert_eq!(names(&answers), Vec::<std::ffi::OsString>::new());
    std::fs::write(answers.join("meridian-gpkg-left"), "some bytes").unwrap();
    meridian(&["check", "--data", folder.path().to_str().unwrap()]).ended(0);
    let _server = Server::start(folder.path());
    assert_eq!(names(&answers), Vec::<std::ffi::OsString>::new());
}

#[test]
fn a_gateway_makes_it_of_the_events_of_its_owner() {
    let cluster = Cluster::new();
    let owner = cluster.owner("owner");
    owner.says("owns");
    let gateway = cluster.server("gateway");
    load(&gateway);
    compare(&gateway);
    leave(&gateway);
}

#[test]
fn a_full_disk_refuses_a_geopackage_and_has_room_again() {
    let Some(mount) = Mount::new(&["-t", "tmpfs", "-o", "size=96m", "none"]) else { return };
    // Files may take the last byte: what is tested is the disk's own error.
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(config.path(), "[answers]\ndisk_free_min = 0\n").unwrap();
    let (data, config) = (mount.path().to_str().unwrap(), config.path().to_str().unwrap());
    let server = Server::start_with(&["--data", data, "--config", config]);
    load(&server);
    let mut ballast = std::fs::File::create(mount.path().join("lost+found")).unwrap();
    let mut bytes = 0;
    while ballast.write_all(&[7; 4_096]).is_ok() {
        bytes += 4_096;
    }
    ballast.set_len(bytes - (2 << 20)).unwrap();
    let items = format!("{}/collections/notes/items?f=gpkg", server.url);
    let refused = get(&items);
    let said = String::from_utf8_lossy(&refused.body);
    assert!(refused.status == 507 && said.contains("disk may be full"), "{} {said}", refused.status);
    becomes(&server, |files| files == 0);
    assert_eq!(packaged(&get(&format!("{items}&limit=10"))).len(), 10);
}

/// Unlike a full disk it needs no right to mount: the system lets the program write no longer file.
#[test]
fn a_file_that_the_system_cuts_refuses_a_geopackage_and_the_next_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut serve = Command::new("sh");
    // The signal would end the program: ignored, it is an error of the write.
    serve.args(["-c", "trap '' XFSZ && exec \"$0\" \"$@\"", MERIDIAN, "serve", "--listen", "127.0.0.1:0", "--data"]);
    serve.arg(folder.path()).env_remove("MERIDIAN_TOKEN").stdin(Stdio::null());
    let server = Server::run(serve);
    load(&server);
    let items = format!("{}/collections/notes/items?f=gpkg", server.url);
    let length = get(&items).body.len() as u64;
    let limit = |bytes: Option<u64>| {
        let limit = Rlimit { current: bytes, ..getrlimit(Resource::Fsize) };
        prlimit(Pid::from_raw(i32::try_from(server.pid()).unwrap()), Resource::Fsize, limit).unwrap();
    };
    limit(Some(length / 2));
    let refused = get(&items);
    limit(getrlimit(Resource::Fsize).current);
    let said = String::from_utf8_lossy(&refused.body);
    assert!(refused.status == 507 && said.contains("disk may be full"), "{} {said}", refused.status);
    becomes(&server, |files| files == 0);
    assert_eq!(packaged(&get(&items)).len(), ROWS);
}
