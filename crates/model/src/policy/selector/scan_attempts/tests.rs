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
fn each_server_that_refuses_is_asked_once_then_the_owner_may_be() {
    let profile = profile(r#"{"servers":"1","busyTimeout":"33ms"}"#);
    let mut attempts = ScanAttempts::new("t", at(0));
    let next = |attempts: &mut ScanAttempts, end: End| {
        let ask = asked(attempts.next(&profile, &SERVERS, at(1), |_| 0));
        attempts.ended(ask.attempt, end, at(1));
        ask
    };
    let mut refused: Vec<AttemptRequest> = (0..3).map(|_| next(&mut attempts, End::Refused)).collect();
    let last = next(&mut attempts, End::Busy);
    let again = next(&mut attempts, End::Refused);
    assert_eq!(again.server, last.server, "a busy server may have it");
    assert!(again.delay >= at(32), "and has its pause: {:?}", again.delay);
    refused.push(last);
    assert!(refused.iter().all(|ask| (ask.delay, ask.busy_timeout) == (at(0), at(33))), "{refused:?}");
    let mut servers: Vec<usize> = refused.iter().map(|ask| ask.server).collect();
    servers.sort_unstable();
    assert_eq!(servers, [0, 1, 2, 3], "also those beyond the plan");
    assert_eq!(attempts.next(&profile, &SERVERS, at(40), |_| 0), Step::Absent);
    // A server that comes is asked, and those that were behind may be asked again.
    assert_eq!(asked(attempts.next(&profile, &["a", "b", "c", "d", "e"], at(40), |_| 0)).server, 4);
    attempts.ask_again();
    let later = asked(attempts.next(&profile, &SERVERS, at(500), |_| 0));
    assert_eq!((later.delay, later.busy_timeout), (at(0), at(1_000)));
}

#[test]
fn servers_that_cannot_be_reached_count_as_absent_for_a_while() {
    let profile = profile(r#"{"servers":"1","busyTimeout":"33ms"}"#);
    let mut attempts = ScanAttempts::new("t", at(0));
    let next = |attempts: &mut ScanAttempts, ms, servers: &[&str]| attempts.next(&profile, servers, at(ms), |_| 0);
    let mut each = [0; 4];
    for _ in 0..8 {
        let ask = asked(next(&mut attempts, 1, &SERVERS));
        assert_eq!(ask.busy_timeout, at(33), "it is not their load");
        attempts.ended(ask.attempt, End::Unreachable, at(100));
        each[ask.server] += 1;
    }
    assert_eq!((each, next(&mut attempts, 100, &SERVERS)), ([2; 4], Step::Absent));
    let successor = asked(next(&mut attempts, 100, &["a", "e"]));
    assert_eq!((successor.server, successor.delay, successor.busy_timeout), (1, at(0), at(33)));
    attempts.ended(successor.attempt, End::Busy, at(101));
    assert!(matches!(next(&mut attempts, 3_101, &SERVERS), Step::Ask(_)), "they may be back");
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
    assert_eq!(hedge(&mut attempts, &mut hedging, &SERVERS[first.server..=first.server], 120), None, "no other server");
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

#[test]
fn a_silent_server_is_passed_over_without_a_budget_and_wins_if_it_starts_first() {
    let profile = profile(r#"{"servers":"1","busyTimeout":"33ms"},{"servers":"100%","busyTimeout":"33ms"}"#);
    let mut attempts = ScanAttempts::new("t", at(0));
    let first = asked(attempts.next(&profile, &SERVERS, at(0), |_| 0));
    let only = &SERVERS[first.server..=first.server];
    assert_eq!(attempts.pass_over(0, &profile, only, at(100), |_| 0), None, "no other server");
    let second = attempts.pass_over(0, &profile, &SERVERS, at(100), |_| 0).unwrap();
    let third = attempts.pass_over(1, &profile, &SERVERS, at(200), |_| 0).unwrap();
    let servers = [first.server, second.server, third.server];
    assert!(servers[0] != servers[1] && servers[1] != servers[2] && servers[0] != servers[2], "{servers:?}");
    assert_eq!((second.delay, third.delay), (at(0), at(0)));
    attempts.ended(1, End::Busy, at(210));
    assert_eq!(attempts.pass_over(1, &profile, &SERVERS, at(210), |_| 0), None, "it has answered");
    assert_eq!(attempts.started(0, at(220)), Some(2));
    let ends: Vec<End> = attempts.trace().iter().map(|made| made.end).collect();
    assert_eq!(ends, [End::Started, End::Busy, End::Dropped]);
}

#[test]
fn servers_that_stay_silent_are_asked_once_more_and_then_count_as_absent() {
    let profile = profile(r#"{"servers":"1","busyTimeout":"33ms"},{"servers":"100%","busyTimeout":"33ms"}"#);
    for servers in [&SERVERS[..1], &SERVERS[..2]] {
        let (mut attempts, mut now) = (ScanAttempts::new("t", at(0)), 0);
        while let Step::Ask(ask) = attempts.next(&profile, servers, at(now), |_| 0) {
            assert_eq!((ask.delay, ask.busy_timeout), (at(0), at(33)), "silence is not load");
            // Each is passed over, until nobody is left to wait for.
            let mut silent = Some(ask);
            while let Some(ask) = silent {
                now += 283;
                silent = attempts.pass_over(ask.attempt, &profile, servers, at(now), |_| 0);
            }
            (0..attempts.trace().len()).for_each(|attempt| attempts.ended(attempt, End::Unreachable, at(now)));
        }
        let asked = 2 * servers.len() as u64;
        assert_eq!((attempts.trace().len() as u64, now), (asked, asked * 283));
        assert_eq!(attempts.next(&profile, servers, at(now), |_| 0), Step::Absent);
        assert!(matches!(attempts.next(&profile, servers, at(now + 3_000), |_| 0), Step::Ask(_)), "they may run again");
    }
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
