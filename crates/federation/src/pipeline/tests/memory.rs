//! Packets within their budgets, and the report that a slow reader receives.

use super::{asker, hangs, packets, searches};
use crate::pipeline::*;
use crate::provider::{ProviderFuture, Sink};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

/// Ten packets.
fn plenty(sink: Sink) -> ProviderFuture<'static> {
    let one = |n: usize| SearchResult {
        id: format!("p{n}"),
        title: Some("good".to_owned()),
        text: Some("x".repeat(8_000)),
        ..SearchResult::default()
    };
    Box::pin(async move { sink.found((0..10).map(one).collect()).await })
}

#[tokio::test]
async fn searches_that_ended_and_searches_that_wait_leave_room_for_those_that_come() {
    // Space for six packets; at most half may be taken by read ones.
    let room = 512 << 10;
    let settings = Settings { buffer_bytes_total: room, join: Duration::ZERO, ..Settings::default() };
    let searches = searches(settings, &[("plenty", plenty), ("hangs", hangs)]);
    let mut waiting = Vec::new();
    for _ in 0..12 {
        let question = json!({"keywords": "good", "timeout": 60_000, "providers": ["plenty", "hangs"]});
        let (search, _) = searches.start(&question, &asker(""), Instant::now()).await.expect("a search");
        let mut reader = search.outbox.read(0).expect("a reader");
        let told = loop {
            let (_, packet) = reader.next().await.expect("a packet");
            let packet: Value = serde_json::from_str(&packet).expect("JSON");
            if packet["kind"] == "provider" {
                break packet;
            }
        };
        assert_eq!((&told["state"], &told["results"]), (&json!("complete"), &json!(10)), "{told}");
        waiting.push((search, reader));
        let all = packets(&searches, json!({"keywords": "good", "providers": ["plenty"]})).await;
        let last = all.last().expect("a last packet");
        assert_eq!((&last["state"], &last["result_packets"]), (&json!("complete"), &json!(10)), "{last}");
        assert!(searches.bytes() <= room, "{}", searches.bytes());
    }
    // The newest ended search can still be read.
    assert!(searches.running() == 12 && searches.bytes() > room / 4);
    waiting.iter().for_each(|(search, _)| assert!(searches.stop(&search.id)));
}

#[tokio::test]
async fn a_search_that_ended_before_its_asker_came_keeps_its_room() {
    // Unread packets hold more than half.
    let settings = Settings {
        buffer_bytes_total: 512 << 10,
        join: Duration::ZERO,
        wait: Duration::from_secs(60),
        ..Settings::default()
    };
    let searches = searches(settings, &[("plenty", plenty)]);
    let question = json!({"keywords": "good", "providers": ["plenty"]});
    let mut unread = Vec::new();
    for _ in 0..4 {
        let (search, _) = searches.start(&question, &asker(""), Instant::now()).await.expect("a search");
        search.ended().await;
        unread.push(search.id.clone());
    }
    assert!(searches.bytes() > 256 << 10, "{}", searches.bytes());
    packets(&searches, question.clone()).await;
    for id in &unread {
        let search = searches.get(id).expect("not forgotten");
        let mut reader = search.outbox.read(0).expect("a reader");
        let mut last = None;
        while let Some((_, packet)) = reader.next().await {
            last = Some(serde_json::from_str::<Value>(&packet).expect("JSON"));
        }
        let last = last.expect("a last packet");
        assert_eq!((&last["state"], &last["result_packets"]), (&json!("complete"), &json!(10)), "{last}");
    }
}

fn many(sink: Sink) -> ProviderFuture<'static> {
    Box::pin(async move {
        let found = |n: usize| SearchResult {
            id: n.to_string(),
            title: Some(format!("x {}", n).repeat(300)),
            ..SearchResult::default()
        };
        sink.found((0..200).map(found).collect()).await
    })
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stops_reading_hears_at_the_deadline_that_it_is_not_all() {
    let searches = searches(Settings { buffer_bytes: 40_000, ..Settings::default() }, &[("many", many)]);
    let question = json!({"keywords": "x", "providers": ["many"], "limit": 200, "timeout": 2_000});
    let (search, _) = searches.start(&question, &asker(""), Instant::now()).await.expect("a search");
    let mut reader = search.outbox.read(0).expect("a reader");
    search.ended().await;
    assert_eq!(search.arrived.elapsed(), Duration::from_secs(2));
    let told = json!(search.status())["providers"]["many"].clone();
    assert_eq!(told["state"], "timeout", "{told}");
    assert!(told["detail"].as_str().expect("text").contains("too slowly"), "{told}");
    assert!(searches.bytes() <= 42_000);
    let mut packets = 0;
    while reader.next().await.is_some() {
        packets += 1;
    }
    assert!(packets > 2);
}

#[tokio::test]
async fn a_reader_that_does_not_come_gets_what_fits_and_hears_that_it_is_not_all() {
    let searches = searches(Settings { buffer_bytes: 40_000, ..Settings::default() }, &[("many", many)]);
    let question = json!({"keywords": "x", "providers": ["many"], "limit": 200});
    let (search, _) = searches.start(&question, &asker(""), Instant::now()).await.expect("a search");
    search.ended().await;
    let status = json!(search.status());
    assert_eq!(
        (status["state"].as_str(), status["providers"]["many"]["state"].as_str()),
        (Some("partial"), Some("error"))
    );
    assert!(status["providers"]["many"]["detail"].as_str().expect("text").contains("too slowly"), "{status}");
    assert!(searches.bytes() <= 42_000);
}
