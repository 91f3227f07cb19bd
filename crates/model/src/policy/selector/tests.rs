//! The selector against its rules as written (Accumulo's documentation of the configurable scan server selector).

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn names(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("scan-{i}:9700")).collect()
}

fn profile(json: &str) -> Profile {
    Profiles::parse(json).unwrap().for_scan_type(None).clone()
}

fn plans(plans: &str) -> Profile {
    profile(&format!(
        r#"[{{"isDefault":true,"maxBusyTimeout":"5m","busyTimeoutMultiplier":8,"attemptPlans":[{plans}]}}]"#
    ))
}

fn chosen(selection: Selection) -> (usize, Duration, Duration) {
    match selection {
        Selection::Servers { servers, delay, busy_timeout } => (servers[0], delay, busy_timeout),
        other => panic!("expected servers, found {other:?}"),
    }
}

#[test]
fn the_profile_of_the_contract_is_read() {
    let profile =
        plans(r#"{"servers":"3","busyTimeout":"33ms","salt":"one"},{"servers":"100%","busyTimeout":"100ms"}"#);
    assert_eq!(profile.plan(0).servers, ServerShare::Count(3));
    assert_eq!(profile.plan(0).salt, "one");
    assert_eq!(profile.plan(9).servers, ServerShare::Percent(100.0));
    let timeouts: Vec<u128> = (0..8).map(|k| profile.busy_timeout(k).as_millis()).collect();
    assert_eq!(timeouts, [33, 100, 800, 6_400, 51_200, 300_000, 300_000, 300_000]);
    assert_eq!(profile.busy_timeout(usize::MAX - 1), Duration::from_secs(300));
    assert_eq!(Profiles::default().for_scan_type(Some("any")).attempt_plans.len(), 3);
}

#[test]
fn a_bad_profile_is_refused_with_a_sentence_that_names_the_field() {
    let plan = r#"{"servers":"3","busyTimeout":"33ms"}"#;
    for (json, expected) in [
        ("{}", "expected a JSON list"),
        ("[]", "0 profiles are the default"),
        (&format!(r#"[{{"attemptPlans":[{plan}]}}]"#), "0 profiles are the default"),
        (
            &format!(r#"[{{"isDefault":true,"attemptPlans":[{plan}]}},{{"isDefault":true,"attemptPlans":[{plan}]}}]"#),
            "2 profiles are the default",
        ),
        (r#"[{"isDefault":true,"attemptPlans":[]}]"#, "attemptPlans: the list is empty"),
        (r#"[{"isDefault":true,"attemptPlans":[{"servers":"0","busyTimeout":"1s"}]}]"#, "servers: \"0\": expected"),
        (r#"[{"isDefault":true,"attemptPlans":[{"servers":"101%","busyTimeout":"1s"}]}]"#, "servers: \"101%\""),
        (r#"[{"isDefault":true,"attemptPlans":[{"servers":"NaN%","busyTimeout":"1s"}]}]"#, "servers: \"NaN%\""),
        (r#"[{"isDefault":true,"attemptPlans":[{"servers":"1","busyTimeout":"soon"}]}]"#, "busyTimeout: \"soon\""),
        (&format!(r#"[{{"isDefault":true,"depth":3,"attemptPlans":[{plan}]}}]"#), "unknown field `depth`"),
        ("[3]", "profile 1: a number: expected an object"),
        (r#"[{"isDefault":true}]"#, "profile 1, attemptPlans: it is missing"),
        (r#"[{"isDefault":true,"attemptPlans":{}}]"#, "attemptPlans: an object: expected a list"),
        (&format!(r#"[{{"isDefault":"yes","attemptPlans":[{plan}]}}]"#), "isDefault: a text: expected true or false"),
        (&format!(r#"[{{"isDefault":true,"group":7,"attemptPlans":[{plan}]}}]"#), "group: a number: expected a text"),
        (
            &format!(r#"[{{"isDefault":true,"maxBusyTimeout":5,"attemptPlans":[{plan}]}}]"#),
            "profile 1, maxBusyTimeout: a number: expected a duration",
        ),
        (
            &format!(r#"[{{"isDefault":true,"scanTypeActivations":"a","attemptPlans":[{plan}]}}]"#),
            "scanTypeActivations: a text: expected a list of names",
        ),
        (
            &format!(r#"[{{"isDefault":true,"attemptPlans":[{plan},{{"servers":"3"}}]}}]"#),
            "profile 1, attempt plan 2, busyTimeout: it is missing",
        ),
        (
            r#"[{"isDefault":true,"attemptPlans":[{"servers":"3","busyTimeout":"1s","sald":""}]}]"#,
            "profile 1, attempt plan 1: unknown field `sald`",
        ),
        (r#"[{"isDefault":true,"attemptPlans":[{"servers":2.5,"busyTimeout":"1s"}]}]"#, "servers: \"2.5\": expected"),
        (
            &format!(r#"[{{"isDefault":true,"busyTimeoutMultiplier":0,"attemptPlans":[{plan}]}}]"#),
            "busyTimeoutMultiplier: 0",
        ),
        (
            &format!(r#"[{{"isDefault":true,"scanTypeActivations":["a","a"],"attemptPlans":[{plan}]}}]"#),
            "\"a\" is named twice",
        ),
    ] {
        let message = Profiles::parse(json).unwrap_err().to_string();
        assert!(message.contains(expected), "{json}: {message}");
    }
}

#[test]
fn a_scan_type_picks_its_profile_wherever_the_default_stands() {
    let plan = |n: u32| format!(r#""attemptPlans":[{{"servers":"{n}","busyTimeout":"33ms"}}]"#);
    let json =
        format!(r#"[{{"scanTypeActivations":["gold"],{}}},{{"isDefault":true,"group":"g2",{}}}]"#, plan(1), plan(2));
    let profiles = Profiles::parse(&json).unwrap();
    assert_eq!(profiles.for_scan_type(Some("gold")).plan(0).servers, ServerShare::Count(1));
    assert_eq!(profiles.for_scan_type(Some("tin")).plan(0).servers, ServerShare::Count(2));
    assert_eq!(profiles.for_scan_type(None).group, "g2");
}

#[test]
fn without_servers_a_scan_waits_and_then_asks_the_tablet_server() {
    let profile = profile(
        r#"[{"isDefault":true,"timeToWaitForScanServers":"2s","attemptPlans":[{"servers":"1","busyTimeout":"1s"}]}]"#,
    );
    let tablet = [Tablet { name: "t", attempts: &[] }];
    let select = |waited| profile.select(&tablet, &[], waited, |_| 0);
    assert_eq!(select(Duration::ZERO), Selection::Wait(Duration::from_secs(2)));
    assert_eq!(select(Duration::from_millis(1_500)), Selection::Wait(Duration::from_millis(500)));
    assert_eq!(select(Duration::from_secs(2)), Selection::TabletServers);
}

#[test]
fn only_failures_delay_and_the_delay_doubles_up_to_thirty_seconds() {
    let profile = plans(r#"{"servers":"100%","busyTimeout":"33ms"}"#);
    let delay = |outcomes: &[Outcome]| {
        let attempts: Vec<_> = outcomes.iter().map(|outcome| Attempt { server: "a", outcome: *outcome }).collect();
        chosen(profile.select(&[Tablet { name: "t", attempts: &attempts }], &["a", "b"], Duration::ZERO, |_| 0)).1
    };
    assert_eq!(delay(&[Outcome::Busy; 5]), Duration::ZERO);
    assert_eq!(delay(&[Outcome::Error]), Duration::from_millis(100));
    assert_eq!(delay(&[Outcome::Error, Outcome::Busy, Outcome::Error, Outcome::Error]), Duration::from_millis(400));
    assert_eq!(delay(&[Outcome::Error; 9]), Duration::from_millis(25_600));
    assert_eq!(delay(&[Outcome::Error; 10]), Duration::from_secs(30));
    assert_eq!(delay(&[Outcome::Error; 200]), Duration::from_secs(30));
}

#[test]
fn several_tablets_follow_the_highest_attempt_among_them() {
    let profile = plans(r#"{"servers":"1","busyTimeout":"33ms"},{"servers":"100%","busyTimeout":"100ms"}"#);
    let tried = [Attempt { server: "a", outcome: Outcome::Busy }];
    let tablets = [Tablet { name: "t1", attempts: &tried }, Tablet { name: "t2", attempts: &[] }];
    let mut drawn_from = Vec::new();
    let selection = profile.select(&tablets, &["a", "b", "c"], Duration::ZERO, |n| {
        drawn_from.push(n);
        0
    });
    assert_eq!(drawn_from, [2, 3]);
    assert_eq!(chosen(selection).2, Duration::from_millis(100));
}

proptest! {
    /// Every choice lies in the plan's set, is fresh while a fresh one is left, and can be any of these.
    #[test]
    fn a_choice_is_an_untried_server_of_the_plan(
        total in 1usize..30, count in 1usize..40, percent in 1u32..=100, attempt in 0usize..4, tablet in "[a-z]{1,8}",
    ) {
        let profile = plans(&format!(
            r#"{{"servers":"{count}","busyTimeout":"33ms","salt":"one"}},{{"servers":"{percent}%","busyTimeout":"50ms"}}"#
        ));
        let names = names(total);
        let servers: Vec<&str> = names.iter().map(String::as_str).collect();
        let wanted = if attempt == 0 {
            count.min(total)
        } else {
            ((f64::from(percent) / 100.0 * total as f64).round() as usize).max(1)
        };
        let salt = if attempt == 0 { "one" } else { "" };
        let set: BTreeSet<usize> = ranking(&tablet, salt, &servers).into_iter().take(wanted).collect();
        let tried: Vec<_> =
            servers.iter().take(attempt).map(|s| Attempt { server: s, outcome: Outcome::Busy }).collect();
        let attempts: Vec<_> = (0..attempt).map(|i| tried[i % tried.len()]).collect();
        let fresh: BTreeSet<usize> = set.iter().copied().filter(|s| *s >= attempt).collect();
        let expected = if fresh.is_empty() { &set } else { &fresh };
        let mut reached = BTreeSet::new();
        for i in 0..expected.len() {
            let tablet = [Tablet { name: &tablet, attempts: &attempts }];
            reached.insert(chosen(profile.select(&tablet, &servers, Duration::ZERO, |n| i % n)).0);
        }
        prop_assert_eq!(&reached, expected);
    }

    /// Adding a server moves only what it takes over; removing one moves only its own. Checked against the rule as
    /// documented: the plan's timeout, then multiplied each time, up to the limit.
    #[test]
    fn busy_timeouts_grow_up_to_the_limit(
        (first, second) in (1u64..10_000, 1u64..10_000),
        (multiplier, limit_ms) in (1u32..20, 1u64..1_000_000),
        attempt in 0usize..40,
    ) {
        let json = format!(
            r#"[{{"isDefault":true,"maxBusyTimeout":"{limit_ms}ms","busyTimeoutMultiplier":{multiplier},"attemptPlans":[
                {{"servers":"3","busyTimeout":"{first}ms"}},{{"servers":"100%","busyTimeout":"{second}ms"}}]}}]"#
        );
        let profile = profile(&json);
        let expected = match attempt {
            0 => first,
            1 => second,
            _ => (2..=attempt).try_fold(second, |ms, _| ms.checked_mul(multiplier.into())).unwrap_or(u64::MAX).min(limit_ms),
        };
        let found = profile.busy_timeout(attempt).as_secs_f64() * 1e3;
        prop_assert!((found - expected as f64).abs() <= 1e-6 * expected as f64, "{} is not {}", found, expected);
    }

    #[test]
    fn failures_delay_and_never_for_longer_than_the_limit(errors in 0usize..100, busy in 0usize..100) {
        let attempt = |outcome| Attempt { server: "a", outcome };
        let mut attempts = vec![attempt(Outcome::Error); errors];
        attempts.extend(vec![attempt(Outcome::Busy); busy]);
        let tablet = Tablet { name: "t", attempts: &attempts };
        let (_, delay, _) = chosen(Profiles::default().for_scan_type(None).select(&[tablet], &["a"], Duration::ZERO, |_| 0));
        let doubled = 100u128 << errors.saturating_sub(1).min(20);
        prop_assert_eq!(delay.as_millis(), if errors == 0 { 0 } else { doubled.min(30_000) });
    }

    #[test]
    fn no_profile_makes_the_reader_panic(
        text in "\\PC{0,40}", servers in "[-0-9.%einfNa ]{0,8}", duration in "[0-9]{0,22} ?[dhms]{0,3}", n in any::<i64>(),
    ) {
        let _ = Profiles::parse(&text);
        let json = serde_json::json!([{
            "isDefault": true, "maxBusyTimeout": &duration, "busyTimeoutMultiplier": n,
            "attemptPlans": [{"servers": &servers, "busyTimeout": &duration}],
        }]);
        if let Ok(profiles) = Profiles::parse(&json.to_string()) {
            let profile = profiles.for_scan_type(None);
            (0..70).for_each(|attempt| assert!(profile.busy_timeout(attempt) <= Duration::MAX));
            let names = names(3);
            let servers: Vec<&str> = names.iter().map(String::as_str).collect();
            let tablet = Tablet { name: &text, attempts: &[] };
            let (server, ..) = chosen(profile.select(&[tablet], &servers, Duration::ZERO, |n| n));
            prop_assert!(server < 3);
        }
    }

    #[test]
    fn a_change_of_servers_moves_little(total in 2usize..30, gone in 0usize..30, tablet in "[a-z]{1,8}", salt in "[a-z]{0,3}") {
        let names = names(total);
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let gone = gone % total;
        let fewer: Vec<&str> = all.iter().copied().filter(|s| *s != all[gone]).collect();
        let before: Vec<&str> =
            ranking(&tablet, &salt, &all).into_iter().filter(|s| *s != gone).map(|s| all[s]).collect();
        let after: Vec<&str> = ranking(&tablet, &salt, &fewer).into_iter().map(|s| fewer[s]).collect();
        prop_assert_eq!(before, after);
    }
}

#[test]
fn tablets_spread_evenly_and_salts_are_independent() {
    let names = names(10);
    let servers: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut first = [0u32; 10];
    let mut same = 0;
    for t in 0..10_000 {
        let tablet = format!("tablet-{t}");
        let one = ranking(&tablet, "one", &servers)[0];
        first[one] += 1;
        same += u32::from(one == ranking(&tablet, "two", &servers)[0]);
    }
    // 1,000 expected of each, standard deviation 30.
    assert!(first.iter().all(|n| (880..1_120).contains(n)), "{first:?}");
    assert!((880..1_120).contains(&same), "{same}");
}
