//! The attempts of a scan of one tablet: from the first to the one that completes it, with a trace of all.
//!
//! ```text
//! next -> Ask -> (waits for `delay`) asked -> busy, failed, unreachable, refused -> next …
//!                                          -> started -> done
//!                                                     -> failed, unreachable -> next …   the caller requests only the missing rows
//! hedge -> Ask, beside one that has not started; the first to start wins, the other is dropped
//! pass_over -> Ask, beside ones whose servers are silent; in the same way
//! ```

use super::trace::{AttemptRecord, End};
use super::{Attempt, Hedging, Outcome, Profile, Selection, Tablet};
use std::time::Duration;

/// Max attempts of a scan. The profiles' timeouts grow, so deadlines end a scan long before; this also ends a scan
/// whose profile has no growth.
pub const ATTEMPTS_MAX: usize = 128;
/// Min interval between two requests to a server, even if its busy timeout is shorter or infinite.
const AGAIN_MIN: Duration = Duration::from_millis(10);
/// Attempts after which a server that cannot be reached counts as absent. A second one tells it from a lost connection.
const LOST_AFTER: usize = 2;
/// How long it counts as absent.
const LOST_FOR: Duration = Duration::from_secs(3);

/// A scan of one tablet, with its attempts so far.
#[derive(Debug, Clone)]
pub struct ScanAttempts {
    tablet: String,
    begun: Duration,
    made: Vec<AttemptRecord>,
    /// Time since which there has been no server.
    alone_since: Option<Duration>,
    hedged: bool,
}

/// The next step of the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Send a request to a server.
    Ask(AttemptRequest),
    /// There is no scan server: retry, for at most this much longer.
    Wait(Duration),
    /// There is no scan server, and the profile's wait is over; or each refuses the scan, or cannot be reached. Apply
    /// [`super::Fallback`].
    Absent,
    /// It was busy or failed too often.
    GiveUp,
}

/// A request to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptRequest {
    /// The attempt, for [`ScanAttempts::started`] and [`ScanAttempts::ended`].
    pub attempt: usize,
    /// The server, as an index.
    pub server: usize,
    /// Wait before the request is sent.
    pub delay: Duration,
    /// How long the server may leave the scan unstarted.
    pub busy_timeout: Duration,
}

impl ScanAttempts {
    /// A new scan.
    pub fn new(tablet: impl Into<String>, now: Duration) -> ScanAttempts {
        ScanAttempts { tablet: tablet.into(), begun: now, made: Vec::new(), alone_since: None, hedged: false }
    }

    /// The next attempt, while none is in progress. `draw(n)` returns an index below `n`.
    pub fn next(
        &mut self,
        profile: &Profile,
        servers: &[&str],
        now: Duration,
        draw: impl FnMut(usize) -> usize,
    ) -> Step {
        if self.made.len() >= ATTEMPTS_MAX {
            return Step::GiveUp;
        }
        if !servers.is_empty() {
            self.alone_since = None;
            if servers.iter().all(|server| self.is_absent(server, now)) {
                return Step::Absent;
            }
            return self
                .select(profile, servers, now, draw)
                .map_or(Step::GiveUp, |ask| Step::Ask(self.enter(ask, servers, now)));
        }
        let since = *self.alone_since.get_or_insert(now);
        match profile.select(&[], servers, now.saturating_sub(since), draw) {
            Selection::Wait(left) => Step::Wait(left),
            _ => Step::Absent,
        }
    }

    /// Starts a second attempt beside the only one in progress. It needs another server and an attempt in the budget,
    /// and the first must have gone unstarted for long enough. A scan is hedged once, until one of its attempts
    /// fails.
    pub fn hedge(
        &mut self,
        profile: &Profile,
        servers: &[&str],
        hedging: &mut Hedging,
        now: Duration,
        draw: impl FnMut(usize) -> usize,
    ) -> Option<AttemptRequest> {
        let slow = self.hedge_due(hedging).is_some_and(|due| due <= now);
        if !slow || !hedging.has_one() {
            return None;
        }
        let ask = self.select_other(profile, servers, now, draw)?;
        if !hedging.take() {
            return None;
        }
        self.hedged = true;
        let ask = self.enter(ask, servers, now);
        self.made[ask.attempt].hedge = true;
        Some(ask)
    }

    /// Starts another attempt beside one whose server is silent: it has not even taken the request. That is no hedge,
    /// so it needs no budget, but another server.
    pub fn pass_over(
        &mut self,
        silent: usize,
        profile: &Profile,
        servers: &[&str],
        now: Duration,
        draw: impl FnMut(usize) -> usize,
    ) -> Option<AttemptRequest> {
        self.made.get(silent).filter(|made| made.end == End::Asked)?;
        let ask = self.select_other(profile, servers, now, draw)?;
        Some(self.enter(ask, servers, now))
    }

    /// When [`ScanAttempts::hedge`] may start a second attempt.
    pub fn hedge_due(&self, hedging: &Hedging) -> Option<Duration> {
        let mut under_way = self.made.iter().filter(|made| made.end.is_under_way());
        match (under_way.next(), under_way.next()) {
            (Some(made), None) if made.end == End::Asked && !self.hedged => {
                Some(self.begun + made.asked + hedging.after())
            }
            _ => None,
        }
    }

    /// Records that the scan goes to the tablet's owner, as there is no scan server.
    pub fn fall_back(&mut self, owner: &str, now: Duration) -> usize {
        self.made.push(AttemptRecord {
            server: owner.to_owned(),
            owner: true,
            asked: self.since(now),
            ..AttemptRecord::default()
        });
        self.made.len() - 1
    }

    /// Records the first data of an attempt. Others in progress are to be cancelled: returns the first of them.
    pub fn started(&mut self, attempt: usize, now: Duration) -> Option<usize> {
        let at = self.since(now);
        let made = self.made.get_mut(attempt).filter(|made| made.end == End::Asked)?;
        (made.end, made.started) = (End::Started, Some(at));
        let others: Vec<usize> = (0..self.made.len()).filter(|other| self.made[*other].end == End::Asked).collect();
        others.iter().for_each(|other| self.ended(*other, End::Dropped, now));
        others.first().copied()
    }

    /// Records the end of an attempt.
    pub fn ended(&mut self, attempt: usize, end: End, now: Duration) {
        let at = self.since(now);
        if let Some(made) = self.made.get_mut(attempt).filter(|made| made.end.is_under_way()) {
            (made.end, made.ended) = (end, Some(at));
            self.hedged &= !matches!(end, End::Failed | End::Unreachable);
        }
    }

    /// Lets servers that refused the scan be asked again, as if they had been busy.
    pub fn ask_again(&mut self) {
        self.made.iter_mut().filter(|made| made.end == End::Refused).for_each(|made| made.end = End::Busy);
    }

    /// Whether an attempt is in progress.
    pub fn is_under_way(&self) -> bool {
        self.made.iter().any(|made| made.end.is_under_way())
    }

    /// Whether servers were busy, and none has started the scan since. One that is silent beyond its busy timeout has
    /// started it.
    pub fn finds_all_busy(&self, now: Duration) -> bool {
        let since = self.since(now);
        let is_unstarted = |made: &AttemptRecord| match made.end {
            End::Asked => since < made.asked + made.busy_timeout,
            End::Started | End::Done => false,
            End::Busy | End::Failed | End::Unreachable | End::Refused | End::Dropped => true,
        };
        self.made.iter().any(|made| made.end == End::Busy) && self.made.iter().all(is_unstarted)
    }

    /// Every attempt, in order.
    pub fn trace(&self) -> &[AttemptRecord] {
        &self.made
    }

    /// How long the scan has been going on.
    pub fn since(&self, now: Duration) -> Duration {
        now.saturating_sub(self.begun)
    }

    /// Whether a server is no help for now: it refused the scan, or cannot be reached.
    fn is_absent(&self, server: &str, now: Duration) -> bool {
        let mut ends = self.made.iter().rev().filter(|made| made.server == server && !made.end.is_under_way());
        let lost_at = ends.clone().next().and_then(|made| made.ended).unwrap_or_default();
        ends.clone().any(|made| made.end == End::Refused)
            || self.since(now) < lost_at + LOST_FOR
                && ends.clone().count() >= LOST_AFTER
                && ends.by_ref().take(LOST_AFTER).all(|made| made.end == End::Unreachable)
    }

    /// The server of the next attempt by the profile, given the attempts so far. Servers that are absent, and attempts
    /// that did not reach one, do not count: the plan goes on to the others without a longer timeout.
    fn select(
        &self,
        profile: &Profile,
        servers: &[&str],
        now: Duration,
        draw: impl FnMut(usize) -> usize,
    ) -> Option<AttemptRequest> {
        let outcome = |end| if end == End::Failed { Outcome::Error } else { Outcome::Busy };
        let tried: Vec<Attempt<'_>> = self
            .made
            .iter()
            .filter(|made| !made.owner && !matches!(made.end, End::Refused | End::Unreachable))
            .map(|made| Attempt { server: &made.server, outcome: outcome(made.end) })
            .collect();
        let tablet = Tablet { name: &self.tablet, attempts: &tried };
        let left: Vec<usize> = (0..servers.len()).filter(|server| !self.is_absent(servers[*server], now)).collect();
        let names: Vec<&str> = left.iter().map(|server| servers[*server]).collect();
        let Selection::Servers { servers: chosen, delay, busy_timeout } =
            profile.select(&[tablet], &names, Duration::ZERO, draw)
        else {
            return None;
        };
        let server = *left.get(*chosen.first()?)?;
        // A full or draining server responds at once. It is asked again only once its busy timeout would have passed:
        // otherwise a scan would cycle through all servers without a pause.
        let again = self.made.iter().filter(|made| Some(&made.server.as_str()) == servers.get(server));
        let pause = again.map(|made| made.asked + made.busy_timeout.max(AGAIN_MIN)).max().unwrap_or_default();
        let delay = delay.max(pause.saturating_sub(self.since(now)));
        Some(AttemptRequest { attempt: self.made.len(), server, delay, busy_timeout })
    }

    /// A server that the scan has not asked, for a request beside another one.
    fn select_other(
        &self,
        profile: &Profile,
        servers: &[&str],
        now: Duration,
        draw: impl FnMut(usize) -> usize,
    ) -> Option<AttemptRequest> {
        if servers.is_empty() || self.made.len() >= ATTEMPTS_MAX {
            return None;
        }
        let ask = self.select(profile, servers, now, draw)?;
        let name = servers.get(ask.server)?;
        // The plan may have no other server: the one already asked, or a delayed one, is no help.
        let is_new = self.made.iter().all(|made| made.server != *name);
        is_new.then_some(AttemptRequest { delay: Duration::ZERO, ..ask })
    }

    fn enter(&mut self, ask: AttemptRequest, servers: &[&str], now: Duration) -> AttemptRequest {
        let server = servers.get(ask.server).copied().unwrap_or_default().to_owned();
        let asked = self.since(now) + ask.delay;
        self.made.push(AttemptRecord {
            server,
            asked,
            delay: ask.delay,
            busy_timeout: ask.busy_timeout,
            ..AttemptRecord::default()
        });
        ask
    }
}

#[cfg(test)]
mod tests;
