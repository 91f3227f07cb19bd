//! Webhooks: signed calls, dead letters, and addresses that are not called.

use super::world::{NEWS, PATIENCE, World, everything, stop, titles};
use crate::SavedSearches;
use crate::signature;
use serde_json::Value;
use serde_json::json;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

/// Starts a webhook whose responses depend on the number of earlier calls. Sends heads and bodies of the calls to the
/// channel.
pub(super) async fn hook(
    answer: impl Fn(usize) -> u16 + Send + 'static,
) -> (String, tokio::sync::mpsc::UnboundedReceiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (send, receive) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut calls = 0;
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut text = Vec::new();
            let (head, body) = loop {
                let mut piece = [0; 4096];
                let count = stream.read(&mut piece).await.unwrap();
                if count == 0 {
                    return;
                }
                text.extend_from_slice(&piece[..count]);
                let text = String::from_utf8_lossy(&text);
                if let Some((head, body)) = text.split_once("\r\n\r\n") {
                    let head = head.to_ascii_lowercase();
                    let length: usize =
                        head.split_once("content-length: ").unwrap().1.lines().next().unwrap().parse().unwrap();
                    if body.len() >= length {
                        break (head, body.to_owned());
                    }
                }
            };
            let status = answer(calls);
            calls += 1;
            let _ = send.send((head, body));
            // A redirect must not be followed.
            let answer = format!(
                "HTTP/1.1 {status} So\r\nlocation: /elsewhere\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (url, receive)
}

#[tokio::test]
async fn a_webhook_gets_every_packet_signed_and_in_order_however_often_it_fails_at_first() {
    let mut world = World::new(NEWS);
    world.saved.webhook.allow_private = true;
    world.saved.webhook.wait = Duration::from_millis(1);
    let saved = world.open();
    let (url, mut calls) = hook(|call| [500, 302, 200][call.min(2)]).await;
    let search = saved
        .create(
            &json!({"keywords": "flood", "webhook": {"url": url, "secret": "a secret of mine"}}),
            &everything(&saved),
        )
        .await
        .expect("made");
    world.write(&[("title", "flood one")], 0, (0.0, 0.0));
    let mut seqs = Vec::new();
    for call in 0..4 {
        if call == 3 {
            world.write(&[("title", "flood two")], 0, (0.0, 0.0));
        }
        let (head, body) = tokio::time::timeout(PATIENCE, calls.recv()).await.expect("in time").expect("a call");
        assert!(head.starts_with("post /hook "), "no redirect is followed: {head}");
        let packet: Value = serde_json::from_str(&body).unwrap();
        let header = |name: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap_or_default();
            line.to_owned()
        };
        assert_eq!((header("meridian-search"), header("meridian-seq")), (search.id.clone(), packet["seq"].to_string()));
        let timestamp: i64 = header("meridian-timestamp").parse().unwrap();
        assert_eq!(header("meridian-signature"), signature("a secret of mine", timestamp, &body));
        assert_eq!(header("content-type"), "application/json");
        seqs.push(packet["seq"].as_u64().unwrap());
    }
    assert_eq!(seqs, [0, 0, 0, 1]);
    stop(&saved).await;
}

#[tokio::test]
async fn what_a_webhook_never_takes_becomes_a_dead_letter() {
    let mut world = World::new(NEWS);
    world.saved.webhook.allow_private = true;
    world.saved.webhook.wait = Duration::from_millis(1);
    world.saved.webhook.tries = 3;
    let saved = world.open();
    let (url, mut calls) = hook(|_| 500).await;
    let asked = json!({"keywords": "flood", "webhook": {"url": url, "secret": "a secret of mine"}});
    let search = saved.create(&asked, &everything(&saved)).await.expect("made");
    for title in ["flood one", "flood two"] {
        world.write(&[("title", title)], 0, (0.0, 0.0));
        for _ in 0..3 {
            tokio::time::timeout(PATIENCE, calls.recv()).await.expect("in time").expect("a call");
        }
    }
    let report = || json!(saved.status(&search))["webhook"].clone();
    let all_dead = async {
        while report()["dead"] != 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, all_dead).await.expect("in time");
    let (before, figures) = (report(), saved.figures());
    assert_eq!((before["sent"].as_u64(), before["next_packet"].as_u64()), (Some(0), Some(2)));
    assert_eq!(titles(&before["dead_letters"][1]["packet"]), ["flood two"]);
    assert!(before["failing"].as_str().unwrap().contains("500"), "{before}");
    assert_eq!(figures.webhooks, (0, 6, 2));
    stop(&saved).await;
    let shown = |saved: &SavedSearches| json!(saved.status(&saved.get(&search.id).unwrap()))["webhook"].clone();
    let again = world.open();
    let after = shown(&again);
    assert_eq!((&after["dead"], &after["dead_letters"]), (&before["dead"], &before["dead_letters"]));
    assert!(figures.letter_bytes > 0);
    assert_eq!(again.figures().letter_bytes, figures.letter_bytes);
    stop(&again).await;
    // There is room for only one of the two.
    world.saved.webhook.dead_bytes_total = figures.letter_bytes - 1;
    let again = world.open();
    let after = shown(&again);
    assert_eq!((&after["dead"], &after["dead_letters"]), (&before["dead"], &json!([before["dead_letters"][1]])));
    stop(&again).await;
}

#[tokio::test]
async fn a_name_that_leads_to_a_private_address_is_not_called() {
    let mut world = World::new(NEWS);
    world.saved.webhook.wait = Duration::from_millis(1);
    world.saved.webhook.tries = 2;
    let saved = world.open();
    let (url, mut calls) = hook(|_| 200).await;
    let asked = |url: &str| json!({"keywords": "flood", "webhook": {"url": url, "secret": "a secret of mine"}});
    let refused = saved.create(&asked(&url), &everything(&saved)).await.expect_err("it is written out").to_string();
    assert!(refused.contains("private address"), "{refused}");
    // The address that a name resolves to is checked at the call.
    let named = saved.create(&asked(&url.replace("127.0.0.1", "localhost")), &everything(&saved)).await.expect("made");
    world.write(&[("title", "flood")], 0, (0.0, 0.0));
    let given_up = async {
        while json!(saved.status(&named))["webhook"]["dead"] != 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, given_up).await.expect("in time");
    let report = json!(saved.status(&named))["webhook"].clone();
    assert!(report["dead_letters"][0]["why"].as_str().unwrap().contains("private address"), "{report}");
    assert!(calls.try_recv().is_err(), "no call was made");
    stop(&saved).await;
}
