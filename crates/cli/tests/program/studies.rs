//! The studies of `bench/studies`, shortened, against a real server with a little data. Every response is valid and
//! correct, and a report is made. Speed is not tested.

use crate::common::{Mock, Server, counted, meridian, root};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Runs a study, checks its report, and returns the measurements by population and request.
fn study(scenario: &str, folder: &Path, url: &str, sets: &[&str]) -> BTreeMap<String, Value> {
    let (path, out) = (root().join("bench/studies").join(scenario), folder.join("results"));
    let (path, out) = (path.to_str().unwrap(), out.to_str().unwrap());
    let target = format!("target.url={url}");
    let mut args = vec!["lab", "run", path, "--out", out, "--json", "--set", &target];
    sets.iter().for_each(|set| args.extend(["--set", set]));
    let json: Value = serde_json::from_str(&meridian(&args).ended(0).out).unwrap();
    let groups = json["groups"].as_array().unwrap();
    for group in groups {
        assert_eq!(group["outcomes"], json!({ "sound": group["arrivals"] }), "{scenario}: {group}");
    }
    let shown = meridian(&["lab", "report", out]).ended(0);
    assert!(shown.out.contains("had a sound answer"), "{scenario}: {}", shown.out);
    assert!(Path::new(out).join("report.html").is_file());
    std::fs::remove_dir_all(out).unwrap();
    let name =
        |group: &Value| format!("{}: {}", group["population"].as_str().unwrap(), group["request"].as_str().unwrap());
    groups.iter().map(|group| (name(group), group.clone())).collect()
}

/// Returns settings for this many queries of an open-ended load, however fast the machine is.
fn questions(count: &str) -> [&str; 3] {
    ["phases.warm_up_s=0", "phases.measured_s=600", count]
}

fn sum(groups: &BTreeMap<String, Value>, of: &str) -> u64 {
    groups.values().map(|group| group[of].as_u64().unwrap()).sum()
}

/// Starts a server with a collection of these features.
fn server(folder: &Path, collection: &str, spec: &str, features: Vec<Value>) -> Server {
    let server = Server::start(&folder.join("data"));
    server.create(collection, spec);
    let body = json!({ "type": "FeatureCollection", "features": features }).to_string();
    let path = format!("/collections/{collection}/items");
    let (status, said) = server.post(&path, "application/geo+json", None, body.as_bytes()).unwrap();
    assert!((200..300).contains(&status), "{said}");
    server
}

fn feature(geometry: Value, time: &str) -> Value {
    json!({ "type": "Feature", "geometry": geometry, "properties": { "name": "x", "time": time } })
}

#[test]
fn places_are_asked_at_six_radii() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    for n in 0..100 {
        let (lat, lon) = (37.0 + f64::from(n * 7 % 100) * 0.06, -124.0 + f64::from(n * 13 % 100) * 0.06);
        let place = json!({ "name": format!("place {n}"), "latitude": lat, "longitude": lon }).to_string();
        let (status, said) = server.post("/api/v0/places", "application/json", None, place.as_bytes()).unwrap();
        assert_eq!(status, 200, "{said}");
    }
    let groups = study("places.toml", folder.path(), &server.url, &questions("limits.requests=200"));
    assert_eq!(groups.len(), 6);
    assert_eq!(sum(&groups, "arrivals"), 200);
    // And one on its own, as in the table of the study.
    let sets = [&questions("limits.requests=20")[..], &["population.requests=[\"5 km\"]"]].concat();
    let groups = study("places.toml", folder.path(), &server.url, &sets);
    assert_eq!(groups.keys().collect::<Vec<_>>(), ["users: 5 km"]);
    assert_eq!(sum(&groups, "arrivals"), 20);
}

#[test]
fn city_buffers_and_countries_are_asked_at_eight_connections_each() {
    let folder = tempfile::tempdir().unwrap();
    // Around Paris and Tokyo, and all over Brazil, through the year.
    let points = (0..2_000).map(|n| {
        let (step, day) = (f64::from(n % 50) * 0.02, n * 31 % 365);
        let at = [[2.0 + step, 48.4 + step], [139.4 + step, 35.2 + step], [-60.0 + step * 10.0, -15.0 + step * 5.0]];
        let time = format!("2016-{:02}-{:02}T12:00:00Z", day / 31 + 1, day % 28 + 1);
        feature(json!({ "type": "Point", "coordinates": at[n as usize % 3] }), &time)
    });
    let server = server(folder.path(), "events", "name:String,time:Date,*geometry:Point", points.collect());
    let groups = study("city-buffers.toml", folder.path(), &server.url, &questions("limits.requests=200"));
    assert_eq!(groups.keys().collect::<Vec<_>>(), ["cities: city buffer", "countries: country"]);
    assert!(groups.values().all(|group| group["results"].as_u64().unwrap() > 0), "{groups:?}");
}

#[test]
fn the_track_grid_is_asked_at_16_and_32_connections() {
    let folder = tempfile::tempdir().unwrap();
    // All across the country, so that many a small cell is crossed.
    let lines = (0..500_u32).map(|n| {
        let (lon, lat) = (-120.0 + f64::from(n % 50) * 0.2, 26.0 + f64::from(n % 20) * 0.4);
        let line = [[lon, lat], [lon + 20.0, lat + 8.0], [lon + 45.0, lat + 15.0]];
        let time = format!("2015-{:02}-{:02}T12:00:00Z", n % 12 + 1, n % 28 + 1);
        feature(json!({ "type": "LineString", "coordinates": line }), &time)
    });
    let server = server(folder.path(), "tracks", "name:String,time:Date,*geometry:LineString", lines.collect());
    for users in ["population.arrival.users=16", "population.arrival.users=32"] {
        let sets = [&questions("limits.requests=200")[..], &[users]].concat();
        let groups = study("track-grid.toml", folder.path(), &server.url, &sets);
        assert_eq!((groups.len(), sum(&groups, "arrivals")), (1, 200));
        assert!(sum(&groups, "results") > 0);
    }
}

#[test]
fn inserts_of_every_batch_are_kept_whole_whatever_they_survive() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let spec = "object:String,value:Double,time:Date,*geometry:Point;meridian.id='given'";
    for durability in ["local", "ephemeral"] {
        let args = ["--schema", spec, "--durability", durability, "--url", &server.url];
        meridian(&[&["create", &format!("inserts-{durability}")], &args[..]].concat()).ended(0);
    }
    let sets = [&questions("limits.requests=120")[..], &["generate.myriad.batch=500"]].concat();
    let groups = study("inserts.toml", folder.path(), &server.url, &sets);
    assert_eq!(groups.len(), 6, "{:?}", groups.keys());
    for durability in ["local", "ephemeral"] {
        let sent = |batch: &str| groups[&format!("writer: {batch}, {durability}")]["arrivals"].as_u64().unwrap();
        let answer = server.json(&format!("/collections/inserts-{durability}/aggregate?function=count"));
        assert_eq!(counted(&answer), sent("1") + 100 * sent("100") + 500 * sent("10000"), "{durability}");
    }
}

/// Writes the 25 providers of the search study, as `bench/studies/run.py` does.
fn providers(folder: &Path, mock: &str) {
    std::fs::create_dir(folder).unwrap();
    let declared = std::fs::read_to_string(root().join("bench/studies/search/provider.toml")).unwrap();
    for (kind, count) in [("fast", 11), ("late", 2), ("slow", 1), ("declines", 11)] {
        for n in 1..=count {
            let name = format!("{kind}-{n}");
            let base = format!("{mock}/{kind}/{n}");
            let mut own = declared.replace("fast-1", &name).replace("http://127.0.0.1:7118/fast/1", &base);
            if kind == "declines" {
                own = own.replace("needs = [\"keywords\"]", "needs = [\"keywords\", \"place\"]");
            }
            std::fs::write(folder.join(format!("{name}.toml")), own).unwrap();
        }
    }
}

#[test]
fn searches_in_a_burst_and_on_and_off_bring_every_packet_of_every_source() {
    let folder = tempfile::tempdir().unwrap();
    let calls = folder.path().join("calls.ndjson");
    let sources = root().join("bench/studies/search/sources.toml");
    let mock = Mock::start(&[sources.to_str().unwrap(), "--log", calls.to_str().unwrap()]);
    providers(&folder.path().join("providers"), &mock.1);
    let config = folder.path().join("meridian.toml");
    let text = format!("[search]\nproviders = {:?}\njoin = \"0s\"\n", folder.path().join("providers"));
    std::fs::write(&config, text).unwrap();
    let server = Server::start_with(&["--ephemeral", "--config", config.to_str().unwrap()]);
    let mut searches = 0;
    for (scenario, count, sets) in [
        ("search/single-burst.toml", 12, &["population.arrival.count=12", "population.arrival.interval_s=0.05"][..]),
        (
            "search/on-off.toml",
            8,
            &["population.arrival.bursts=2", "population.arrival.per_burst=4", "population.arrival.gap_s=0.2"],
        ),
    ] {
        let groups = study(scenario, folder.path(), &server.url, sets);
        assert_eq!(sum(&groups, "arrivals"), count);
        // An item is as large as a packet may be: 11 x 7, 2 x 6 and 4 x 1 of them for each search.
        assert_eq!((sum(&groups, "results"), sum(&groups, "packets")), (93 * count, 93 * count));
        searches += count as usize;
    }
    // The actual calls: one to each of 13 sources and four to the slow one. Sources that decline get none.
    let log = std::fs::read_to_string(&calls).unwrap();
    assert_eq!(log.lines().count(), 17 * searches);
}

#[test]
fn the_forecast_has_its_searches_answered_by_one_source() {
    let folder = tempfile::tempdir().unwrap();
    let calls = folder.path().join("calls.ndjson");
    let place = root().join("bench/studies/forecast");
    let mock = Mock::start(&[place.join("source.toml").to_str().unwrap(), "--log", calls.to_str().unwrap()]);
    let declared = std::fs::read_to_string(place.join("provider.toml")).unwrap();
    std::fs::create_dir(folder.path().join("providers")).unwrap();
    std::fs::write(folder.path().join("providers/source.toml"), declared.replace("http://127.0.0.1:7118", &mock.1))
        .unwrap();
    let config = folder.path().join("meridian.toml");
    let text = format!("[search]\nproviders = {:?}\njoin = \"0s\"\n", folder.path().join("providers"));
    std::fs::write(&config, text).unwrap();
    let server = Server::start_with(&["--ephemeral", "--config", config.to_str().unwrap()]);
    // Neither its objective nor the load of the machine is tested here.
    let calm = ["objective.at_most=60000", "limits.other_load=1000", "limits.late_ms=1000000"];
    let idle = format!("phases.wait_idle.url={}/metrics", server.url);
    let sets = [&["arrival.rate=10", "phases.measured_s=1", &idle][..], &calm].concat();
    let groups = study("forecast/load.toml", folder.path(), &server.url, &sets);
    assert_eq!((sum(&groups, "arrivals"), sum(&groups, "results")), (10, 10));
    assert_eq!(std::fs::read_to_string(&calls).unwrap().lines().count(), 10);
}
