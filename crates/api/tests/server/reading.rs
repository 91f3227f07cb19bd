//! Reading events: conditions, orders, consistency, coordinates, numbers, tracks.

use crate::owner::is_gateway;
use crate::quakes::{next, ns, quakes, sorted};
use crate::support::{Server, partitions, point};
use meridian_api::ServerConfig;
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn conditions_choose_events() {
    let server = quakes();
    let filter_json = "%7B%22op%22:%22%3E=%22,%22args%22:[%7B%22property%22:%22n%22%7D,18]%7D";
    // The box 2..5 in Mercator metres, and a polygon in EPSG:4326, whose axes are latitude and longitude.
    let mercator = "222638.98,222684.20,556597.46,557305.26";
    for (query, expected) in [
        ("bbox=2,2,5,5", vec![2, 3, 4, 5]),
        ("bbox=2,2,-9,5,5,99", vec![2, 3, 4, 5]),
        ("bbox=19,-90,1,90", vec![0, 1, 19]),
        ("bbox=1,2,5,6&bbox-crs=http://www.opengis.net/def/crs/EPSG/0/4326", vec![2, 3, 4, 5]),
        (
            &format!("bbox={mercator}&bbox-crs=http%3A%2F%2Fwww.opengis.net%2Fdef%2Fcrs%2FEPSG%2F0%2F3857"),
            vec![2, 3, 4, 5],
        ),
        ("datetime=2026-01-31T03:00:00Z", vec![3]),
        ("datetime=2026-01-31T18:00:00Z/..", vec![18, 19]),
        ("datetime=../2026-01-31T01:00:00Z", vec![0, 1]),
        ("filter=mag%3E8.5%20AND%20note='even'", vec![18]),
        (&format!("filter={filter_json}&filter-lang=cql2-json"), vec![18, 19]),
        ("filter=S_INTERSECTS(geom,POLYGON((0%200,0%202.5,2.5%202.5,2.5%200,0%200)))", vec![0, 1, 2]),
        ("filter=S_INTERSECTS(geom,BBOX(0,1,5,2))&filter-crs=http://www.opengis.net/def/crs/EPSG/0/4326", vec![1, 2]),
        ("near=3,3&radius=160000", vec![2, 3, 4]),
        ("note=odd&datetime=2026-01-31T17:30:00Z/..", vec![19]),
        ("n=7", vec![7]),
        ("mag=2.5", vec![5]),
        ("dtg=2026-01-31T04:00:00Z", vec![4]),
        ("n=7&note=even", vec![]),
    ] {
        let page = server.json(&format!("/collections/q/items?limit=100&{query}"));
        assert_eq!(sorted(ns(&page)), expected, "{query}");
        assert_eq!(
            (&page["numberMatched"], &page["numberReturned"]),
            (&json!(expected.len()), &json!(expected.len())),
            "{query}"
        );
    }
}

#[test]
fn near_orders_by_distance_and_returns_it() {
    let server = quakes();
    let page = server.json("/collections/q/items?near=7.1,7.1&limit=3");
    assert_eq!(ns(&page), [7, 8, 6]);
    let metres = page["features"][0]["distance"].as_f64().unwrap();
    assert!((15_600.0..15_800.0).contains(&metres), "{metres}");
    let second = server.json(&next(&page).unwrap());
    assert_eq!(ns(&second), [9, 5, 10]);
    let k = server.json("/collections/q/items?near=7.1,7.1&nearest=4&limit=3");
    assert_eq!((ns(&k), ns(&server.json(&next(&k).unwrap()))), (vec![7, 8, 6], vec![9]));
    assert_eq!(next(&server.json(&next(&k).unwrap())), None);
}

/// The nearest are as many as asked, whatever a page holds.
#[test]
fn the_nearest_take_more_than_the_longest_page() {
    let server = quakes();
    let many: Vec<Value> = (0..10_050)
        .map(|i| point("", f64::from(i) / 1000.0, -50.0, json!({"n": i, "dtg": "2026-01-31T00:00:00Z"})))
        .collect();
    server.load("q", &many);
    let first = server.json("/collections/q/items?near=0,-50&nearest=10040&limit=10000");
    assert_eq!((first["numberMatched"].as_u64(), first["numberReturned"].as_u64()), (Some(10_040), Some(10_000)));
    let last = server.json(&next(&first).unwrap());
    assert_eq!((ns(&last), next(&last)), ((10_000..10_040).collect(), None));
}

#[test]
fn events_are_sorted_and_their_properties_chosen() {
    let server = quakes();
    let page = server.json("/collections/q/items?sortby=note,-n&limit=12&properties=n,note");
    assert_eq!(ns(&page), [18, 16, 14, 12, 10, 8, 6, 4, 2, 0, 19, 17]);
    assert_eq!(page["features"][0]["properties"], json!({"n": 18, "note": "even"}));
    assert_eq!(ns(&server.json(&next(&page).unwrap())), [15, 13, 11, 9, 7, 5, 3, 1]);
    let none = server.json("/collections/q/items?properties=geom&limit=1");
    assert_eq!(none["features"][0]["properties"], json!({}));
}

#[test]
fn limits_have_a_default_and_a_cap() {
    let server = quakes();
    let page = server.json("/collections/q/items");
    assert_eq!((page["numberReturned"].as_u64(), page["numberMatched"].as_u64()), (Some(10), Some(20)));
    assert!(page["timeStamp"].as_str().unwrap().ends_with('Z'));
    let capped = server.json("/collections/q/items?limit=99999999999999999999");
    assert_eq!(capped["numberReturned"], 20);
    assert_eq!(next(&capped), None);
    // A page that ends with the last event has no next page.
    let exact = server.json("/collections/q/items?limit=20");
    assert_eq!((exact["numberReturned"].as_u64(), next(&exact)), (Some(20), None));
}

#[test]
fn responses_name_the_snapshot_they_were_read_from() {
    let server = quakes();
    let answer = server.get("/collections/q/items?limit=1");
    assert_eq!(answer.header("content-type"), "application/geo+json");
    assert_eq!(answer.header("content-crs"), "<http://www.opengis.net/def/crs/OGC/1.3/CRS84>");
    assert_eq!((answer.header("meridian-consistency"), answer.header("age")), ("immediate", "0"));
    assert_eq!(answer.header("meridian-snapshot").len(), 14 * usize::from(partitions()) - 1);
    assert!(answer.header("server-timing").starts_with("admission;dur="));
    let before = answer.header("meridian-snapshot").to_owned();
    server.load("q", &[point("", 0.5, 0.5, json!({"mag": 1, "n": 99, "note": "x", "dtg": "2026-01-31T00:00:00Z"}))]);
    let after = server.get("/collections/q/items?limit=1&consistency=eventual");
    assert_ne!(after.header("meridian-snapshot"), before);
    // No partition goes back.
    assert!(after.header("meridian-snapshot").split('-').zip(before.split('-')).all(|(after, before)| after >= before));
}

#[test]
fn a_read_shows_at_least_the_write_that_it_names() {
    let server = quakes();
    let written = server.post("/collections/q/items", "application/geo+json", {
        point("", 0.5, 0.5, json!({"mag": 1, "n": 99, "note": "x", "dtg": "2026-01-31T00:00:00Z"})).to_string()
    });
    let position = written.header("meridian-position").to_owned();
    let ids = server.json("/collections/q/items?limit=1");
    let id = ids["features"][0]["id"].as_str().unwrap();
    for path in [
        "items?limit=1",
        &format!("items/{id}"),
        "aggregate?function=count",
        "density?width=2&height=2",
        "tiles/WebMercatorQuad/0/0/0",
    ] {
        let path = format!("/collections/q/{path}");
        let asked = server.ask("GET", &path, &[("meridian-after", &position)], b"");
        assert_eq!(
            (asked.status, asked.header("meridian-consistency"), asked.header("age")),
            (200, "immediate", "0"),
            "{path}"
        );
        // A position that does not exist yet is waited for in a cluster, but not forever, and not less by a client that
        // has the state before it.
        let later = vec!["1000000"; usize::from(partitions())].join("-");
        let known = asked.header("etag");
        let headers = [("meridian-after", later.as_str()), ("meridian-timeout", "100"), ("if-none-match", known)];
        let refused = server.ask("GET", &path, &headers, b"");
        assert_eq!(refused.problem(503)["type"], "urn:meridian:problem:behind", "{path}");
        assert!(["1", "2", "3"].contains(&refused.header("retry-after")), "{:?}", refused.headers);
    }
    let wrong = server.ask("GET", "/collections/q/items", &[("meridian-after", "newest")], b"");
    assert_eq!(wrong.problem(400)["field"], "Meridian-After");
    // Waiting for a position with another number of partitions would never end.
    let other = vec!["0"; usize::from(partitions()) + 1].join("-");
    let wrong = server.ask("GET", "/collections/q/items", &[("meridian-after", &other)], b"");
    assert_eq!(wrong.problem(400)["field"], "Meridian-After");
    if partitions() > 1 || !is_gateway() {
        // The position of the next write depends on its partition. A server that has every write waits for none.
        return;
    }
    // A write that arrives meanwhile is shown.
    let next = (position.parse::<u64>().unwrap() + 1).to_string();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let after = [("meridian-after", next.as_str()), ("meridian-timeout", "20000")];
            server.ask("GET", "/collections/q/aggregate?function=count&filter=n%3D77", &after, b"")
        });
        std::thread::sleep(Duration::from_millis(50));
        server
            .load("q", &[point("", 0.5, 0.5, json!({"mag": 1, "n": 77, "note": "x", "dtg": "2026-01-31T00:00:00Z"}))]);
        assert_eq!(waiting.join().unwrap().json()["groups"][0]["count"], 1);
    });
}

#[test]
fn a_server_that_has_every_write_waits_for_none() {
    if is_gateway() {
        return;
    }
    // Longer than a client of these tests waits.
    let server = Server::with(ServerConfig { timeout_default: Duration::from_secs(600), ..ServerConfig::default() });
    server.create_of("q", "name:String,*geom:Point", 1);
    let refused = server.ask("GET", "/collections/q/items", &[("meridian-after", "99999999999")], b"");
    assert_eq!(refused.problem(503)["type"], "urn:meridian:problem:behind");
    let event = point("", 1.0, 1.0, json!({"name": "a"})).to_string();
    let written = server.post("/collections/q/items", "application/geo+json", event);
    let position = written.header("meridian-position").to_owned();
    let shown = server.ask("GET", "/collections/q/items", &[("meridian-after", &position)], b"");
    assert_eq!(shown.json()["numberReturned"], 1);
}

#[test]
fn other_systems_of_coordinates_are_served() {
    let server = quakes();
    for (crs, expected) in [
        ("http://www.opengis.net/def/crs/OGC/1.3/CRS84", [2.0, 3.0]),
        ("http://www.opengis.net/def/crs/EPSG/0/4326", [3.0, 2.0]),
        ("http://www.opengis.net/def/crs/EPSG/0/3857", [222_638.981_586, 334_111.171_402]),
    ] {
        server.ask("DELETE", "/collections/q/items?filter=TRUE", &[], b"");
        server.load("q", &[point("", 2.0, 3.0, json!({"mag": 1, "n": 1, "note": "x", "dtg": "2026-01-31T00:00:00Z"}))]);
        let answer = server.get(&format!("/collections/q/items?crs={crs}"));
        assert_eq!(answer.header("content-crs"), format!("<{crs}>"));
        let feature = answer.json()["features"][0].clone();
        for (a, b) in feature["geometry"]["coordinates"].as_array().unwrap().iter().zip(expected) {
            assert!((a.as_f64().unwrap() - b).abs() < 1e-5, "{feature}");
        }
        let one = server.json(&format!("/collections/q/items/{}?crs={crs}", feature["id"].as_str().unwrap()));
        assert_eq!(one["geometry"], feature["geometry"]);
    }
    for system in ["4326", "3857"] {
        let path = format!("/collections/q/items?crs=http://www.opengis.net/def/crs/EPSG/0/{system}");
        for format in ["csv", "arrow", "parquet", "flatgeobuf", "gpkg"] {
            assert_eq!(server.get(&format!("{path}&f={format}")).problem(400)["field"], "crs", "{format}");
        }
        assert_eq!(server.ask("GET", &path, &[("accept", "text/csv")], b"").problem(400)["field"], "crs");
        // The links of a page to other formats can be followed.
        let links = server.json(&path)["links"].clone();
        let csv = links.as_array().unwrap().iter().find(|link| link["type"] == "text/csv").unwrap();
        let csv = server.get(csv["href"].as_str().unwrap().strip_prefix("http://localhost").unwrap());
        let table = csv.text();
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
        let column = |name: &str| rows[1][rows[0].iter().position(|column| *column == name).unwrap()];
        assert_eq!((column("lon"), column("lat")), ("2", "3"), "{table}");
    }
}

#[test]
fn explain_reports_what_was_pruned() {
    let server = quakes();
    let told = server.json("/collections/q/items?bbox=2,2,5,5&explain=true");
    for member in ["nodes_visited", "blocks_read", "events_tested", "events_matched"] {
        assert!(told[member].as_u64().is_some_and(|n| n > 0), "{member}: {told}");
    }
    assert_eq!(told["events_matched"], 4);
    assert!(told["plan_ms"].as_f64().is_some() && told["scan_ms"].as_f64().is_some());
    assert!(told["plan"].as_array().unwrap().iter().all(Value::is_string));
    // The sum over everything is in the roots of the trees, so no event is tested.
    let told = server.json("/collections/q/aggregate?function=count,sum(mag)&explain=true");
    assert_eq!((&told["events_tested"], &told["blocks_read"]), (&json!(0), &json!(0)), "{told}");
}

#[test]
fn aggregates_group_by_window_and_field() {
    let server = quakes();
    let all = server.json("/collections/q/aggregate?function=count,sum(n),avg(mag),min(n),max(n)");
    assert_eq!(all, json!({"groups": [{"count": 20, "sum(n)": 190, "avg(mag)": 4.75, "min(n)": 0, "max(n)": 19}]}));
    let by = server.json("/collections/q/aggregate?function=count,sum(n)&by=note&bbox=0,0,9,9");
    assert_eq!(
        by["groups"],
        json!([{"by": "even", "count": 5, "sum(n)": 20}, {"by": "odd", "count": 5, "sum(n)": 25}])
    );
    let windows = server.json("/collections/q/aggregate?window=PT12H");
    assert_eq!(
        windows["groups"],
        json!([
            {"window": "2026-01-31T00:00:00Z/2026-01-31T12:00:00Z", "count": 12},
            {"window": "2026-01-31T12:00:00Z/2026-02-01T00:00:00Z", "count": 8}
        ])
    );
    let zoned = server.json("/collections/q/aggregate?window=P1D&zone=Asia/Tokyo");
    assert_eq!(zoned["groups"][0], json!({"window": "2026-01-30T15:00:00Z/2026-01-31T15:00:00Z", "count": 15}));
    for (bad, field) in [
        ("function=mode(n)", "function"),
        ("function=sum(note)", "function"),
        ("window=1h", "window"),
        ("window=P1D&zone=Nowhere", "zone"),
        ("by=none", "by"),
        ("zone=UTC", "zone"),
        ("f=ndjson", "f"),
    ] {
        assert_eq!(server.get(&format!("/collections/q/aggregate?{bad}")).problem(400)["field"], field, "{bad}");
    }
}

#[test]
fn densities_are_counts_row_by_row_from_the_north_west() {
    let server = quakes();
    let density = server.json("/collections/q/density?bbox=0,0,20,20&width=2&height=2");
    assert_eq!(density["counts"], json!([0, 9, 10, 1]));
    assert_eq!((&density["width"], &density["height"]), (&json!(2), &json!(2)));
    assert_eq!(server.json("/collections/q/density?width=1&height=1&n=3")["counts"], json!([1]));
    for bad in ["width=0", "width=x", "height=99999", "bbox=1,2,3"] {
        server.get(&format!("/collections/q/density?{bad}")).problem(400);
    }
}

#[test]
fn a_track_is_one_line_in_order_of_time() {
    let server = Server::start();
    let schema = json!({
        "type": "object",
        "properties": {
            "geometry": {"format": "geometry-point", "x-ogc-role": "primary-geometry"},
            "ship": {"type": "string", "x-meridian-object": true},
            "at": {"type": "string", "format": "date-time", "x-ogc-role": "primary-instant"}
        },
        "required": ["at"]
    });
    let made = server.ask(
        "PUT",
        "/collections/ships",
        &[("content-type", "application/schema+json")],
        schema.to_string().as_bytes(),
    );
    assert_eq!(made.status, 201, "{}", made.text());
    let position = |ship: &str, lon: f64, hour: u32| {
        point("", lon, 1.0, json!({"ship": ship, "at": format!("2026-01-31T{hour:02}:00:00Z")}))
    };
    server.load("ships", &[position("a", 3.0, 3), position("b", 9.0, 1), position("a", 1.0, 1), position("a", 2.0, 2)]);
    let track = server.json("/collections/ships/items?track=a");
    assert_eq!(track["geometry"], json!({"type": "LineString", "coordinates": [[1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]}));
    assert_eq!(
        (&track["properties"]["events"], &track["properties"]["start"]),
        (&json!(3), &json!("2026-01-31T01:00:00Z"))
    );
    let simple = server.json("/collections/ships/items?track=a&simplify=100000");
    assert_eq!(simple["geometry"]["coordinates"].as_array().unwrap().len(), 2);
    assert_eq!(server.json("/collections/ships/items?track=none")["geometry"], Value::Null);
    // Cut at the antimeridian, half way: its points have an instant of their own.
    server.load("ships", &[position("c", 179.0, 1), position("c", -179.0, 2)]);
    let cut = server.json("/collections/ships/items?track=c");
    assert_eq!(cut["geometry"]["coordinates"], json!([[[179.0, 1.0], [180.0, 1.0]], [[-180.0, 1.0], [-179.0, 1.0]]]));
    let times = ["01:00", "01:30", "01:30", "02:00"].map(|at| format!("2026-01-31T{at}:00Z"));
    assert_eq!((&cut["properties"]["times"], &cut["properties"]["events"]), (&json!(times), &json!(2)));
    // An event on the antimeridian needs no other point there.
    server.load("ships", &[position("d", 180.0, 1), position("d", -179.0, 2)]);
    for query in ["track=d", "track=d&simplify=100000"] {
        let on_it = server.json(&format!("/collections/ships/items?{query}"));
        let line = json!({"type": "LineString", "coordinates": [[-180.0, 1.0], [-179.0, 1.0]]});
        assert_eq!((&on_it["geometry"], on_it["properties"]["times"].as_array().unwrap().len()), (&line, 2), "{query}");
    }
    server.get("/collections/ships/items?simplify=5").problem(400);
    server.get("/collections/ships/items?track=a&f=csv").problem(400);
    for of_pages in ["limit=1", "nearest=1&near=1,1", "sortby=at", "properties=ship", "token=x", "explain=true"] {
        let refusal = server.get(&format!("/collections/ships/items?track=a&{of_pages}")).problem(400);
        assert_eq!(refusal["field"], of_pages.split('=').next().unwrap(), "{refusal}");
    }
    let near = server.json("/collections/ships/items?track=a&near=1,1&radius=150000&explain=false");
    assert_eq!(near["properties"]["events"], 2);
    quakes().get("/collections/q/items?track=a").problem(400);

    let passed = server.json("/collections/ships/tracks?bbox=0,0,2.5,2&limit=1");
    let a = json!({"object": "a", "count": 2, "first": "2026-01-31T01:00:00Z", "last": "2026-01-31T02:00:00Z"});
    assert_eq!((&passed["tracks"], &passed["numberReturned"]), (&json!([a]), &json!(1)));
    assert!(passed["links"].as_array().unwrap().iter().all(|link| link["rel"] != "next"));
    let first = server.json("/collections/ships/tracks?limit=1");
    let next = first["links"].as_array().unwrap().iter().find(|link| link["rel"] == "next").unwrap();
    let next = next["href"].as_str().unwrap();
    let answer = server.get(&next[next.find("/collections").unwrap()..]);
    let links = first["links"].as_array().unwrap();
    assert!(links.iter().all(|link| link["type"] == answer.header("content-type")), "{links:?}");
    let second = answer.json();
    assert_eq!((&second["tracks"][0]["object"], &second["tracks"][0]["count"]), (&json!("b"), &json!(1)));
    server.get("/collections/ships/tracks?f=csv").problem(400);
    server.get("/collections/ships/tracks?bbox=0,0,x,2").problem(400);
    quakes().get("/collections/q/tracks").problem(400);
}
