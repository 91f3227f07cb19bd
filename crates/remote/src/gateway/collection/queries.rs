//! Queries that the owner of a collection runs.

use super::other_answer;
use crate::gateway::engine::Patience;
use crate::gateway::remote::Remote;
use crate::gateway::rows::{RemoteRows, head, query_error};
use crate::wire::call::{ActionCall, Get};
use crate::wire::described::WireHead;
use crate::wire::fault::Fault;
use meridian_backend::measured::counted;
use meridian_backend::{Head, Queries, ReadPoint, ReadResult, Rows};
use meridian_model::filter::Predicate;
use meridian_observe::{self as observe, Stage};
use meridian_query::partial::{Partial, PartialGrid, PartialGroups, PartialPassages, PartialTile, PartialTrack};
use meridian_query::wire::{Count, Question};
use meridian_query::{
    Aggregate, Aggregated, Control, Cursor, Density, DensityCounts, Explanation, Items, Passages, PassagesResult,
    QueryError, Tile, TileResult, Track, TrackResult,
};

/// Implements the queries whose partial result is finished here.
macro_rules! of_a_partial {
    ($($name:ident($question:ident) -> $answer:ty, $part:ident: $finish:expr;)*) => {
        $(fn $name(&self, at: ReadPoint, question: &$question, control: &Control) -> Result<ReadResult<$answer>, QueryError> {
            let ReadResult { head, value } = self.partial(at, &Question::$question(question.clone()), control)?;
            let Partial::$part(part) = value else { return Err(other_answer()) };
            Ok(ReadResult { head, value: $finish(part, question, control)? })
        })*
    };
}

impl Queries for Remote {
    of_a_partial! {
        aggregate(Aggregate) -> Aggregated, Groups: |part: Box<PartialGroups>, q, c| part.finish(q, c);
        density(Density) -> DensityCounts, Grid: |part: PartialGrid, _, _| Ok::<_, QueryError>(part.finish());
        track(Track) -> TrackResult, Track: |part: PartialTrack, q, c| part.finish(q, c);
        passages(Passages) -> PassagesResult, Passages: |part: PartialPassages, q, _| Ok::<_, QueryError>(part.finish(q));
    }

    fn head(&self, at: &ReadPoint) -> Option<Head> {
        // Only the response tells which snapshot a scan server has.
        if at.eventual.is_some() && self.shared.scans.is_some() {
            return None;
        }
        let ask = ActionCall::Head { place: self.mirror.place.clone(), at: at.clone().into() };
        // Asked once. Without a response the query itself is sent, as servers of earlier versions require.
        let head = self.link().value_now::<Option<WireHead>>(ask).ok().flatten()?;
        Some(head.into_head(&self.known_schema()))
    }

    fn items(&self, at: ReadPoint, question: &Items, control: &Control) -> Result<Box<dyn Rows>, QueryError> {
        if let Some(parts) = self.in_parts(&at) {
            return parts.items(at, question, control);
        }
        let _plan = observe::stage(Stage::Plan);
        let ask = || {
            let asked = self.asked(at, &Question::Items(question.clone()), control)?;
            let (answer, first) = self.ask(Get::Rows(asked), &Patience::of(control))?;
            RemoteRows::new(self.link().clone(), control.clone(), answer, first, &self.known_schema())
        };
        ask().map(|rows| Box::new(rows) as Box<dyn Rows>).map_err(|fault| query_error(fault, control))
    }

    fn cuts(&self, at: ReadPoint, parts: usize, control: &Control) -> Result<Vec<Cursor>, QueryError> {
        let ask = || {
            let get = Get::Cuts { place: self.mirror.place.clone(), at: at.into(), parts };
            let (_, first) = self.ask(get, &Patience::of(control))?;
            let bytes: Vec<Vec<u8>> = serde_json::from_value(first.meta.value.unwrap_or_default())
                .map_err(|e| Fault::internal(e.to_string()))?;
            let cuts: Option<Vec<Cursor>> = bytes.iter().map(|bytes| Cursor::from_bytes(bytes)).collect();
            cuts.ok_or_else(|| Fault::internal("a cursor cannot be read"))
        };
        ask().map_err(|fault| query_error(fault, control))
    }

    fn count(
        &self,
        at: ReadPoint,
        predicate: &Predicate,
        tested_max: u64,
        control: &Control,
    ) -> Result<Option<u64>, QueryError> {
        let question = Question::Count(Count { predicate: predicate.clone(), tested_max });
        match self.partial(at, &question, control)?.value {
            Partial::Count(count) => Ok(count.total),
            _ => Err(other_answer()),
        }
    }

    fn partial(
        &self,
        at: ReadPoint,
        question: &Question,
        control: &Control,
    ) -> Result<ReadResult<Partial>, QueryError> {
        if let Some(parts) = self.in_unknown_parts(&at) {
            return parts.partial(at, question, control);
        }
        let mut scan = observe::stage(Stage::Scan);
        let read = self.asks_partial(at, question, control).map_err(|fault| query_error(fault, control))?;
        let stats = read.value.stats();
        counted(&mut scan, &stats);
        control.charge_elsewhere(stats.bytes_read);
        Ok(read)
    }

    fn explain(
        &self,
        at: ReadPoint,
        question: &Items,
        control: &Control,
    ) -> Result<ReadResult<Explanation>, QueryError> {
        if let Some(parts) = self.in_unknown_parts(&at) {
            return parts.explain(at, question, control);
        }
        let ask = || {
            let question = Question::Items(question.clone());
            // The whole response is in the first message.
            let (mut via, _, mut first) = self.begin(&at, &question, control, Get::Explain)?;
            via.done();
            let head = head(&mut first, &self.known_schema())?;
            let value = first.meta.value.unwrap_or_default();
            let value: Explanation = serde_json::from_value(value).map_err(|e| Fault::internal(e.to_string()))?;
            control.charge_elsewhere(value.stats.bytes_read);
            Ok(ReadResult { head, value })
        };
        ask().map_err(|fault| query_error(fault, control))
    }

    fn tile(&self, at: ReadPoint, question: &Tile, control: &Control) -> Result<ReadResult<TileResult>, QueryError> {
        let mut question = question.clone();
        loop {
            let ReadResult { head, value } = self.partial(at.clone(), &Question::Tile(question.clone()), control)?;
            let Partial::Tile(part) = value else { return Err(other_answer()) };
            let merged = PartialTile::merge(vec![part], &question);
            match merged.map_err(|e| Fault::internal(e.to_string()).into_query())? {
                Some(part) => return Ok(ReadResult { head, value: part.finish(&question) }),
                // Too many events to draw, which only the merge may reveal.
                None if !question.density => question.density = true,
                None => return Err(other_answer()),
            }
        }
    }
}
