//! Traces over OTLP: the test's own collector receives the spans of a query, an ingest, a search and a webhook.
use crate::common::collector::{Collector, hex};
use crate::common::source::{Source, json};
use crate::common::{Server, agent, meridian};
use std::net::TcpListener;

const CALLER: &str = "00f067aa0ba902b7";

/// Returns a trace of the caller: its id, and the header.
fn caller(n: u8) -> (String, String) {
    let id = format!("4bf92f3577b34da6a3ce929d0e0e47{n:02x}");
    let header = format!("00-{id}-{CALLER}-01");
    (id, header)
}

/// Starts a source of one result, which also receives webhooks.
fn source() -> Source {
    Source::start(|_| json(r#"{"items":[{"id":"a","title":"flood a"}]}"#))
}

fn server(folder: &std::path::Path, collector: &Collector, source: &Source) -> Server {
    let providers = folder.join("providers");
    std::fs::create_dir(&providers).unwrap();
    let text = format!(
        "name = \"good\"\n[takes]\nkeywords = \"all\"\nneeds = [\"keywords\"]\n[request]\nurl = \"http://{}/good\"\n\
         [answer]\nformat = \"json\"\nitems = \"items\"\n[answer.map]\nid = \"id\"\ntitle = \"title\"\n\
         [limits]\nallow_private = true\nretries = 0\n",
        source.address
    );
    std::fs::write(providers.join("good.toml"), text).unwrap();
    let config = folder.join("meridian.toml");
    // No share of its own, so that only the callers' traces are recorded; webhooks have no caller.
    let text = format!(
        "[traces]\nendpoint = \"http://{}\"\nsample = 0\n[search]\nproviders = {:?}\n",
        collector.address,
        providers.to_str().unwrap()
    );
    std::fs::write(&config, text).unwrap();
    Server::start_with(&["--data", folder.join("data").to_str().unwrap(), "--config", config.to_str().unwrap()])
}

fn post(server: &Server, path: &str, kind: &str, traceparent: &str, body: &str) -> (u16, String) {
    let request = agent().post(format!("{}{path}", server.url)).header("content-type", kind);
    let mut answer = request.header("traceparent", traceparent).header("tracestate", "vendor=1").send(body).unwrap();
    (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
}

#[test]
fn a_query_an_ingest_and_a_search_are_parts_of_their_callers_traces() {
    let (folder, collector, source) = (tempfile::tempdir().unwrap(), Collector::start(), source());
    let server = server(folder.path(), &collector, &source);
    meridian(&["create", "ships", "--schema", "name:String,*geom:Point:srid=4326", "--url", &server.url]).ended(0);

    let (id, header) = caller(1);
    let feature =
        r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2]},"properties":{"name":"hidden-name"}}"#;
    assert_eq!(post(&server, "/collections/ships/items", "application/geo+json", &header, feature).0, 201);
    let root = "POST /collections/{c}/items";
    let ingest = collector.trace(&id, &[root, "access", "body", "admission", "parse", "commit", "sync", "apply"]);
    for stage in ["access", "body", "admission", "parse", "commit"] {
        ingest.is_part(stage, root);
    }
    ingest.is_part("sync", "commit");
    ingest.is_part("apply", "commit");
    assert_eq!(
        (hex(&ingest.span(root).parent_span_id), ingest.span(root).trace_state.as_str()),
        (CALLER.to_owned(), "vendor=1")
    );

    let (id, header) = caller(2);
    let url = format!("{}/collections/ships/items?filter=name%3D%27hidden-name%27", server.url);
    let answer = agent().get(url).header("traceparent", &header).call().unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers()["traceparent"].to_str().unwrap()), (200, header.as_str()));
    let root = "GET /collections/{c}/items";
    let query = collector.trace(&id, &[root, "access", "admission", "plan", "scan", "encode"]);
    for stage in ["access", "admission", "plan", "scan", "encode"] {
        query.is_part(stage, root);
    }
    let attributes = query.attributes(root);
    for (name, value) in [
        ("http.request.method", "GET"),
        ("http.route", "/collections/{c}/items"),
        ("http.response.status_code", "200"),
        ("meridian.tenant", "default"),
        ("events_matched", "1"),
    ] {
        assert_eq!(attributes.get(name).map(String::as_str), Some(value), "{name}: {attributes:?}");
    }

    let (id, header) = caller(3);
    let (status, _) =
        post(&server, "/searches", "application/json", &header, r#"{"keywords":"flood","providers":["good"]}"#);
    assert!(status == 201 || status == 202, "{status}");
    let root = "POST /searches";
    let search = collector.trace(&id, &[root, "search", "leg", "ask", "good", "map", "filter", "deliver"]);
    search.is_part("search", root);
    search.is_part("leg", "search");
    for stage in ["ask", "map", "enrich", "filter", "classify", "deduplicate", "deliver"] {
        search.is_part(stage, "leg");
    }
    search.is_part("good", "ask");
    assert_eq!(search.attributes("leg").get("meridian.provider").map(String::as_str), Some("good"));
    // The source is called within the call's span.
    let call = hex(&search.span("good").span_id);
    let asked = source.calls();
    assert!(
        asked[0].contains(&format!("traceparent: 00-{id}-{call}-01")) && asked[0].contains("tracestate: vendor=1"),
        "{asked:?}"
    );

    let spans = collector.spans.lock().unwrap().clone();
    assert!(!format!("{spans:?}").contains("hidden-name"), "what clients look for and write is in no span");
    let metrics = server.get("/metrics").1;
    let exported = metrics.lines().find_map(|line| line.strip_prefix("meridian_trace_spans_exported_total ")).unwrap();
    assert!(exported.parse::<usize>().unwrap() >= 20, "{exported}");
    assert!(
        metrics.contains("\nmeridian_trace_spans_dropped_total 0\n")
            && metrics.contains("\nmeridian_trace_spans_failed_total 0\n")
    );
}

#[test]
fn what_no_caller_records_is_not_sent_and_a_collector_that_is_away_stops_nobody() {
    let (folder, collector, source) = (tempfile::tempdir().unwrap(), Collector::start(), source());
    let server = server(folder.path(), &collector, &source);
    for _ in 0..20 {
        assert_eq!(server.get("/collections").0, 200);
    }
    let (id, header) = caller(4);
    agent()
        .get(format!("{}/collections", server.url))
        .header("traceparent", header.replace("-01", "-00"))
        .call()
        .unwrap();
    let (recorded, header) = caller(5);
    agent().get(format!("{}/collections", server.url)).header("traceparent", &header).call().unwrap();
    collector.trace(&recorded, &["GET /collections"]);
    let others = collector.spans.lock().unwrap().iter().filter(|span| hex(&span.trace_id) != recorded).count();
    assert_eq!(others, 0, "{id} is not recorded by its caller");
    assert_eq!(server.stop("TERM"), Some(0));

    let away = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let other = tempfile::tempdir().unwrap();
    let config = other.path().join("meridian.toml");
    std::fs::write(&config, format!("[traces]\nendpoint = \"http://{away}\"\nsample = 1\nqueue_max = 1\n")).unwrap();
    let server = Server::start_with(&["--ephemeral", "--config", config.to_str().unwrap()]);
    for _ in 0..200 {
        assert_eq!(server.get("/collections").0, 200);
    }
    let metrics = server.get("/metrics").1;
    let dropped = metrics.lines().find_map(|line| line.strip_prefix("meridian_trace_spans_dropped_total ")).unwrap();
    assert!(dropped.parse::<usize>().unwrap() > 0, "{dropped}");
    assert_eq!(server.stop("TERM"), Some(0));
}

#[test]
fn flushes_and_merges_are_traces_of_their_own() {
    let (folder, collector) = (tempfile::tempdir().unwrap(), Collector::start());
    let config = folder.path().join("meridian.toml");
    let text = format!("[traces]\nendpoint = \"http://{}\"\nsample = 1\n", collector.address);
    std::fs::write(&config, text).unwrap();
    let data = folder.path().join("data");
    let server = Server::start_with(&["--data", data.to_str().unwrap(), "--config", config.to_str().unwrap()]);
    meridian(&["create", "ships", "--schema", "name:String,*geom:Point:srid=4326", "--url", &server.url]).ended(0);
    // Each write is a tree in memory, and small trees are merged.
    for _ in 0..40 {
        let line = b"{\"lon\":1,\"lat\":2,\"name\":\"hidden-name\"}\n";
        assert_eq!(server.post("/collections/ships/items", "application/x-ndjson", None, line).unwrap().0, 201);
    }
    let merge = collector.wait_for("of a merge", |span| span.name == "merge in memory");
    assert!(merge.parent_span_id.is_empty(), "nobody asked for it: {merge:?}");
    // A request for files waits for a flush, which is a part of it.
    meridian(&["files", "ships", "--url", &server.url]).ended(0);
    let flush = collector.wait_for("of a flush", |span| span.name == "flush");
    let asked = collector.wait_for("of the request", |span| span.name == "POST /collections/{c}/files");
    assert_eq!(flush.trace_id, asked.trace_id);
    for span in [merge, flush] {
        assert_eq!(span.attributes["meridian.tenant"], "default");
        assert!(span.attributes["events"].parse::<u64>().unwrap() >= 2, "{span:?}");
    }
    assert!(!format!("{:?}", collector.spans.lock().unwrap()).contains("hidden-name"));
}
