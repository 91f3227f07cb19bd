//! How the log makes room: the oldest file is removed, except for the lines guaranteed to tenants.
//!
//! Half of the log is shared evenly among all holders of lines. Lines of the oldest file within their holder's share
//! are rewritten at the end, under a new number; then the file is removed. So a tenant that floods the log pushes out
//! its own lines. The chain stays intact: files are only removed at its beginning. A line records the number up to
//! which lines were removed.

use super::Files;
use super::act::{Act, RecordedAct};
use super::holders::{Shares, holder};
use super::lines::Lines;
use super::tail::Tail;
use crate::error::StoreError;
use crate::seams::OpenMode;
use std::iter;

/// Max lines that are rewritten with one sync.
const GROUP_MAX: usize = 256;

impl Tail {
    /// Makes room for one file. Reads at most the files that exist now.
    pub fn trim(&mut self, files: &Files, now: i64) -> Result<(), StoreError> {
        let newest = self.sizes.last_key_value().map_or(0, |(first, _)| *first);
        while let Some((&oldest, _)) = self.sizes.first_key_value()
            && oldest < newest
            && self.sizes.values().sum::<u64>() + files.file_bytes > files.bytes_total
        {
            self.remove_oldest(files, oldest, now)?;
        }
        Ok(())
    }

    /// Rewrites the lines within their holders' shares, and adds a line that records the removal. The file is removed
    /// only then: a crash may duplicate lines but never loses one.
    fn remove_oldest(&mut self, files: &Files, oldest: u64, now: i64) -> Result<(), StoreError> {
        let mut held = self.held(files);
        let share = files.bytes_total / 2 / held.len().max(1) as u64;
        let (mut group, mut kept, mut gone): (Vec<(i64, Act)>, u64, u64) = (Vec::new(), 0, 0);
        let mut written = Ok(());
        let bytes = self.sizes.get(&oldest).copied().unwrap_or_default();
        each_line(files, oldest, bytes, |line| {
            let holds = held.entry(holder(&line.act)).or_default();
            if *holds > share {
                *holds = holds.saturating_sub(line.text.len() as u64 + 1);
                gone += 1;
                return true;
            }
            kept += 1;
            group.push((line.time, Act { first: line.act.first.or(Some(line.n)), ..line.act }));
            if group.len() >= GROUP_MAX {
                written = self.put(files, group.drain(..)).map(drop);
            }
            written.is_ok()
        });
        written?;
        let up_to = self.sizes.keys().nth(1).map_or(oldest, |next| next - 1);
        let said = Act {
            who: "server".to_owned(),
            act: "trimAudit".to_owned(),
            target: "/audit".to_owned(),
            change: Some(format!("{gone} lines were removed, {kept} were kept under new numbers")),
            trimmed: Some(up_to),
            ..Act::default()
        };
        self.put(files, group.into_iter().chain(iter::once((now, said))))?;
        self.sizes.remove(&oldest);
        self.shares.remove(&oldest);
        if let Err(error) = files.disk.remove(&files.path(oldest)) {
            tracing::warn!(%error, "an old file of the audit log could not be removed");
        }
        Ok(())
    }

    /// Returns the bytes of each holder in all files except the newest, which has just begun.
    fn held(&mut self, files: &Files) -> Shares {
        let mut held = Shares::new();
        for (&first, &bytes) in self.sizes.iter().rev().skip(1) {
            let shares = self.shares.entry(first).or_insert_with(|| {
                let mut shares = Shares::new();
                each_line(files, first, bytes, |line| {
                    *shares.entry(holder(&line.act)).or_default() += line.text.len() as u64 + 1;
                    true
                });
                shares
            });
            shares.iter().for_each(|(holder, bytes)| *held.entry(holder.clone()).or_default() += bytes);
        }
        held
    }
}

/// Calls `take` for each line of a file until it returns false. Lines that cannot be parsed are skipped: a damaged file
/// must not keep the log from making room.
fn each_line(files: &Files, first: u64, bytes: u64, mut take: impl FnMut(RecordedAct) -> bool) {
    let path = files.path(first);
    let read = files.disk.open(&path, OpenMode::Read).and_then(|file| {
        let mut inside = Lines::new(file, bytes);
        let mut n = first;
        while let Some(line) = inside.next()? {
            if let Some(line) = RecordedAct::read(n, line)
                && !take(line)
            {
                break;
            }
            n += 1;
        }
        Ok(())
    });
    if let Err(error) = read {
        tracing::warn!(%error, file = %path.display(), "a file of the audit log cannot be read whole");
    }
}
