//! Limits the rate of password attempts.
//!
//! Attempts are counted per login and per address. The first few are free, then each must wait longer than the previous
//! one, up to a minute. An attempt counts from its start, so concurrent attempts do not evade the limit. A successful
//! attempt is taken back. A login under attack stays available to its user from an address where the user has signed in
//! before. Attempts for this login from there are counted separately. So neither attempts elsewhere nor clients behind
//! the same address that try other logins hold the user up there. At other addresses they do: one attempt a minute by
//! anyone keeps users waiting where they have not signed in before.
//!
//! If an issuer checks the password, nothing can be guessed here, so only failures are counted, per address. People who
//! sign in from behind one address therefore do not wait for each other.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// Number of attempts without a wait.
const FREE: u32 = 5;
/// Max wait between two attempts.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// Time after which attempts are forgotten if no other follows, in microseconds.
const FORGOTTEN: i64 = 3_600_000_000;
/// How long an address from which a user has signed in is remembered, in microseconds.
const FAMILIAR: i64 = 30 * 86_400_000_000;
/// Max entries of each table. Beyond this, the half with the fewest and oldest attempts is dropped.
const ENTRIES_MAX: usize = 10_000;

/// Counts sign-in attempts, in memory only: a restart forgets them.
pub struct Throttle(Mutex<Tables>);

struct Tables {
    logins: Counts<String>,
    addresses: Counts<IpAddr>,
    /// Logins and the addresses from which they were successful.
    familiar: Counts<Pair>,
    /// Attempts by familiar pairs.
    by_familiar: Counts<Pair>,
}

/// A login, and the address of the attempt.
type Pair = (String, IpAddr);

/// An attempt that has begun, with the keys that it is counted under.
#[derive(Debug)]
#[must_use]
pub struct Attempt {
    /// `None` if the login is not known here.
    login: Option<String>,
    /// `None` if the client is known to be the operator.
    address: Option<IpAddr>,
    is_familiar: bool,
}

impl Default for Throttle {
    fn default() -> Throttle {
        Throttle(Mutex::new(Tables {
            logins: Counts::new(FORGOTTEN),
            addresses: Counts::new(FORGOTTEN),
            familiar: Counts::new(FAMILIAR),
            by_familiar: Counts::new(FORGOTTEN),
        }))
    }
}

impl Throttle {
    /// Begins an attempt by a client at an address; `None` if the client is known to be the operator. `login` is the
    /// typed login; `None` if it cannot be one, and then only the address is counted.
    ///
    /// # Errors
    /// The time to wait.
    pub fn begin(&self, login: Option<&str>, address: Option<IpAddr>, now: i64) -> Result<Attempt, Duration> {
        let mut tables = self.0.lock();
        let mut attempt =
            Attempt { login: login.map(str::to_owned), address: address.map(address_block), is_familiar: false };
        attempt.is_familiar = attempt.pair().is_some_and(|pair| tables.familiar.of(&pair, now).is_some());
        // All tables are checked before any of them counts, so a refused attempt does not lengthen the wait.
        let wait = tables.wait(&attempt, now);
        if wait > 0 {
            return Err(Duration::from_micros(wait.unsigned_abs()));
        }
        tables.count(&attempt, now);
        Ok(attempt)
    }

    /// Checks whether a client at this address may try to sign in at an issuer now. Counts nothing.
    ///
    /// # Errors
    /// The time to wait.
    pub fn check(&self, address: Option<IpAddr>, now: i64) -> Result<(), Duration> {
        let wait = address.map_or(0, |address| self.0.lock().addresses.wait(&address_block(address), now));
        if wait > 0 { Err(Duration::from_micros(wait.unsigned_abs())) } else { Ok(()) }
    }

    /// Counts a failed attempt at an issuer.
    pub fn fail(&self, address: Option<IpAddr>, now: i64) {
        if let Some(address) = address {
            self.0.lock().addresses.count(address_block(address), now);
        }
    }

    /// Takes back a successful attempt, and remembers its address.
    pub fn succeed(&self, attempt: Attempt, now: i64) {
        let mut tables = self.0.lock();
        // Only one attempt: otherwise an attacker with one valid login could reset the count of its address.
        tables.take_back(&attempt);
        if let Some(pair) = attempt.pair() {
            tables.familiar.count(pair, now);
        }
    }

    /// Takes back an attempt that was not decided.
    pub fn withdraw(&self, attempt: &Attempt) {
        self.0.lock().take_back(attempt);
    }
}

impl Attempt {
    fn pair(&self) -> Option<Pair> {
        self.login.clone().zip(self.address)
    }

    /// Returns the familiar pair of the attempt. If there is one, the attempt is counted under it alone.
    fn familiar(&self) -> Option<Pair> {
        self.pair().filter(|_| self.is_familiar)
    }
}

impl Tables {
    /// Returns the microseconds until an attempt may begin.
    fn wait(&self, attempt: &Attempt, now: i64) -> i64 {
        if let Some(pair) = attempt.familiar() {
            return self.by_familiar.wait(&pair, now);
        }
        let of_login = attempt.login.as_ref().map_or(0, |login| self.logins.wait(login, now));
        of_login.max(attempt.address.map_or(0, |address| self.addresses.wait(&address, now)))
    }

    fn count(&mut self, attempt: &Attempt, now: i64) {
        if let Some(pair) = attempt.familiar() {
            return self.by_familiar.count(pair, now);
        }
        if let Some(login) = &attempt.login {
            self.logins.count(login.clone(), now);
        }
        if let Some(address) = attempt.address {
            self.addresses.count(address, now);
        }
    }

    fn take_back(&mut self, attempt: &Attempt) {
        if let Some(pair) = attempt.familiar() {
            return self.by_familiar.take_back(&pair);
        }
        if let Some(login) = &attempt.login {
            self.logins.take_back(login);
        }
        if let Some(address) = &attempt.address {
            self.addresses.take_back(address);
        }
    }
}

/// Attempts by key.
struct Counts<K> {
    counts: HashMap<K, Count>,
    /// How long an entry is kept after its last attempt, in microseconds.
    keep: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Count {
    attempts: u32,
    /// When the last one began, in microseconds since 1970.
    last: i64,
}

impl<K: Eq + Hash> Counts<K> {
    fn new(keep: i64) -> Counts<K> {
        Counts { counts: HashMap::new(), keep }
    }

    fn of(&self, key: &K, now: i64) -> Option<Count> {
        self.counts.get(key).copied().filter(|count| now.saturating_sub(count.last) < self.keep)
    }

    /// Returns the microseconds until the next attempt may begin.
    fn wait(&self, key: &K, now: i64) -> i64 {
        let Some(count) = self.of(key, now).filter(|count| count.attempts >= FREE) else { return 0 };
        // Doubles with each attempt. The shift overflows long after the max is reached.
        let seconds = 1u64.checked_shl(count.attempts - FREE).unwrap_or(u64::MAX).min(WAIT_MAX.as_secs());
        // A clock that was set back must not lengthen a wait.
        let passed = now.saturating_sub(count.last).max(0);
        (seconds as i64 * 1_000_000).saturating_sub(passed).max(0)
    }

    fn count(&mut self, key: K, now: i64) {
        let before = self.of(&key, now).map_or(0, |count| count.attempts);
        // A known key needs no extra room.
        if self.counts.len() >= ENTRIES_MAX && !self.counts.contains_key(&key) {
            self.halve(now);
        }
        self.counts.insert(key, Count { attempts: before.saturating_add(1), last: now });
    }

    fn take_back(&mut self, key: &K) {
        if let Some(count) = self.counts.get_mut(key) {
            // The time stays: the remaining attempts require the same wait as before.
            count.attempts = count.attempts.saturating_sub(1);
            if count.attempts == 0 {
                self.counts.remove(key);
            }
        }
    }

    /// Halves the table. An attacker who fills it with other keys cannot shorten the wait of the busiest ones.
    fn halve(&mut self, now: i64) {
        let keep = self.keep;
        // Expired entries first: they cost nothing to forget.
        self.counts.retain(|_, count| now.saturating_sub(count.last) < keep);
        let mut counts: Vec<Count> = self.counts.values().copied().collect();
        if counts.len() >= ENTRIES_MAX {
            let middle = counts.len() / 2;
            let (_, median, _) = counts.select_nth_unstable(middle);
            let median = *median;
            let mut room = middle;
            // Entries equal to the median are dropped only as far as needed.
            self.counts.retain(|_, count| {
                let goes = *count <= median && room > 0;
                room -= usize::from(goes);
                !goes
            });
        }
    }
}

/// Returns the unit of counting: an IPv4 address, or the /64 of an IPv6 address, which one client may use in full.
pub fn address_block(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn at(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn failures_make_the_next_attempt_wait_for_longer_up_to_a_minute() {
        let throttle = Throttle::default();
        let (mut now, mut waits) = (0, Vec::new());
        for _ in 0..14 {
            while let Err(wait) = throttle.begin(Some("anna"), at("192.0.2.1"), now) {
                waits.push(wait.as_secs());
                now += wait.as_micros() as i64;
            }
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert!(throttle.begin(Some("anna"), at("192.0.2.1"), now + FORGOTTEN).is_ok(), "it is forgotten in the end");
    }

    #[test]
    fn a_login_is_held_from_all_addresses_and_an_address_for_all_logins() {
        let throttle = Throttle::default();
        for n in 0..FREE {
            throttle.begin(Some("anna"), at(&format!("192.0.2.{n}")), 0).map(drop).unwrap();
            throttle.begin(Some(&format!("other{n}")), at("2001:db8::1"), 0).map(drop).unwrap();
        }
        assert!(throttle.begin(Some("anna"), at("198.51.100.1"), 0).is_err());
        assert!(throttle.begin(Some("ben"), at("2001:db8::2"), 0).is_err(), "of the same /64");
        assert!(throttle.begin(Some("ben"), at("2001:db8:0:1::2"), 0).is_ok());
        assert!(throttle.begin(Some("ben"), None, 0).is_ok(), "the owner of the folder has no address");
    }

    #[test]
    fn a_user_is_not_locked_out_by_others() {
        let throttle = Throttle::default();
        let home = at("203.0.113.7");
        let attempt = throttle.begin(Some("anna"), home, 0).unwrap();
        throttle.succeed(attempt, 0);
        for n in 0..20 {
            let _ = throttle.begin(Some("anna"), at(&format!("192.0.2.{n}")), SECOND);
        }
        assert!(throttle.begin(Some("anna"), at("192.0.2.99"), SECOND).is_err());
        for _ in 0..20 {
            let attempt = throttle.begin(Some("anna"), home, SECOND).unwrap();
            throttle.succeed(attempt, SECOND);
        }
        // Clients behind the same address that try other logins cannot lock the user out either.
        for n in 0..20 {
            let _ = throttle.begin(Some(&format!("guess{n}")), home, SECOND);
        }
        assert!(throttle.begin(Some("ben"), home, SECOND).is_err());
        // But attempts for this login from there are limited as everywhere.
        for _ in 0..FREE {
            throttle.begin(Some("anna"), home, SECOND).map(drop).unwrap();
        }
        assert!(throttle.begin(Some("anna"), home, SECOND).is_err());
    }

    #[test]
    fn attempts_of_others_hold_a_user_up_where_it_has_not_signed_in() {
        let throttle = Throttle::default();
        let (home, travels, mut now) = (at("203.0.113.7"), at("198.51.100.1"), 0);
        let attempt = throttle.begin(Some("anna"), home, now).unwrap();
        throttle.succeed(attempt, now);
        for _ in 0..20 {
            while let Err(wait) = throttle.begin(Some("anna"), at("192.0.2.1"), now) {
                now += wait.as_micros() as i64;
            }
        }
        let soon = now + 59 * SECOND;
        assert!(throttle.begin(Some("anna"), travels, soon).is_err());
        assert!(throttle.begin(Some("anna"), home, soon).is_ok());
    }

    #[test]
    fn attempts_without_a_login_count_for_their_address_alone() {
        let throttle = Throttle::default();
        for _ in 0..FREE {
            throttle.begin(None, at("192.0.2.1"), 0).map(drop).unwrap();
        }
        assert!(throttle.begin(None, at("192.0.2.1"), 0).is_err());
        let attempt = throttle.begin(None, at("192.0.2.2"), 0).unwrap();
        throttle.succeed(attempt, 0);
        assert!(throttle.0.lock().familiar.counts.is_empty(), "no address is familiar to nobody");
    }

    #[test]
    fn at_an_issuer_failures_alone_count() {
        let throttle = Throttle::default();
        let address = at("192.0.2.1");
        for _ in 0..100 {
            assert_eq!(throttle.check(address, 0), Ok(()));
        }
        for _ in 0..FREE {
            assert_eq!(throttle.check(address, 0), Ok(()));
            throttle.fail(address, 0);
        }
        assert!(throttle.check(address, 0).is_err() && throttle.check(at("192.0.2.2"), 0).is_ok());
        assert!(throttle.begin(Some("anna"), address, 0).is_err(), "passwords are not tried from there either");
        assert_eq!(throttle.check(address, SECOND), Ok(()));
        assert_eq!(throttle.check(None, 0), Ok(()));
    }

    #[test]
    fn attempts_that_were_not_decided_do_not_count() {
        let throttle = Throttle::default();
        for _ in 0..100 {
            let attempt = throttle.begin(Some("anna"), at("192.0.2.1"), 0).unwrap();
            throttle.withdraw(&attempt);
        }
    }

    #[test]
    fn the_tables_are_bounded_and_keep_the_busiest() {
        let throttle = Throttle::default();
        for _ in 0..=FREE {
            let _ = throttle.begin(Some("anna"), None, 0);
        }
        for n in 0..3 * ENTRIES_MAX {
            let _ = throttle.begin(Some(&format!("n{n}")), None, 1);
        }
        assert!(throttle.0.lock().logins.counts.len() <= ENTRIES_MAX);
        assert!(throttle.begin(Some("anna"), None, 1).is_err());
    }
}
