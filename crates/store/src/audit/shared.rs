//! The audit log in a bucket: a chain of links to which all processes append (`bucket/chain.rs`), with the lines of the log in a data folder.
//!
//! A link holds the lines of one group. Once there are many, the next link holds them all as well, as a *chapter*, and they go. The
//! newest chapter lists those before it that are still there. Over the limit the oldest goes, and a line says so.

use super::act::{Act, Audited, Line};
use super::tail::hash;
use super::{AuditPage, NO_LINE, PAGE_BYTES};
use crate::bucket::Bucket;
use crate::bucket::chain::{Chain, End, Link};
use crate::codec::{Reader, put_u32, put_u64};
use crate::error::StoreError;
use crate::seams::{Clock, Seams};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

/// What links weigh before their lines become a chapter.
const CHAPTER_WEIGHT: u64 = 1 << 20;
/// Most chapters of a log.
const CHAPTERS_MAX: usize = 4096;
/// How often a group is tried while others append.
const TURNS: usize = 256;

/// The administrative acts of a cluster, oldest first.
#[derive(Debug)]
pub struct SharedAudit {
    chain: Chain,
    clock: Arc<dyn Clock>,
    bytes_total: u64,
    /// Held over calls to the bucket: the number and the hash of a line follow from the one before.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    end: End,
    chapters: Vec<Chapter>,
    /// The lines after those of the newest chapter, and the number of the first of them.
    tail: Vec<u8>,
    first: u64,
    /// Number of the next line.
    next: u64,
    /// SHA-256 of the last line.
    previous: [u8; 32],
}

/// Lines in one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Chapter {
    number: u64,
    /// Number of its first line.
    first: u64,
    bytes: u64,
}

/// What a link holds.
struct Content<'a> {
    /// With itself; none in a link that is no chapter.
    chapters: Vec<Chapter>,
    first: u64,
    lines: &'a [u8],
}

impl SharedAudit {
    pub(crate) fn new(bucket: Arc<dyn Bucket>, seams: &Seams, bytes_total: u64) -> SharedAudit {
        let state =
            State { end: End::default(), chapters: Vec::new(), tail: Vec::new(), first: 1, next: 1, previous: NO_LINE };
        let chain = Chain::new(bucket, seams, "audit/".to_owned());
        SharedAudit { chain, clock: seams.clock.clone(), bytes_total, state: Mutex::new(state) }
    }

    /// Adds a line for each act, all of them in one object, and returns the number of the first. They are in the bucket when this returns.
    ///
    /// # Errors
    /// What the bucket said: none of the acts may be acknowledged. [`StoreError::Unknown`] where it is not known whether they are recorded.
    pub fn append(&self, acts: &[Act]) -> Result<u64, StoreError> {
        for _ in 0..TURNS {
            let mut state = self.current()?;
            if let Some(first) = self.try_append(&mut state, acts)? {
                return Ok(first);
            }
        }
        Err(self.chain.too_fast())
    }

    /// Appends lines after those that are known; `None` where another process has appended since.
    fn try_append(&self, state: &mut State, acts: &[Act]) -> Result<Option<u64>, StoreError> {
        let whole = self.chain.wants_whole(&state.end, 0, CHAPTER_WEIGHT);
        let (mut chapters, mut trimmed) = (Vec::new(), None);
        if whole {
            chapters.clone_from(&state.chapters);
            let room = self.bytes_total.saturating_sub(state.tail.len() as u64);
            trimmed = trim(&mut chapters, room, state.first);
        }
        let now = self.clock.now();
        let (first, mut n, mut previous, mut lines) = (state.next, state.next, state.previous, Vec::new());
        for act in acts.iter().chain(&trimmed) {
            let line = Line { n, time: now, act, previous, group: first }.encode()?;
            (n, previous) = (n + 1, hash(&line));
            lines.extend_from_slice(&line);
            lines.push(b'\n');
        }
        let mut content = Vec::new();
        if whole {
            let number = state.end.number + 1;
            let bytes = (state.tail.len() + lines.len()) as u64;
            chapters.push(Chapter { number, first: state.first, bytes });
        }
        put_u32(&mut content, chapters.len() as u32);
        for chapter in &chapters {
            [chapter.number, chapter.first, chapter.bytes].into_iter().for_each(|n| put_u64(&mut content, n));
        }
        put_u64(&mut content, if whole { state.first } else { first });
        if whole {
            content.extend_from_slice(&state.tail);
        }
        content.extend_from_slice(&lines);
        let Some(end) = self.chain.append(&state.end, whole, &content)? else { return Ok(None) };
        (state.end, state.next, state.previous) = (end, n, previous);
        match whole {
            true => {
                state.tail.clear();
                state.first = n;
                self.chain.sweep(&end, |number| chapters.iter().any(|chapter| chapter.number == number));
                state.chapters = chapters;
            }
            false => state.tail.extend_from_slice(&lines),
        }
        Ok(Some(first))
    }

    /// The lines after this number for which `wanted` is true, at most `limit` of them.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the name of an object that is damaged, or what the bucket said.
    pub fn page(&self, after: u64, limit: usize, wanted: &dyn Fn(&Audited) -> bool) -> Result<AuditPage, StoreError> {
        let (chapters, tail) = {
            let state = self.current()?;
            (state.chapters.clone(), (state.first, state.tail.clone()))
        };
        let mut page = Page { after, limit, wanted, lines: Vec::new(), read: 0 };
        let begin = chapters.partition_point(|chapter| chapter.first <= after.saturating_add(1)).saturating_sub(1);
        for chapter in &chapters[begin..] {
            // The oldest may be gone since.
            let Some(link) = self.chain.read(chapter.number)? else { continue };
            let Content { first, lines, .. } = self.decode(&link)?;
            if let Some(next) = page.take(first, lines) {
                return Ok(AuditPage { lines: page.lines, next: Some(next) });
            }
        }
        let next = page.take(tail.0, &tail.1);
        Ok(AuditPage { lines: page.lines, next })
    }

    /// The log as it is now.
    fn current(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        let mut state = self.state.lock();
        let Some((end, links)) = self.chain.follow(&state.end)? else { return Ok(state) };
        // All of it is read before any of it counts.
        let contents = links.iter().map(|link| self.decode(link)).collect::<Result<Vec<_>, _>>()?;
        for (link, Content { chapters, first, lines }) in links.iter().zip(contents) {
            let follows = if link.is_whole() { state.first } else { state.next };
            if link.number == state.end.number + 1 && first != follows {
                let detail = format!("its first line is {first}, and {follows} is expected");
                return Err(StoreError::corrupt(&self.chain.path(link.number), detail));
            }
            state.next = first + count(lines);
            if let Some(last) = lines.strip_suffix(b"\n").and_then(|lines| lines.rsplit(|byte| *byte == b'\n').next()) {
                state.previous = hash(last);
            }
            match link.is_whole() {
                true => {
                    state.chapters = chapters;
                    state.tail.clear();
                    state.first = state.next;
                }
                false => state.tail.extend_from_slice(lines),
            }
        }
        state.end = end;
        Ok(state)
    }

    fn decode<'a>(&self, link: &'a Link) -> Result<Content<'a>, StoreError> {
        let read = || -> Result<Content<'a>, String> {
            let mut reader = Reader::new(&link.content);
            let mut chapters = Vec::new();
            for _ in 0..reader.u32()? {
                chapters.push(Chapter { number: reader.u64()?, first: reader.u64()?, bytes: reader.u64()? });
            }
            Ok(Content { chapters, first: reader.u64()?, lines: reader.rest() })
        };
        read().map_err(|e| StoreError::corrupt(&self.chain.path(link.number), e))
    }
}

/// Takes the oldest chapters out until the rest fits into `room` bytes, and returns the act that says so; `next`: the first line after them.
fn trim(chapters: &mut Vec<Chapter>, room: u64, next: u64) -> Option<Act> {
    let (mut bytes, mut gone) = (chapters.iter().map(|chapter| chapter.bytes).sum::<u64>(), 0);
    while let Some(oldest) = chapters.get(gone).filter(|_| bytes > room || chapters.len() - gone >= CHAPTERS_MAX) {
        bytes -= oldest.bytes;
        gone += 1;
    }
    let begin = chapters.first()?.first;
    chapters.drain(..gone);
    let up_to = chapters.first().map_or(next, |chapter| chapter.first) - 1;
    (gone > 0).then(|| Act {
        who: "server".to_owned(),
        act: "trimAudit".to_owned(),
        target: "/audit".to_owned(),
        change: Some(format!("the lines {begin} to {up_to} were removed")),
        trimmed: Some(up_to),
        ..Act::default()
    })
}

fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// A page that is being read.
struct Page<'a> {
    after: u64,
    limit: usize,
    wanted: &'a dyn Fn(&Audited) -> bool,
    lines: Vec<Audited>,
    read: u64,
}

impl Page<'_> {
    /// Takes lines, of which the first has this number; returns where to read on once the page is full.
    fn take(&mut self, first: u64, lines: &[u8]) -> Option<u64> {
        for (n, line) in (first..).zip(lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())) {
            self.read += line.len() as u64;
            if n > self.after
                && let Some(line) = Audited::read(n, line)
                && (self.wanted)(&line)
            {
                self.lines.push(line);
            }
            if self.lines.len() >= self.limit || self.read >= PAGE_BYTES {
                return Some(n);
            }
        }
        None
    }
}
