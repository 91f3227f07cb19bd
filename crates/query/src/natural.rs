//! Events in natural order: one lazily walked stream per tree of a part, merged by `(Key, Seq)`.
//!
//! Trees with disjoint size classes and time buckets follow one another unmerged, and no keys are computed for them.
//!
//! A heap holds each part's next position: that of its next event, or a lower bound. The bound is the first row of
//! the next run, if that has not been tested yet. So a part without a match is tested only as far as the result has
//! progressed. A part whose rows all precede those of the others passes through run by run, without being read for
//! comparison.

use crate::candidates::{Candidates, Run, search_step};
use crate::error::QueryError;
use crate::matched_rows::{MatchedRows, Pick};
use crate::scan::Scan;
use meridian_index::Key;
use meridian_model::Seq;
use meridian_model::filter::Region;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Number of events after which the end of a run ends a batch.
pub(crate) const ENOUGH: usize = 512;

/// The merged stream.
pub(crate) struct Natural {
    /// Sections not entered yet, the first one last.
    waiting: Vec<Section>,
    /// For each part, the number of waiting sections, and whether one of them had matches.
    parts: Vec<(usize, bool)>,
    /// Only events after this position are returned.
    after: Option<(Key, Seq)>,
    /// Only events up to and including this position are returned.
    until: Option<(Key, Seq)>,
    /// Streams of the current sections, which overlap no other section.
    streams: Vec<Stream>,
    /// Next position of each stream, the min on top; empty if there is only one stream.
    heads: BinaryHeap<Reverse<(Key, Seq, usize)>>,
}

/// One tree of one part: all its events are of one size class, in some time buckets.
struct Section {
    part: u32,
    tree: usize,
    /// Class and bucket of its first and last event, as outer bounds.
    first: (u8, u64),
    last: (u8, u64),
}

/// The stream of one section.
struct Stream {
    part: u32,
    candidates: Candidates,
    /// End of the requested rows.
    upto: u32,
    /// Found but not tested.
    run: Option<Run>,
    /// Tested but not returned.
    found: FoundPicks,
}

#[derive(Default)]
struct FoundPicks {
    picks: Vec<Pick>,
    /// One per pick; not computed if there is only one stream.
    keys: Vec<Key>,
    at: usize,
}

impl Natural {
    /// The stream of all events after one position, up to another.
    pub(crate) fn new(scan: &mut Scan, after: Option<(Key, Seq)>, until: Option<(Key, Seq)>) -> Natural {
        let mut waiting = Vec::new();
        let mut parts = Vec::new();
        for part in scan.parts() {
            let from = waiting.len();
            for (i, tree) in scan.part(part).trees().iter().enumerate() {
                let Some(root) = tree.root() else { continue };
                let (class, bounds) = (tree.class(), tree.node_ref(root).bounds());
                let (first, last) = scan.grid.buckets(class, &bounds);
                waiting.push(Section { part, tree: i, first: (class, first), last: (class, last) });
            }
            parts.push((waiting.len() - from, false));
            scan.stats.parts_pruned += u64::from(waiting.len() == from);
        }
        // Reversed, because sections are popped from the end.
        waiting.sort_by_key(|section| Reverse(section.first));
        Natural { waiting, parts, after, until, streams: Vec::new(), heads: BinaryHeap::new() }
    }

    /// The next events, at most `want`; fewer than that, and fewer than [`ENOUGH`], only if there are no more.
    pub(crate) fn fill(&mut self, scan: &mut Scan, want: usize) -> Result<Vec<Pick>, QueryError> {
        let mut out = Vec::with_capacity(want.min(ENOUGH));
        while out.len() < want.min(ENOUGH) {
            if !self.heads.is_empty() {
                self.merge(scan, want, &mut out)?;
            } else if let [only] = self.streams.as_mut_slice()
                && !only.is_done()
            {
                only.fill(scan, want, &mut out)?;
            } else if !self.enter(scan)? {
                break;
            }
        }
        Ok(out)
    }

    /// Bytes of the events found but not returned yet.
    pub(crate) fn held(&self) -> usize {
        let found = |stream: &Stream| {
            stream.found.picks.capacity() * size_of::<Pick>() + stream.found.keys.capacity() * size_of::<Key>()
        };
        self.streams.iter().map(found).sum()
    }

    /// Enters the next section, and sections that overlap it; returns false if there is none. Parts are mostly
    /// disjoint, and then nothing is compared.
    fn enter(&mut self, scan: &mut Scan) -> Result<bool, QueryError> {
        self.streams.clear();
        let mut upto = None;
        while let Some(section) = self.waiting.pop_if(|section| upto.is_none_or(|last| section.first <= last)) {
            upto = upto.max(Some(section.last));
            let stream = self.stream(scan, &section)?;
            let (waiting, hit) = &mut self.parts[section.part as usize];
            *waiting -= 1;
            *hit |= stream.is_some();
            scan.stats.parts_pruned += u64::from(*waiting == 0 && !*hit);
            self.streams.extend(stream);
        }
        if self.streams.len() > 1 {
            for (i, stream) in self.streams.iter_mut().enumerate() {
                self.heads.extend(stream.head(scan)?.map(|(key, seq)| Reverse((key, seq, i))));
            }
        }
        Ok(upto.is_some())
    }

    /// The stream of a section; `None` if nothing in it can match.
    fn stream(&self, scan: &mut Scan, section: &Section) -> Result<Option<Stream>, QueryError> {
        let from = match self.after {
            None => 0,
            Some(after) if section.last < (after.0.class(), after.0.bucket()) => return Ok(None),
            Some(after) => scan.seek(section.part, after)?,
        };
        let upto = match self.until {
            None => u32::MAX,
            Some(until) if section.first > (until.0.class(), until.0.bucket()) => return Ok(None),
            Some(until) => scan.seek(section.part, until)?,
        };
        // Bridged: testing a few extra rows costs less than many short runs.
        let candidates = scan.candidates_of_tree(section.part, section.tree, from).bridged();
        let mut stream = Stream { part: section.part, candidates, upto, run: None, found: FoundPicks::default() };
        stream.advance(scan);
        Ok(stream.run.is_some().then_some(stream))
    }

    fn merge(&mut self, scan: &mut Scan, want: usize, out: &mut Vec<Pick>) -> Result<(), QueryError> {
        while out.len() < want {
            let Some(Reverse((_, _, i))) = self.heads.pop() else { break };
            let stream = &mut self.streams[i];
            let mut run_ended = false;
            if stream.found.is_empty() {
                // The head was the lower bound of an untested run: test it now.
                if let Some(run) = stream.run.take() {
                    stream.test(scan, &run, true)?;
                    stream.advance(scan);
                }
            } else {
                // Everything before the next stream's head is returned at once: one comparison per stretch, not per
                // event.
                let until = self.heads.peek().map(|Reverse((key, seq, _))| (*key, *seq));
                stream.found.give(until, want, out);
                run_ended = stream.found.is_empty();
            }
            self.heads.extend(stream.head(scan)?.map(|(key, seq)| Reverse((key, seq, i))));
            // A batch ends with a run: the next call then tests a new run instead of copying the rest of this one.
            if run_ended && out.len() >= ENOUGH {
                break;
            }
        }
        Ok(())
    }
}

impl Stream {
    fn is_done(&self) -> bool {
        self.run.is_none() && self.found.is_empty()
    }

    /// Finds the next run, if the last one is used up.
    fn advance(&mut self, scan: &mut Scan) {
        if self.run.is_none() {
            let predicate = &scan.predicate;
            let run = self.candidates.next(&mut scan.stats, &mut |node, whole| search_step(predicate, node, whole));
            // Runs come in row order: the first one beyond the end is the end.
            self.run = run
                .filter(|run| run.rows.start < self.upto)
                .map(|run| Run { rows: run.rows.start..run.rows.end.min(self.upto), ..run });
        }
    }

    /// The position of the next event, or a lower bound; `None` at the end.
    fn head(&mut self, scan: &mut Scan) -> Result<Option<(Key, Seq)>, QueryError> {
        if let Some(place) = self.found.head() {
            return Ok(Some(place));
        }
        match &self.run {
            None => Ok(None),
            Some(run) => scan.place_of(self.part, run.rows.start).map(Some),
        }
    }

    fn test(&mut self, scan: &mut Scan, run: &Run, keys: bool) -> Result<(), QueryError> {
        let rows: MatchedRows = scan.test(self.part, run)?;
        self.found.at = 0;
        self.found.picks.clear();
        self.found.keys.clear();
        if rows.is_empty() {
            return Ok(());
        }
        let seqs = scan.seqs(self.part, &rows)?;
        let part = self.part;
        self.found.picks.extend(rows.iter().zip(&seqs).map(|(row, &seq)| Pick { part, row, seq: Seq(seq) }));
        if keys {
            self.found.keys = scan.keys(self.part, &rows)?;
        }
        Ok(())
    }

    /// [`Natural::fill`] for a single stream: without keys and heap.
    fn fill(&mut self, scan: &mut Scan, want: usize, out: &mut Vec<Pick>) -> Result<(), QueryError> {
        while out.len() < want {
            if self.found.is_empty() {
                let Some(run) = self.run.take() else { break };
                self.test(scan, &run, false)?;
                self.advance(scan);
                continue;
            }
            self.found.give(None, want, out);
            if self.found.is_empty() && out.len() >= ENOUGH {
                break;
            }
        }
        Ok(())
    }
}

impl FoundPicks {
    fn is_empty(&self) -> bool {
        self.at == self.picks.len()
    }

    fn head(&self) -> Option<(Key, Seq)> {
        Some((*self.keys.get(self.at)?, self.picks.get(self.at)?.seq))
    }

    /// Moves events that precede `until` to `out`, while it has room for `want`.
    fn give(&mut self, until: Option<(Key, Seq)>, want: usize, out: &mut Vec<Pick>) {
        let room = want.saturating_sub(out.len()).min(self.picks.len() - self.at);
        let count = match until {
            None => room,
            Some(until) => {
                let before = |i: usize| (self.keys[self.at + i], self.picks[self.at + i].seq) < until;
                // Usually all of the run, or a short piece of it.
                if room > 0 && before(room - 1) { room } else { gallop(room, before) }
            }
        };
        out.extend_from_slice(&self.picks[self.at..self.at + count]);
        self.at += count;
    }
}

/// The first of `0..count` for which `before` is false, given that it is true and then false; fast if it is near 0.
fn gallop(count: usize, before: impl Fn(usize) -> bool) -> usize {
    // Doubling steps from the start: parts interleave in short pieces, so the end is mostly near.
    let (mut low, mut step) = (0, 1);
    while low + step <= count && before(low + step - 1) {
        low += step;
        step *= 2;
    }
    let mut high = count.min(low + step);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    #[test]
    fn galloping_finds_the_first_that_is_not_before() {
        for count in 0..40 {
            for first in 0..=count {
                assert_eq!(super::gallop(count, |i| i < first), first, "{first} of {count}");
            }
        }
    }
}
