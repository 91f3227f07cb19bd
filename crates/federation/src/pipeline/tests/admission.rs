//! Which searches begin, and which are refused.

use super::{asker, hangs, packets, searches};
use crate::pipeline::*;
use crate::provider::{ProviderFuture, Sink};
use crate::refusal::Refusal;
use serde_json::json;
use tokio::time::{Duration, Instant};

/// More results than a queue holds, one at a time.
fn flood(sink: Sink) -> ProviderFuture<'static> {
    Box::pin(async move {
        for n in 0..1_000 {
            let one = SearchResult { id: format!("p{n}"), title: Some("good".to_owned()), ..SearchResult::default() };
            sink.found(vec![one]).await?;
        }
        Ok(())
    })
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_stops_the_work_and_none_waits_past_the_limit() {
    let settings = Settings {
        gone: Duration::from_millis(50),
        wait: Duration::from_millis(50),
        searches_max: 1,
        ..Settings::default()
    };
    let searches = searches(settings, &[("hangs", hangs)]);
    let question = json!({"keywords": "x", "providers": ["hangs"]});
    let (search, joined) = searches.start(&question, &asker("me"), Instant::now()).await.expect("a search");
    assert!(!joined);
    let (same, joined) = searches.start(&question, &asker("me"), Instant::now()).await.expect("the same");
    assert!(joined && same.id == search.id);
    match searches.start(&question, &asker("another"), Instant::now()).await {
        Err(Refusal::TooMany { running: 1, retry }) => assert!(retry <= Duration::from_secs(20)),
        other => panic!("{:?}", other.map(|(search, _)| search.id.clone())),
    }
    // Without a reader, the work ends long before the deadline and releases its slot.
    search.ended().await;
    assert_eq!(search.arrived.elapsed(), Duration::from_millis(50));
    while searches.running() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(json!(search.status())["state"], "absent");
    assert!(searches.start(&question, &asker("another"), Instant::now()).await.is_ok());
    // The retry time follows the duration of past searches, not the deadline.
    match searches.start(&question, &asker("a third"), Instant::now()).await {
        Err(Refusal::TooMany { running: 1, retry }) => {
            assert!((Duration::from_secs(1)..Duration::from_secs(15)).contains(&retry), "{retry:?}");
        }
        other => panic!("{:?}", other.map(|(search, _)| search.id.clone())),
    }
}

#[tokio::test]
async fn who_comes_while_work_waits_too_long_is_refused_until_it_does_not() {
    let settings = Settings { delay_max: Duration::ZERO, at_once: 1, ..Settings::default() };
    let searches = searches(settings, &[("flood", flood)]);
    let question = |n: usize| json!({"keywords": format!("good OR n{n}"), "providers": ["flood"]});
    let mut begun = Vec::new();
    let refusal = loop {
        match searches.start(&question(begun.len()), &asker(""), Instant::now()).await {
            Ok((search, _)) => begun.push(search),
            Err(refusal) => break refusal,
        }
        assert!(begun.len() < 200, "work never waits");
        tokio::task::yield_now().await;
    };
    assert!(matches!(refusal, Refusal::Busy { retry, .. } if retry == Duration::from_secs(1)), "{refusal:?}");
    begun.iter().for_each(|search| assert!(searches.stop(&search.id)));
    // The packets waiting for them are discarded.
    let again = async {
        while let Err(refusal) = searches.start(&question(begun.len()), &asker(""), Instant::now()).await {
            assert!(matches!(refusal, Refusal::Busy { .. } | Refusal::Early { .. }), "{refusal:?}");
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), again).await.expect("a place");
}

#[tokio::test]
async fn who_comes_before_his_turn_does_not_take_the_place_of_one_who_comes_for_the_first_time() {
    let searches = searches(Settings { searches_max: 4, ..Settings::default() }, &[("hangs", hangs)]);
    let ask = async |who: &str| {
        let question = json!({"keywords": "x", "providers": ["hangs"]});
        searches.start(&question, &asker(who), Instant::now()).await.map(|(search, _)| search)
    };
    let fewer = async |search: &crate::Search, running: usize| {
        assert!(searches.stop(&search.id));
        while searches.running() > running {
            tokio::task::yield_now().await;
        }
    };
    let mut begun = Vec::new();
    for who in ["a", "b", "c", "d"] {
        begun.push(ask(who).await.expect("a search"));
    }
    let Err(Refusal::TooMany { retry: told, .. }) = ask("e").await else { panic!("a fifth of four") };
    fewer(&begun[0], 3).await;
    // There is a slot, but not for this client yet. Early retries do not change its turn.
    for _ in 0..3 {
        let Err(Refusal::Early { retry }) = ask("e").await else { panic!("let in before its turn") };
        assert!(retry <= told);
    }
    begun.push(ask("f").await.expect("a first question"));
    // A lightly loaded server admits early retries.
    for (n, running) in [(1, 3), (2, 2), (3, 1)] {
        fewer(&begun[n], running).await;
    }
    ask("e").await.expect("a search");
}

#[tokio::test]
async fn no_provider_that_can_take_it_is_said_at_once() {
    let searches = searches(Settings::default(), &[]);
    // There is no collection, so the only provider has nothing to search.
    let all = packets(&searches, json!({"keywords": "x"})).await;
    assert_eq!((all.len(), all[0]["state"].as_str(), all[1]["state"].as_str()), (2, Some("skipped"), Some("absent")));
}
