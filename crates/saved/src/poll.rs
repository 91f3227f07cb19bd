//! Polling: queries remote providers at intervals for saved searches, with bounded concurrency, and sends only new
//! results.

use super::ledgers::suspended;
use super::records::seen_of;
use super::registry::SavedSearches;
use super::search::SavedSearch;
use meridian_federation::hash;
use meridian_federation::provider::LocalProvider;
use meridian_federation::{Priority, Question, SearchClient, SearchKey};
use meridian_model::FenceTransition;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Polls saved searches as they fall due, until dropped.
pub(super) async fn run(saved: Arc<SavedSearches>) {
    let mut polls = JoinSet::new();
    loop {
        // A permit first, so that the turn is decided when a poll can run.
        let Ok(place) = saved.polls_due.places.clone().acquire_owned().await else { return };
        let search = loop {
            let id = tokio::select! {
                id = saved.polls_due.next() => id,
                // A panic is logged where it happens. The next poll of its saved search is scheduled already.
                Some(_) = polls.join_next(), if !polls.is_empty() => continue,
            };
            // Deleted since it was scheduled: its entry is not removed from the schedule, only skipped.
            let Some(search) = saved.get(&id) else { continue };
            let Some(pause) = search.definition.poll else { continue };
            saved.polls_due.add(Instant::now() + pause, &search);
            if (saved.holds)() && !suspended(&saved.ledgers, &search.definition.tenant) {
                break search;
            }
        };
        let saved = saved.clone();
        polls.spawn(async move {
            poll(&saved, &search).await;
            drop(place);
        });
    }
}

/// Queries the providers of a saved search, through the same stages as any search.
async fn poll(saved: &SavedSearches, search: &SavedSearch) {
    // A poll that takes longer than its interval is not started twice.
    let Ok(_alone) = search.polling.try_lock() else { return };
    let asked = &search.definition.question;
    let outside: Vec<String> = match &asked.providers {
        Some(names) => names.iter().filter(|name| *name != LocalProvider::NAME).cloned().collect(),
        None => saved.searches.remote_names().map(str::to_owned).collect(),
    };
    let question = Question { priority: Priority::Poll, providers: Some(outside), ..asked.clone() };
    let asker = SearchClient { key: format!("saved search {}", search.id), view: saved.view_of(search) };
    let key = SearchKey::of(&asker, "");
    let failing = match saved.searches.begin(question, key, &asker, Instant::now()).await {
        Ok((run, _)) => match run.outbox.read(0) {
            Ok(mut reader) => {
                while let Some((_, packet)) = reader.next().await {
                    take(saved, search, &packet);
                }
                None
            }
            Err(_) => Some("its results arrived faster than they were read".to_owned()),
        },
        Err(refusal) => Some(refusal.to_string()),
    };
    // The guard must not be held over the write below.
    let news = {
        let mut polled = search.polled.lock();
        polled.polls += 1;
        polled.last = Some(saved.clock.now());
        polled.failing = failing;
        std::mem::take(&mut polled.news).then(|| polled.seen.bytes())
    };
    saved.polls.fetch_add(1, Ordering::Relaxed);
    let Some(bytes) = news else { return };
    let (records, name) = (saved.records.clone(), seen_of(&search.id));
    let written = tokio::task::spawn_blocking(move || records.put(&name, &bytes)).await;
    if let Ok(Err(e)) = written {
        tracing::error!(search = search.id, error = %e, "results seen could not be written: they may be sent again after a restart");
    }
}

/// Sends the new results in a packet of a poll.
fn take(saved: &SavedSearches, search: &SavedSearch, packet: &str) {
    let Ok(packet) = serde_json::from_str::<Value>(packet) else { return };
    let provider = packet["provider"].as_str().unwrap_or_default();
    match packet["kind"].as_str() {
        Some("results") => {
            let wanted = search.definition.when.as_ref().is_none_or(|when| when.contains(&FenceTransition::Inside));
            let features: Vec<Arc<str>> = {
                let mut polled = search.polled.lock();
                let all = packet["features"].as_array().map(Vec::as_slice).unwrap_or_default();
                let new =
                    all.iter().filter(|f| polled.seen.is_new(hash(&[provider, f["id"].as_str().unwrap_or_default()])));
                let features: Vec<Arc<str>> = new.map(|feature| feature.to_string().into()).collect();
                polled.news |= !features.is_empty();
                features
            };
            if wanted {
                let when = search.definition.when.is_some().then_some(FenceTransition::Inside);
                search.send(&saved.retention, provider, when, &features);
            }
        }
        // A provider's state is reported when it changes.
        Some("provider") => {
            let (state, detail) = (packet["state"].as_str().unwrap_or_default(), packet["detail"].as_str());
            let before = search.polled.lock().states.insert(provider.to_owned(), state.to_owned());
            if before.as_deref() != Some(state) {
                let number = |name: &str| packet[name].as_u64().unwrap_or(0);
                let (results, ms) = (number("results"), number("ms"));
                search.report(&saved.retention, provider, state, detail.unwrap_or_default(), results, ms);
            }
        }
        _ => {}
    }
}
