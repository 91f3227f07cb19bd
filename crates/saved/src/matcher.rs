//! Matches new events with saved searches.

use super::event_queue::EventQueue;
use super::fences::TenantFences;
use super::match_index::MatchIndex;
use super::progress::Origin;
use super::registry::SavedSearches;
use super::search::SavedSearch;
use meridian_federation::event::Events;
use meridian_federation::provider::LocalProvider;
use meridian_federation::supervise_thread;
use meridian_formats::FeatureWriter;
use meridian_model::fence::Passage;
use meridian_model::{Batch, FenceTransition, Seq, WrittenBatch};
use std::collections::HashMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// Events matched before the matches are sent. Between chunks the index is unlocked, so that saved searches can be
/// created and deleted.
const CHUNK: usize = 256;

/// A match of an event with a saved search.
struct Match {
    search: Arc<SavedSearch>,
    when: Option<FenceTransition>,
    row: usize,
}

/// Catches up, then matches events from the queue until it is stopped. After a panic it goes on with the next events.
pub(super) fn listen(event_queue: &EventQueue, saved: &Weak<SavedSearches>) {
    let mut has_begun = false;
    let mut at_hand: Option<(Arc<str>, u64)> = None;
    supervise_thread(
        "matcher",
        |pause| event_queue.pause(pause),
        || {
            // A panic came before it was known whether they were processed. Saved searches report them as lost.
            if let Some((tenant, events)) = at_hand.take() {
                event_queue.lose(&tenant, events);
            }
            if !std::mem::replace(&mut has_begun, true) && saved.upgrade().is_none_or(|saved| !saved.catch_up()) {
                return;
            }
            while let Some((number, written)) = event_queue.next() {
                // Weak, so that this thread does not keep a dropped server alive while it waits.
                let Some(saved) = saved.upgrade() else { return };
                at_hand = Some((written.tenant.clone(), written.batch.rows() as u64));
                saved.process_write(number, &written);
                at_hand = None;
            }
        },
    );
}

/// Returns true if an event is new to a saved search.
type NewEventTest<'a> = &'a dyn Fn(&SavedSearch, Seq) -> bool;

impl SavedSearches {
    /// Processes a write, unless the catch-up has processed it. Writes before the creation of a saved search do not match
    /// it.
    fn process_write(&self, number: u64, written: &WrittenBatch) {
        let place = Origin { tenant: &written.tenant, collection: &written.collection };
        let (partition, position) = (written.partition(), written.first.position());
        if self.was_opened_after(place, written.made, partition, position) {
            return;
        }
        self.process(place, partition, &written.batch, &written.seqs(), &|search, _| {
            number > search.since && search.definition.covers(&written.collection)
        });
        // Marked after processing: a crash in between repeats the events rather than losing them.
        self.progress.mark_partition(place, written.made, partition, position);
    }

    /// Matches events of a partition and sends the matches. A panic costs the events of its call and is counted.
    pub(super) fn process(
        &self,
        place: Origin<'_>,
        partition: usize,
        batch: &Batch,
        seqs: &[Seq],
        wants: NewEventTest<'_>,
    ) {
        let Origin { tenant, collection } = place;
        let mut done = false;
        self.background.run(tenant, &mut || {
            done = catch_unwind(AssertUnwindSafe(|| self.process_events(place, partition, batch, seqs, wants))).is_ok();
        });
        if !done {
            // Counted, so that every saved search of the tenant reports it with its next results.
            self.event_queue.lose(tenant, seqs.len() as u64);
            tracing::error!(%tenant, %collection, "events were lost for saved searches to a panic");
        }
    }

    fn process_events(
        &self,
        place: Origin<'_>,
        partition: usize,
        batch: &Batch,
        seqs: &[Seq],
        wants: NewEventTest<'_>,
    ) {
        let Origin { tenant, collection } = place;
        let writer = match FeatureWriter::new(batch.schema(), None) {
            Ok(writer) => writer,
            Err(error) => {
                self.event_queue.lose(tenant, seqs.len() as u64);
                tracing::error!(%tenant, %collection, %error, "events cannot be shown to saved searches");
                return;
            }
        };
        let events = Events::of(collection, batch, &writer, seqs);
        for from in (0..seqs.len()).step_by(CHUNK) {
            let matches = self.matches(tenant, &events, seqs, from..(from + CHUNK).min(seqs.len()), wants);
            self.matches.fetch_add(matches.len() as u64, Ordering::Relaxed);
            self.deliver((collection, partition), &events, seqs, matches);
        }
    }

    fn matches(
        &self,
        tenant: &Arc<str>,
        events: &Events<'_>,
        seqs: &[Seq],
        rows: Range<usize>,
        wants: NewEventTest<'_>,
    ) -> Vec<Match> {
        // Both are held for the whole chunk, so that matches and transitions belong to the same set of saved searches.
        let match_indexes = self.match_indexes.read();
        let mut fences = self.fences.lock();
        let mut matches = Vec::new();
        let Some(match_index) = match_indexes.get(tenant) else { return matches };
        for row in rows {
            let event = events.event(row);
            let mut moving = Vec::new();
            match_index.index.answered(&event, |search| match search.definition.when {
                _ if !wants(search, seqs[row]) => {}
                None => matches.push(Match { search: search.clone(), when: None, row }),
                // Decided below: whether it is `enter` or `inside` depends on the object's former position.
                Some(_) => moving.push(search.clone()),
            });
            // An event of a tenant without fences need not be remembered.
            let object = if match_index.fences.is_empty() { None } else { event.object() };
            let passage = object.map(|object| passage(&mut fences, tenant, object, event.ends(), &moving));
            report_passage(match_index, passage.unwrap_or_default(), moving, row, &mut matches);
        }
        matches
    }

    /// Sends matches to their saved searches.
    fn deliver(
        &self,
        (collection, partition): (&str, usize),
        events: &Events<'_>,
        seqs: &[Seq],
        mut matches: Vec<Match>,
    ) {
        // A stable sort: the matches of one saved search keep the order of the events.
        matches.sort_by_key(|found_match| found_match.search.number);
        let mut features: HashMap<(usize, bool), Option<Arc<str>>> = HashMap::new();
        for matches in matches.chunk_by(|a, b| a.search.number == b.search.number && a.when == b.when) {
            let (search, when) = (&matches[0].search, matches[0].when);
            let (room, question) = (search.room(LocalProvider::NAME), &search.definition.question);
            // Ids of saved searches have one length, so a feature that fits one packet fits all.
            let mut feature = |found_match: &Match| {
                let make = || events.event(found_match.row).found(question).clone().feature_within(room).map(Arc::from);
                features.entry((found_match.row, question.detect_language)).or_insert_with(make).clone()
            };
            let found: Vec<Arc<str>> = matches.iter().filter_map(&mut feature).collect();
            self.tell_dropped(search);
            if !found.is_empty() {
                search.send(&self.retention, LocalProvider::NAME, when, &found);
                // After the packet: the origin covers the numbers up to it. Both precede the move of the checkpoint.
                search.note_origin(collection, partition, seqs[matches[0].row].position());
                self.progress.unread(search);
            }
        }
    }

    /// Reports unprocessed events of its tenant, each only once.
    fn tell_dropped(&self, search: &SavedSearch) {
        let dropped = self.event_queue.dropped(&search.definition.tenant);
        // Swapped, so that each loss is reported once, even by two threads.
        let told = search.counts.told_dropped.swap(dropped, Ordering::Relaxed);
        if dropped > told {
            let detail = format!(
                "{} events in all arrived faster than they could be processed, and were dropped",
                dropped - told
            );
            search.report(&self.retention, LocalProvider::NAME, "error", &detail, 0, 0);
        }
    }
}

/// Records an event of an object, which matches the saved searches `moving`.
fn passage(
    fences: &mut TenantFences,
    tenant: &Arc<str>,
    object: u64,
    ends: i64,
    moving: &[Arc<SavedSearch>],
) -> Passage {
    let mut inside: Vec<u64> = moving.iter().map(|search| search.number).collect();
    inside.sort_unstable();
    fences.pass(tenant, object, ends, &inside)
}

/// Adds the matches of saved searches that report entering and leaving; `moving` are those that the event matches.
fn report_passage(
    match_index: &MatchIndex,
    passage: Passage,
    moving: Vec<Arc<SavedSearch>>,
    row: usize,
    matches: &mut Vec<Match>,
) {
    // An older position must not undo what a newer one has reported.
    if passage.late {
        return;
    }
    let mut tell = |search: &Arc<SavedSearch>, was: bool, is: bool| {
        let when = search.definition.when.as_deref().and_then(|asked| FenceTransition::transition(asked, was, is));
        matches.extend(when.map(|when| Match { search: search.clone(), when: Some(when), row }));
    };
    for search in moving {
        // An event without an object counts as inside and never as entering.
        tell(&search, passage.entered.binary_search(&search.number).is_err(), true);
    }
    for search in passage.left.iter().filter_map(|number| match_index.fences.get(number)) {
        tell(search, true, false);
    }
}
