//! New events meet the questions that stand.

use super::event_queue::EventQueue;
use super::index::Index;
use super::registry::SavedSearches;
use super::search::SavedSearch;
use meridian_federation::event::{Event, Events};
use meridian_federation::provider::Own;
use meridian_formats::FeatureWriter;
use meridian_model::fence::Passage;
use meridian_model::{Batch, Fences, Seq, When};
use std::collections::HashMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// Events that are looked at before what they answer is sent, and before saved searches may come and go.
const CHUNK: usize = 256;

/// The questions that stand.
#[derive(Debug, Default)]
pub(super) struct Standing {
    pub(super) index: Index<Arc<SavedSearch>>,
    /// Those that tell what becomes of moving objects, by number.
    pub(super) fences: HashMap<u64, Arc<SavedSearch>>,
}

/// An event that a saved search is told of.
struct Hit {
    search: Arc<SavedSearch>,
    when: Option<When>,
    row: usize,
}

/// Looks at what came before, and then at what is heard until the ear is stopped.
pub(super) fn listen(event_queue: &EventQueue, saved: &Weak<SavedSearches>) {
    let Some(catching_up) = saved.upgrade() else { return };
    match catch_unwind(AssertUnwindSafe(|| catching_up.catch_up())) {
        Ok(true) => {}
        Ok(false) => return,
        Err(_) => {
            tracing::error!("what came while saved searches did not look was lost for them to a panic");
            catching_up.tell_unknown("a fault");
        }
    }
    drop(catching_up);
    while let Some((number, heard)) = event_queue.next() {
        let Some(saved) = saved.upgrade() else { return };
        // A write that came before a saved search is none of its new events.
        saved.process(&heard.collection, &heard.batch, &heard.seqs(), &|search, _| number > search.since);
        saved.progress.mark_processed(&heard.collection, heard.made, heard.first.position());
    }
}

/// Whether an event is one of the new ones of a saved search.
type Wants<'a> = &'a dyn Fn(&SavedSearch, Seq) -> bool;

impl SavedSearches {
    /// Tells saved searches of events. A panic costs the events that it happened in, and is counted.
    pub(super) fn process(&self, collection: &Arc<str>, batch: &Batch, seqs: &[Seq], wants: Wants<'_>) {
        let checkpoint = catch_unwind(AssertUnwindSafe(|| self.process_events(collection, batch, seqs, wants)));
        if checkpoint.is_err() {
            self.lost.fetch_add(seqs.len() as u64, Ordering::Relaxed);
            tracing::error!(collection = &**collection, "events were lost for saved searches to a panic");
        }
    }

    fn process_events(&self, collection: &Arc<str>, batch: &Batch, seqs: &[Seq], wants: Wants<'_>) {
        let writer = match FeatureWriter::new(batch.schema(), None) {
            Ok(writer) => writer,
            Err(e) => {
                self.lost.fetch_add(seqs.len() as u64, Ordering::Relaxed);
                tracing::error!(collection = &**collection, error = %e, "events cannot be shown to saved searches");
                return;
            }
        };
        let events = Events::of(collection, batch, &writer, seqs);
        for from in (0..seqs.len()).step_by(CHUNK) {
            let hits = self.hits(&events, seqs, from..(from + CHUNK).min(seqs.len()), wants);
            self.matches.fetch_add(hits.len() as u64, Ordering::Relaxed);
            self.tell(collection, &events, seqs, hits);
        }
    }

    fn hits(&self, events: &Events<'_>, seqs: &[Seq], rows: Range<usize>, wants: Wants<'_>) -> Vec<Hit> {
        let standing = self.standing.read();
        let mut fences = self.fences.lock();
        let mut hits = Vec::new();
        for row in rows {
            let event = events.event(row);
            let mut moving = Vec::new();
            standing.index.answered(&event, |search| match search.definition.when {
                _ if !wants(search, seqs[row]) => {}
                None => hits.push(Hit { search: search.clone(), when: None, row }),
                Some(_) => moving.push(search.clone()),
            });
            passages(&standing, &mut fences, &event, moving, row, &mut hits);
        }
        hits
    }

    /// Sends hits to those whose they are.
    fn tell(&self, collection: &str, events: &Events<'_>, seqs: &[Seq], mut hits: Vec<Hit>) {
        hits.sort_by_key(|hit| hit.search.number);
        let mut features: HashMap<(usize, bool), Option<Arc<str>>> = HashMap::new();
        for hits in hits.chunk_by(|a, b| a.search.number == b.search.number && a.when == b.when) {
            let (search, when) = (&hits[0].search, hits[0].when);
            let (room, question) = (search.room(Own::NAME), &search.definition.question);
            // Names of saved searches are of one length, so a feature that fits one packet fits all.
            let mut feature = |hit: &Hit| {
                let make = || events.event(hit.row).found(question).clone().feature_within(room).map(Arc::from);
                features.entry((hit.row, question.tells_language)).or_insert_with(make).clone()
            };
            let found: Vec<Arc<str>> = hits.iter().filter_map(&mut feature).collect();
            self.tell_dropped(search);
            if !found.is_empty() {
                search.send(&self.retention, Own::NAME, when, &found);
                search.note_origin(collection, seqs[hits[0].row].position());
                self.progress.unread(search);
            }
        }
    }

    /// Says that events were not looked at, once each time that happened.
    fn tell_dropped(&self, search: &SavedSearch) {
        let dropped = self.dropped();
        let told = search.counts.told_dropped.swap(dropped, Ordering::Relaxed);
        if dropped > told {
            let detail =
                format!("{} events of all came faster than they could be looked at, and were not", dropped - told);
            search.tell(&self.retention, Own::NAME, "error", &detail, 0, 0);
        }
    }
}

/// Adds what an event is to the saved searches that tell comings from leavings: `moving` are those that it answers.
fn passages(
    standing: &Standing,
    fences: &mut Fences,
    event: &Event<'_>,
    moving: Vec<Arc<SavedSearch>>,
    row: usize,
    hits: &mut Vec<Hit>,
) {
    let object = if standing.fences.is_empty() { None } else { event.object() };
    let passage = match object {
        Some(object) => {
            let mut inside: Vec<u64> = moving.iter().map(|search| search.number).collect();
            inside.sort_unstable();
            fences.pass(object, event.ends(), &inside)
        }
        None => Passage::default(),
    };
    if passage.late {
        return;
    }
    let mut tell = |search: &Arc<SavedSearch>, was: bool, is: bool| {
        let when = search.definition.when.as_deref().and_then(|asked| When::told(asked, was, is));
        hits.extend(when.map(|when| Hit { search: search.clone(), when: Some(when), row }));
    };
    for search in moving {
        // What does not move is inside, and never comes.
        tell(&search, passage.entered.binary_search(&search.number).is_err(), true);
    }
    for search in passage.left.iter().filter_map(|number| standing.fences.get(number)) {
        tell(search, true, false);
    }
}
