//! Queries of a collection of several partitions.

use super::{Partitioned, join, other_answer, rows};
use crate::queries::Queries;
use crate::read::{Head, ReadPoint, ReadResult, Rows};
use meridian_model::filter::Predicate;
use meridian_query::partial::Partial;
use meridian_query::wire::Question;
use meridian_query::{
    Aggregate, Aggregated, Control, Cursor, Density, DensityCounts, Explanation, Items, Order, Passages,
    PassagesResult, QueryError, Stats, Tile, TileResult, Track, TrackResult, joined_cuts,
};

/// Implements queries whose partial results are merged and finished here.
macro_rules! of_partials {
    ($($name:ident($question:ident) -> $answer:ty, $part:ident: $finish:expr;)*) => {
        $(fn $name(&self, at: ReadPoint, question: &$question, control: &Control) -> Result<ReadResult<$answer>, QueryError> {
            let ReadResult { head, value } = self.ask(&at, &Question::$question(question.clone()), control)?;
            let Partial::$part(part) = value else { return Err(other_answer()) };
            Ok(ReadResult { head, value: $finish(part, question, control)? })
        })*
    };
}

impl Queries for Partitioned {
    of_partials! {
        aggregate(Aggregate) -> Aggregated, Groups: |part: Box<meridian_query::partial::PartialGroups>, q, c| part.finish(q, c);
        density(Density) -> DensityCounts, Grid: |part: meridian_query::partial::PartialGrid, _, _| Ok::<_, QueryError>(part.finish());
        tile(Tile) -> TileResult, Tile: |part: meridian_query::partial::PartialTile, q, _| Ok::<_, QueryError>(part.finish(q));
        track(Track) -> TrackResult, Track: |part: meridian_query::partial::PartialTrack, q, c| part.finish(q, c);
        passages(Passages) -> PassagesResult, Passages: |part: meridian_query::partial::PartialPassages, q, _| Ok::<_, QueryError>(part.finish(q));
    }

    fn head(&self, at: &ReadPoint) -> Option<Head> {
        let ats = self.each(at).ok()?;
        let heads = self.parts.iter().zip(ats).map(|(part, at)| part.head(&at));
        join(heads.collect::<Option<_>>()?).ok()
    }

    fn items(&self, at: ReadPoint, question: &Items, control: &Control) -> Result<Box<dyn Rows>, QueryError> {
        Ok(Box::new(rows::open(&self.parts, self.each(&at)?, question, control)?))
    }

    fn cuts(&self, at: ReadPoint, parts: usize, control: &Control) -> Result<Vec<Cursor>, QueryError> {
        let mut all = Vec::new();
        for (part, at) in self.parts.iter().zip(self.each(&at)?) {
            all.extend(part.cuts(at, parts, control)?);
        }
        Ok(joined_cuts(all, parts))
    }

    fn count(
        &self,
        at: ReadPoint,
        predicate: &Predicate,
        tested_max: u64,
        control: &Control,
    ) -> Result<Option<u64>, QueryError> {
        let mut all = Some(0u64);
        for (part, at) in self.parts.iter().zip(self.each(&at)?) {
            // One that gives up makes the total unknown, so the others need not count.
            let Some(known) = all else { break };
            all = part.count(at, predicate, tested_max, control)?.map(|count| known.saturating_add(count));
        }
        Ok(all)
    }

    fn partial(
        &self,
        at: ReadPoint,
        question: &Question,
        control: &Control,
    ) -> Result<ReadResult<Partial>, QueryError> {
        self.ask(&at, question, control)
    }

    fn explain(
        &self,
        at: ReadPoint,
        question: &Items,
        control: &Control,
    ) -> Result<ReadResult<Explanation>, QueryError> {
        let (mut heads, mut plan, mut stats, mut found) = (Vec::new(), Vec::new(), Stats::default(), 0u64);
        for (number, (part, at)) in self.parts.iter().zip(self.each(&at)?).enumerate() {
            let ReadResult { head, value } = part.explain(at, question, control)?;
            heads.push(head);
            plan.extend(value.plan.into_iter().map(|step| format!("partition {number}: {step}")));
            stats.merge(&value.stats);
            found = found.saturating_add(value.returned);
        }
        // The rows returned by the merge.
        let of_page = question.limit.map_or(found, |limit| found.min(limit as u64));
        let returned = match (&question.order, &question.after) {
            (Order::Near { k: Some(k), .. }, after) => {
                let given = if let Some(Cursor::Near { given, .. }) = after { *given } else { 0 };
                of_page.min((*k as u64).saturating_sub(given))
            }
            _ => of_page,
        };
        Ok(ReadResult { head: join(heads)?, value: Explanation { plan, stats, returned } })
    }
}
