//! Bounds the processor time for forged tokens: an address may have some signatures checked in vain, and then a few a
//! second. Tokens that are good and cached cost no check, so a bad client refuses them to nobody.

use super::super::throttle::address_block;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

/// Failures of an address without a wait.
pub(super) const FREE: i64 = 100;
/// Time after which a failure is forgotten, in microseconds.
pub(super) const FORGOTTEN: i64 = 100_000;
/// Max addresses that are remembered.
const ADDRESSES_MAX: usize = 10_000;

/// When all failures of an address are forgotten, in microseconds since 1970, by address.
#[derive(Default)]
pub(super) struct Failures(Mutex<HashMap<IpAddr, i64>>);

impl Failures {
    /// Checks whether the signature of a token from this address may be checked.
    ///
    /// # Errors
    /// The time to wait.
    pub fn check(&self, address: IpAddr, now: i64) -> Result<(), Duration> {
        let until = self.0.lock().get(&address_block(address)).copied().unwrap_or(now);
        // A clock that was set back must not lengthen a wait.
        let left = until.saturating_sub(now).min(FREE * FORGOTTEN);
        let wait = left - (FREE - 1) * FORGOTTEN;
        if wait > 0 { Err(Duration::from_micros(wait.unsigned_abs())) } else { Ok(()) }
    }

    /// Counts a failure.
    pub fn count(&self, address: IpAddr, now: i64) {
        let (address, mut all) = (address_block(address), self.0.lock());
        if all.len() >= ADDRESSES_MAX && !all.contains_key(&address) {
            all.retain(|_, until| *until > now);
            // A client of so many addresses has the free failures of each anyway.
            if all.len() > ADDRESSES_MAX / 2 {
                all.clear();
            }
        }
        let until = all.entry(address).or_insert(now);
        *until = (*until).max(now).saturating_add(FORGOTTEN).min(now.saturating_add(FREE * FORGOTTEN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u32) -> IpAddr {
        std::net::Ipv4Addr::from(0x0a00_0000 + n).into()
    }

    #[test]
    fn an_address_that_fails_waits_alone_and_briefly() {
        let failures = Failures::default();
        for _ in 0..FREE {
            assert_eq!(failures.check(at(1), 0), Ok(()));
            failures.count(at(1), 0);
        }
        assert_eq!(failures.check(at(1), 0), Err(Duration::from_micros(FORGOTTEN as u64)));
        assert_eq!(failures.check(at(2), 0), Ok(()));
        assert_eq!(failures.check(at(1), FORGOTTEN), Ok(()));
        assert!(failures.check(at(1), -3_600_000_000).is_err_and(|wait| wait.as_micros() == FORGOTTEN as u128));
    }

    #[test]
    fn the_addresses_are_bounded() {
        let failures = Failures::default();
        for n in 0..3 * ADDRESSES_MAX as u32 {
            failures.count(at(n), 0);
        }
        assert!(failures.0.lock().len() <= ADDRESSES_MAX);
    }
}
