//! Search results stored in a collection.

use crate::searches::search;
use crate::sources::{Sources, config};
use crate::support::Server;
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn results_are_kept_as_events_for_as_long_as_the_asker_says() {
    let sources = Sources::start();
    let server = Server::with(config(vec![sources.provider("good", ""), sources.provider("latin", "")]));
    let question = json!({"keywords": "flood", "providers": ["good", "latin", "meridian"],
        "keep": {"collection": "floods", "hours": 2}});
    let packets = search(&server, &question);
    let last = packets.last().unwrap();
    assert_eq!((last["state"].as_str(), last["kept"].as_u64()), (Some("complete"), Some(2)), "{packets:?}");
    let retention = server.store.collection("default", "floods").unwrap().settings().retention;
    assert_eq!(retention, Some(Duration::from_secs(2 * 3_600)));

    let kept = |path: &str| {
        let answer = server.json(&format!("/collections/floods/items?{path}"));
        answer["features"].as_array().unwrap().clone()
    };
    let near = kept("bbox=4,45,5,46");
    assert_eq!(near.len(), 1, "{near:?}");
    let (event, properties) = (&near[0], &near[0]["properties"]);
    assert_eq!((event["id"].as_str(), properties["provider"].as_str()), (Some("good/1"), Some("good")));
    assert_eq!(event["geometry"], json!({"type": "Point", "coordinates": [4.8, 45.7]}));
    assert_eq!(properties["text"], "flood at the bridge");
    assert_eq!((&properties["search"], properties["time"].is_string()), (&last["search"], true));
    assert_eq!(kept("filter=provider%20%3D%20%27latin%27")[0]["properties"]["text"], "flood at the café");

    // The same search in other words returns the same events, of the newer search. Results from the collection itself
    // are not stored again.
    let again =
        json!({"keywords": "flood bridge", "providers": ["good", "meridian"], "keep": {"collection": "floods"}});
    let packets = search(&server, &again);
    let last = packets.last().unwrap();
    assert_eq!(last["kept"].as_u64(), Some(1), "{packets:?}");
    let mut ids: Vec<String> = kept("").iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    assert_eq!(ids, ["good/1", "latin/l"]);
    assert_eq!(kept("bbox=4,45,5,46")[0]["properties"]["search"], last["search"]);
    // Hours other than those of the collection are an error.
    let asked = |hours: u64| {
        let keep = json!({"collection": "floods", "hours": hours});
        json!({"keywords": "flood", "providers": ["good"], "keep": keep}).to_string()
    };
    let problem = server.post("/searches", "application/json", asked(48)).problem(400);
    assert_eq!(problem["field"], "keep");
    assert!(problem["detail"].as_str().unwrap().contains("\"floods\" keeps its results for 2 hours"), "{problem}");
    assert_eq!(server.post("/searches", "application/json", asked(2)).status, 202);
    // Without the member nothing is stored, and nothing is reported.
    let plain = search(&server, &json!({"keywords": "flood", "providers": ["good"]}));
    assert_eq!(plain.last().unwrap()["kept"], Value::Null);
}

#[test]
fn a_collection_of_something_else_is_left_alone() {
    let server = Server::start();
    server.create("ships", "name:String,dtg:Date,*geom:Point:srid=4326");
    for (keep, part) in [
        (json!({"collection": "ships"}), "\"ships\" is not one of kept results"),
        (json!({"collection": "a b"}), "is not a valid name"),
    ] {
        let question = json!({"keywords": "flood", "keep": keep}).to_string();
        let problem = server.post("/searches", "application/json", question).problem(400);
        assert_eq!(problem["field"], "keep");
        assert!(problem["detail"].as_str().unwrap().contains(part), "{problem}");
    }
}
