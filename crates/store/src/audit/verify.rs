//! Whether the log is what was written.

use super::act::{Audited, hex};
use super::lines::Lines;
use super::tail::hash;
use super::{Files, NO_LINE};
use crate::error::Problem;
use crate::seams::OpenMode;
use std::collections::BTreeMap;

/// The first line at which the chain is broken. Lines before the first file went with their files; that the first line of all has
/// none before it is checked too.
pub(super) fn verify(files: &Files, sizes: &BTreeMap<u64, u64>) -> Option<Problem> {
    let mut before: Option<[u8; 32]> = None;
    let mut n = *sizes.first_key_value()?.0;
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
            let Some(read) = Audited::read(n, line) else {
                return problem(format!("{at} is not a line of the audit log of this number"));
            };
            let expected = before.or((n == 1).then_some(NO_LINE));
            if expected.is_some_and(|expected| read.previous != hex(&expected)) {
                return problem(format!("{at} does not follow from the line before it: one of the two was changed"));
            }
            before = Some(hash(line));
            n += 1;
        }
        if inside.read() < bytes {
            return problem(format!("it ends within a line, after line {}", line_in_file - 1));
        }
    }
    None
}
