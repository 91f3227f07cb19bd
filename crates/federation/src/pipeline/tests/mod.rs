//! Failing stages, in searches without a server.

mod admission;
mod images;
mod memory;
mod panics;
mod tenants;

use super::*;
use crate::asker::SearchClient;
use crate::provider::scripted::ScriptedProvider;
use crate::provider::{ProviderFuture, Sink};
use crate::refusal::Refusal;
use crate::searches::Searches;
use meridian_admission::identity::Identity;
use meridian_backend::{Embedded, View};
use meridian_model::policy::access::{Grant, Role};
use meridian_store::seams::Seams;
use meridian_store::{Options, Store};
use serde_json::{Value, json};
use std::sync::LazyLock;
use tokio::time::Instant;

/// The behaviour of a provider.
type Does = fn(Sink) -> ProviderFuture<'static>;

fn searches(settings: Settings, told: &[(&'static str, Does)]) -> Arc<Searches> {
    Arc::new(bare(settings, told))
}

fn bare(settings: Settings, told: &[(&'static str, Does)]) -> Searches {
    let seams = Seams::real();
    let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).expect("a store"));
    let mut searches =
        Searches::new(settings, Embedded::new(store), "default".to_owned(), seams.clock.clone(), seams.random.clone());
    for (name, does) in told {
        searches = searches.with(Arc::new(ScriptedProvider::new(name, *does)));
    }
    searches
}

/// Returns a client that sees the collections of an empty server.
pub(crate) fn asker(key: &str) -> SearchClient {
    asker_of("default", key, "*")
}

/// Returns such a client of a tenant, with rights over these collections.
fn asker_of(tenant: &str, key: &str, collections: &str) -> SearchClient {
    static EMPTY: LazyLock<Arc<Store>> =
        LazyLock::new(|| Arc::new(Store::open(Options::ephemeral(), Seams::real()).expect("a store")));
    let grant = Grant { role: Role::Admin, collections: collections.parse().expect("a pattern") };
    let caller = Identity::new(tenant, grant, key);
    SearchClient { key: key.to_owned(), view: View::new(Embedded::new(EMPTY.clone()), Arc::new(caller)) }
}

/// Returns all packets of a search, checked for gaps.
async fn packets(searches: &Arc<Searches>, question: Value) -> Vec<Value> {
    let (search, _) = searches.start(&question, &asker(""), Instant::now()).await.expect("a search");
    let mut reader = search.outbox.read(0).expect("a reader");
    let mut packets: Vec<Value> = Vec::new();
    while let Some((seq, packet)) = reader.next().await {
        assert!(packet.len() <= searches.settings().packet_bytes);
        packets.push(serde_json::from_str(&packet).expect("JSON"));
        assert_eq!(packets[packets.len() - 1]["seq"], seq);
        assert_eq!(seq, packets.len() as u64 - 1);
    }
    packets
}

fn good(sink: Sink) -> ProviderFuture<'static> {
    Box::pin(async move {
        sink.found(vec![SearchResult { id: "g".to_owned(), title: Some("good".to_owned()), ..SearchResult::default() }])
            .await
    })
}

fn hangs(sink: Sink) -> ProviderFuture<'static> {
    Box::pin(async move {
        sink.found(vec![SearchResult {
            id: "h".to_owned(),
            title: Some("good, before it hung".to_owned()),
            ..SearchResult::default()
        }])
        .await?;
        std::future::pending().await
    })
}

/// A store whose disk is full.
struct Full;

impl ResultStore for Full {
    fn prepare(&self, _: &View, _: &crate::KeepOptions) -> Result<(), Refusal> {
        Ok(())
    }

    fn write(&self, _: &View, _: &crate::KeepOptions, _: &str, _: &str, found: &[SearchResult]) -> Result<(), String> {
        Err(format!("{} results: the disk is full", found.len()))
    }
}

#[tokio::test]
async fn what_cannot_be_kept_is_said_once_and_delivered_all_the_same() {
    fn twice(sink: Sink) -> ProviderFuture<'static> {
        Box::pin(async move {
            for id in ["a", "b"] {
                sink.found(vec![SearchResult {
                    id: id.to_owned(),
                    title: Some(format!("good {id}")),
                    ..SearchResult::default()
                }])
                .await?;
            }
            Ok(())
        })
    }
    let question = json!({"keywords": "good", "providers": ["twice"], "keep": {"collection": "found"}});
    let searches = Arc::new(bare(Settings::default(), &[("twice", twice)]).keeping(Arc::new(Full)));
    let all = packets(&searches, question.clone()).await;
    let told: Vec<&Value> = all.iter().filter(|packet| packet["kind"] == "keep").collect();
    assert_eq!(told.len(), 1, "{all:?}");
    assert_eq!((told[0]["provider"].as_str(), told[0]["state"].as_str()), (Some("twice"), Some("error")));
    assert!(told[0]["detail"].as_str().expect("text").contains("the disk is full"));
    let last = all.last().expect("a last packet");
    assert_eq!((last["state"].as_str(), last["kept"].as_u64()), (Some("complete"), Some(0)));
    assert_eq!(all.iter().filter(|packet| packet["kind"] == "results").count(), 2);
    // Without a result store, `keep` is refused at once.
    let searches = self::searches(Settings::default(), &[("twice", twice)]);
    match searches.start(&question, &asker(""), Instant::now()).await {
        Err(Refusal::Invalid(mistake)) => assert_eq!(mistake.field.as_deref(), Some("keep")),
        other => panic!("{:?}", other.map(|(search, _)| search.id.clone())),
    }
}
