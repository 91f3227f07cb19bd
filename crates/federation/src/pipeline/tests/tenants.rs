//! Isolation: the resources that searches of one tenant or client leave to those of another.

use super::{asker, asker_of, good, searches};
use crate::asker::SearchClient;
use crate::pipeline::*;
use crate::provider::{ProviderFuture, Sink};
use crate::search::Search;
use crate::searches::Searches;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::time::{Duration, Instant};

async fn start(searches: &Arc<Searches>, asker: &SearchClient, question: &Value) -> (Arc<Search>, bool) {
    searches.start(question, asker, Instant::now()).await.expect("a search")
}

/// Runs a search to its end without reading it, and returns its id.
async fn ended(searches: &Arc<Searches>, asker: &SearchClient, question: &Value) -> String {
    let running = searches.running();
    let (search, joined) = start(searches, asker, question).await;
    assert!(!joined);
    search.ended().await;
    // The supervisor notices the end shortly after it.
    while searches.running() > running {
        tokio::task::yield_now().await;
    }
    search.id.clone()
}

/// A provider that takes a minute and serves one search at a time.
fn slow(sink: Sink) -> ProviderFuture<'static> {
    Box::pin(async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        good(sink).await
    })
}

#[tokio::test(start_paused = true)]
async fn a_tenant_with_many_searches_leaves_every_other_turn_of_a_provider_to_another() {
    let settings = Settings {
        deadline_max: Duration::from_secs(7_200),
        wait: Duration::from_secs(7_200),
        join: Duration::ZERO,
        ..Settings::default()
    };
    let searches = searches(settings, &[("slow", slow)]);
    let question = json!({"keywords": "good", "providers": ["slow"], "timeout": 7_200_000});
    let (red, blue) = (asker_of("red", "red", "*"), asker_of("blue", "blue", "*"));
    for _ in 0..30 {
        start(&searches, &red, &question).await;
    }
    // Every search of red is in service or queued before the provider.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (search, _) = start(&searches, &blue, &question).await;
    search.ended().await;
    let took = search.arrived.elapsed();
    assert!(took <= Duration::from_secs(121), "one search of red before it, and its own: {took:?}");
    assert_eq!(json!(search.status())["state"], "complete");
}

#[tokio::test]
async fn a_tenant_forgets_its_own_ended_searches_for_new_ones() {
    let settings = Settings { searches_max: 8, join: Duration::ZERO, ..Settings::default() };
    let searches = searches(settings, &[("good", good)]);
    let question = json!({"keywords": "good", "providers": ["good"]});
    let (red, blue) = (asker_of("red", "red", "*"), asker_of("blue", "blue", "*"));
    let first = ended(&searches, &red, &question).await;
    let of_blue = ended(&searches, &blue, &question).await;
    let mut last = String::new();
    for _ in 0..20 {
        last = ended(&searches, &red, &question).await;
    }
    assert!(searches.get(&of_blue).is_some() && searches.get(&last).is_some());
    assert!(searches.get(&first).is_none(), "the oldest of the tenant that has most");
}

#[tokio::test]
async fn what_an_ended_search_keeps_is_counted_and_goes_with_it() {
    let settings = Settings { searches_max: 4, join: Duration::ZERO, ..Settings::default() };
    let searches = searches(settings, &[("good", good)]);
    let ring: Vec<[f64; 2]> = (0..1_000).map(|n| f64::from(n) * 0.006).map(|a| [a.cos(), a.sin()]).collect();
    let ring: Vec<[f64; 2]> = ring.iter().chain(&ring[..1]).copied().collect();
    let polygon = json!({"type": "Polygon", "coordinates": [ring]});
    let question = json!({"keywords": "good", "providers": ["good"], "polygon": polygon});
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let asker = asker("me");
    for _ in 0..8 {
        ended(&searches, &asker, &question).await;
    }
    let (held, alive) = (searches.bytes(), tasks());
    assert!(held >= 4 * 16_000, "four polygons: {held}");
    for _ in 0..64 {
        ended(&searches, &asker, &question).await;
    }
    // Neither packets, questions nor sleeping tasks remain of searches that can no longer be read.
    let deadline = Instant::now() + Duration::from_secs(60);
    while tasks() > alive + 4 || searches.bytes() > held + 16_000 {
        assert!(
            Instant::now() < deadline,
            "{} tasks, {alive} before; {} bytes, {held} before",
            tasks(),
            searches.bytes()
        );
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_search_is_joined_with_the_same_rights_alone() {
    fn hangs(_: Sink) -> ProviderFuture<'static> {
        Box::pin(std::future::pending())
    }
    let settings = Settings { join: Duration::from_secs(60), wait: Duration::from_secs(60), ..Settings::default() };
    let searches = searches(settings, &[("hangs", hangs)]);
    let question = json!({"keywords": "good", "providers": ["hangs"]});
    let (wide, narrow) = (asker_of("red", "jwt:company:mary", "*"), asker_of("red", "jwt:company:mary", "ships"));
    let (first, _) = start(&searches, &wide, &question).await;
    let (second, joined) = start(&searches, &narrow, &question).await;
    assert!(!joined && second.id != first.id);
    for (asker, search) in [(&wide, &first), (&narrow, &second)] {
        let (same, joined) = start(&searches, asker, &question).await;
        assert!(joined && same.id == search.id);
    }
    [first, second].iter().for_each(|search| assert!(searches.stop(&search.id)));
}
