//! Read-ahead for slow reads, that is, of segments in a bucket.
//!
//! The trees show which rows a query will read. Before a part is read for the first time, the first of these rows of
//! all parts are fetched at once. After that, more of a part is fetched when its fetched rows are used up. So a small
//! query waits for the bucket once, and a large one once for many chunks. The number of fetched rows grows as long as
//! they are used. A query that is mostly decided by the trees reads few of their rows.

use super::Scan;
use crate::candidates::{Step, search_step};
use crate::control::Stats;
use meridian_index::NodeRef;
use meridian_model::Projection;
use std::ops::Range;

/// Runs of each part, at most a chunk long, in the first fetch.
const FIRST: u32 = 8;
/// Max runs of one part per fetch.
const MOST: u32 = 32;

/// Read-ahead state of a part.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadAhead {
    /// Rows before this one were fetched, as far as they were expected.
    upto: u32,
    /// Number of runs in the last fetch, and how many of them were read.
    fetched: u32,
    used: u32,
    /// Rows of the last fetch before this one were counted as used.
    counted: u32,
}

impl ReadAhead {
    /// State of a part before the first fetch.
    pub(super) const NOTHING: ReadAhead = ReadAhead { upto: 0, fetched: 0, used: 0, counted: 0 };

    /// Number of runs to fetch next.
    fn next(&self) -> u32 {
        match self.fetched {
            0 => FIRST,
            // Most were read, so more will be.
            fetched if self.used * 2 >= fetched => (fetched * 2).min(MOST),
            _ => 1,
        }
    }
}

impl Scan {
    /// Announces columns of the found events, which are read after those of the predicate.
    pub(crate) fn expect(&mut self, columns: &Projection) {
        self.expected.union(columns);
    }

    /// Announces that fully matching nodes are counted from the trees, without reading their rows.
    pub(crate) fn expect_counts(&mut self) {
        self.counts = true;
    }

    /// Limits read-ahead to one part.
    pub(crate) fn look_ahead_only(&mut self, part: u32) {
        for (other, ahead) in self.ahead.iter_mut().enumerate().filter(|(other, _)| *other != part as usize) {
            debug_assert!(ahead.fetched == 0, "part {other} has been read");
            *ahead = ReadAhead { upto: u32::MAX, fetched: 1, ..ReadAhead::NOTHING };
        }
    }

    /// Called before rows of a part are read.
    pub(super) fn look_ahead(&mut self, part: u32, rows: &Range<u32>) {
        if !self.reads_slowly {
            return;
        }
        let ahead = &mut self.ahead[part as usize];
        if rows.start < ahead.upto {
            if rows.start >= ahead.counted {
                ahead.counted = rows.end;
                ahead.used += 1;
            }
            return;
        }
        let is_first = self.ahead.iter().all(|ahead| ahead.fetched == 0);
        let mut wanted = Vec::new();
        if is_first {
            // One wait for all parts.
            self.parts()
                .for_each(|other| self.add_ahead(other, if other == part { rows.start } else { 0 }, &mut wanted));
        } else {
            self.add_ahead(part, rows.start, &mut wanted);
        }
        self.snapshot.load(&wanted, &self.expected_columns());
    }

    /// All columns expected to be read.
    pub(crate) fn expected_columns(&self) -> Projection {
        let mut columns = self.expected.clone();
        columns.union(&self.read_columns);
        columns
    }

    /// Adds the next rows of a part, from `from` on, that the query is expected to read.
    fn add_ahead(&mut self, part: u32, from: u32, wanted: &mut Vec<(usize, Range<u32>)>) {
        let runs = self.ahead[part as usize].next();
        let mut candidates = self.candidates(part, from);
        let (predicate, counts) = (&self.predicate, self.counts);
        // The actual walk counts the nodes.
        let mut uncounted = Stats::default();
        let mut step = |node: &NodeRef<'_>, whole: bool| match search_step(predicate, node, whole) {
            Step::Rows { whole: true } if counts => Step::Taken,
            step => step,
        };
        let (mut fetched, mut upto) = (0, u32::MAX);
        while let Some(run) = candidates.next(&mut uncounted, &mut step) {
            if fetched == runs {
                upto = run.rows.start;
                break;
            }
            fetched += 1;
            wanted.push((part as usize, run.rows));
        }
        self.ahead[part as usize] =
            ReadAhead { upto: upto.max(from + 1), fetched: fetched.max(1), used: 0, counted: from };
    }
}
