//! Limits how many refused attempts are recorded.

use meridian_admission::identity::Caller;
use std::collections::HashMap;
use std::sync::Arc;

/// Max lines per minute for the refused attempts of one source.
const LINES_A_MINUTE: u32 = 60;
const MINUTE: i64 = 60_000_000;

/// The source of refused attempts. A flood from one source hides nothing from another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Source {
    /// Callers of a tenant.
    Tenant(Arc<str>),
    /// Callers without a revocable credential.
    Anonymous,
    /// Attempts to sign in as a user of this tenant; empty for operators, `None` for unknown users.
    SignIn(Option<Arc<str>>),
}

impl Source {
    /// Returns the source of a caller's attempts, other than sign-ins.
    pub fn of(caller: &Caller) -> Source {
        if caller.is_revocable() { Source::Tenant(caller.tenant.clone()) } else { Source::Anonymous }
    }
}

/// Counts refused attempts by source and minute.
#[derive(Debug, Default)]
pub struct Refusals {
    /// The current minute of the wall clock.
    minute: i64,
    /// At most two sources per tenant.
    sources: HashMap<Source, Count>,
}

#[derive(Debug, Default)]
struct Count {
    lines: u32,
    /// Attempts without a line since the last recorded one.
    unrecorded: u64,
}

impl Refusals {
    /// Takes a line at this time, in microseconds since 1970. Returns the number of unrecorded attempts before it;
    /// `None` if the source has no lines left in this minute.
    pub fn take(&mut self, source: Source, now: i64) -> Option<u64> {
        let minute = now.div_euclid(MINUTE);
        if minute != self.minute {
            self.minute = minute;
            self.sources.retain(|_, count| {
                count.lines = 0;
                count.unrecorded > 0
            });
        }
        let count = self.sources.entry(source).or_default();
        if count.lines >= LINES_A_MINUTE {
            count.unrecorded += 1;
            return None;
        }
        count.lines += 1;
        Some(std::mem::take(&mut count.unrecorded))
    }

    /// Counts an attempt that gets no line.
    pub fn count(&mut self, source: Source) {
        self.sources.entry(source).or_default().unrecorded += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_takes_few_lines_and_is_counted() {
        let mut refusals = Refusals::default();
        let red = || Source::Tenant("red".into());
        let recorded = (0..1_000).filter(|n| refusals.take(red(), MINUTE + n).is_some()).count();
        assert_eq!(recorded, LINES_A_MINUTE as usize);
        // Attempts from other sources in the same minute are recorded.
        for other in [Source::Tenant("blue".into()), Source::Anonymous, Source::SignIn(Some("red".into()))] {
            assert_eq!(refusals.take(other, MINUTE), Some(0));
        }
        refusals.count(red());
        let unrecorded = 1_001 - recorded as u64;
        assert_eq!(refusals.take(red(), 2 * MINUTE), Some(unrecorded));
        assert_eq!((refusals.take(red(), 2 * MINUTE), refusals.sources.len()), (Some(0), 1));
    }
}
