//! The attempts of a scan of one tablet: from the first to the one that completes it, with a trace of all.
//!
//! ```text
//! next -> Ask -> (waits for `delay`) asked -> busy, failed -> next …
//!                                          -> started -> done
//!                                                     -> failed -> next …   the caller requests only the missing rows
//! hedge -> Ask, beside one that has not started; the first to start wins, the other is dropped
//! ```

use super::trace::{AttemptRecord, End};
use super::{Attempt, Hedging, Outcome, Profile, Selection, Tablet};
use std::time::Duration;

/// Max attempts of a scan. The profiles' timeouts grow, so deadlines end a scan long before; this also ends a scan
/// whose profile has no growth.
pub const ATTEMPTS_MAX: usize = 128;
/// Min interval between two requests to a server, even if its busy timeout is shorter or infinite.
const AGAIN_MIN: Duration = Duration::from_millis(10);

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
    /// There is no scan server, and the profile's wait is over: apply [`super::Fallback`].
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
        if !slow || !hedging.has_one() || servers.is_empty() || self.made.len() >= ATTEMPTS_MAX {
            return None;
        }
        let mut ask = self.select(profile, servers, now, draw)?;
        let name = servers.get(ask.server)?;
        // The plan may have no other server: the one already asked, or a delayed one, is no help.
        if self.made.iter().any(|made| made.server == *name) || !hedging.take() {
            return None;
        }
        ask.delay = Duration::ZERO;
        self.hedged = true;
        let ask = self.enter(ask, servers, now);
        self.made[ask.attempt].hedge = true;
        Some(ask)
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

    /// Records the first data of an attempt. Returns the attempt to cancel, if another was in progress.
    pub fn started(&mut self, attempt: usize, now: Duration) -> Option<usize> {
        let at = self.since(now);
        let made = self.made.get_mut(attempt).filter(|made| made.end == End::Asked)?;
        (made.end, made.started) = (End::Started, Some(at));
        let other = self.made.iter().position(|made| made.end == End::Asked)?;
        self.ended(other, End::Dropped, now);
        Some(other)
    }

    /// Records the end of an attempt.
    pub fn ended(&mut self, attempt: usize, end: End, now: Duration) {
        let at = self.since(now);
        if let Some(made) = self.made.get_mut(attempt).filter(|made| made.end.is_under_way()) {
            (made.end, made.ended) = (end, Some(at));
            self.hedged &= end != End::Failed;
        }
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
            End::Busy | End::Failed | End::Dropped => true,
        };
        self.made.iter().any(|made| made.end == End::Busy) && self.made.iter().all(is_unstarted)
    }

    /// Every attempt, in order.
    pub fn trace(&self) -> &[AttemptRecord] {
        &self.made
    }

    fn since(&self, now: Duration) -> Duration {
        now.saturating_sub(self.begun)
    }

    /// The server of the next attempt by the profile, given the attempts so far.
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
            .filter(|made| !made.owner)
            .map(|made| Attempt { server: &made.server, outcome: outcome(made.end) })
            .collect();
        let tablet = Tablet { name: &self.tablet, attempts: &tried };
        let Selection::Servers { servers: chosen, delay, busy_timeout } =
            profile.select(&[tablet], servers, Duration::ZERO, draw)
        else {
            return None;
        };
        let server = *chosen.first()?;
        // A full or draining server responds at once. It is asked again only once its busy timeout would have passed:
        // otherwise a scan would cycle through all servers without a pause.
        let again = self.made.iter().filter(|made| Some(&made.server.as_str()) == servers.get(server));
        let pause = again.map(|made| made.asked + made.busy_timeout.max(AGAIN_MIN)).max().unwrap_or_default();
        let delay = delay.max(pause.saturating_sub(self.since(now)));
        Some(AttemptRequest { attempt: self.made.len(), server, delay, busy_timeout })
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
mod tests {
    use super::super::Profiles;
    use super::*;
    use proptest::prelude::*;

    const SERVERS: [&str; 4] = ["a", "b", "c", "d"];

    fn profile(plans: &str) -> Profile {
        let json = format!(
            r#"[{{"isDefault":true,"timeToWaitForScanServers":"2s","maxBusyTimeout":"1s","attemptPlans":[{plans}]}}]"#
        );
        Profiles::parse(&json).unwrap().for_scan_type(None).clone()
    }

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn asked(step: Step) -> AttemptRequest {
        match step {
            Step::Ask(ask) => ask,
            other => panic!("expected a request, found {other:?}"),
        }
    }

    #[test]
    fn a_busy_scan_goes_to_the_next_plan_and_the_trace_says_so() {
        let profile = profile(r#"{"servers":"1","busyTimeout":"33ms"},{"servers":"100%","busyTimeout":"50ms"}"#);
        let mut attempts = ScanAttempts::new("t", at(1_000));
        let first = asked(attempts.next(&profile, &SERVERS, at(1_000), |_| 0));
        assert_eq!((first.attempt, first.delay, first.busy_timeout), (0, at(0), at(33)));
        attempts.ended(0, End::Busy, at(1_033));
        let second = asked(attempts.next(&profile, &SERVERS, at(1_033), |_| 0));
        assert_ne!(second.server, first.server);
        attempts.ended(1, End::Failed, at(1_040));
        let third = asked(attempts.next(&profile, &SERVERS, at(1_040), |_| 0));
        assert_eq!((third.delay, third.busy_timeout), (at(100), at(400)));
        assert_eq!(attempts.started(2, at(1_150)), None);
        attempts.ended(2, End::Done, at(1_250));
        let [one, two, three] = [first, second, third].map(|ask| SERVERS[ask.server]);
        let words: Vec<String> = attempts.trace().iter().map(ToString::to_string).collect();
        assert_eq!(
            words,
            [
                format!("{one}: busy after 33 ms"),
                format!("{two}: failed after 7 ms"),
                format!("{three}: done after 110 ms, begun after 10 ms"),
            ]
        );
        assert!(!attempts.is_under_way());
    }

    #[test]
    fn a_scan_that_waits_for_its_start_has_found_all_busy_and_one_that_runs_has_not() {
        let profile = profile(r#"{"servers":"100%","busyTimeout":"40ms"}"#);
        let mut attempts = ScanAttempts::new("t", at(0));
        asked(attempts.next(&profile, &SERVERS, at(0), |_| 0));
        assert!(!attempts.finds_all_busy(at(30)), "the first one may have started it");
        attempts.ended(0, End::Busy, at(40));
        assert!(attempts.finds_all_busy(at(40)));
        let second = asked(attempts.next(&profile, &SERVERS, at(40), |_| 0));
        assert!(attempts.finds_all_busy(at(41)));
        assert!(!attempts.finds_all_busy(at(40) + second.busy_timeout), "it would have said that it is busy");
        attempts.started(second.attempt, at(42));
        assert!(!attempts.finds_all_busy(at(43)));
    }

    #[test]
    fn servers_that_are_full_are_not_asked_again_within_their_busy_timeout() {
        let profile = profile(r#"{"servers":"100%","busyTimeout":"40ms"}"#);
        let mut attempts = ScanAttempts::new("t", at(0));
        let mut delays = Vec::new();
        for _ in 0..6 {
            let ask = asked(attempts.next(&profile, &SERVERS, at(1), |_| 0));
            attempts.ended(ask.attempt, End::Busy, at(1));
            delays.push(ask.delay);
        }
        assert_eq!(delays[..4], [Duration::ZERO; 4], "four servers are there to be asked at once");
        assert!(delays[4] >= at(39) && delays[5] > at(39), "{delays:?}");
    }

    #[test]
    fn without_servers_a_scan_waits_then_may_go_to_the_owner() {
        let profile = profile(r#"{"servers":"1","busyTimeout":"33ms"}"#);
        let mut attempts = ScanAttempts::new("t", at(0));
        let none = |attempts: &mut ScanAttempts, ms| attempts.next(&profile, &[], at(ms), |_| 0);
        assert_eq!(none(&mut attempts, 500), Step::Wait(at(2_000)));
        assert_eq!(none(&mut attempts, 1_500), Step::Wait(at(1_000)));
        // A server that appeared meanwhile restarts the wait.
        let ask = asked(attempts.next(&profile, &SERVERS, at(1_600), |_| 0));
        attempts.ended(ask.attempt, End::Failed, at(1_700));
        assert_eq!(none(&mut attempts, 3_000), Step::Wait(at(2_000)));
        assert_eq!(none(&mut attempts, 5_000), Step::Absent);
        let attempt = attempts.fall_back("owner-1", at(5_000));
        attempts.started(attempt, at(5_004));
        attempts.ended(attempt, End::Done, at(5_010));
        assert_eq!(attempts.trace()[1].to_string(), "owner owner-1: done after 10 ms, begun after 4 ms");
    }

    #[test]
    fn a_slow_scan_is_hedged_once_and_the_slower_attempt_is_dropped() {
        let profile = profile(r#"{"servers":"100%","busyTimeout":"5s"}"#);
        let mut hedging = Hedging::new(at(20), 1.0, 1.0).unwrap();
        let mut attempts = ScanAttempts::new("t", at(100));
        hedging.scan_begins();
        let first = asked(attempts.next(&profile, &SERVERS, at(100), |_| 0));
        let hedge = |attempts: &mut ScanAttempts, hedging: &mut Hedging, servers: &[&str], ms| {
            attempts.hedge(&profile, servers, hedging, at(ms), |_| 0)
        };
        assert_eq!(hedge(&mut attempts, &mut hedging, &SERVERS, 119), None, "not slow yet");
        assert_eq!(
            hedge(&mut attempts, &mut hedging, &SERVERS[first.server..=first.server], 120),
            None,
            "no other server"
        );
        let second = hedge(&mut attempts, &mut hedging, &SERVERS, 120).unwrap();
        assert_ne!(second.server, first.server);
        hedging.scan_begins();
        assert_eq!(hedge(&mut attempts, &mut hedging, &SERVERS, 990), None, "once");
        assert_eq!(attempts.started(second.attempt, at(130)), Some(first.attempt));
        assert_eq!(attempts.started(first.attempt, at(131)), None, "an attempt that was dropped starts no more");
        attempts.ended(second.attempt, End::Done, at(140));
        let words: Vec<String> = attempts.trace().iter().map(ToString::to_string).collect();
        let [one, two] = [first, second].map(|ask| SERVERS[ask.server]);
        assert_eq!(
            words,
            [format!("{one}: dropped after 30 ms"), format!("{two} (hedge): done after 20 ms, begun after 10 ms"),]
        );
        // Without a budget there is no hedge.
        let mut none = Hedging::new(at(20), 0.0, 1.0).unwrap();
        none.scan_begins();
        let mut attempts = ScanAttempts::new("t", at(0));
        asked(attempts.next(&profile, &SERVERS, at(0), |_| 0));
        assert_eq!(hedge(&mut attempts, &mut none, &SERVERS, 900), None);
    }

    proptest! {
        /// Whatever servers respond, a scan ends; and no server is asked while another attempt runs, except for one
        /// hedge.
        #[test]
        fn a_scan_ends_and_has_at_most_two_attempts_at_a_time(answers in prop::collection::vec((0..4u8, 1..50u64), 1..300)) {
            let profile = profile(r#"{"servers":"2","busyTimeout":"5ms"},{"servers":"100%","busyTimeout":"5ms"}"#);
            let mut hedging = Hedging::new(at(3), 1.0, 5.0).unwrap();
            let mut attempts = ScanAttempts::new("t", at(0));
            let mut now = at(0);
            for (answer, passes) in answers {
                if !attempts.is_under_way() {
                    match attempts.next(&profile, &SERVERS, now, |n| n - 1) {
                        Step::Ask(ask) => now += ask.delay,
                        step => prop_assert_eq!((step, attempts.trace().len()), (Step::GiveUp, ATTEMPTS_MAX)),
                    }
                }
                now += at(passes);
                hedging.scan_begins();
                attempts.hedge(&profile, &SERVERS, &mut hedging, now, |_| 0);
                let under_way: Vec<usize> =
                    (0..attempts.trace().len()).filter(|n| attempts.trace()[*n].end.is_under_way()).collect();
                prop_assert!(under_way.len() <= 2 && attempts.trace().len() <= ATTEMPTS_MAX);
                let Some(attempt) = under_way.first().copied() else { continue };
                match answer {
                    0 => attempts.ended(attempt, End::Busy, now),
                    1 => attempts.ended(attempt, End::Failed, now),
                    2 => {
                        let dropped = attempts.started(attempt, now);
                        prop_assert_eq!(dropped, under_way.get(1).copied());
                    }
                    _ => {}
                }
            }
        }
    }
}
