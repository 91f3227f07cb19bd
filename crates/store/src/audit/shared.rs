//! The audit log in a bucket: a chain of links to which all processes append (`bucket/chain.rs`). The lines are those
//! of the log in a data folder.
//!
//! A link holds the lines of one group. Once there are many links, the next one repeats all of their lines as a
//! *segment*, and the old links are deleted. The newest segment lists the earlier segments that still exist. Over the
//! limit the oldest segment is removed (`shared/trim.rs`), and a line records that.
//!
//! Reads verify that each line has the expected number and the hash of the previous line.

mod moved;
mod trim;

use super::act::{Act, Line, RecordedAct, chained, is_hex};
use super::holders::Shares;
use super::tail::hash;
use super::{AuditPage, NO_LINE, PAGE_BYTES};
use crate::bucket::chain::{Chain, End, Link};
use crate::codec::{Reader, put_u32, put_u64};
use crate::error::StoreError;
use crate::seams::Bucket;
use crate::seams::{Clock, Seams};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use trim::TrimPlan;

/// Weight of the links at which their lines become a segment.
const SEGMENT_WEIGHT: u64 = 1 << 20;
/// Max segments of a log.
const SEGMENTS_MAX: usize = 4096;
/// Max attempts to append a group while others append.
const TURNS: usize = 256;

/// The administrative acts of a cluster, oldest first.
#[derive(Debug)]
pub struct SharedAudit {
    chain: Chain,
    clock: Arc<dyn Clock>,
    bytes_total: u64,
    /// Held across calls to the bucket: number and hash of a line follow from the previous one.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    end: End,
    segments: Vec<AuditSegment>,
    /// The lines after the newest segment, and the number of the first of them.
    tail: Vec<u8>,
    first: u64,
    /// Number of the next line.
    next: u64,
    /// SHA-256 of the last line.
    previous: [u8; 32],
    /// Bytes by holder of each segment, filled in on first use.
    shares: BTreeMap<u64, Shares>,
}

/// A link that is a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AuditSegment {
    number: u64,
    /// Number of its first line.
    first: u64,
    bytes: u64,
}

/// The content of a link.
struct Content<'a> {
    /// The segments including this one; empty in a link that is not a segment.
    segments: Vec<AuditSegment>,
    first: u64,
    lines: &'a [u8],
}

impl SharedAudit {
    pub(crate) fn new(bucket: Arc<dyn Bucket>, seams: &Seams, bytes_total: u64) -> SharedAudit {
        let state = State {
            end: End::default(),
            segments: Vec::new(),
            tail: Vec::new(),
            first: 1,
            next: 1,
            previous: NO_LINE,
            shares: BTreeMap::new(),
        };
        let chain = Chain::new(bucket, seams, "audit/".to_owned());
        SharedAudit { chain, clock: seams.clock.clone(), bytes_total, state: Mutex::new(state) }
    }

    /// Appends a line for each act, all in one object, and returns the number of the first. The lines are in the bucket
    /// when this returns.
    ///
    /// # Errors
    /// Errors of the bucket: none of the acts may be acknowledged. [`StoreError::Unknown`] if it is unknown whether
    /// they are recorded.
    pub fn append(&self, acts: &[Act]) -> Result<u64, StoreError> {
        for _ in 0..TURNS {
            let mut state = self.current()?;
            if let Some(first) = self.try_append(&mut state, acts)? {
                return Ok(first);
            }
        }
        Err(self.chain.too_fast())
    }

    /// Appends lines after the known ones; `None` if another process has appended meanwhile.
    fn try_append(&self, state: &mut State, acts: &[Act]) -> Result<Option<u64>, StoreError> {
        let whole = self.chain.wants_whole(&state.end, 0, SEGMENT_WEIGHT);
        let TrimPlan { mut segments, kept, said } = if whole { self.trim(state)? } else { TrimPlan::default() };
        let now = self.clock.now();
        let again = kept.iter().map(|(time, act)| (*time, act));
        let (first, mut n, mut previous, mut lines) = (state.next, state.next, state.previous, Vec::new());
        for (time, act) in acts.iter().map(|act| (now, act)).chain(again).chain(said.iter().map(|act| (now, act))) {
            let line = Line { n, time, act, previous, group: first }.encode()?;
            (n, previous) = (n + 1, hash(&line));
            lines.extend_from_slice(&line);
            lines.push(b'\n');
        }
        if whole {
            let number = state.end.number + 1;
            let bytes = (state.tail.len() + lines.len()) as u64;
            segments.push(AuditSegment { number, first: state.first, bytes });
        }
        let content = match whole {
            true => content_of(&segments, state.first, &[&state.tail, &lines]),
            false => content_of(&[], first, &[&lines]),
        };
        let Some(end) = self.chain.append(&state.end, whole, &content)? else { return Ok(None) };
        let before = std::mem::replace(&mut state.end, end);
        (state.next, state.previous) = (n, previous);
        match whole {
            true => {
                state.tail.clear();
                state.first = n;
                let known = std::mem::replace(&mut state.segments, segments);
                let keeps = |number: u64| state.segments.iter().any(|segment| segment.number == number);
                self.chain.sweep(&before, &end, known.iter().map(|segment| segment.number), keeps);
            }
            false => state.tail.extend_from_slice(&lines),
        }
        self.chain.tidy();
        Ok(Some(first))
    }

    /// Returns up to `limit` lines after this number for which `wanted` is true.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the name of a damaged or missing object, or the error of the bucket.
    pub fn page(
        &self,
        after: u64,
        limit: usize,
        wanted: &dyn Fn(&RecordedAct) -> bool,
    ) -> Result<AuditPage, StoreError> {
        let (segments, tail, end) = {
            let state = self.current()?;
            (state.segments.clone(), (state.first, state.tail.clone()), state.end.number)
        };
        let corrupt = |number: u64, detail: String| StoreError::corrupt(&self.chain.path(number), detail);
        let mut page = Page { after, limit, wanted, lines: Vec::new(), read: 0, before: None };
        let wanted_first = after.saturating_add(1);
        let begin = match tail.0 <= wanted_first {
            // The last lines are in memory.
            true => segments.len(),
            false => segments.partition_point(|segment| segment.first <= wanted_first).saturating_sub(1),
        };
        for segment in &segments[begin..] {
            let Some(link) = self.chain.read(segment.number)? else {
                // The oldest segment may have been removed meanwhile. Any other missing segment is lost.
                if self.current()?.segments.contains(segment) {
                    return Err(corrupt(segment.number, "it is missing".to_owned()));
                }
                page.before = None;
                continue;
            };
            let Content { first, lines, .. } = self.decode(&link)?;
            if first != segment.first {
                let detail = format!("its first line is {first}, and {} is expected", segment.first);
                return Err(corrupt(segment.number, detail));
            }
            if let Some(next) = page.take(first, lines).map_err(|detail| corrupt(segment.number, detail))? {
                return Ok(AuditPage { lines: page.lines, next: Some(next) });
            }
        }
        let next = page.take(tail.0, &tail.1).map_err(|detail| corrupt(end, detail))?;
        Ok(AuditPage { lines: page.lines, next })
    }

    /// Reads the log up to its current end.
    fn current(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        let mut state = self.state.lock();
        let Some((end, links)) = self.chain.follow(&state.end)? else { return Ok(state) };
        // Everything is read and verified before any of it is applied.
        let contents = links.iter().map(|link| self.decode(link)).collect::<Result<Vec<_>, _>>()?;
        let (mut number, mut first, mut next, mut previous) =
            (state.end.number, state.first, state.next, state.previous);
        for (link, content) in links.iter().zip(&contents) {
            let wrong = |detail: String| StoreError::corrupt(&self.chain.path(link.number), detail);
            // The very first link may hold the lines of a restored log, whose oldest lines are gone.
            let follows = number > 0 && link.number == number + 1;
            let expected = if link.is_whole() { first } else { next };
            if follows && content.first != expected {
                return Err(wrong(format!("its first line is {}, and {expected} is expected", content.first)));
            }
            // A link that does not follow replaces links that are gone: nothing is known of the previous line.
            let known = follows.then_some((next, previous));
            let last = check_lines(content.first, content.lines, known).map_err(wrong)?;
            (number, next, previous) = (link.number, content.first + count(content.lines), last.unwrap_or(previous));
            if link.is_whole() {
                first = next;
            }
        }
        for (link, Content { segments, lines, .. }) in links.iter().zip(contents) {
            match link.is_whole() {
                true => {
                    state.segments = segments;
                    state.tail.clear();
                }
                false => state.tail.extend_from_slice(lines),
            }
        }
        (state.end, state.first, state.next, state.previous) = (end, first, next, previous);
        Ok(state)
    }

    fn decode<'a>(&self, link: &'a Link) -> Result<Content<'a>, StoreError> {
        let read = || -> Result<Content<'a>, String> {
            let mut reader = Reader::new(&link.content);
            let mut segments = Vec::<AuditSegment>::new();
            for _ in 0..reader.u32()? {
                segments.push(AuditSegment { number: reader.u64()?, first: reader.u64()?, bytes: reader.u64()? });
            }
            let first = reader.u64()?;
            let is_ascending = segments.is_sorted_by(|a, b| a.number < b.number && a.first <= b.first);
            let own = segments.last().map(|segment| (segment.number, segment.first));
            // Sums of what is valid are far from the limits of their types.
            let is_valid = first < 1 << 48 && segments.iter().all(|segment| segment.bytes < 1 << 40);
            if !is_valid || !is_ascending || own != link.is_whole().then_some((link.number, first)) {
                return Err("its segments are not those up to itself".to_owned());
            }
            Ok(Content { segments, first, lines: reader.rest() })
        };
        read().map_err(|e| StoreError::corrupt(&self.chain.path(link.number), e))
    }
}

/// Encodes a link with these segments and lines; the first line has this number.
fn content_of(segments: &[AuditSegment], first: u64, lines: &[&[u8]]) -> Vec<u8> {
    let mut content = Vec::new();
    put_u32(&mut content, segments.len() as u32);
    for segment in segments {
        [segment.number, segment.first, segment.bytes].into_iter().for_each(|n| put_u64(&mut content, n));
    }
    put_u64(&mut content, first);
    lines.iter().for_each(|lines| content.extend_from_slice(lines));
    content
}

/// Checks that lines follow from each other, and returns the SHA-256 of the last. `first` is the number of the first
/// line. `known` is the number of a line among them, or of the one after the last, and the SHA-256 of the line before
/// it.
fn check_lines(first: u64, lines: &[u8], known: Option<(u64, [u8; 32])>) -> Result<Option<[u8; 32]>, String> {
    let (mut before, mut next): (Option<[u8; 32]>, u64) = (None, first);
    let mut rest = lines;
    while !rest.is_empty() {
        let wrong = || format!("line {next} is not there whole, or does not follow from the line before it");
        if let Some((known, previous)) = known
            && known == next
        {
            if before.is_some_and(|before| before != previous) {
                return Err(wrong());
            }
            before = Some(previous);
        }
        let length = rest.iter().position(|byte| *byte == b'\n').ok_or_else(wrong)?;
        let line = &rest[..length];
        let (n, previous) = chained(line).ok_or_else(wrong)?;
        if n != next || before.is_some_and(|before| !is_hex(previous, &before)) {
            return Err(wrong());
        }
        (before, next, rest) = (Some(hash(line)), next + 1, &rest[length + 1..]);
    }
    match known {
        Some((known, _)) if next < known => Err(format!("it ends before line {known}")),
        _ => Ok(before),
    }
}

fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// A page while it is being read.
struct Page<'a> {
    after: u64,
    limit: usize,
    wanted: &'a dyn Fn(&RecordedAct) -> bool,
    lines: Vec<RecordedAct>,
    read: u64,
    /// SHA-256 of the previous line, if known.
    before: Option<[u8; 32]>,
}

impl Page<'_> {
    /// Takes lines, the first of which has this number. Returns where to continue once the page is full, and an error
    /// for wrong lines.
    fn take(&mut self, first: u64, lines: &[u8]) -> Result<Option<u64>, String> {
        for (n, line) in (first..).zip(lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())) {
            self.read += line.len() as u64;
            if n > self.after {
                let follows = |line: &RecordedAct| self.before.is_none_or(|before| is_hex(&line.previous, &before));
                let read = RecordedAct::read(n, line).filter(follows);
                let read = read.ok_or_else(|| format!("line {n} does not follow from the line before it"))?;
                if (self.wanted)(&read) {
                    self.lines.push(read);
                }
            }
            if n >= self.after {
                self.before = Some(hash(line));
            }
            if self.lines.len() >= self.limit || self.read >= PAGE_BYTES {
                return Ok(Some(n));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::MemoryBucket;

    fn log(bucket: &MemoryBucket) -> SharedAudit {
        SharedAudit::new(Arc::new(bucket.clone()), &Seams::real(), 1 << 20)
    }

    #[test]
    fn a_line_that_does_not_follow_is_named_and_nothing_is_built_on_it() {
        type Harm = fn(&mut State);
        let harms: [(&str, Harm); 2] =
            [("another line before", |state| state.previous = [7; 32]), ("another number", |state| state.next += 1)];
        for (what, harm) in harms {
            let bucket = MemoryBucket::new();
            let (writer, reader) = (log(&bucket), log(&bucket));
            let acts = [Act { act: "createToken".to_owned(), ..Act::default() }];
            writer.append(&acts).unwrap();
            assert_eq!(reader.page(0, 10, &|_| true).unwrap().lines.len(), 1, "{what}");
            writer.append(&acts).unwrap();
            // A writer that is wrong about the end of the log, with valid checksums.
            let mut state = writer.current().unwrap();
            harm(&mut state);
            writer.try_append(&mut state, &acts).unwrap().unwrap();
            drop(state);
            // One reader sees the wrong link as the last of two that it reads at once, the other as the last of three.
            for log in [reader, log(&bucket)] {
                for error in
                    [log.page(0, 10, &|_| true).map(drop).unwrap_err(), log.append(&acts).map(drop).unwrap_err()]
                {
                    assert!(matches!(error, StoreError::Corrupt { .. }), "{what}: {error}");
                    assert!(error.to_string().contains("audit/0000000000000003"), "{what}: {error}");
                }
            }
        }
    }

    #[test]
    fn a_page_is_checked_against_the_line_before_it() {
        let bucket = MemoryBucket::new();
        let log = log(&bucket);
        let acts = ["/1", "/2", "/3"].map(|target| Act { target: target.to_owned(), ..Act::default() });
        // The very first line is in a segment.
        log.append(&[Act::default()]).unwrap();
        log.append(&acts).unwrap();
        let mut state = log.current().unwrap();
        let changed = String::from_utf8(state.tail.clone()).unwrap().replace("\"/2\"", "\"/9\"");
        state.tail = changed.into_bytes();
        drop(state);
        // The line after the changed one, the third, reveals it.
        for (after, whole) in [(0, false), (1, false), (2, false), (3, false), (4, true)] {
            let page = log.page(after, 10, &|_| true).map(drop);
            assert_eq!(page.is_ok(), whole, "after {after}: {page:?}");
        }
    }
}
