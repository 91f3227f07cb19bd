//! Supervised tasks and threads of saved searches panic and restart.

use super::missed::written;
use super::world::{NEWS, PATIENCE, World, everything, next, stop, titles};
use meridian_federation::faults::{inject_panic, pending_panics};
use meridian_federation::{SourceDeclaration, task_panics};
use meridian_model::Background;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A source that returns one more result on each call, and signals each.
async fn growing() -> (String, UnboundedReceiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let (send, calls) = unbounded_channel();
    tokio::spawn(async move {
        let mut items = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            items.push(json!({"id": items.len(), "text": "flood"}));
            let _ = stream.read(&mut [0; 4_096]).await;
            let body = json!({"items": items}).to_string();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            let _ = send.send(());
        }
    });
    (url, calls)
}

async fn called(calls: &mut UnboundedReceiver<()>) {
    tokio::time::timeout(PATIENCE, calls.recv()).await.expect("in time").expect("a call");
}

#[tokio::test]
async fn the_poller_dies_and_polls_again() {
    let (url, mut calls) = growing().await;
    let text = format!(
        "name = \"source\"\n[takes]\nkeywords = \"all\"\n[request]\nurl = \"{url}\"\n[request.query]\nq = \"{{words}}\"\n\
         [answer]\nformat = \"json\"\nitems = \"items\"\n[answer.map]\nid = \"id\"\ntext = \"text\"\n[limits]\nallow_private = true"
    );
    let mut world = World::new(NEWS);
    world.saved.poll_min = Duration::from_secs(1);
    world.settings.providers.push(Arc::new(SourceDeclaration::parse(&text, &|_| None).expect("a declaration")));
    let saved = world.open();
    let asked = json!({"keywords": "flood", "providers": ["source"], "poll_s": 1});
    saved.create(&asked, &everything(&saved)).await.expect("made");
    called(&mut calls).await;
    inject_panic("poller");
    called(&mut calls).await;
    called(&mut calls).await;
    assert_eq!(pending_panics(), Vec::<&str>::new());
    stop(&saved).await;
}

#[tokio::test]
async fn the_postman_dies_and_sends_all_the_same() {
    let (url, mut calls) = growing().await;
    let mut world = World::new(NEWS);
    world.saved.webhook.allow_private = true;
    let saved = world.open();
    let asked = json!({"keywords": "flood", "webhook": {"url": url, "secret": "a secret of mine"}});
    saved.create(&asked, &everything(&saved)).await.expect("made");
    inject_panic("postman");
    for title in ["flood one", "flood two"] {
        world.write(&[("title", title)], 0, (0.0, 0.0));
        called(&mut calls).await;
    }
    assert_eq!(pending_panics(), Vec::<&str>::new());
    stop(&saved).await;
}

/// Panics at the first work, and runs all later work.
#[derive(Debug, Default)]
struct FaultyOnce(AtomicBool);

impl Background for FaultyOnce {
    fn run(&self, _: &str, work: &mut dyn FnMut()) {
        assert!(self.0.swap(true, Ordering::Relaxed), "on purpose");
        work();
    }
}

#[tokio::test]
async fn the_matcher_dies_and_goes_on_with_the_next_events() {
    let mut world = World::new(NEWS);
    world.background = Arc::new(FaultyOnce::default());
    let (saved, before) = (world.open(), task_panics());
    let made = saved.create(&json!({"keywords": "flood"}), &everything(&saved)).await.expect("made");
    let mut reader = made.outbox.read_kept();
    for title in ["flood one", "flood two"] {
        world.write(&[("title", title)], 0, (0.0, 0.0));
    }
    let lost = next(&mut reader).await;
    assert!(lost["detail"].as_str().is_some_and(|detail| detail.starts_with("1 events")), "{lost}");
    assert_eq!(titles(&next(&mut reader).await), ["flood two"]);
    assert!(task_panics() > before);
    assert_eq!(saved.figures().events.1, 1);
    stop(&saved).await;
}

#[tokio::test]
async fn a_catch_up_that_dies_is_reported_and_its_end_recorded() {
    let mut world = World::new(NEWS);
    let saved = world.open();
    let made = saved.create(&json!({"keywords": "flood"}), &everything(&saved)).await.expect("made");
    stop(&saved).await;
    world.write(&[("title", "flood one")], 0, (0.0, 0.0));
    world.background = Arc::new(FaultyOnce::default());
    let saved = world.open();
    let mut reader = saved.get(&made.id).expect("kept").outbox.read_kept();
    let lost = next(&mut reader).await;
    assert!(lost["detail"].as_str().is_some_and(|detail| detail.starts_with("missed events of \"events\"")), "{lost}");
    world.write(&[("title", "flood two")], 0, (0.0, 0.0));
    assert_eq!(titles(&next(&mut reader).await), ["flood two"]);
    // A checkpoint is written only once the catch-up has ended.
    written(&world, |checkpoint| checkpoint["collections"]["events"]["position"] == 2).await;
    stop(&saved).await;
}
