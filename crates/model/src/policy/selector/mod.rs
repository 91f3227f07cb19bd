//! Which scan server is asked for a tablet, and how long it may leave the scan unstarted.
//!
//! The rules are those of Accumulo's configurable scan server selector (2.1 and later), whose profiles operators
//! know; [`Profiles::parse`] reads them. Attempt `k` follows plan `min(k, last)`. A plan takes the first servers of
//! an order that depends only on tablet and salt (rendezvous hashing; Thaler and Ravishankar 1998). So adding or
//! removing a server moves only its own tablets, and a larger plan of the same salt contains the smaller one. Among
//! them, servers that were tried for the tablet are left out unless none remains, and the choice is random.
//!
//! [`Profile::select`] is stateless: the caller passes in the available servers and the attempts so far.
//! [`ScanAttempts`] keeps them for the scan of one tablet. Beyond Accumulo's selector it has second attempts beside
//! slow ones within a budget ([`Hedging`]). It also limits scans that go to owners instead ([`Fallback`]), and keeps a
//! trace ([`AttemptRecord`]).

mod absent;
mod hedge;
mod profile;
mod read;
mod scan_attempts;
#[cfg(test)]
mod tests;
mod tokens;
mod trace;

pub use absent::{Fallback, NoServerRule, Verdict};
pub use hedge::Hedging;
pub use profile::{AttemptPlan, Profile, Profiles, ServerShare};
pub use scan_attempts::{ATTEMPTS_MAX, AttemptRequest, ScanAttempts, Step};
pub use trace::{AttemptRecord, End};

use std::time::Duration;

/// First delay after a server failed; it doubles with each further failure.
const ERROR_DELAY: Duration = Duration::from_millis(100);
/// Max delay after failures.
const ERROR_DELAY_MAX: Duration = Duration::from_secs(30);

/// How an attempt at a scan ended without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The server did not start the scan within the busy timeout, and never will.
    Busy,
    /// The server failed.
    Error,
}

/// An attempt made for a tablet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt<'a> {
    /// The server's name.
    pub server: &'a str,
    /// How it ended.
    pub outcome: Outcome,
}

/// A tablet to be scanned and the attempts made for it so far.
#[derive(Debug, Clone, Copy)]
pub struct Tablet<'a> {
    /// The tablet's name, which determines the order of servers.
    pub name: &'a str,
    /// The attempts, in order.
    pub attempts: &'a [Attempt<'a>],
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Ask these servers.
    Servers {
        /// An index into the list of servers, for each tablet.
        servers: Vec<usize>,
        /// Wait before asking, after servers failed.
        delay: Duration,
        /// How long a server may leave the scan unstarted.
        busy_timeout: Duration,
    },
    /// There is no scan server: retry until this much more time has passed.
    Wait(Duration),
    /// There is no scan server, and the profile's wait is over: ask the tablets' own servers.
    TabletServers,
}

impl Profile {
    /// Chooses a server for each tablet. `waited` is how long this scan has found no server so far; `draw(n)` returns
    /// an index below `n`.
    pub fn select(
        &self,
        tablets: &[Tablet<'_>],
        servers: &[&str],
        waited: Duration,
        mut draw: impl FnMut(usize) -> usize,
    ) -> Selection {
        if servers.is_empty() {
            return match self.time_to_wait.saturating_sub(waited) {
                Duration::ZERO => Selection::TabletServers,
                left => Selection::Wait(left),
            };
        }
        // One plan for all tablets of a scan: they are asked together, and the most-tried one decides how far to go.
        let attempt = tablets.iter().map(|tablet| tablet.attempts.len()).max().unwrap_or(0);
        let errors = tablets.iter().map(errors).max().unwrap_or(0);
        let plan = self.plan(attempt);
        let chosen = tablets
            .iter()
            .map(|tablet| {
                let mut candidates = ranking(tablet.name, &plan.salt, servers);
                candidates.truncate(plan.servers.of(servers.len()));
                let fresh = |server: &usize| !tablet.attempts.iter().any(|attempt| attempt.server == servers[*server]);
                let untried = candidates.iter().filter(|server| fresh(server)).count();
                if untried == 0 {
                    // All were tried and busy: some server has to be asked again, and a random choice spreads the
                    // load.
                    return candidates[draw(candidates.len()).min(candidates.len() - 1)];
                }
                let nth = draw(untried).min(untried - 1);
                candidates.iter().copied().filter(fresh).nth(nth).unwrap_or(candidates[0])
            })
            .collect();
        Selection::Servers { servers: chosen, delay: error_delay(errors), busy_timeout: self.busy_timeout(attempt) }
    }

    /// The plan of attempt `attempt` (from 0).
    pub fn plan(&self, attempt: usize) -> &AttemptPlan {
        &self.attempt_plans[attempt.min(self.attempt_plans.len() - 1)]
    }

    /// The busy timeout of attempt `attempt` (from 0): the plan's, and past the last plan multiplied with each
    /// attempt, up to the profile's limit.
    pub fn busy_timeout(&self, attempt: usize) -> Duration {
        let past = (attempt + 1).saturating_sub(self.attempt_plans.len());
        let factor = f64::from(self.busy_timeout_multiplier).powi(i32::try_from(past).unwrap_or(i32::MAX));
        let seconds = self.plan(attempt).busy_timeout.as_secs_f64() * factor;
        // Without the multiplication, as a timeout in whole nanoseconds must stay exact.
        if past == 0 {
            return self.plan(attempt).busy_timeout;
        }
        let limit = self.max_busy_timeout;
        if seconds >= limit.as_secs_f64() { limit } else { Duration::from_secs_f64(seconds) }
    }
}

/// Servers in a tablet's order of preference under a salt: the highest hash of (tablet, salt, server) first.
pub fn ranking(tablet: &str, salt: &str, servers: &[&str]) -> Vec<usize> {
    let seed = hash(hash(FNV_OFFSET, tablet), salt);
    let mut ranked: Vec<(u64, usize)> = servers.iter().enumerate().map(|(i, s)| (mix(hash(seed, s)), i)).collect();
    // Ties in the hash are broken by name: the result must not depend on the order of the list.
    ranked.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| servers[a.1].cmp(servers[b.1])));
    ranked.into_iter().map(|(_, server)| server).collect()
}

fn errors(tablet: &Tablet<'_>) -> usize {
    tablet.attempts.iter().filter(|attempt| attempt.outcome == Outcome::Error).count()
}

/// A failed server is not asked again at once; a busy one causes no delay, because it responded.
fn error_delay(errors: usize) -> Duration {
    match u32::try_from(errors) {
        Ok(0) => Duration::ZERO,
        Ok(n) if n <= 16 => (ERROR_DELAY * (1 << (n - 1))).min(ERROR_DELAY_MAX),
        _ => ERROR_DELAY_MAX,
    }
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, with a separator after each text so that ("ab", "c") and ("a", "bc") differ. It must never change: every
/// client has to find the same servers for a tablet.
fn hash(seed: u64, text: &str) -> u64 {
    text.bytes().chain([0xff]).fold(seed, |h, byte| (h ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The finaliser of SplitMix64: FNV alone leaves the high bits of names that differ at the end nearly equal.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
