//! Limits how many refused attempts are recorded.

use meridian_admission::identity::{Caller, address_block};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// Max lines per minute for the refused attempts of one source.
const LINES_A_MINUTE: u32 = 60;
/// Max lines per minute for clients at one address that are not identified. All of them are one source.
const LINES_OF_ADDRESS: u32 = 10;
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
    /// Clients at this address that were refused before they were identified.
    Unidentified(IpAddr),
}

impl Source {
    /// Returns the source of a caller's attempts, other than sign-ins.
    pub fn of(caller: &Caller) -> Source {
        if caller.is_revocable() { Source::Tenant(caller.tenant.clone()) } else { Source::Anonymous }
    }

    /// Returns the source under which it is counted, and its block of addresses if that has lines of its own.
    fn counted(self) -> (Source, Option<IpAddr>) {
        match self {
            Source::Unidentified(address) => {
                (Source::Unidentified(Ipv4Addr::UNSPECIFIED.into()), Some(address_block(address)))
            }
            source => (source, None),
        }
    }
}

/// Counts refused attempts by source and minute.
#[derive(Debug, Default)]
pub struct Refusals {
    /// The current minute of the wall clock.
    minute: i64,
    /// At most two sources per tenant, and those of clients without one.
    sources: HashMap<Source, Count>,
    /// Lines of the current minute by address. Only those with a line are here.
    addresses: HashMap<IpAddr, u32>,
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
            self.addresses.clear();
        }
        let (source, address) = source.counted();
        let of_address = address.and_then(|address| self.addresses.get(&address)).copied().unwrap_or(0);
        let count = self.sources.entry(source).or_default();
        if count.lines >= LINES_A_MINUTE || of_address >= LINES_OF_ADDRESS {
            count.unrecorded += 1;
            return None;
        }
        count.lines += 1;
        if let Some(address) = address {
            self.addresses.insert(address, of_address + 1);
        }
        Some(std::mem::take(&mut count.unrecorded))
    }

    /// Counts an attempt that gets no line.
    pub fn count(&mut self, source: Source) {
        self.sources.entry(source.counted().0).or_default().unrecorded += 1;
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

    #[test]
    fn an_address_takes_a_part_of_the_lines_of_unidentified_clients() {
        let mut refusals = Refusals::default();
        let mut lines = |n: u8| {
            // A client has a /64 of IPv6 in full.
            let source = || match n {
                2 => Source::Unidentified("2001:db8::1".parse().unwrap()),
                3 => Source::Unidentified("2001:db8::2".parse().unwrap()),
                _ => Source::Unidentified([192, 0, 2, n].into()),
            };
            (0..100).filter(|_| refusals.take(source(), MINUTE).is_some()).count()
        };
        assert_eq!(lines(1), LINES_OF_ADDRESS as usize);
        assert_eq!(lines(2), LINES_OF_ADDRESS as usize);
        assert_eq!(lines(3), 0);
        let all = 2 * LINES_OF_ADDRESS as usize + (4..=200).map(lines).sum::<usize>();
        assert_eq!(all, LINES_A_MINUTE as usize);
        assert!(refusals.addresses.len() <= all);
        refusals.count(Source::Unidentified([192, 0, 2, 1].into()));
        // Since the last line: what the last address with lines had beyond its own, and all of the others.
        let missed = 90 + (200 - 7) * 100 + 1;
        assert_eq!(refusals.take(Source::Unidentified([192, 0, 2, 9].into()), 2 * MINUTE), Some(missed));
    }
}
