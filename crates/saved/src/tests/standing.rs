//! Saved searches over a real store: events in, packets out, across restarts.

use crate::{SavedSearch, SavedSearches, SavedSettings, signature};
use meridian_backend::Embedded;
use meridian_federation::Reader;
use meridian_federation::Settings;
use meridian_federation::provider::Provider;
use meridian_federation::{Refusal, Searches};
use meridian_model::builder::Value as Field;
use meridian_model::{BatchBuilder, Schema, schema_spec};
use meridian_store::seams::Seams;
use meridian_store::{Collection, Options, Store, Write};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A test that hangs should fail with a message.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct World {
    pub(super) store: Arc<Store>,
    seams: Seams,
    collection: Arc<Collection>,
    pub(super) settings: Settings,
    pub(super) saved: SavedSettings,
    pub(super) providers: Vec<Arc<dyn Provider>>,
}

impl World {
    pub(super) fn new(spec: &str) -> World {
        let seams = Seams::real();
        let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
        let schema: Schema = schema_spec::parse(spec).unwrap();
        let collection = store.create("default", "events", schema, Default::default()).unwrap();
        World {
            store,
            seams,
            collection,
            settings: Settings::default(),
            saved: SavedSettings::default(),
            providers: Vec::new(),
        }
    }

    /// Starts a server.
    pub(super) fn open(&self) -> Arc<SavedSearches> {
        let (clock, random) = (self.seams.clock.clone(), self.seams.random.clone());
        let mut searches = Searches::new(
            self.settings.clone(),
            Embedded::new(self.store.clone()),
            "default".to_owned(),
            clock.clone(),
            random.clone(),
        );
        for provider in &self.providers {
            searches = searches.with(provider.clone());
        }
        let saved = SavedSearches::open(
            Arc::new(searches),
            Embedded::new(self.store.clone()),
            "default".to_owned(),
            self.saved.clone(),
            clock,
            random,
        );
        saved.run().unwrap();
        saved
    }

    /// Writes an event: texts by field, a position.
    pub(super) fn write(&self, texts: &[(&str, &str)], second: i64, (lon, lat): (f64, f64)) {
        let schema = self.collection.schema();
        let mut builder = BatchBuilder::new(schema.clone());
        for (name, text) in texts {
            builder.set(schema.field_index(name).unwrap(), Field::Text((*text).to_owned())).unwrap();
        }
        if let Some(at) = schema.field_index("at") {
            builder.set(at, Field::Time(second * 1_000_000)).unwrap();
        }
        builder.set_point(lon, lat).unwrap();
        builder.end_event().unwrap();
        self.collection.write(Write::new(builder.finish().unwrap())).unwrap();
    }
}

pub(super) const NEWS: &str = "title:String,*geom:Point:srid=4326";

pub(super) async fn next(reader: &mut Reader) -> Value {
    let (seq, packet) = tokio::time::timeout(PATIENCE, reader.next()).await.expect("in time").expect("a packet");
    let packet: Value = serde_json::from_str(&packet).expect("JSON");
    assert_eq!(packet["seq"], seq);
    packet
}

pub(super) fn titles(packet: &Value) -> Vec<&str> {
    packet["features"].as_array().unwrap().iter().map(|f| f["properties"]["title"].as_str().unwrap()).collect()
}

pub(super) async fn stop(saved: &Arc<SavedSearches>) {
    let saved = saved.clone();
    tokio::task::spawn_blocking(move || saved.stop()).await.unwrap().unwrap();
}

#[tokio::test]
async fn new_events_are_told_and_a_saved_search_goes_on_after_a_restart() {
    let world = World::new(NEWS);
    let saved = world.open();
    world.write(&[("title", "flood zero")], 0, (4.8, 45.7));
    let asked = json!({"name": "floods", "question": {"keywords": "flood", "near": [4.8, 45.7], "radius": 5000}});
    let search = saved.create(&asked).await.expect("made");
    let mut reader = search.outbox.read_kept();
    for (title, lon) in [("flood one", 4.8), ("fire", 4.8), ("flood far away", 5.8), ("flood two", 4.81)] {
        world.write(&[("title", title)], 0, (lon, 45.7));
    }
    let packet = next(&mut reader).await;
    assert_eq!((packet["search"].as_str(), packet["seq"].as_u64()), (Some(search.id.as_str()), Some(0)));
    assert_eq!((packet["provider"].as_str(), packet["kind"].as_str()), (Some("meridian"), Some("results")));
    let mut told: Vec<String> = titles(&packet).into_iter().map(str::to_owned).collect();
    while told.len() < 2 {
        told.extend(titles(&next(&mut reader).await).into_iter().map(str::to_owned));
    }
    assert_eq!(told, ["flood one", "flood two"], "and not the one before it was saved");

    // No reader takes these packets; a clean stop keeps them.
    drop(reader);
    let (_, read, _) = search.outbox.numbers();
    world.write(&[("title", "flood three")], 0, (4.8, 45.7));
    stop(&saved).await;
    drop(saved);
    world.write(&[("title", "flood meanwhile")], 0, (4.8, 45.7));
    let saved = world.open();
    let again = saved.get(&search.id).expect("it is still there");
    assert_eq!(again.definition.shown(), search.definition.shown());
    let mut reader = again.outbox.read(read).expect("numbers go on");
    world.write(&[("title", "flood four")], 0, (4.8, 45.7));
    let expected = ["flood three", "flood meanwhile", "flood four"];
    for title in expected {
        assert_eq!(titles(&next(&mut reader).await), [title]);
    }
    let (_, after, lost) = again.outbox.numbers();
    assert_eq!((after, lost), (read + 3, 0));

    // A crash loses the kept packets; a reader that asks for them is notified. Numbers are never reused.
    drop(reader);
    saved.close();
    drop(saved);
    let saved = world.open();
    let again = saved.get(&search.id).expect("it is still there");
    let gone = again.outbox.read(after).expect_err("lost");
    assert!(gone.first > after + 1_000_000);
    let mut reader = again.outbox.read_kept();
    world.write(&[("title", "flood five")], 0, (4.8, 45.7));
    // First, packets repeat whose reading was not on disk yet.
    let mut told = Vec::new();
    while told.last().is_none_or(|last| last != "flood five") {
        told.extend(titles(&next(&mut reader).await).into_iter().map(str::to_owned));
    }
    told.pop();
    assert!(expected.ends_with(&told.iter().map(String::as_str).collect::<Vec<_>>()), "{told:?}");

    assert!(saved.delete(&search.id).await.expect("deleted"));
    assert_eq!(next(&mut reader).await["kind"], "complete");
    assert!(reader.next().await.is_none());
    assert!(!saved.delete(&search.id).await.expect("there is none"));
    stop(&saved).await;
    assert!(world.open().list("", 10).0.is_empty());
}

#[tokio::test]
async fn a_record_that_is_damaged_is_named_and_the_rest_stands() {
    let world = World::new(NEWS);
    let saved = world.open();
    let search = saved.create(&json!({"keywords": "flood"})).await.expect("made");
    let records = world.store.records("saved");
    let (one, two) = ("0".repeat(32), "1".repeat(32));
    records.put(&one, b"{}").unwrap();
    records.put(&two, br#"{"created":1,"question":{"keywords":"(a"}}"#).unwrap();
    stop(&saved).await;
    let saved = world.open();
    assert!(saved.get(&search.id).is_some());
    let damaged = saved.damaged();
    assert_eq!(damaged.keys().collect::<Vec<_>>(), [&one, &two]);
    assert!(damaged[&two].contains("not closed"), "{damaged:?}");
    assert_eq!(records.get(&one).unwrap().as_deref(), Some(&b"{}"[..]), "it is left as it is");
    stop(&saved).await;
}

#[tokio::test]
async fn there_are_no_more_than_may_be_and_no_providers_that_are_not_there() {
    let mut world = World::new(NEWS);
    world.saved.max = 2;
    let saved = world.open();
    for _ in 0..2 {
        saved.create(&json!({"keywords": "flood"})).await.expect("made");
    }
    let refused = saved.create(&json!({"keywords": "flood"})).await;
    assert!(matches!(refused, Err(Refusal::TooManySaved { most: 2 })));
    let (some, more) = saved.list("", 1);
    assert_eq!((some.len(), more), (1, true));
    let (rest, more) = saved.list(&some[0].id, 10);
    assert_eq!((rest.len(), more), (1, false));
    for (asked, part) in [
        (json!({"keywords": "a", "providers": ["bing"]}), "not enabled here"),
        (json!({"keywords": "a", "poll_s": 60}), "none to poll"),
        (json!({"address": "Lyon"}), "no collection"),
    ] {
        saved.delete(&rest[0].id).await.expect("deleted or gone");
        let refused = saved.create(&asked).await.expect_err("refused").to_string();
        assert!(refused.contains(part), "{refused}");
    }
    stop(&saved).await;
}

#[tokio::test]
async fn who_comes_and_who_leaves_is_told_over_a_restart() {
    let world = World::new("ship:String:object=true,title:String,at:Date,*geom:Point:srid=4326");
    let mut saved = world.open();
    let fence = |when: &[&str]| json!({"question": {"bbox": [0, 0, 1, 1], "when": when}});
    let all = saved.create(&fence(&["enter", "inside", "exit"])).await.expect("made");
    let leaving = saved.create(&fence(&["exit"])).await.expect("made");
    let inside = saved.create(&fence(&["inside"])).await.expect("made");
    let any = saved.create(&json!({"bbox": [0, 0, 1, 1]})).await.expect("made");
    let mut expected = Vec::new();
    // Ship, second, longitude; what the saved search `all` reports.
    for (ship, second, lon, told) in [
        ("a", 1, -1.0, None),
        ("a", 2, 0.5, Some("enter")),
        ("b", 2, 0.5, Some("enter")),
        ("a", 3, 0.6, Some("inside")),
        ("a", 2, 5.0, None), // it comes late: the ship has been inside since
        ("restart", 0, 0.0, None),
        ("a", 4, 2.0, Some("exit")),
        ("a", 5, 2.1, None),
        ("b", 3, 0.6, Some("inside")),
        ("a", 6, 0.5, Some("enter")),
    ] {
        if ship == "restart" {
            stop(&saved).await;
            saved = world.open();
            continue;
        }
        world.write(&[("ship", ship), ("title", &format!("{ship}{second}"))], second, (lon, 0.5));
        expected.extend(told.map(|told| (format!("{ship}{second}"), told.to_owned())));
    }
    stop(&saved).await;
    let of = |search: &Arc<SavedSearch>| {
        let (_, packets) = saved.get(&search.id).unwrap().outbox.kept();
        let packets = packets.iter().map(|packet| serde_json::from_str::<Value>(packet).unwrap());
        let told = packets.flat_map(|packet| {
            let when = packet["when"].as_str().unwrap_or_default().to_owned();
            titles(&packet).into_iter().map(|title| (title.to_owned(), when.clone())).collect::<Vec<_>>()
        });
        told.collect::<Vec<_>>()
    };
    assert_eq!(of(&all), expected);
    assert_eq!(of(&leaving), [("a4".to_owned(), "exit".to_owned())]);
    let matching = || expected.iter().filter(|(_, told)| told != "exit").map(|(title, _)| title.clone());
    assert_eq!(of(&inside), matching().map(|title| (title, "inside".to_owned())).collect::<Vec<_>>());
    assert_eq!(of(&any), matching().map(|title| (title, String::new())).collect::<Vec<_>>());
}

/// A webhook whose responses depend on the number of calls before. Heads and bodies of the calls are sent to the
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
        .create(&json!({"keywords": "flood", "webhook": {"url": url, "secret": "a secret of mine"}}))
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
    let search = saved.create(&asked).await.expect("made");
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
    // There is space for one of the two.
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
    let refused = saved.create(&asked(&url)).await.expect_err("it is written out").to_string();
    assert!(refused.contains("private address"), "{refused}");
    // The address that a name resolves to is checked at the call.
    let named = saved.create(&asked(&url.replace("127.0.0.1", "localhost"))).await.expect("made");
    world.write(&[("title", "flood")], 0, (0.0, 0.0));
    let given_up = async {
        while json!(saved.status(&named))["webhook"]["dead"] != 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, given_up).await.expect("in time");
    let report = json!(saved.status(&named))["webhook"].clone();
    assert!(report["dead_letters"][0]["why"].as_str().unwrap().contains("private address"), "{report}");
    assert!(calls.try_recv().is_err(), "nobody was called");
    stop(&saved).await;
}
