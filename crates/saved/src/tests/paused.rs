//! Long waits, and actions that must not happen, under a paused clock.
#![allow(clippy::disallowed_methods, reason = "what other threads do takes real time")]

use super::webhooks::hook;
use super::world::{NEWS, OTHER, PATIENCE, World, all_of, everything, next, stop, titles};
use meridian_federation::provider::ProviderFuture;
use meridian_federation::provider::scripted::ScriptedProvider;
use meridian_federation::{Priority, SearchResult, Sink};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Duration, Instant};

/// A paused clock advances when all tasks are idle, and a task that waits for a socket counts as idle. While this value
/// exists, a blocking task runs, so the clock stays. It has no deadline of its own: a test on a loaded machine takes
/// long, and an advancing clock would end calls in progress. Waits are bounded by `until`.
fn held_clock() -> std::sync::mpsc::Sender<()> {
    let (release, held) = std::sync::mpsc::channel();
    tokio::task::spawn_blocking(move || held.recv());
    release
}

/// Waits for a condition that other threads may need time for. The deadline is in real time, since the clock is held.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        tokio::task::yield_now().await;
    }
}

/// The body of the next call of a webhook.
async fn called(calls: &mut UnboundedReceiver<(String, String)>) -> String {
    let mut call = None;
    until("a call", || {
        call = calls.try_recv().ok();
        call.is_some()
    })
    .await;
    call.expect("a call").1
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_fails_for_a_day_costs_one_packet_and_what_there_is_no_room_for() {
    let _held = held_clock();
    let mut world = World::new(NEWS);
    world.saved.webhook.allow_private = true;
    world.saved.buffer_bytes = 4 << 10;
    let saved = world.open();
    let well = Arc::new(AtomicBool::new(false));
    let answer = {
        let well = well.clone();
        move |_: usize| -> u16 { if well.load(Ordering::SeqCst) { 200 } else { 500 } }
    };
    let (url, mut calls) = hook(answer).await;
    let asked = json!({"keywords": "flood", "webhook": {"url": url, "secret": "a secret of mine"}});
    let search = saved.create(&asked, &everything(&saved)).await.expect("made");
    let seq = |body: &str| serde_json::from_str::<Value>(body).expect("JSON")["seq"].as_u64().expect("a number");
    let (begun, mut written, mut tried) = (Instant::now(), 0_u64, 0_u64);
    loop {
        // Before the clock is advanced: after the last try the next packet is read at once, and none may be evicted
        // then.
        for _ in 0..3 {
            world.write(&[("title", &format!("flood {written}"))], 0, (4.8, 45.7));
            written += 1;
        }
        // A packet has its number before older ones are evicted for it.
        until("events are told", || search.outbox.numbers().1 == written && saved.figures().packet_bytes <= 4 << 10)
            .await;
        if tried > 0 {
            // The max pause.
            let doubled = Duration::from_secs(1 << (tried - 1).min(12)).min(Duration::from_secs(3_600));
            tokio::time::advance(doubled.mul_f64(1.25)).await;
        }
        assert_eq!(seq(&called(&mut calls).await), 0);
        tried += 1;
        // More if the next packet was sent and refused before this check.
        until("the call is counted", || saved.figures().webhooks.1 >= tried).await;
        if saved.figures().webhooks.2 == 1 {
            break;
        }
    }
    let hours = begun.elapsed().as_secs_f64() / 3_600.0;
    assert!((22.0..24.0).contains(&hours) && tried < 50, "{tried} calls in {hours} hours");
    let report = || json!(saved.status(&search))["webhook"].clone();
    until("the letter is kept", || report()["dead"] == 1).await;
    let letter = report()["dead_letters"][0].clone();
    assert_eq!((letter["seq"].as_u64(), letter["tries"].as_u64()), (Some(0), Some(tried)), "{letter}");
    assert!(letter["why"].as_str().expect("text").contains("500"), "{letter}");

    // The oldest packet kept is next. Once the webhook recovers, all that follow arrive at once, in order.
    let body = called(&mut calls).await;
    let first = seq(&body);
    until("the call is counted", || saved.figures().webhooks.1 == tried + 1).await;
    well.store(true, Ordering::SeqCst);
    tokio::time::advance(Duration::from_secs(2)).await;
    for expected in first..written {
        let body = called(&mut calls).await;
        assert_eq!(seq(&body), expected);
    }
    until("the last is counted", || report()["next_packet"] == written).await;
    let told = ["dead", "lost", "sent"].map(|name| report()[name].as_u64().expect("a number"));
    assert_eq!(told, [1, first - 1, written - first], "{}", report());
    assert!(first > 1 && report()["failing"].is_null(), "{}", report());
    stop(&saved).await;
}

#[tokio::test(start_paused = true)]
async fn no_more_polls_run_at_once_than_may() {
    let mut world = World::new(NEWS);
    world.saved.polls_at_once = 2;
    // A source that responds on demand.
    let (asked, leave) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let slow = {
        let (asked, leave) = (asked.clone(), leave.clone());
        move |sink: Sink| -> ProviderFuture<'static> {
            assert_eq!(sink.question().priority, Priority::Poll);
            asked.fetch_add(1, Ordering::SeqCst);
            let leave = leave.clone();
            Box::pin(async move {
                leave.acquire().await.expect("it is never closed").forget();
                Ok(())
            })
        }
    };
    world.providers.push(Arc::new(ScriptedProvider { at_once: 64, ..ScriptedProvider::new("slow", slow) }));
    let saved = world.open();
    for n in 0..5 {
        let question = json!({"keywords": format!("flood{n}"), "providers": ["slow"], "poll_s": 3_600});
        saved.create(&question, &everything(&saved)).await.expect("made");
    }
    for answered in 0..5_usize {
        // The clock advances when all tasks are idle.
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(asked.load(Ordering::SeqCst), (2 + answered).min(5));
        assert_eq!(saved.figures().polls, answered as u64);
        leave.add_permits(1);
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!((asked.load(Ordering::SeqCst), saved.figures().polls), (5, 5));
    stop(&saved).await;
}

#[tokio::test(start_paused = true)]
async fn a_tenant_with_many_due_polls_leaves_turns_to_others() {
    let mut world = World::new(NEWS);
    world.saved.polls_at_once = 1;
    // A source that records callers, and responds on demand.
    let (asked, leave) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Semaphore::new(0)));
    let slow = {
        let (asked, leave) = (asked.clone(), leave.clone());
        move |sink: Sink| -> ProviderFuture<'static> {
            asked.lock().extend(sink.question().author.clone());
            let leave = leave.clone();
            Box::pin(async move {
                leave.acquire().await.expect("it is never closed").forget();
                Ok(())
            })
        }
    };
    world.providers.push(Arc::new(ScriptedProvider { at_once: 64, ..ScriptedProvider::new("slow", slow) }));
    let saved = world.open();
    let question = |author: &str| json!({"author": author, "providers": ["slow"], "poll_s": 3_600});
    for _ in 0..8 {
        saved.create(&question("ours"), &everything(&saved)).await.expect("made");
    }
    for _ in 0..2 {
        saved.create(&question("theirs"), &all_of(OTHER, &saved)).await.expect("made");
    }
    for _ in 0..10 {
        // The clock advances when all tasks are idle.
        tokio::time::sleep(Duration::from_millis(1)).await;
        leave.add_permits(1);
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    let asked = asked.lock().clone();
    assert_eq!(asked.len(), 10);
    assert_eq!(asked[..4].iter().filter(|author| *author == "theirs").count(), 2, "{asked:?}");
    stop(&saved).await;
}

#[tokio::test(start_paused = true)]
async fn polls_and_webhooks_of_a_suspended_tenant_pause() {
    let _held = held_clock();
    let mut world = World::new(NEWS);
    world.saved.webhook.allow_private = true;
    let polled = Arc::new(AtomicUsize::new(0));
    let counting = {
        let polled = polled.clone();
        move |_: Sink| -> ProviderFuture<'static> {
            polled.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { Ok(()) })
        }
    };
    world.providers.push(Arc::new(ScriptedProvider::new("counting", counting)));
    world.suspended.store(true, Ordering::SeqCst);
    let saved = world.open();
    let (url, mut calls) = hook(|_| 200).await;
    let hooked = json!({"keywords": "flood", "webhook": {"url": url, "secret": "a secret of mine"}});
    let hooked = saved.create(&hooked, &all_of(OTHER, &saved)).await.expect("made");
    let polling = json!({"keywords": "flood", "providers": ["counting"], "poll_s": 60});
    saved.create(&polling, &all_of(OTHER, &saved)).await.expect("made");
    world.write_of(OTHER, &[("title", "flood")], 0, (4.8, 45.7));
    until("the event is matched", || hooked.outbox.numbers().1 == 1).await;
    for _ in 0..100 {
        tokio::time::advance(Duration::from_secs(1)).await;
        tokio::task::yield_now().await;
    }
    assert!(calls.try_recv().is_err());
    assert_eq!(polled.load(Ordering::SeqCst), 0);
    world.suspended.store(false, Ordering::SeqCst);
    tokio::time::advance(Duration::from_secs(60)).await;
    let body = called(&mut calls).await;
    assert!(body.contains("\"seq\":0"), "{body}");
    until("it is polled", || polled.load(Ordering::SeqCst) == 1).await;
    stop(&saved).await;
}

#[tokio::test(start_paused = true)]
async fn outside_providers_are_polled_and_only_what_is_new_is_sent() {
    let mut world = World::new(NEWS);
    world.saved.poll_min = Duration::from_secs(1);
    // A source that returns one more result on each call.
    let calls = AtomicUsize::new(0);
    let growing = move |sink: Sink| -> ProviderFuture<'static> {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            let found = |n: usize| SearchResult {
                id: n.to_string(),
                title: Some(format!("flood {n}")),
                ..SearchResult::default()
            };
            sink.found((0..=call).map(found).collect()).await
        })
    };
    world.providers.push(Arc::new(ScriptedProvider::new("growing", growing)));
    let saved = world.open();
    let asked = json!({"keywords": "flood", "providers": ["growing"], "poll_s": 1});
    let search = saved.create(&asked, &everything(&saved)).await.expect("made");
    let mut reader = search.outbox.read_kept();
    let (begun, mut told) = (Instant::now(), Vec::new());
    while told.len() < 3 {
        let packet = next(&mut reader).await;
        assert_eq!(packet["provider"], "growing");
        match packet["kind"].as_str() {
            Some("results") => told.extend(titles(&packet).into_iter().map(str::to_owned)),
            // The state is reported only when it changes.
            _ => assert_eq!((packet["state"].as_str(), told.len()), (Some("complete"), 1)),
        }
    }
    assert_eq!(told, ["flood 0", "flood 1", "flood 2"]);
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
    // Results seen are remembered across a crash as well.
    let remembered = || world.store.records("saved").get(&format!("{}-seen", search.id)).unwrap();
    until("results seen are written", || remembered().is_some_and(|seen| seen.len() >= 24)).await;
    drop(reader);
    saved.close();
    drop(saved);
    let saved = world.open();
    let mut reader = saved.get(&search.id).expect("it is there").outbox.read_kept();
    let news = loop {
        let packet = next(&mut reader).await;
        if packet["kind"] == "results" {
            break packet;
        }
    };
    assert!(titles(&news).iter().all(|title| !told.contains(&(*title).to_owned())), "{news}");
    stop(&saved).await;
}
