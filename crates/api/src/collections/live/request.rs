//! The parameters of a stream: which events, and after which position.

use super::not_yet;
use crate::protocol::params::Params;
use crate::protocol::params::crs::{self, Crs};
use crate::protocol::params::page;
use crate::protocol::params::selection::{self, EventSelection};
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::context::Context;
use axum::http::HeaderName;
use meridian_backend::Collection;
use meridian_model::filter::Predicate;
use meridian_model::{FenceTransition, Positions, Schema, Seq, Seqs};

static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Digits of the position of an event.
const SEQ_DIGITS: usize = 13;
/// Bits of a position in the log.
const POSITION_BITS: u32 = meridian_model::seq::POSITION_BITS;

/// A request for a stream.
pub(super) struct StreamRequest {
    pub(super) predicate: Predicate,
    pub(super) properties: Option<Vec<String>>,
    pub(super) crs: Crs,
    /// The transitions of moving objects to report; `None`: every event that matches.
    pub(super) when: Option<Vec<FenceTransition>>,
    /// The position after which the stream starts.
    pub(super) after: Seqs,
}

impl StreamRequest {
    pub(super) fn take(context: &Context, collection: &dyn Collection) -> Result<StreamRequest> {
        let schema = collection.schema();
        let mut params = Params::parse(context.query.as_deref())?;
        let properties = page::take_properties(&mut params, &schema)?;
        let crs = params.take("crs").map(|c| crs::parse("crs", &c)).transpose()?.unwrap_or_default();
        let after = params.take("after");
        let when = params.take("when").map(|words| when(&words, &schema)).transpose()?;
        let radius = params.clone().take("radius").is_some();
        let selection = EventSelection::take(&mut params, &schema)?;
        params.finish_with(&selection::queryable_names(&schema))?;
        // Without a radius `near` selects nothing: it only orders, which a stream cannot do.
        if selection.near.is_some() && !radius {
            return Err(Problem::parameter(
                "near",
                "a stream is in the order of writing, not by distance: add radius=metres",
            ));
        }
        if selection.predicate.ids().is_some() {
            return Err(Problem::parameter("id", "a stream cannot be limited to ids: read single events at items"));
        }
        let newest = collection.position().ends();
        let header = context.headers.get(&LAST_EVENT_ID).map(|value| value.to_str().unwrap_or("?").to_owned());
        // A client that reconnects sends its position in the header; its URL still contains that of the first attempt.
        let after = match header.map(|text| ("Last-Event-ID", text)).or_else(|| after.map(|text| ("after", text))) {
            None => newest,
            Some((name, text)) => {
                let mut after = position(name, &text)?;
                // From the beginning, whatever the number of partitions.
                if after == Positions::default().ends() {
                    after = newest.map(|_| Seq::end_of(0));
                }
                // Such a position comes from another collection, or from before a restore: following it would silently
                // skip events.
                if !newest.covers(&after) {
                    return Err(not_yet(name, &text, &newest.to_id()));
                }
                // A position for another number of partitions would match no partition, or omit some.
                if after.len() != newest.len() {
                    let detail = format!(
                        "{text:?} is a position of {} partitions: the collection has {}",
                        after.len(),
                        newest.len()
                    );
                    return Err(Problem::parameter(name, detail));
                }
                after
            }
        };
        check_retained(collection, &after)?;
        Ok(StreamRequest { predicate: selection.predicate, properties, crs, when, after })
    }
}

/// Parses the transitions selected by `when`.
fn when(words: &str, schema: &Schema) -> Result<Vec<FenceTransition>> {
    if schema.object.is_none() {
        return Err(Problem::parameter("when", "this collection names no object field (x-meridian-object)"));
    }
    FenceTransition::read(words.split(',').map(str::trim)).map_err(|e| Problem::parameter("when", e.detail))
}

/// Refuses a position after which retention has removed events: they would be silently missing.
fn check_retained(collection: &dyn Collection, after: &Seqs) -> Result<()> {
    let settings = collection.settings();
    let oldest = collection.oldest();
    let is_gap = |partition| {
        let (after, oldest) = (after.at(partition), oldest.at(partition));
        after.0.saturating_add(1) < oldest.0 && after.position() + 1 < oldest.position()
    };
    let gap = (0..after.len()).any(is_gap);
    // Without retention, a gap at the beginning has another cause, such as deleted events, which is no loss.
    if !gap || settings.retention.is_none() && settings.retention_bytes.is_none() {
        return Ok(());
    }
    let first = oldest.map(|seq| Seq(seq.0.saturating_sub(1))).later(after).to_id();
    let detail = format!("events after {after} are past the retention and no longer held: resume after {first}");
    Err(Problem::new(Kind::Gone, detail).with("first", first))
}

/// Parses a position: of an event, as sent by streams, or of a write, as returned in its response.
pub fn position(name: &str, text: &str) -> Result<Seqs> {
    // The position of a write has fewer digits, so the length distinguishes the two.
    if text.split('-').all(|part| part.len() == SEQ_DIGITS) {
        return Seqs::from_id(text).map_err(|e| Problem::parameter(name, e.detail));
    }
    let positions = Positions::read(text).filter(|all| all.as_slice().iter().all(|n| *n < 1 << POSITION_BITS));
    positions.map(|positions| positions.ends()).ok_or_else(|| {
        let expected = "expected the position of an event (13 digits of base 32), or that of a write (a whole number)";
        Problem::parameter(name, format!("{text:?} is not a position: {expected}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_of_events_or_of_writes() {
        assert_eq!(position("after", "7").unwrap(), Seqs::one(Seq::end_of(7)));
        let several: Positions = [7, 0, 3].into_iter().collect();
        assert_eq!(position("after", "7-0-3").unwrap(), several.ends());
        assert_eq!(position("after", &several.ends().to_id()).unwrap(), several.ends());
        let seq = Seq::new(3, 9);
        assert_eq!(position("after", &seq.to_id()).unwrap(), Seqs::one(seq));
        for bad in ["", "-1", "x", "1.5", "uuuuuuuuuuuuu", "99999999999999999999", "1099511627776000"] {
            assert!(position("after", bad).is_err(), "{bad}");
        }
    }
}
