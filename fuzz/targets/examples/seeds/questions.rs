//! Questions: searches over sources, and queries of a collection.

use crate::corpus::{put, put_all, root};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fuzz_targets::{partials_of_store, world};
use meridian_model::{Projection, Seq, Seqs, filter};
use meridian_query::wire::{Count, NearCircle, Question};
use meridian_query::*;
use std::time::Duration;

pub fn searches() {
    put_all(
        "search",
        [
            r#"{"keywords":"flood (\"new york\" OR boston) -music","limit":5,"deadline_ms":2000}"#,
            r#"{"keywords":"fire","place":{"lon":2.35,"lat":48.85,"radius_m":5000},"datetime":"2024-01-01/..","language":"fr"}"#,
            r#"{"author":"nobody","place":{"address":"Lyon","radius_m":1000},"media":"images","providers":["meridian"]}"#,
            r#"{"keywords":"a","place":{"bbox":[1,2,3,4]},"keep":true,"collection":"results"}"#,
        ],
    );
    put_all(
        "saved_search",
        [
            r#"{"name":"floods","question":{"keywords":"flood","when":["enter","exit"]},"webhook":{"url":"https://example.org/x","secret":"longer than eight"},"poll_s":60}"#,
            r#"{"name":"a","keywords":"flood OR fire"}"#,
        ],
    );
    for file in std::fs::read_dir(root().join("crates/federation/providers")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        put("provider", &name, std::fs::read(&path).unwrap());
    }
    for file in std::fs::read_dir(root().join("crates/federation/fixtures")).unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        if bytes.len() <= 4096 && path.is_file() {
            put("provider_answer", &path.file_name().unwrap().to_string_lossy(), bytes);
        }
    }
    put("provider_answer", "csv", "id,title,time\n1,a,2024-01-01T00:00:00Z\n");
    put(
        "provider_answer",
        "rss",
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><rss><channel><item><id>1</id><title>a &amp; b</title><link>http://x</link></item><item><title><![CDATA[c]]></title></item></channel></rss>",
    );
}

pub fn questions() {
    let schema = world::schema();
    let all = || filter::Predicate::bind(&filter::parse_text("n > 5 AND name LIKE 'name%'").unwrap(), &schema).unwrap();
    let projection = Projection::all(&meridian_model::Layout::of(&schema));
    let fields = Order::Fields(SortKey::parse("-x,name", &schema).unwrap());
    let questions = [
        Question::Items(Items { predicate: all(), limit: Some(10), ..Items::all(&schema) }),
        Question::Items(Items { order: Order::Near { lon: 1.0, lat: 2.0, k: Some(3) }, ..Items::all(&schema) }),
        Question::Items(Items { order: fields, limit: Some(5), ..Items::all(&schema) }),
        Question::Count(Count { predicate: all(), tested_max: 1000 }),
        Question::Aggregate(fuzz_targets::grouped()),
        Question::Density(Density { predicate: all(), bbox: [-180.0, -90.0, 180.0, 90.0], width: 7, height: 5 }),
        Question::Tile(Tile {
            predicate: all(),
            z: 1,
            row: 0,
            column: 1,
            layer: "a".to_owned(),
            fields: None,
            density: true,
            average: schema.numeric_fields().first().copied(),
        }),
        Question::Track(Track {
            object: "ship 1".to_owned(),
            predicate: filter::Predicate::all(),
            simplify_m: Some(5.0),
        }),
        Question::Passages(Passages { predicate: all(), after: Some(ByValue::Text("ship 0".to_owned())), limit: 5 }),
        Question::Near(NearCircle { lon: 1.0, lat: 2.0, radius_m: 5e6, k: 5, projection }),
    ];
    for (n, question) in questions.iter().enumerate() {
        put("wire_question", &format!("seed-{n:02}"), question.to_json(&schema, Duration::from_secs(1)).unwrap());
    }
    for (n, question) in questions[..3].iter().enumerate() {
        let Question::Items(items) = question else { continue };
        let asked = Items { limit: Some(2), ..items.clone() };
        let mut rows = meridian_query::items(world::snapshot(), &asked, &world::control()).unwrap();
        assert!(rows.by_ref().all(|hits| hits.is_ok()));
        let after = rows.next_page().unwrap().clone();
        let token = Token { tenant: "t".to_owned(), snapshot: Seqs::one(Seq(3)), question: 5, after }.encode();
        put("page_token", &format!("text-{n}"), &token);
        let bytes = URL_SAFE_NO_PAD.decode(token).unwrap();
        put("page_token", &format!("bytes-{n}"), &bytes[..bytes.len() - 4]);
    }
    for (name, bytes) in partials_of_store() {
        put("partial", name, bytes);
    }
}
