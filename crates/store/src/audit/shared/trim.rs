//! How the log in a bucket makes room: the oldest segment is removed, except for the lines guaranteed to tenants.
//!
//! The rule is that of a data folder (`trim.rs`). Lines within their holder's share are rewritten in the link that
//! removes the segment, so both happen or neither does.

use super::super::act::{Act, RecordedAct};
use super::super::holders::{Shares, holder};
use super::{AuditSegment, Content, SEGMENTS_MAX, SharedAudit, State};
use crate::error::StoreError;
use std::collections::btree_map::Entry;

/// What has to be written to make room.
#[derive(Debug, Default)]
pub(super) struct TrimPlan {
    /// The remaining segments.
    pub(super) segments: Vec<AuditSegment>,
    /// The lines to rewrite, with their times.
    pub(super) kept: Vec<(i64, Act)>,
    /// The record of what was removed, if anything was.
    pub(super) said: Option<Act>,
}

impl SharedAudit {
    /// Removes the oldest segments until the rest fits together with the lines of the tail. It reads each existing
    /// segment at most once.
    pub(super) fn trim(&self, state: &mut State) -> Result<TrimPlan, StoreError> {
        let mut trimmed = TrimPlan { segments: state.segments.clone(), ..TrimPlan::default() };
        let room = self.bytes_total.saturating_sub(state.tail.len() as u64);
        let mut bytes: u64 = trimmed.segments.iter().map(|segment| segment.bytes).sum();
        let is_full = |bytes: u64, left: usize| left > 0 && (bytes > room || left >= SEGMENTS_MAX);
        if !is_full(bytes, trimmed.segments.len()) {
            return Ok(trimmed);
        }
        let mut held = self.held(state)?;
        let share = self.bytes_total / 2 / held.len().max(1) as u64;
        let (mut gone, mut lines_gone) = (0, 0);
        while is_full(bytes, trimmed.segments.len() - gone) {
            let oldest = trimmed.segments[gone];
            bytes -= oldest.bytes;
            gone += 1;
            for line in self.lines_of(oldest)? {
                let (weight, holds) = (line.text.len() as u64 + 1, held.entry(holder(&line.act)).or_default());
                if *holds > share {
                    *holds = holds.saturating_sub(weight);
                    lines_gone += 1;
                } else {
                    bytes += weight;
                    trimmed.kept.push((line.time, Act { first: line.act.first.or(Some(line.n)), ..line.act }));
                }
            }
        }
        trimmed.segments.drain(..gone);
        let up_to = trimmed.segments.first().map_or(state.first, |segment| segment.first) - 1;
        let kept = trimmed.kept.len();
        trimmed.said = Some(Act {
            who: "server".to_owned(),
            act: "trimAudit".to_owned(),
            target: "/audit".to_owned(),
            change: Some(format!("{lines_gone} lines were removed, {kept} were kept under new numbers")),
            trimmed: Some(up_to),
            ..Act::default()
        });
        Ok(trimmed)
    }

    /// Returns the bytes of each holder in all segments and the tail.
    fn held(&self, state: &mut State) -> Result<Shares, StoreError> {
        let mut held = Shares::new();
        let there = state.segments.clone();
        state.shares.retain(|number, _| there.iter().any(|segment| segment.number == *number));
        for segment in there {
            let shares = match state.shares.entry(segment.number) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => {
                    let mut shares = Shares::new();
                    for line in self.lines_of(segment)? {
                        *shares.entry(holder(&line.act)).or_default() += line.text.len() as u64 + 1;
                    }
                    unknown.insert(shares)
                }
            };
            shares.iter().for_each(|(holder, bytes)| *held.entry(holder.clone()).or_default() += bytes);
        }
        for line in read(state.first, &state.tail) {
            *held.entry(holder(&line.act)).or_default() += line.text.len() as u64 + 1;
        }
        Ok(held)
    }

    /// Returns the lines of a segment. A damaged or missing segment counts as empty: it must not keep the log from
    /// making room. A failed call to the bucket is an error, since only segments that were read may be removed.
    fn lines_of(&self, segment: AuditSegment) -> Result<Vec<RecordedAct>, StoreError> {
        let lost = |why: &str| {
            tracing::warn!(why, object = %self.chain.path(segment.number).display(), "a part of the audit log cannot be read");
            Ok(Vec::new())
        };
        let link = match self.chain.read(segment.number) {
            Ok(Some(link)) => link,
            Ok(None) => return lost("it is missing"),
            Err(error @ (StoreError::Corrupt { .. } | StoreError::NewerFormat { .. })) => {
                return lost(&error.to_string());
            }
            Err(error) => return Err(error),
        };
        match self.decode(&link) {
            Ok(Content { first, lines, .. }) => Ok(read(first, lines)),
            Err(error) => lost(&error.to_string()),
        }
    }
}

/// Parses the readable lines; the first one has this number.
fn read(first: u64, lines: &[u8]) -> Vec<RecordedAct> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    (first..).zip(lines).filter_map(|(n, line)| RecordedAct::read(n, line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::MemoryBucket;
    use crate::seams::Seams;
    use std::sync::Arc;

    const TOTAL: u64 = 512 << 10;

    fn log(bucket: &MemoryBucket) -> SharedAudit {
        SharedAudit::new(Arc::new(bucket.clone()), &Seams::real(), TOTAL)
    }

    fn act(tenant: &str, target: usize) -> Act {
        let act = if target == 0 { "createTenant" } else { "createToken" };
        let (tenant, act) = (tenant.to_owned(), act.to_owned());
        Act { tenant, act, target: format!("/{target}"), status: Some(201), began: Some(1), ..Act::default() }
    }

    /// Returns the targets of a tenant's lines, in order of their numbers.
    fn targets(log: &SharedAudit, tenant: &str) -> Vec<usize> {
        let (mut found, mut after) = (Vec::new(), 0);
        loop {
            let page = log.page(after, 1_000, &|line| line.act.tenant == tenant).unwrap();
            found.extend(page.lines.iter().map(|line| line.act.target[1..].parse::<usize>().unwrap()));
            match page.next {
                Some(next) => after = next,
                None => return found,
            }
        }
    }

    #[test]
    fn a_tenant_that_floods_the_log_pushes_out_its_own_lines() {
        let bucket = MemoryBucket::new();
        let (one, two) = (log(&bucket), log(&bucket));
        let quiet: Vec<Act> = (0..20).map(|target| act("quiet", target)).collect();
        one.append(&quiet).unwrap();
        let mut last = 0;
        for group in 0..1_000 {
            // Alternates between two processes; neither knows what the other has counted.
            let log = if group % 2 == 0 { &one } else { &two };
            let acts: Vec<Act> = (0..8).map(|n| act("busy", group * 8 + n)).collect();
            let first = log.append(&acts).unwrap();
            assert!(first > last, "the number is that of the acts");
            last = first;
        }
        for log in [&one, &two, &log(&bucket)] {
            assert_eq!(targets(log, "quiet"), (0..20).collect::<Vec<_>>());
            let busy = targets(log, "busy");
            assert!(!busy.contains(&0) && busy.contains(&(1_000 * 8 - 1)), "its oldest go: {} are left", busy.len());
            let page = log.page(0, 1, &|line| line.act.tenant == "quiet").unwrap();
            assert_eq!((page.lines[0].act.first, page.lines[0].act.target.as_str()), (Some(1), "/0"));
        }
        let state = one.current().unwrap();
        let bytes = state.segments.iter().map(|segment| segment.bytes).sum::<u64>() + state.tail.len() as u64;
        // Lines written since the last segment come on top.
        assert!(bytes < TOTAL + (1 << 20), "{bytes}");
    }

    #[test]
    fn a_part_that_cannot_be_read_is_no_reason_to_refuse_and_one_without_an_answer_is() {
        let bucket = MemoryBucket::new();
        let one = log(&bucket);
        let fill = |groups: usize| -> Result<(), StoreError> {
            (0..groups).try_for_each(|group| {
                let acts: Vec<Act> = (0..8).map(|n| act("busy", group * 8 + n)).collect();
                one.append(&acts).map(drop)
            })
        };
        fill(400).unwrap();
        let oldest = one.current().unwrap().segments[0];
        let name = format!("audit/{:016x}", oldest.number);
        bucket.harm(&name, Some(b"damaged".to_vec()));
        fill(400).unwrap();
        assert!(one.current().unwrap().segments.iter().all(|segment| *segment != oldest));
        bucket.cut(true);
        assert!(fill(1).is_err());
        bucket.cut(false);
        fill(1).unwrap();
    }
}
