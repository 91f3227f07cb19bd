//! Queries of other servers, and page tokens.

use crate::world;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use meridian_query::partial::PartialNear;
use meridian_query::wire::Question;
use meridian_query::{Items, Order, SortKey, Token};
use std::time::Duration;

/// A query over the wire, run on a small collection.
pub fn wire_question(bytes: &[u8]) {
    let schema = world::batch().schema();
    let Ok((question, _)) = Question::from_json(bytes, schema) else { return };
    let written = question.to_json(schema, Duration::from_secs(1)).unwrap();
    let (again, _) = Question::from_json(&written, schema).unwrap();
    assert_eq!(again.to_json(schema, Duration::from_secs(1)).unwrap(), written);
    let (snapshot, control) = (world::snapshot(), world::control());
    match &question {
        Question::Items(asked) => {
            if let Ok(rows) = meridian_query::items(snapshot, asked, &control) {
                assert!(rows.flatten().map(|hits| hits.batch.rows()).sum::<usize>() <= world::EVENTS);
            }
        }
        Question::Count(asked) => drop(meridian_query::count(snapshot, &asked.predicate, asked.tested_max, &control)),
        Question::Aggregate(asked) => drop(meridian_query::aggregate(snapshot, asked, &control)),
        Question::Density(asked) => drop(meridian_query::density(snapshot, asked, &control)),
        Question::Tile(asked) => drop(meridian_query::tile(snapshot, asked, &control)),
        Question::Track(asked) => drop(meridian_query::track(snapshot, asked, &control)),
        Question::Passages(asked) => drop(meridian_query::passages(snapshot, asked, &control)),
        Question::Near(asked) => {
            drop(PartialNear::of(snapshot, asked.circle(), asked.k, &asked.projection));
        }
    }
}

/// A page token: as text, and as the bytes under its checksum, whose cursor begins a page.
pub fn page_token(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Token::decode(text);
    }
    let sealed = [bytes, &crc32c::crc32c(bytes).to_le_bytes()].concat();
    let Ok(token) = Token::decode(&URL_SAFE_NO_PAD.encode(sealed)) else { return };
    assert_eq!(Token::decode(&token.encode()).as_ref().map(Token::encode), Ok(token.encode()));
    let schema = world::batch().schema();
    let sorted = Order::Fields(SortKey::parse("-x,name", schema).unwrap());
    for order in [Order::Natural, Order::Near { lon: 1.0, lat: 2.0, k: None }, sorted] {
        let asked = Items { order, limit: Some(10), after: Some(token.after.clone()), ..Items::all(schema) };
        if let Ok(rows) = meridian_query::items(world::snapshot(), &asked, &world::control()) {
            let _ = rows.flatten().count();
        }
    }
}
