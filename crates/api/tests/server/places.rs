//! The places profile, as used by its clients.

use crate::support::Server;
use serde_json::{Value, json};

const BASE: &str = "/api/v0/places";

fn add(server: &Server, place: Value) -> String {
    let answer = server.post(BASE, "application/json", place.to_string());
    assert_eq!(answer.status, 303, "{}", answer.text());
    let location = answer.header("location").to_owned();
    assert_eq!(server.get(&location).status, 200);
    location
}

fn landmarks(server: &Server) {
    add(server, json!({"name": "Exploratorium", "latitude": 37.7964082, "longitude": -122.4016394}));
    add(server, json!({"name": "Sutro Baths", "latitude": 37.7788151, "longitude": -122.512226}));
}

fn names(answer: &Value) -> Vec<&str> {
    answer["places"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect()
}

#[test]
fn distances_match_the_reference() {
    let server = Server::start();
    landmarks(&server);
    let near = server.json(&format!("{BASE}/near/37.7964082/-122.4016394/10"));
    assert_eq!((&near["totalPlaces"], names(&near)), (&json!(2), vec!["Exploratorium", "Sutro Baths"]));
    assert_eq!((&near["places"][0]["distance"], &near["places"][1]["distance"]), (&json!(0.0), &json!(9.91)));
    // From Twin Peaks, only the Exploratorium lies within 5 km, and nothing within 1 km.
    let five = server.json(&format!("{BASE}/near/37.7696723/-122.4457446/5"));
    assert_eq!((&five["totalPlaces"], names(&five)), (&json!(1), vec!["Exploratorium"]));
    let one = server.json(&format!("{BASE}/near/37.7696723/-122.4457446/1"));
    assert_eq!(one, json!({"totalPlaces": 0, "places": []}));
}

#[test]
fn the_radius_has_a_default_and_a_maximum() {
    let server = Server::start();
    landmarks(&server);
    let count = |path: &str| server.json(&format!("{BASE}/near/{path}"))["totalPlaces"].as_u64().unwrap();
    // 0.4 km north of the Exploratorium; then 0.6 km.
    assert_eq!((count("37.8/-122.4016394"), count("37.8018/-122.4016394")), (1, 0));
    assert_eq!(count("37.8/-122.4016394/0"), 1);
    // 55 km south: the radius exceeds the max, so nothing is found within 50 km.
    assert_eq!((count("37.3/-122.4016394/500"), count("37.3/-122.4016394/50")), (0, 0));
    assert_eq!((count("37.39/-122.4016394/500"), count("37.39/-122.4016394/44.8")), (2, 1));
    for bad in ["x/0", "0/x", "91/0", "0/181", "0/0/x", "0/0/-1", "0/0/NaN", "NaN/0"] {
        server.get(&format!("{BASE}/near/{bad}")).problem(400);
    }
}

#[test]
fn pages_hold_25_and_follow_each_other() {
    let server = Server::start();
    for i in 0..60 {
        add(&server, json!({"name": format!("p{i:02}"), "latitude": 10.0 + f64::from(i) * 0.0001, "longitude": 20.0}));
    }
    let mut seen = Vec::new();
    for p in 0..4 {
        let page = server.json(&format!("{BASE}/near/10/20/2?p={p}"));
        assert_eq!(page["totalPlaces"], 60);
        assert_eq!(page["places"].as_array().unwrap().len(), [25, 25, 10, 0][p]);
        seen.extend(names(&page).into_iter().map(str::to_owned));
    }
    let expected: Vec<String> = (0..60).map(|i| format!("p{i:02}")).collect();
    assert_eq!(seen, expected);
    for (p, first) in [("-1", "p25"), ("x", "p00"), ("", "p00")] {
        assert_eq!(names(&server.json(&format!("{BASE}/near/10/20/2?p={p}")))[0], first, "{p}");
    }

    let mut all: Vec<String> = Vec::new();
    for p in 0..3 {
        let page = server.json(&format!("{BASE}?p={p}"));
        assert_eq!(page["totalPlaces"], 60);
        all.extend(names(&page).into_iter().map(str::to_owned));
    }
    all.sort();
    assert_eq!(all, expected);
}

#[test]
fn a_place_is_checked_kept_and_deleted() {
    let server = Server::start();
    assert_eq!(server.json(BASE), json!({"totalPlaces": 0, "places": []}));
    server.get(&format!("{BASE}/random")).problem(400);
    let problem = server.post(BASE, "application/json", r#"{"name":" ","latitude":95}"#).problem(400);
    let fields: Vec<&str> =
        problem["fieldErrors"].as_array().unwrap().iter().map(|e| e["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["name", "latitude", "longitude"]);
    server.post(BASE, "application/json", "{").problem(400);

    let location = add(
        &server,
        json!({"name": "A \"b\" é", "address": "1 Main", "zipCode": "94", "telephoneNumber": null, "latitude": 1.5, "longitude": -2.25, "categories": ["x"]}),
    );
    let id = location.rsplit('/').next().unwrap();
    let place = server.json(&location);
    assert_eq!(
        place,
        json!({"id": id, "name": "A \"b\" é", "address": "1 Main", "zipCode": "94", "latitude": 1.5, "longitude": -2.25})
    );
    assert_eq!(server.json(&format!("{BASE}/random")), place);
    assert_eq!(server.json("/collections/places/items")["numberMatched"], 1);

    let gone = server.ask("DELETE", &location, &[], b"");
    assert_eq!((gone.status, gone.header("location")), (303, BASE));
    server.get(&location).problem(404);
    assert_eq!(server.json(&format!("{BASE}/near/1.5/-2.25"))["totalPlaces"], 0);
    landmarks(&server);
    assert_eq!(server.ask("DELETE", &format!("{BASE}/deleteAllPlaces"), &[], b"").status, 303);
    assert_eq!(server.json(BASE)["totalPlaces"], 0);
    landmarks(&server);
    assert_eq!(server.json(BASE)["totalPlaces"], 2);
}

#[test]
fn near_agrees_with_a_scan_of_all_places_everywhere_on_the_globe() {
    let server = Server::start();
    add(&server, json!({"name": "seed", "latitude": 0, "longitude": 0}));
    // A lattice around the date line, the poles and a dense town, written in several batches.
    let mut places: Vec<(f64, f64)> = vec![(0.0, 0.0)];
    let mut state = 12_345_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1u64 << 31) as f64
    };
    for batch in 0..6 {
        let mut lines = String::new();
        for i in 0..1500 {
            let (lon, lat) = match batch {
                0 => (180.0 - random() * 0.6, random() * 2.0),
                1 => (-180.0 + random() * 0.6, random() * 2.0),
                2 => (random() * 360.0 - 180.0, 90.0 - random() * 0.6),
                3 => (random() * 360.0 - 180.0, -90.0 + random() * 0.6),
                _ => (10.0 + random() * 0.5, 50.0 + random() * 0.5),
            };
            let (lon, lat) = ((lon * 1e6).round() / 1e6, (lat * 1e6).round() / 1e6);
            places.push((lon, lat));
            lines.push_str(&json!({"type": "Feature", "id": format!("{batch}-{i}"), "geometry": {"type": "Point", "coordinates": [lon, lat]}, "properties": {"name": "n"}}).to_string());
            lines.push('\n');
        }
        assert_eq!(server.post("/collections/places/items", "application/x-ndjson", lines).status, 201);
    }
    for (lon, lat) in
        [(179.9, 1.0), (-179.95, 1.0), (0.0, 89.9), (77.0, -90.0), (10.25, 50.25), (10.0, 50.0), (-100.0, 20.0)]
    {
        for radius in [0.5, 2.0, 10.0, 50.0] {
            let mut distances: Vec<f64> = places
                .iter()
                .map(|(x, y)| meridian_model::sphere::distance_m(lon, lat, *x, *y) / 1000.0)
                .filter(|km| *km <= radius)
                .collect();
            distances.sort_by(f64::total_cmp);
            for p in [0, 3] {
                let answer = server.json(&format!("{BASE}/near/{lat}/{lon}/{radius}?p={p}"));
                assert_eq!(answer["totalPlaces"], distances.len(), "{lon} {lat} {radius}");
                let found: Vec<f64> =
                    answer["places"].as_array().unwrap().iter().map(|p| p["distance"].as_f64().unwrap()).collect();
                let expected: Vec<f64> = distances.iter().skip(p * 25).take(25).copied().collect();
                assert_eq!(found.len(), expected.len());
                for (a, b) in found.iter().zip(&expected) {
                    assert!((a - b).abs() <= 0.005_001, "{a} {b} at {lon} {lat} {radius} page {p}");
                }
            }
        }
    }
}

#[test]
fn what_is_not_a_place_makes_no_collection_and_no_browser_guesses_what_an_answer_is() {
    let server = Server::start();
    let long = "x".repeat(20 << 10);
    for place in
        [json!({"name": "", "latitude": 1, "longitude": 2}), json!({"name": long, "latitude": 91, "longitude": 2})]
    {
        server.post(BASE, "application/json", place.to_string()).problem(400);
    }
    server.post(BASE, "application/json", "{").problem(400);
    assert_eq!(server.json("/collections")["collections"], json!([]));
    add(&server, json!({"name": long, "latitude": 1, "longitude": 2}));
    for path in ["near/1/2", "near/1/2/5", "near/1%2E0/2", "near/x/2"] {
        let answer = server.get(&format!("{BASE}/{path}"));
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
    }
}
