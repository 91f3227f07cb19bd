//! Pages of one snapshot: complete, whatever is written meanwhile, and bound to their question.

use crate::quakes::{next, ns, quakes, sorted};
use crate::support::point;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn every_format_is_served_whole_and_by_pages() {
    let server = quakes();
    let lines = |path: &str| server.get(path).text().lines().count();
    assert_eq!(lines("/collections/q/items?f=ndjson"), 20);
    assert_eq!(lines("/collections/q/items?f=geojsonseq"), 20);
    assert_eq!(lines("/collections/q/items?f=csv"), 21);
    let accepted = server.ask("GET", "/collections/q/items", &[("accept", "text/csv")], b"");
    assert!(accepted.header("content-type").starts_with("text/csv"), "{}", accepted.header("content-type"));
    let arrow = server.get("/collections/q/items?f=arrow");
    assert_eq!(arrow.body[..4], [0xff; 4]);
    let parquet = server.get("/collections/q/items?f=parquet");
    assert_eq!((&parquet.body[..4], &parquet.body[parquet.body.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
    assert_eq!(parquet.header("content-type"), "application/vnd.apache.parquet");
    let flatgeobuf = server.get("/collections/q/items?f=flatgeobuf");
    assert_eq!(flatgeobuf.header("content-type"), "application/flatgeobuf");
    assert_eq!(features(&flatgeobuf.body), 20);
    let page = server.get("/collections/q/items?f=flatgeobuf&limit=7");
    assert_eq!((features(&page.body), page.header("link").contains("rel=\"next\"")), (7, true));
    assert_eq!(features(&server.get("/collections/q/items?f=flatgeobuf&filter=n%3E99").body), 0);
    let headers = [("accept", "application/geopackage+sqlite3")];
    for (query, pages) in [("", false), ("?limit=7", true), ("?limit=30", false), ("?filter=n%3E99", false)] {
        let answer = server.ask("GET", &format!("/collections/q/items{query}"), &headers, b"");
        assert_eq!(answer.header("content-type"), "application/geopackage+sqlite3", "{}", answer.text());
        assert!(answer.body.starts_with(b"SQLite format 3\0"), "{query}");
        assert_eq!(answer.header("link").contains("rel=\"next\""), pages, "{query}");
    }

    let mut path = "/collections/q/items?f=ndjson&limit=7".to_owned();
    let mut seen = Vec::new();
    loop {
        let page = server.get(&path);
        seen.extend(
            page.text().lines().map(|l| serde_json::from_str::<Value>(l).unwrap()["properties"]["n"].as_i64().unwrap()),
        );
        let Some((next, _)) = page.header("link").split_once('>') else { break };
        path = next.strip_prefix("<http://localhost").unwrap().to_owned();
    }
    assert_eq!(sorted(seen), (0..20).collect::<Vec<_>>());
}

/// Returns the number of features of a FlatGeobuf without an index: of its messages after the header, each with its
/// length before it.
fn features(bytes: &[u8]) -> usize {
    let mut rest = bytes.strip_prefix(b"fgb\x03fgb\0").unwrap();
    let mut messages = 0;
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        rest = &after[u32::from_le_bytes(*length) as usize..];
        messages += 1;
    }
    assert!(rest.is_empty(), "{} bytes after the last message", rest.len());
    messages - 1
}

#[test]
fn paging_neither_skips_nor_repeats_while_writes_go_on() {
    let server = quakes();
    let mut path = "/collections/q/items?limit=3".to_owned();
    let mut seen = Vec::new();
    let mut snapshots = BTreeSet::new();
    for page in 0.. {
        let answer = server.get(&path);
        assert_eq!(answer.status, 200, "{}", answer.text());
        snapshots.insert(answer.header("meridian-snapshot").to_owned());
        let body = answer.json();
        seen.extend(ns(&body));
        // Between pages, new events appear everywhere, and an old one disappears.
        let fresh: Vec<Value> = (0..50)
            .map(|i| {
                point(
                    "",
                    f64::from(i % 20),
                    f64::from(i % 20),
                    json!({"mag": 1, "n": 1000 + i, "note": "new", "dtg": "2026-01-31T05:00:00Z"}),
                )
            })
            .collect();
        server.load("q", &fresh);
        server.ask("DELETE", &format!("/collections/q/items?filter=n%3D{page}"), &[], b"");
        match next(&body) {
            Some(next) => path = next,
            None => break,
        }
    }
    assert_eq!(sorted(seen), (0..20).collect::<Vec<_>>());
    assert_eq!(snapshots.len(), 1, "all pages read one snapshot");
}

#[test]
fn tokens_belong_to_their_question() {
    let server = quakes();
    let page = server.json("/collections/q/items?limit=3&note=odd");
    let path = next(&page).unwrap();
    let token = path.split_once("token=").unwrap().1;
    assert_eq!(server.get(&format!("/collections/q/items?limit=5&note=odd&token={token}")).status, 200);
    let other = server.get(&format!("/collections/q/items?limit=3&note=even&token={token}")).problem(400);
    assert_eq!(other["field"], "token");
    server.get("/collections/q/items?token=nonsense").problem(400);
    server.get(&format!("/collections/q/items?limit=3&note=odd&token={}", &token[..token.len() - 3])).problem(400);
}

#[test]
fn a_token_whose_snapshot_is_gone_says_so() {
    let server = quakes();
    let path = next(&server.json("/collections/q/items?limit=3")).unwrap();
    // Another collection has that name now: nothing of the old one can be shown.
    assert_eq!(server.ask("DELETE", "/collections/q", &[], b"").status, 204);
    server.create("q", "mag:Double,n:Integer,note:String,dtg:Date,*geom:Point:srid=4326");
    let problem = server.get(&path).problem(410);
    assert_eq!(problem["type"], "urn:meridian:problem:gone");
}
