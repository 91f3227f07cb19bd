//! Verifies that the log is what was written.

use super::act::{RecordedAct, hex};
use super::lines::Lines;
use super::tail::{RESERVE, hash};
use super::{Files, NO_LINE};
use crate::error::Problem;
use crate::seams::OpenMode;
use std::collections::BTreeMap;

/// Returns the first line at which the chain is broken. If lines before the first file are missing, a later line must
/// record their removal. The very first line must hold the placeholder hash.
pub(super) fn verify(files: &Files, sizes: &BTreeMap<u64, u64>) -> Option<Problem> {
    let Some((&begin, _)) = sizes.first_key_value() else {
        // The reserve is created with the first line.
        let reserve = files.disk.open(&files.dir.join(RESERVE), OpenMode::Read);
        let detail = "all of its lines are missing".to_owned();
        return reserve.is_ok().then(|| Problem { path: files.dir.clone(), detail });
    };
    let (mut before, mut trimmed): (Option<[u8; 32]>, u64) = (None, 0);
    let mut n = begin;
    for (&first, &bytes) in sizes {
        let path = files.path(first);
        let problem = |detail: String| Some(Problem { path: path.clone(), detail });
        if first != n {
            return problem(format!("lines {n} to {} are missing before it", first.saturating_sub(1)));
        }
        let file = match files.disk.open(&path, OpenMode::Read) {
            Ok(file) => file,
            Err(e) => return problem(format!("it cannot be read: {e}")),
        };
        let mut inside = Lines::new(file, bytes);
        let mut line_in_file = 0;
        loop {
            line_in_file += 1;
            let at = format!("line {line_in_file} (number {n})");
            let line = match inside.next() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(e) => return problem(format!("{at} cannot be read: {e}")),
            };
            let Some(read) = RecordedAct::read(n, line) else {
                return problem(format!("{at} is not a line of the audit log of this number"));
            };
            let expected = before.or((n == 1).then_some(NO_LINE));
            if expected.is_some_and(|expected| read.previous != hex(&expected)) {
                return problem(format!("{at} does not follow from the line before it: one of the two was changed"));
            }
            before = Some(hash(line));
            trimmed = trimmed.max(read.act.trimmed.unwrap_or(0));
            n += 1;
        }
        if inside.read() < bytes {
            return problem(format!("it ends within a line, after line {}", line_in_file - 1));
        }
    }
    let detail = || {
        format!("lines {} to {} are missing before it, and no line says that they were removed", trimmed + 1, begin - 1)
    };
    (begin > trimmed + 1).then(|| Problem { path: files.path(begin), detail: detail() })
}
