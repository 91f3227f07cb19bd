//! Providers: what they say of themselves, and what the shipped ones ask their sources.

use crate::searches::{ids, of, search};
use crate::sources::{Sources, config};
use crate::support::Server;
use serde_json::json;

#[test]
fn shipped_providers_ask_what_their_sources_document() {
    let sources = Sources::start();
    let names = [
        "wikipedia",
        "wikipedia-near",
        "usgs-earthquakes",
        "gdelt-doc",
        "hacker-news",
        "mastodon",
        "bluesky",
        "inaturalist",
        "overpass",
        "rss",
        "ogc-features",
        "stac",
    ];
    let server = Server::with(config(names.iter().map(|name| sources.shipped(name)).collect()));
    let time = json!({"start": "2026-01-01", "end": "2026-02-01", "keywords": "bridge"});
    for (name, question, parts) in [
        (
            "wikipedia",
            json!({"keywords": "\"high tide\" storm", "limit": 2}),
            &["gsrsearch=%22high+tide%22+storm", "gsrlimit=2", "gsroffset=0"][..],
        ),
        (
            "wikipedia-near",
            json!({"near": [-0.1275, 51.507], "radius": 5000}),
            &["ggscoord=51.507%7C-0.1275", "ggsradius=5000"],
        ),
        (
            "usgs-earthquakes",
            json!({"near": [121.9, 24.7], "radius": 50_000, "start": "2025-12-01"}),
            &["latitude=24.7", "maxradiuskm=50", "starttime=2025-12-01T00%3A00%3A00Z", "offset=1"],
        ),
        (
            "gdelt-doc",
            json!({"keywords": "flood OR storm", "start": "2026-01-01"}),
            &["query=%28flood+OR+storm%29", "startdatetime=20260101000000", "enddatetime=2100"],
        ),
        ("hacker-news", json!({"keywords": "database", "limit": 20}), &["query=database", "hitsPerPage=20", "page=0"]),
        ("mastodon", json!({"keywords": "flood"}), &["/api/v1/timelines/tag/flood?limit=40"]),
        ("bluesky", time, &["q=bridge", "since=2026-01-01T00%3A00%3A00Z", "until=2026-02-01T23%3A59%3A59.999999Z"]),
        (
            "inaturalist",
            json!({"near": [4.83, 45.76], "radius": 5000}),
            &["lat=45.76", "lng=4.83", "radius=5", "per_page=100"],
        ),
        (
            "overpass",
            json!({"keywords": "moulin", "near": [4.83, 45.76], "radius": 5000}),
            &["nwr%28around%3A5000%2C45.76%2C4.83%29", "%22moulin%22%2Ci"],
        ),
        ("rss", json!({"keywords": "flood"}), &["/rss"]),
        (
            "ogc-features",
            json!({"bbox": [4, 45, 5, 46], "start": "2026-01-01"}),
            &["/collections/c/items?", "bbox=4%2C45%2C5%2C46", "datetime=2026-01-01T00%3A00%3A00Z%2F2100"],
        ),
        ("stac", json!({"bbox": [4, 45, 5, 46]}), &["/search?", "limit=100"]),
    ] {
        let mut question = question;
        question["providers"] = json!([name]);
        let packets = search(&server, &question);
        assert_eq!(packets.last().unwrap()["providers"][name], "complete", "{name}: {packets:?}");
        assert!(!ids(&packets).is_empty(), "{name}: {packets:?}");
        let calls = sources.calls.lock().unwrap();
        let call = calls.iter().find(|call| call.starts_with(&format!("/{name}"))).unwrap();
        for part in parts {
            assert!(call.contains(part), "{name}: {call} has no {part}");
        }
    }
    // A question that a source cannot answer is not sent to it, and that is reported.
    let packets = search(&server, &json!({"keywords": "flood", "providers": ["usgs-earthquakes", "rss"]}));
    assert_eq!(of(&packets, "usgs-earthquakes")["state"], "skipped");
    assert!(of(&packets, "usgs-earthquakes")["detail"].as_str().unwrap().contains("place or time"));
    assert_eq!(packets.last().unwrap()["state"], "complete");
}

#[test]
fn providers_say_what_they_take_and_what_they_lack() {
    let sources = Sources::start();
    let server = Server::with(config(vec![sources.provider("good", ""), sources.shipped("flickr")]));
    let answer = server.json("/providers");
    let one = |name: &str| answer["providers"].as_array().unwrap().iter().find(|p| p["name"] == name).unwrap().clone();
    assert_eq!(one("good")["takes"], json!({"keywords": "all", "needs": [], "needs_one_of": [], "not": []}));
    assert_eq!((&one("good")["ready"], one("good").get("detail")), (&json!(true), None));
    assert_eq!(one("flickr")["ready"], false);
    assert!(one("flickr")["detail"].as_str().unwrap().starts_with("it needs FLICKR"), "{answer}");
}
