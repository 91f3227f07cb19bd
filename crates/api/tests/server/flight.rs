//! Reads over Arrow Flight return the same results as over HTTP.

use crate::flight_client::{Client, GetResponse, over_http, refused, texts, ticket};
use crate::support::{Server, point};
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_flight::{FlightDescriptor, Ticket};
use meridian_api::ServerConfig;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tonic::Code;

const EVENTS: usize = 3_000;

fn event(n: usize) -> Value {
    let (lon, lat) = ((n * 7919 % 3600) as f64 / 10.0 - 180.0, (n * 104_729 % 1800) as f64 / 10.0 - 90.0);
    let day = n % 28 + 1;
    let ship = format!("ship-{}", n % 7);
    let properties = json!({
        "n": if n.is_multiple_of(11) { Value::Null } else { json!(n) },
        "x": n as f64 / 8.0,
        "ship": ship,
        "t": format!("2024-01-{day:02}T{:02}:00:00Z", n % 24),
    });
    point("", lon, lat, properties)
}

/// Fills a collection in several batches, so that it has several trees.
fn filled(server: &Server) {
    let schema = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "x": {"type": "number"},
            "ship": {"type": "string", "x-meridian-object": true},
            "t": {"type": "string", "format": "date-time", "x-ogc-role": "primary-instant"},
            "geometry": {"format": "geometry-point", "x-ogc-role": "primary-geometry"},
        }
    });
    let made = server.ask(
        "PUT",
        "/collections/q",
        &[("content-type", "application/schema+json")],
        schema.to_string().as_bytes(),
    );
    assert_eq!(made.status, 201, "{}", made.text());
    for from in (0..EVENTS).step_by(EVENTS / 6) {
        let events: Vec<Value> = (from..from + EVENTS / 6).map(event).collect();
        server.load("q", &events);
    }
}

fn shared() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = Server::start();
        filled(&server);
        server
    })
}

fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

/// Generates questions in both forms: the members of a command, and a query string.
fn questions() -> impl Strategy<Value = (Value, String)> {
    let bbox = (-180i32..0, -90i32..0, 1..180i32, 1..90i32)
        .prop_map(|(w, s, e, n)| vec![("bbox", json!([w, s, e, n]), format!("bbox={w},{s},{e},{n}"))]);
    let filter = prop_oneof![
        (0..EVENTS).prop_map(|n| vec![("filter", json!(format!("n > {n}")), format!("filter=n%20%3E%20{n}"))]),
        (0..7usize).prop_map(|k| {
            let cql = json!({"op": "=", "args": [{"property": "ship"}, format!("ship-{k}")]});
            vec![("filter", cql, format!("filter=ship%3D%27ship-{k}%27"))]
        }),
    ];
    let datetime = (1..28u32).prop_map(|day| {
        vec![(
            "datetime",
            json!(format!("2024-01-{day:02}T00:00:00Z/..")),
            format!("datetime=2024-01-{day:02}T00:00:00Z/.."),
        )]
    });
    let fields = Just(vec![("fields", json!(["x", "t"]), "properties=x,t".to_owned())]);
    let order = prop_oneof![
        (1..400usize).prop_map(|limit| vec![("limit", json!(limit), format!("limit={limit}"))]),
        (1..400usize).prop_map(|limit| vec![
            ("sortby", json!("-x"), "sortby=-x".to_owned()),
            ("limit", json!(limit), format!("limit={limit}")),
        ]),
        (1..60usize).prop_map(|k| vec![
            ("near", json!([10.5, 20]), "near=10.5,20".to_owned()),
            ("nearest", json!(k), format!("nearest={k}")),
        ]),
    ];
    let some = |one: BoxedStrategy<Vec<(&'static str, Value, String)>>| prop_oneof![Just(Vec::new()), one];
    (some(bbox.boxed()), some(filter.boxed()), some(datetime.boxed()), some(fields.boxed()), some(order.boxed()))
        .prop_map(|(a, b, c, d, e)| {
            let mut command = json!({"collection": "q"});
            let mut query = "f=arrow".to_owned();
            for (name, value, pair) in [a, b, c, d, e].into_iter().flatten() {
                command[name] = value;
                query = format!("{query}&{pair}");
            }
            (command, query)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn an_answer_has_the_rows_of_http((command, query) in questions()) {
        let server = shared();
        let client = Client::new(server);
        let info = client.info(&command).unwrap();
        let expected = over_http(server, &format!("/collections/q/items?{query}"));
        let GetResponse { batches, last } = client.get(ticket(&info.endpoint[0])).unwrap();
        prop_assert_eq!(rows(&batches), rows(&expected));
        prop_assert_eq!(&batches, &expected);
        prop_assert_eq!(last["rows"].as_u64().unwrap() as usize, rows(&expected));
        prop_assert_eq!(&last["complete"], &json!(true));
        prop_assert!(info.total_records == -1 || info.total_records == rows(&expected) as i64, "{}", info.total_records);
        if let Some(batch) = batches.first() {
            prop_assert_eq!(batch.schema_ref().as_ref(), &info.clone().try_decode_schema().unwrap());
        }
    }

    #[test]
    fn parts_are_the_answer_together(parts in 2..12u64, bound in 0..EVENTS) {
        let server = shared();
        let client = Client::new(server);
        let filter = format!("n > {bound} OR x < 50");
        let whole = client.ask(&json!({"collection": "q", "filter": filter})).unwrap();
        let info = client.info(&json!({"collection": "q", "filter": filter, "parallel": parts})).unwrap();
        prop_assert!(info.endpoint.len() > 1 && info.endpoint.len() as u64 <= parts && !info.ordered);
        let mut together = Vec::new();
        for endpoint in &info.endpoint {
            together.extend(texts(&client.get(ticket(endpoint)).unwrap().batches, "id"));
        }
        let mut expected = texts(&whole.batches, "id");
        expected.sort();
        together.sort();
        prop_assert_eq!(together, expected);
    }
}

#[test]
fn parts_are_of_one_snapshot_whatever_is_written_meanwhile() {
    let server = Server::start();
    filled(&server);
    let client = Client::new(&server);
    let before = texts(&client.ask(&json!({"collection": "q"})).unwrap().batches, "id");
    let info = client.info(&json!({"collection": "q", "parallel": 4})).unwrap();
    assert_eq!(info.total_records, EVENTS as i64);
    let mut together = Vec::new();
    let mut snapshots = Vec::new();
    for (n, endpoint) in info.endpoint.iter().enumerate() {
        server.load("q", &[event(n), event(n + 100)]);
        let deleted = server.ask("DELETE", &format!("/collections/q/items?filter=n%3D{}", 3 * n + 1), &[], b"");
        assert_eq!(deleted.status, 200, "{}", deleted.text());
        let answer = client.get(ticket(endpoint)).unwrap();
        together.extend(texts(&answer.batches, "id"));
        snapshots.push(answer.last["snapshot"].clone());
    }
    let (mut before, count) = (before, together.len());
    before.sort();
    together.sort();
    assert_eq!(together, before, "{count}");
    snapshots.dedup();
    let pinned: Value = serde_json::from_slice(&info.app_metadata).unwrap();
    assert_eq!(snapshots, [pinned["snapshot"].clone()]);
    assert_ne!(texts(&client.ask(&json!({"collection": "q"})).unwrap().batches, "id").len(), EVENTS);
}

#[test]
fn groups_are_those_of_http() {
    let server = shared();
    let client = Client::new(server);
    let command = json!({
        "collection": "q", "kind": "aggregate", "function": "count,sum(n),avg(x),max(n)", "by": "ship", "window": "P7D",
    });
    let answer = client.ask(&command).unwrap();
    let path = "/collections/q/aggregate?function=count,sum(n),avg(x),max(n)&by=ship&window=P7D";
    let groups = server.json(path)["groups"].as_array().unwrap().clone();
    assert_eq!(rows(&answer.batches), groups.len());
    assert_eq!(answer.batches[0].schema_ref().as_ref(), &client.schema(&command).unwrap());
    let batch = &answer.batches[0];
    let column = |name: &str| batch.column_by_name(name).unwrap();
    for (row, group) in groups.iter().enumerate() {
        assert_eq!(column("by").as_string::<i32>().value(row), group["by"]);
        assert_eq!(json!(column("count").as_primitive::<Int64Type>().value(row)), group["count"]);
        assert_eq!(json!(column("sum(n)").as_primitive::<Int64Type>().value(row)), group["sum(n)"]);
        assert_eq!(json!(column("max(n)").as_primitive::<Int64Type>().value(row)), group["max(n)"]);
        assert_eq!(json!(column("avg(x)").as_primitive::<Float64Type>().value(row)), group["avg(x)"]);
    }
}

#[test]
fn cells_and_tracks_are_those_of_http() {
    let server = shared();
    let client = Client::new(server);
    let answer = client.ask(&json!({"collection": "q", "kind": "density", "width": 9, "height": 5})).unwrap();
    let counts = server.json("/collections/q/density?width=9&height=5")["counts"].as_array().unwrap().clone();
    let mut found = vec![0i64; counts.len()];
    for batch in &answer.batches {
        let at = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<Int32Type>().clone();
        let (rows, columns) = (at("row"), at("column"));
        for row in 0..batch.num_rows() {
            let cell = (rows.value(row) * 9 + columns.value(row)) as usize;
            found[cell] += batch.column_by_name("count").unwrap().as_primitive::<Int64Type>().value(row);
        }
    }
    assert_eq!(found, counts.iter().map(|count| count.as_i64().unwrap()).collect::<Vec<_>>());
    let track = client.ask(&json!({"collection": "q", "kind": "track", "track": "ship-3"})).unwrap();
    let line = server.json("/collections/q/items?track=ship-3");
    // Each cut at the antimeridian ends a piece and begins another, with the time of the cut for both.
    let cuts = match line["geometry"]["type"].as_str() {
        Some("MultiLineString") => line["geometry"]["coordinates"].as_array().unwrap().len() - 1,
        _ => 0,
    };
    assert_eq!(rows(&track.batches), line["properties"]["times"].as_array().unwrap().len() - 2 * cuts);
}

#[test]
fn mistakes_are_those_of_http() {
    let server = shared();
    let client = Client::new(server);
    for (command, path) in [
        (json!({"collection": "q", "bbox": "1,2"}), "bbox=1,2"),
        (json!({"collection": "q", "filter": "n >"}), "filter=n%20%3E"),
        (json!({"collection": "q", "sortby": "n"}), "sortby=n&f=arrow"),
        (json!({"collection": "q", "fields": ["z"]}), "properties=z"),
        (json!({"collection": "q", "datetime": "noon"}), "datetime=noon"),
    ] {
        let expected = server.get(&format!("/collections/q/items?{path}")).problem(400);
        let status = refused(client.info(&command), Code::InvalidArgument, "");
        let (detail, field) = (expected["detail"].as_str().unwrap(), expected["field"].as_str().unwrap());
        let named = detail.starts_with(field) || status.message() == format!("{field}: {detail}");
        assert!(named && status.message().ends_with(detail), "{command}: {}", status.message());
        let problem = status.metadata().get_bin("meridian-problem-bin").unwrap().to_bytes().unwrap();
        let problem: Value = serde_json::from_slice(&problem).unwrap();
        assert_eq!((&problem["type"], &problem["field"]), (&expected["type"], &expected["field"]), "{command}");
    }
    let absent = server.get("/collections/absent/items").problem(404);
    let status = refused(client.info(&json!({"collection": "absent"})), Code::NotFound, "");
    assert_eq!(status.message(), absent["detail"]);
    // Of an unknown member, the message has those of a command, which are not all of the route.
    let status = refused(client.info(&json!({"collection": "q", "fitler": "n > 1"})), Code::InvalidArgument, "fitler");
    let (_, members) = status.message().split_once("expected one of ").unwrap();
    let members: Vec<&str> = members.split(", ").collect();
    for name in ["collection", "kind", "parallel", "fields", "filter"] {
        assert!(members.contains(&name), "{name}: {members:?}");
    }
    for name in ["f", "token", "explain"] {
        assert!(!members.contains(&name), "{name}: {members:?}");
        refused(client.info(&json!({"collection": "q", name: "x"})), Code::InvalidArgument, "not for Flight");
    }
}

#[test]
fn collections_are_listed_and_named_by_their_path() {
    let server = shared();
    let client = Client::new(server);
    let listed = client.list("").unwrap();
    assert_eq!(listed.len(), 1);
    let descriptor = listed[0].flight_descriptor.clone().unwrap();
    assert_eq!(descriptor.path, ["q"]);
    assert_eq!(rows(&client.get(ticket(&listed[0].endpoint[0])).unwrap().batches), EVENTS);
    assert!(client.list("r").unwrap().is_empty());
    let info = client.describe(FlightDescriptor::new_path(vec!["q".into()])).unwrap();
    assert_eq!(info.total_records, EVENTS as i64);
    assert_eq!(info.clone().try_decode_schema().unwrap(), listed[0].clone().try_decode_schema().unwrap());
    let at = info.endpoint[0].expiration_time.as_ref().unwrap().seconds;
    assert!(at > 0);
    assert!(info.endpoint[0].location.is_empty(), "clients use the address that they asked");
}

#[test]
fn what_is_no_ticket_is_refused() {
    let server = shared();
    let client = Client::new(server);
    let good = ticket(&client.info(&json!({"collection": "q", "limit": 1})).unwrap().endpoint[0]);
    let mut changed = good.ticket.to_vec();
    let last = changed.len() - 3;
    changed[last] ^= 1;
    for bytes in [Vec::new(), b"q".to_vec(), changed, good.ticket[..40].to_vec()] {
        refused(client.get(Ticket::new(bytes)), Code::InvalidArgument, "ticket");
    }
    // A ticket of another server, with another key.
    let other = Server::start();
    other.create("q", "n:Integer,*geom:Point");
    refused(Client::new(&other).get(good.clone()), Code::InvalidArgument, "ticket");
    assert_eq!(rows(&client.get(good).unwrap().batches), 1);
    let large = json!({"collection": "q", "filter": "n = 1 OR ".repeat(20_000)});
    refused(client.info(&large), Code::InvalidArgument, "limit");
    refused(client.info(&json!({"collection": "q", "filter": "x".repeat(400_000)})), Code::InvalidArgument, "limit");
    assert_eq!(client.ask(&json!({"collection": "q", "limit": 2})).unwrap().last["rows"], 2);
}

#[test]
fn a_reader_that_takes_nothing_is_let_go_and_sees_no_complete_answer() {
    let server = Server::with(ServerConfig { write_stall: Duration::from_secs(2), ..ServerConfig::default() });
    server.create("big", "n:Integer,note:String,*geom:Point");
    let mut csv = String::from("n,note,lon,lat\n");
    let note = "x".repeat(300);
    for n in 0..40_000 {
        csv.push_str(&format!("{n},{note},{},{}\n", n % 180, n % 90));
    }
    assert_eq!(server.post("/collections/big/items", "text/csv", csv).status, 201);
    let client = Client::narrow(&server);
    let question = json!({"collection": "big"});
    let (first, rest) = client.begin(ticket(&client.info(&question).unwrap().endpoint[0]));
    assert!(!first.data_header.is_empty());
    let metric = |name: &str| -> u64 {
        let text = server.get("/metrics").text();
        let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap().to_owned();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let begun = Instant::now();
    while metric("meridian_readers_slow_total") == 0 || metric("meridian_answer_bytes") > 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "it was never let go");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(client.rest(rest).is_err());
    assert_eq!(Client::new(&server).ask(&question).unwrap().last["rows"], 40_000);
}
