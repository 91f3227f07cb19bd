//! Federated searches over real sources on the loopback interface.

use crate::events::{Events, Socket};
use crate::sources::{Sources, config, json as answer_of, typed};
use crate::support::{Server, point};
use serde_json::{Value, json};

/// Starts a search; returns its id.
pub fn begin(server: &Server, question: &Value) -> String {
    let answer = server.post("/searches", "application/json", question.to_string());
    assert_eq!(answer.status, 202, "{}", answer.text());
    let id = answer.json()["search"].as_str().unwrap().to_owned();
    assert!(answer.headers["location"].ends_with(&format!("/searches/{id}")));
    id
}

pub fn packets_of(id: &str) -> String {
    format!("/searches/{id}/packets")
}

/// Runs a search; returns its packets, checked.
pub fn search(server: &Server, question: &Value) -> Vec<Value> {
    let id = begin(server, question);
    let packets = Events::open(server, &packets_of(&id), None).all();
    whole(&packets);
    packets
}

/// Checks that the packets are complete, in order, and end as they should.
pub fn whole(packets: &[Value]) {
    for (n, packet) in packets.iter().enumerate() {
        assert_eq!(packet["seq"], n);
        assert_eq!(packet["kind"] == "complete", n + 1 == packets.len());
    }
    let last = packets.last().unwrap();
    assert_eq!(last["packets"], packets.len());
    assert_eq!(last["result_packets"], packets.iter().filter(|p| p["kind"] == "results").count());
    for (name, state) in last["providers"].as_object().unwrap() {
        let told: Vec<&Value> =
            packets.iter().filter(|p| p["kind"] == "provider" && p["provider"] == name.as_str()).collect();
        assert_eq!((told.len(), &told[0]["state"]), (1, state), "{name}");
    }
}

/// Returns the ids of a search's results.
pub fn ids(packets: &[Value]) -> Vec<String> {
    let features = packets.iter().filter_map(|p| p["features"].as_array()).flatten();
    let mut ids: Vec<String> = features.map(|f| f["id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

/// Returns the reported state of a provider.
pub fn of<'a>(packets: &'a [Value], provider: &str) -> &'a Value {
    packets.iter().find(|p| p["kind"] == "provider" && p["provider"] == provider).unwrap()
}

#[test]
fn every_kind_of_broken_source_is_reported_and_delays_no_other() {
    let sources = Sources::start();
    let all = [
        "good", "slow", "hang", "half", "garbage", "html", "empty", "schema", "broken", "busy", "latin", "klingon",
        "gigabyte",
    ];
    let server = Server::with(config(all.iter().map(|name| sources.provider(name, "")).collect()));
    let packets = search(&server, &json!({"keywords": "flood", "providers": all, "timeout": 3000}));
    for (name, state, detail, results) in [
        ("good", "complete", "", 1),
        ("slow", "complete", "", 1),
        ("hang", "timeout", "", 0),
        ("half", "error", "", 0),
        ("garbage", "error", "", 0),
        ("html", "error", "expected JSON, received an HTML page", 0),
        ("empty", "complete", "", 0),
        ("schema", "error", "its shape has changed", 0),
        ("broken", "error", "500", 0),
        ("busy", "refused", "429", 0),
        ("latin", "complete", "", 1),
        ("klingon", "error", "charset \"klingon\"", 0),
        ("gigabyte", "error", "longer than 4194304 bytes", 0),
    ] {
        let told = of(&packets, name);
        assert_eq!((told["state"].as_str(), told["results"].as_u64()), (Some(state), Some(results)), "{told}");
        assert!(told["detail"].as_str().unwrap().contains(detail), "{told}");
    }
    assert_eq!(packets.last().unwrap()["state"], "partial");
    assert_eq!(ids(&packets), ["1", "l", "s"]);
    let text = packets.iter().filter_map(|p| p["features"].as_array()).flatten().find(|f| f["id"] == "l").unwrap();
    assert_eq!(text["properties"]["text"], "flood at the café");
    // A source that hangs is reported last, long after all others.
    assert_eq!(packets[packets.len() - 2]["provider"], "hang");
}

#[test]
fn a_private_address_is_not_called_and_a_budget_is_kept() {
    let sources = Sources::start();
    let text = format!(
        "name = \"inside\"\n[request]\nurl = \"http://{}/good\"\n[answer]\nformat = \"json\"\nitems = \"items\"\n[answer.map]\nid = \"id\"",
        sources.address
    );
    let inside = std::sync::Arc::new(meridian_federation::SourceDeclaration::parse(&text, &|_| None).unwrap());
    let server = Server::with(config(vec![inside, sources.provider("empty", "cost = 1\nbudget = 1")]));
    let question = |n: u32| json!({"keywords": format!("flood {n}"), "providers": ["inside", "empty"]});
    let first = search(&server, &question(1));
    assert_eq!((&of(&first, "inside")["state"], &of(&first, "empty")["state"]), (&json!("error"), &json!("complete")));
    assert!(of(&first, "inside")["detail"].as_str().unwrap().contains("private address"), "{first:?}");
    let second = search(&server, &question(2));
    assert_eq!(of(&second, "empty")["state"], "refused");
    assert!(of(&second, "empty")["detail"].as_str().unwrap().contains("budget"));
    assert!(sources.calls.lock().unwrap().iter().all(|call| call.starts_with("/empty")), "{:?}", sources.calls);
}

#[test]
fn the_breaker_opens_and_closes() {
    let sources = Sources::start();
    let server = Server::with(config(vec![sources.provider("switch", "failures = 2\nopen_ms = 3000")]));
    let ask = |n: u32| {
        let packets = search(&server, &json!({"keywords": format!("flood {n}"), "providers": ["switch"]}));
        of(&packets, "switch")["state"].as_str().unwrap().to_owned()
    };
    let breaker = || {
        server.json("/providers")["providers"].as_array().unwrap().iter().find(|p| p["name"] == "switch").unwrap()["breaker"].clone()
    };
    *sources.switch.lock().unwrap() = typed("500 No", "text/plain", b"");
    assert_eq!((ask(1), ask(2), breaker()), ("error".to_owned(), "error".to_owned(), json!("open")));
    let called = sources.calls.lock().unwrap().len();
    assert_eq!(ask(3), "refused");
    assert_eq!(sources.calls.lock().unwrap().len(), called, "an open breaker blocks calls");
    *sources.switch.lock().unwrap() = answer_of(r#"{"items":[]}"#);
    let mut n = 4;
    while ask(n) != "complete" {
        n += 1;
    }
    assert_eq!(breaker(), "closed");
}

#[test]
fn a_broken_connection_loses_and_repeats_nothing() {
    let sources = Sources::start();
    let declaration = format!(
        "name = \"pages\"\n[takes]\nkeywords = \"all\"\n[request]\nurl = \"http://{}/pages\"\n[request.query]\npage = \"{{page}}\"\n[paging]\nkind = \"page\"\nsize = 40\npages_max = 5\n[answer]\nformat = \"json\"\nitems = \"items\"\n[answer.map]\nid = \"id\"\ntext = \"text\"\n[limits]\nallow_private = true",
        sources.address
    );
    let provider = std::sync::Arc::new(meridian_federation::SourceDeclaration::parse(&declaration, &|_| None).unwrap());
    let server = Server::with(config(vec![provider]));
    let id = begin(&server, &json!({"keywords": "flood", "limit": 200, "providers": ["pages"]}));
    let mut packets: Vec<Value> = Vec::new();
    // Disconnects after every third packet.
    while packets.last().is_none_or(|last| last["kind"] != "complete") {
        let last = packets.last().map(|p| p["seq"].as_u64().unwrap());
        let mut events = Events::open(&server, &packets_of(&id), last);
        packets.extend(std::iter::from_fn(|| events.next()).take(3));
    }
    whole(&packets);
    let mut got = ids(&packets);
    got.dedup();
    assert_eq!(got.len(), 200);
    // The same over a WebSocket, starting in the middle.
    let mut socket = Socket::open(&server, &format!("/searches/{id}/packets?after=2"));
    assert_eq!(std::iter::from_fn(|| socket.next()).collect::<Vec<_>>(), packets[3..]);
    let gone = server.get(&format!("/searches/{id}/packets?after=x"));
    assert_eq!((gone.status, gone.json()["field"].as_str()), (400, Some("after")));
}

#[test]
fn over_the_limit_is_refused_at_once_and_a_search_can_be_stopped() {
    let sources = Sources::start();
    let mut settings = config(vec![sources.provider("hang", "")]);
    settings.search.searches_max = 1;
    settings.search.join = std::time::Duration::from_secs(60);
    let server = Server::with(settings);
    let question = json!({"keywords": "flood", "providers": ["hang"]});
    let id = begin(&server, &question);
    let again = server.post("/searches", "application/json", question.to_string());
    assert_eq!(
        (again.status, again.json()["joined"].clone(), again.json()["search"].clone()),
        (202, json!(true), json!(id))
    );
    let other = [("authorization", "Bearer other"), ("content-type", "application/json")];
    let refused = server.ask("POST", "/searches", &other, question.to_string().as_bytes());
    assert_eq!(refused.status, 429, "{}", refused.text());
    let retry: u64 = refused.headers["retry-after"].parse().unwrap();
    assert!((1..=20).contains(&retry));
    let events = Events::open(&server, &packets_of(&id), None);
    assert_eq!(server.json(&format!("/searches/{id}"))["state"], "running");
    assert_eq!(server.ask("DELETE", &format!("/searches/{id}"), &[], b"").status, 204);
    let packets = events.all();
    whole(&packets);
    assert_eq!(packets.last().unwrap()["state"], "absent");
    assert_eq!(server.json(&format!("/searches/{id}"))["providers"]["hang"]["state"], "timeout");
    assert_eq!(server.get("/searches/nobody").status, 404);
    assert_eq!(server.ask("DELETE", "/searches/nobody", &[], b"").status, 404);
    // Its permit is released once its end is sent.
    let free = |_: &i32| server.get("/metrics").text().contains("meridian_searches_running 0");
    assert!((0..10_000).find(free).is_some());
    assert!(server.get("/metrics").text().contains("meridian_searches_refused_total 1"));
}

#[test]
fn mistakes_name_what_they_are_about() {
    let server = Server::start();
    for (body, field, part) in [
        ("flood", None, "not JSON"),
        ("{\"keywords\":\"(a\"}", Some("keywords"), "not closed"),
        ("{\"keywords\":\"a\",\"providers\":[\"bing\"]}", Some("providers"), "expected some of meridian"),
        ("{\"keywords\":\"a\",\"address\":\"Lyon\"}", Some("address"), "no collection \"postal-places\""),
        (
            "{\"polygon\":{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[9,0],[0,0]]]}}",
            Some("polygon"),
            "the polygon is not valid: the exterior ring must have at least 3 distinct points",
        ),
        (
            "{\"polygon\":{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[2,2],[2,0],[0,2],[0,0]]]}}",
            Some("polygon"),
            "the polygon is not valid: the exterior ring has a self-intersection",
        ),
        (
            "{\"polygon\":{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[9,0],[9,99],[0,0]]]}}",
            Some("polygon"),
            "latitude 99 is outside -90..90",
        ),
    ] {
        let answer = server.post("/searches", "application/json", body);
        let problem = answer.json();
        assert_eq!((answer.status, problem["field"].as_str()), (400, field), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(part), "{problem}");
    }
}

#[test]
fn own_collections_are_searched_like_any_other() {
    let server = Server::start();
    server.create("news", "title:String,text:String,seen:Date,*geom:Point:srid=4326");
    let feature = |id: u32, title: &str, lon: f64, day: u32| {
        json!({"type": "Feature", "geometry": {"type": "Point", "coordinates": [lon, 45.76]},
            "properties": {"title": format!("{title} {id}"), "text": "", "seen": format!("2026-01-{day:02}T00:00:00Z")}})
    };
    server.load(
        "news",
        &[
            feature(1, "Flood", 4.83, 1),
            feature(2, "Fire", 4.83, 1),
            feature(3, "Flood", 9.0, 1),
            feature(4, "Flood", 4.83, 20),
        ],
    );
    server.create("postal-places", "name:String,country:String,*geom:Point:srid=4326");
    let place = |name: &str, country: &str, lon: f64, lat: f64| json!({"type": "Feature", "geometry": {"type": "Point", "coordinates": [lon, lat]}, "properties": {"name": name, "country": country}});
    server.load(
        "postal-places",
        &[place("Lyon", "FR", 4.83, 45.75), place("Lyon", "FR", 4.84, 45.76), place("Lyon", "US", -90.0, 33.0)],
    );
    let titles = |question: Value| {
        let packets = search(&server, &question);
        assert_eq!(packets.last().unwrap()["state"], "complete", "{packets:?}");
        let features = packets.iter().filter_map(|p| p["features"].as_array()).flatten();
        let mut titles: Vec<String> =
            features.filter_map(|f| f["properties"]["title"].as_str()).map(str::to_owned).collect();
        titles.sort();
        titles
    };
    assert_eq!(titles(json!({"keywords": "flood"})), ["Flood 1", "Flood 3", "Flood 4"]);
    let near = json!({"keywords": "flood OR fire", "near": [4.83, 45.76], "radius": 5000, "end": "2026-01-10"});
    assert_eq!(titles(near), ["Fire 2", "Flood 1"]);
    let polygon = json!({"type": "Polygon", "coordinates": [[[4, 45], [5, 45], [5, 46], [4, 46], [4, 45]]]});
    assert_eq!(titles(json!({"keywords": "flood", "polygon": polygon})), ["Flood 1", "Flood 4"]);
    assert_eq!(titles(json!({"keywords": "flood", "address": "lyon", "start": "2026-01-10"})), ["Flood 4"]);
    assert_eq!(titles(json!({"keywords": "flood", "address": "Lyon, US"})), Vec::<String>::new());
    let unknown = server.post("/searches", "application/json", "{\"address\":\"Atlantis\"}");
    assert_eq!((unknown.status, unknown.json()["field"].as_str()), (400, Some("address")));
}

#[test]
fn the_day_of_an_event_is_shown_without_a_time_of_day() {
    let server = Server::start();
    let day = json!({ "type": "string", "format": "date", "x-ogc-role": "primary-instant" });
    let schema = json!({ "type": "object", "properties": { "title": { "type": "string" }, "day": day } });
    let headers = [("content-type", "application/schema+json")];
    assert_eq!(server.ask("PUT", "/collections/tasks", &headers, schema.to_string().as_bytes()).status, 201);
    let properties = json!({ "title": "Flood", "day": "2024-05-01" });
    server.load("tasks", &[json!({ "type": "Feature", "geometry": null, "properties": properties })]);
    let packets = search(&server, &json!({ "keywords": "flood", "providers": ["meridian"] }));
    let found = packets.iter().find_map(|packet| packet["features"].get(0)).unwrap();
    assert_eq!(found["properties"]["time"], "2024-05-01");
}

#[test]
fn a_place_that_a_text_names_is_found_and_marked() {
    let sources = Sources::start();
    *sources.switch.lock().unwrap() = answer_of(
        r#"{"items":[{"id":"named","text":"flood in Lyon"},{"id":"nowhere","text":"flood somewhere"},{"id":"own","text":"flood in Oslo","lon":4.8,"lat":45.7}]}"#,
    );
    let server = Server::with(config(vec![sources.provider("switch", "")]));
    let mut asked = 0;
    let mut ask = |place: Value| {
        asked += 1;
        let mut question = json!({"keywords": format!("flood -x{asked}"), "providers": ["switch"]});
        question.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
        search(&server, &question)
    };
    let of_id = |packets: &[Value], id: &str| {
        let mut features = packets.iter().filter_map(|p| p["features"].as_array()).flatten();
        features.find(|f| f["id"] == id).cloned().unwrap()
    };
    let without = ask(json!({}));
    assert_eq!(of_id(&without, "named")["geometry"], Value::Null, "there is no collection of places yet");
    server.create("capitals", "name:String,*geom:Point:srid=4326");
    server.load(
        "capitals",
        &[("Lyon", 4.83, 45.76), ("Oslo", 10.7, 59.9)]
            .map(|(name, lon, lat)| point("", lon, lat, json!({"name": name}))),
    );
    // No search waits long for names that are being loaded.
    let began = std::time::Instant::now();
    let named = loop {
        let named = of_id(&ask(json!({})), "named");
        if !named["geometry"].is_null() || began.elapsed().as_secs() > 60 {
            break named;
        }
    };
    assert_eq!(named["geometry"], json!({"type": "Point", "coordinates": [4.83, 45.76]}));
    assert_eq!(
        (&named["properties"]["place_from"], &named["properties"]["place_name"]),
        (&json!("text"), &json!("Lyon"))
    );
    // A search in a place finds results located by their text, and respects the location stated by a source.
    let near_lyon = ask(json!({"near": [4.8, 45.75], "radius": 20_000}));
    assert_eq!(ids(&near_lyon), ["named", "own"]);
    assert!(of_id(&near_lyon, "own")["properties"].get("place_from").is_none());
    assert_eq!(ids(&ask(json!({"near": [10.7, 59.9], "radius": 20_000}))), Vec::<String>::new());
}
