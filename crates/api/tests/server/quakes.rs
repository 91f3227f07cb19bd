//! A collection of twenty quakes, and what a page of it shows.

use crate::support::{Server, point};
use serde_json::{Value, json};

/// Loads twenty quakes on a diagonal: longitude and latitude i, magnitude i / 2, at hour i.
pub fn quakes() -> Server {
    let server = Server::start();
    server.create("q", "mag:Double,n:Integer,note:String,dtg:Date,*geom:Point:srid=4326");
    let all: Vec<Value> = (0..20)
        .map(|i| {
            let time = format!("2026-01-31T{i:02}:00:00Z");
            let note = if i % 2 == 0 { "even" } else { "odd" };
            point("", f64::from(i), f64::from(i), json!({"mag": f64::from(i) / 2.0, "n": i, "note": note, "dtg": time}))
        })
        .collect();
    server.load("q", &all);
    server
}

/// Returns the `n` of the events of a page, in order.
pub fn ns(page: &Value) -> Vec<i64> {
    page["features"].as_array().unwrap().iter().map(|f| f["properties"]["n"].as_i64().unwrap()).collect()
}

pub fn sorted(mut ns: Vec<i64>) -> Vec<i64> {
    ns.sort_unstable();
    ns
}

pub fn next(page: &Value) -> Option<String> {
    let links = page["links"].as_array().unwrap();
    let href = links.iter().find(|l| l["rel"] == "next")?["href"].as_str().unwrap();
    Some(href.strip_prefix("http://localhost").unwrap().to_owned())
}
