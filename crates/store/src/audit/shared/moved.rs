//! Copies the lines of the log into a backup, and back.

use super::super::LineSink;
use super::{AuditSegment, Content, SharedAudit, check_lines, content_of, count};
use crate::error::StoreError;

impl SharedAudit {
    /// Passes all lines to `sink`, one link at a time, with the number of the first; used by backups.
    pub(crate) fn copy(&self, sink: &mut LineSink<'_>) -> Result<(), StoreError> {
        let (segments, tail) = {
            let state = self.current()?;
            (state.segments.clone(), (state.first, state.tail.clone()))
        };
        let mut begun = false;
        for segment in segments {
            let Some(link) = self.chain.read(segment.number)? else {
                // The oldest segment may have been removed meanwhile. Any other missing segment is lost, and a copy
                // without it could not be restored.
                if self.current()?.segments.contains(&segment) {
                    return Err(StoreError::corrupt(&self.chain.path(segment.number), "it is missing"));
                }
                if begun {
                    return Err(StoreError::Busy("the audit log drops its oldest lines now: try again".to_owned()));
                }
                continue;
            };
            let Content { first, lines, .. } = self.decode(&link)?;
            sink(first, lines)?;
            begun = true;
        }
        if tail.1.is_empty() { Ok(()) } else { sink(tail.0, &tail.1) }
    }

    /// Imports lines of another log as a segment, after lines of that log that were imported before. Lines that are
    /// already present are accepted.
    pub(crate) fn take_up(&self, first: u64, lines: &[u8]) -> Result<(), StoreError> {
        let mut state = self.current()?;
        let (next, begun) = (first + count(lines), state.end.number > 0);
        if begun && next <= state.next {
            return Ok(());
        }
        let wrong = |detail: String| StoreError::corrupt(&self.chain.path(state.end.number + 1), detail);
        if begun && first != state.next {
            return Err(wrong(format!("the line {} is expected after it, and not {first}", state.next)));
        }
        let last = check_lines(first, lines, begun.then_some((state.next, state.previous))).map_err(wrong)?;
        let mut segments = state.segments.clone();
        segments.push(AuditSegment { number: state.end.number + 1, first, bytes: lines.len() as u64 });
        let content = content_of(&segments, first, &[lines]);
        let Some(end) = self.chain.append(&state.end, true, &content)? else { return Err(self.chain.too_fast()) };
        (state.segments, state.end, state.first, state.next) = (segments, end, next, next);
        state.previous = last.unwrap_or(state.previous);
        Ok(())
    }
}
