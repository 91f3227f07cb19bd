//! Queries with a known result: ids, booleans, dates, limits, and what a collection does not support.

use crate::support::{Server, point};
use serde_json::{Value, json};

fn field<'a>(page: &'a Value, name: &str) -> Vec<&'a Value> {
    page["features"].as_array().unwrap().iter().map(|f| f.pointer(name).unwrap()).collect()
}

/// Percent-escapes a filter.
fn filter(text: &str) -> String {
    let escaped: String = text.bytes().map(|b| format!("%{b:02x}")).collect();
    format!("filter={escaped}")
}

fn ids(server: &Server, collection: &str, query: &str) -> Vec<String> {
    let page = server.json(&format!("/collections/{collection}/items?limit=100&{query}"));
    let mut ids: Vec<String> = field(&page, "/id").into_iter().map(|id| id.as_str().unwrap().to_owned()).collect();
    ids.sort_unstable();
    ids
}

/// Loads points 0 to `count` on the equator. Every other one has a flag.
fn points(server: &Server, name: &str, count: usize) {
    server.create(name, "n:Integer,flag:Boolean,at:Date,*geom:Point:srid=4326");
    let features: Vec<Value> = (0..count)
        .map(|i| {
            let flag = [json!(false), json!(true), Value::Null][i % 3].clone();
            let at = format!("2026-01-{:02}T06:00:00Z", 1 + i % 28);
            point("", i as f64 / 200.0, 0.0, json!({"n": i, "flag": flag, "at": at}))
        })
        .collect();
    features.chunks(5_000).for_each(|chunk| server.load(name, chunk));
}

#[test]
fn made_ids_are_usable_in_every_filter() {
    let server = Server::start();
    points(&server, "p", 6);
    let all = ids(&server, "p", "");
    let (a, b) = (&all[1], &all[4]);
    let json = json!({"op": "=", "args": [{"property": "id"}, a]}).to_string();
    let json = filter(&json);
    for (query, expected) in [
        (filter(&format!("id = '{a}'")), vec![a]),
        (format!("{json}&filter-lang=cql2-json"), vec![a]),
        (filter(&format!("id IN ('{b}', '{a}', 'none')")), vec![a, b]),
        (filter(&format!("id = '{a}' AND n = 5")), vec![]),
        (filter(&format!("NOT id = '{a}' AND n BETWEEN 1 AND 2")), vec![&all[2]]),
        (filter(&format!("id >= '{b}'")), vec![b, &all[5]]),
        (filter(&format!("id LIKE '%{}'", &b[9..])), vec![b]),
        (format!("id={a}"), vec![a]),
        (format!("id={a}&sortby=-id&properties=id"), vec![a]),
        (filter("id IS NULL"), vec![]),
    ] {
        assert_eq!(ids(&server, "p", &query).iter().collect::<Vec<_>>(), expected, "{query}");
    }
    // By the key, without a scan of all events.
    let explained = server.json(&format!("/collections/p/items?explain=true&{}", filter(&format!("id = '{a}'"))));
    assert_eq!(explained["events_tested"], 1, "{explained}");
    let counted = server.json(&format!("/collections/p/aggregate?function=sum(n)&{}", filter(&format!("id <> '{a}'"))));
    assert_eq!(counted["groups"][0], json!({"count": 5, "sum(n)": 14}), "{counted}");
}

#[test]
fn booleans_are_ordered_in_filters_and_answers() {
    let server = Server::start();
    points(&server, "p", 6);
    let ns = |query: &str| -> Vec<i64> {
        let page = server.json(&format!("/collections/p/items?limit=100&{query}"));
        field(&page, "/properties/n").into_iter().map(|n| n.as_i64().unwrap()).collect()
    };
    assert_eq!(ns("sortby=flag,n"), [0, 3, 1, 4, 2, 5]);
    assert_eq!(ns("sortby=-flag,n"), [1, 4, 0, 3, 2, 5]);
    assert_eq!(ns(&format!("sortby=n&{}", filter("flag < TRUE"))), [0, 3]);
    assert_eq!(ns(&format!("sortby=n&{}", filter("flag BETWEEN FALSE AND TRUE"))), [0, 1, 3, 4]);
    assert_eq!(ns(&format!("sortby=n&{}", filter("NOT (flag > FALSE)"))), [0, 3]);
}

#[test]
fn a_date_is_any_instant_of_its_day() {
    let server = Server::start();
    points(&server, "p", 5);
    for (query, expected) in [
        ("at=2026-01-03".to_owned(), 1),
        ("at=2026-01-03T06:00:00Z".to_owned(), 1),
        (filter("at = DATE('2026-01-03')"), 1),
        (filter("at > DATE('2026-01-03')"), 2),
        (filter("at >= DATE('2026-01-03')"), 3),
        (filter("at IN (DATE('2026-01-03'), TIMESTAMP('2026-01-05T06:00:00Z'))"), 2),
        (filter("at BETWEEN DATE('2026-01-02') AND TIMESTAMP('2026-01-04T06:00:00Z')"), 3),
    ] {
        assert_eq!(ids(&server, "p", &query).len(), expected, "{query}");
    }
}

#[test]
fn pages_clamp_a_limit_and_streams_honour_it() {
    let server = Server::start();
    points(&server, "p", 10_020);
    for format in ["json", "html"] {
        let page = server.get(&format!("/collections/p/items?f={format}&limit=10015"));
        assert_eq!(page.status, 200);
        if format == "json" {
            assert_eq!(page.json()["numberReturned"], 10_000);
        }
        assert!(page.text().contains("token="), "{format} links the next page");
    }
    for format in ["ndjson", "geojsonseq", "csv"] {
        let answer = server.get(&format!("/collections/p/items?f={format}&limit=10015"));
        let head = usize::from(format == "csv");
        assert_eq!(answer.text().lines().count(), 10_015 + head, "{format}");
    }
    let nearest = server.get("/collections/p/items?f=ndjson&limit=10015&near=0,0");
    assert_eq!(nearest.text().lines().count(), 10_015);
    for bad in ["0", "-1", "ten"] {
        let problem = server.get(&format!("/collections/p/items?f=csv&limit={bad}")).problem(400);
        assert_eq!(problem["field"], "limit");
    }
}

#[test]
fn a_query_on_what_a_collection_does_not_have_is_refused() {
    let server = Server::start();
    server.create("nowhere", "n:Integer,at:Date");
    server.create("never", "n:Integer,*geom:Point:srid=4326");
    for (path, field) in [
        ("nowhere/items?bbox=0,0,1,1", "bbox"),
        ("nowhere/items?f=csv&near=1,2&radius=5", "near"),
        ("nowhere/items?filter=S_INTERSECTS(geometry,POINT(0%200))", "filter"),
        ("nowhere/density", "density"),
        ("nowhere/density?bbox=0,0,1,1", "density"),
        ("nowhere/tiles/WebMercatorQuad/0/0/0", "tiles"),
        ("nowhere/aggregate?bbox=0,0,1,1", "bbox"),
        ("never/items?datetime=2026-01-01", "datetime"),
        ("never/aggregate?window=P1D", "window"),
        ("never/density?datetime=2026-01-01", "datetime"),
        ("never/tiles/WebMercatorQuad/0/0/0?datetime=2026-01-01", "datetime"),
    ] {
        let problem = server.get(&format!("/collections/{path}")).problem(400);
        assert_eq!(problem["field"], field, "{path}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains("this collection has no"), "{path}: {problem}");
    }
    for path in ["nowhere/items?datetime=2026-01-01", "never/items?bbox=0,0,1,1", "never/density"] {
        assert_eq!(server.get(&format!("/collections/{path}")).status, 200, "{path}");
    }
}

/// The number is omitted only if more events would have to be tested than docs/query.md allows.
#[test]
fn the_number_matched_is_given_for_every_box_and_every_distance() {
    let server = Server::start();
    points(&server, "p", 30_000);
    let matched = |query: &str| {
        let page = server.json(&format!("/collections/p/items?limit=3&{query}"));
        page["numberMatched"].as_u64()
    };
    assert_eq!(matched("bbox=0.0025,-1,149.9925,1"), Some(29_998));
    assert_eq!(matched("bbox=0.0025,-1,149.9925,1&datetime=2026-01-02T00:00:00Z/2026-01-27T12:00:00Z"), Some(27_856));
    assert_eq!(matched("near=0,0"), Some(30_000));
    assert_eq!(matched("near=0,0&nearest=7"), Some(7));
    assert_eq!(matched(&filter("flag = TRUE")), None);
}

/// Sums of a node, of a group and of a window overflow where the total does not.
#[test]
fn a_sum_is_finite_wherever_the_total_is() {
    let server = Server::start();
    server.create("s", "n:Integer,x:Double,at:Date,*geom:Point:srid=4326");
    let features: Vec<Value> = (0..400)
        .map(|i| {
            let at = format!("2026-01-{:02}T00:00:00Z", 1 + i / 200);
            let x = if i % 200 < 100 { 1.7e308 } else { -1.7e308 };
            point("", f64::from(i) / 4.0, 0.0, json!({"n": i, "x": x, "at": at}))
        })
        .collect();
    server.load("s", &features);
    // Within 1e-12 of the sum of magnitudes, scaled by 2^-64 to fit in a float.
    let most = 1e-12 * 400.0 * 1.7e308 / 2f64.powi(64);
    for query in ["", "&window=P1D", "&bbox=-1,-1,150,1", "&datetime=2026-01-01/2026-01-03", "&by=n", "&filter=n%3E=0"]
    {
        let answer = server.json(&format!("/collections/s/aggregate?function=sum(x),avg(x){query}"));
        let groups = answer["groups"].as_array().unwrap();
        let total: f64 = groups.iter().map(|g| g["sum(x)"].as_f64().unwrap_or(f64::NAN) / 2f64.powi(64)).sum();
        assert!(total.abs() <= most, "{query}: {answer}");
    }
    // A total beyond the range of floats is null; the average is not.
    let answer = server.json("/collections/s/aggregate?function=sum(x),avg(x),sum(n)&filter=n%3C100");
    assert_eq!(answer["groups"][0], json!({"count": 100, "sum(x)": null, "avg(x)": 1.7e308, "sum(n)": 4950}));
    let table = server.get("/collections/s/aggregate?function=sum(x),avg(x),sum(n)&filter=n%3C100&f=csv").text();
    assert_eq!(table, "count,sum(x),avg(x),sum(n)\r\n100,,1.7e+308,4950\r\n");
}

#[test]
fn integer_sums_are_written_with_all_their_digits() {
    let server = Server::start();
    server.create("i", "n:Long");
    let feature = |n: i64| json!({"type": "Feature", "geometry": null, "properties": {"n": n}});
    server.load("i", &[feature(i64::MAX), feature(i64::MAX), feature(7)]);
    let answer = server.get("/collections/i/aggregate?function=sum(n)");
    assert!(answer.text().contains("\"sum(n)\":18446744073709551621"), "{}", answer.text());
}

#[test]
fn the_usual_no_end_is_a_time_and_comes_back_as_it_was() {
    let server = Server::start();
    let schema = json!({"type": "object", "properties": {
        "from": {"type": "string", "format": "date-time", "x-ogc-role": "primary-interval-start"},
        "to": {"type": "string", "format": "date-time", "x-ogc-role": "primary-interval-end"},
        "geometry": {"format": "geometry-point", "x-ogc-role": "primary-geometry"}}});
    let made = server.ask(
        "PUT",
        "/collections/lease",
        &[("content-type", "application/schema+json")],
        schema.to_string().as_bytes(),
    );
    assert_eq!(made.status, 201, "{}", made.text());
    let event = |from: Value, to: Value| point("", 1.0, 1.0, json!({"from": from, "to": to}));
    let end = "9999-12-31T23:59:59Z";
    server.load(
        "lease",
        &[
            event(json!("2020-01-01T00:00:00Z"), json!(end)),
            event(json!(end), json!("9999-12-31T23:59:59.999999Z")),
            event(json!("0000-01-01T00:00:00Z"), json!("1969-12-31T23:59:59.9999999Z")),
            event(Value::Null, Value::Null),
        ],
    );
    let times = |query: &str| {
        let page = server.json(&format!("/collections/lease/items?limit=100&{query}"));
        let mut times: Vec<String> = field(&page, "/properties").iter().map(|p| p.to_string()).collect();
        times.sort_unstable();
        times
    };
    let lease = format!("{{\"from\":\"2020-01-01T00:00:00Z\",\"to\":\"{end}\"}}");
    assert!(times("").contains(&lease), "{:?}", times(""));
    assert_eq!(times("datetime=2500-01-01"), std::slice::from_ref(&lease));
    assert_eq!(times("datetime=9999-12-31").len(), 2);
    assert_eq!(times(&filter("to = TIMESTAMP('9999-12-31T23:59:59Z')")), [lease]);
    let ancient = "{\"from\":\"0000-01-01T00:00:00Z\",\"to\":\"1969-12-31T23:59:59.999999Z\"}";
    assert_eq!(times("datetime=../1969-12-31"), [ancient]);
    assert_eq!(times("datetime=1970-01-01").len(), 0);
    // An event with neither end has no time, but is still present.
    assert_eq!(times("").len(), 4);
    for duration in ["PT1H", "P1D", "P1Y", "P1D&zone=America/New_York"] {
        let answer = server.json(&format!("/collections/lease/aggregate?window={duration}&datetime=9999-12-31/.."));
        assert_eq!(answer["groups"].as_array().unwrap().iter().map(|g| g["count"].as_u64().unwrap()).sum::<u64>(), 2);
    }
    let zone = server.get("/collections/lease/aggregate?window=P1D&zone=%2B25:00").problem(400);
    assert_eq!(zone["field"], "zone");
    let late = server.get("/collections/lease/items?datetime=2020-01-01T00:00:00%2B25:00").problem(400);
    assert_eq!(late["field"], "datetime");
}

#[test]
fn an_event_without_a_time_changes_no_time_of_others() {
    let server = Server::start();
    let schema = json!({"type": "object", "properties": {
        "o": {"type": "string", "x-meridian-object": true},
        "from": {"type": "string", "format": "date-time", "x-ogc-role": "primary-interval-start"},
        "to": {"type": "string", "format": "date-time", "x-ogc-role": "primary-interval-end"},
        "geometry": {"format": "geometry-point", "x-ogc-role": "primary-geometry"}}});
    let headers = [("content-type", "application/schema+json")];
    assert_eq!(server.ask("PUT", "/collections/tr", &headers, schema.to_string().as_bytes()).status, 201);
    let (start, end) = ("2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z");
    let event = |o: &str, from: Value, to: Value| point("", 1.0, 1.0, json!({"o": o, "from": from, "to": to}));
    let interval = || server.json("/collections/tr")["extent"]["temporal"]["interval"].clone();
    server.load("tr", &[event("y", Value::Null, Value::Null)]);
    assert_eq!(interval(), json!([[null, null]]));
    server.load("tr", &[event("x", json!(start), json!(end)), event("x", Value::Null, Value::Null)]);
    assert_eq!(interval(), json!([[start, end]]));
    let x = json!({"object": "x", "count": 2, "first": start, "last": end});
    let y = json!({"object": "y", "count": 1, "first": null, "last": null});
    assert_eq!(server.json("/collections/tr/tracks")["tracks"], json!([x, y]));
    // A track has no place for it in the order of time.
    let track = server.json("/collections/tr/items?track=x");
    assert_eq!((&track["geometry"]["type"], &track["properties"]["times"]), (&json!("Point"), &json!([start])));
    // It is still found by whatever does not ask for a time.
    assert_eq!(server.json("/collections/tr/items")["numberReturned"], 3);
    server.load("tr", &[event("x", json!(end), Value::Null)]);
    assert_eq!(interval(), json!([[start, null]]), "an open end stays open");
    assert_eq!(server.json("/collections/tr/tracks")["tracks"][0]["last"], Value::Null);
}

/// In searches and saved searches alike: lists of strings, letters composed of one or two characters, and the final
/// sigma.
#[test]
fn keywords_find_lists_of_strings_and_every_form_of_a_letter() {
    let server = Server::start();
    server.create("news", "title:String,tags:List[String],*geom:Point:srid=4326;meridian.id='given'");
    let asked = [
        ("harbour", vec!["a"]),
        ("\"new york\"", vec![]),
        ("cafe\u{301}", vec!["b", "c"]),
        ("σεισμος", vec!["d"]),
        ("STRASSE", vec!["e"]),
    ];
    let save = |words: &str| {
        let answer = server.post("/saved-searches", "application/json", json!({"keywords": words}).to_string());
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()["id"].as_str().unwrap().to_owned()
    };
    let saved: Vec<String> = asked.iter().map(|(words, _)| save(words)).collect();
    server.load(
        "news",
        &[
            point("a", 0.0, 0.0, json!({"title": "one", "tags": ["new", "york harbour"]})),
            point("b", 0.0, 0.0, json!({"title": "Café"})),
            point("c", 0.0, 0.0, json!({"tags": ["the", "CAFE\u{301}"]})),
            point("d", 0.0, 0.0, json!({"title": "ΣΕΙΣΜΟΣ στην Αθήνα"})),
            point("e", 0.0, 0.0, json!({"title": "Straße"})),
        ],
    );
    for ((words, expected), saved) in asked.iter().zip(saved) {
        let expected: Vec<String> = expected.iter().map(|id| format!("news/{id}")).collect();
        assert_eq!(crate::searches::ids(&crate::searches::search(&server, &json!({"keywords": words}))), expected);
        if expected.is_empty() {
            continue;
        }
        let mut events = crate::events::Events::open(&server, &format!("/saved-searches/{saved}/packets"), None);
        let mut told = Vec::new();
        while told.len() < expected.len() {
            told.extend(crate::searches::ids(&[events.next().unwrap()]));
        }
        assert_eq!(told, expected, "{words}");
    }
}
