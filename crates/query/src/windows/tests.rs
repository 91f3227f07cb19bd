//! Windows against calendars, and the finder against the windows.

use super::*;

use meridian_model::time::{format_instant, parse_instant};
use proptest::prelude::*;

fn at(text: &str) -> i64 {
    parse_instant(text, None).unwrap()
}

fn check(duration: &str, zone: &str, time: &str, start: &str, end: &str) {
    let windows = Windows::parse(duration, zone).unwrap();
    let found = windows.window_of(at(time));
    assert_eq!(
        (format_instant(found.start).as_str(), format_instant(found.end).as_str()),
        (start, end),
        "{duration} {zone} {time}"
    );
    let around = Interval { start: at(time) - 40 * DAY_US, end: at(time) + 40 * DAY_US };
    assert_eq!(windows.finder(around).find(at(time)), found);
}

#[test]
fn windows_are_aligned_to_the_zones_midnight() {
    check("PT1H", "UTC", "2026-03-01T10:59:59.999999Z", "2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z");
    check("PT1H", "Asia/Kolkata", "2026-03-01T10:10:00Z", "2026-03-01T09:30:00Z", "2026-03-01T10:30:00Z");
    check("PT1H", "+05:45", "2026-03-01T10:10:00Z", "2026-03-01T09:15:00Z", "2026-03-01T10:15:00Z");
    check("P1D", "Europe/Paris", "2026-01-15T23:30:00Z", "2026-01-15T23:00:00Z", "2026-01-16T23:00:00Z");
    check("P1W", "UTC", "2026-11-21T09:00:00Z", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z");
    check("P1M", "America/New_York", "2026-03-31T23:00:00Z", "2026-03-01T05:00:00Z", "2026-04-01T04:00:00Z");
    check("P3M", "UTC", "1969-12-31T23:59:59Z", "1969-10-01T00:00:00Z", "1970-01-01T00:00:00Z");
    check("P1Y", "UTC", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "0002-01-01T00:00:00Z");
    check("PT5H", "UTC", "1970-01-01T05:00:00Z", "1970-01-01T05:00:00Z", "1970-01-01T10:00:00Z");
}

#[test]
fn days_of_23_and_25_hours_are_cut_at_their_midnights() {
    // Paris, 2026-03-29: 02:00 becomes 03:00. Paris, 2026-10-25: 03:00 becomes 02:00.
    check("P1D", "Europe/Paris", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z");
    check("P1D", "Europe/Paris", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z");
    check("PT6H", "Europe/Paris", "2026-10-25T22:30:00Z", "2026-10-25T22:00:00Z", "2026-10-25T23:00:00Z");
    check("PT6H", "Europe/Paris", "2026-03-29T21:30:00Z", "2026-03-29T17:00:00Z", "2026-03-29T22:00:00Z");
    // Sao Paulo skipped midnight on 2018-11-04: the day began at 01:00, which is 03:00Z.
    check("P1D", "America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z");
}

#[test]
fn the_last_windows_of_the_year_9999_are_whole() {
    let last = "9999-12-31T23:00:00Z";
    check("P1D", "Asia/Tokyo", last, "9999-12-31T15:00:00Z", "+010000-01-01T15:00:00Z");
    check("P1D", "+09:00", last, "9999-12-31T15:00:00Z", "+010000-01-01T15:00:00Z");
    check("P1D", "America/New_York", "9999-12-31T12:00:00Z", "9999-12-31T05:00:00Z", "+010000-01-01T05:00:00Z");
    check("P1D", "UTC", last, "9999-12-31T00:00:00Z", "+010000-01-01T00:00:00Z");
    check("PT6H", "Asia/Tokyo", last, "9999-12-31T21:00:00Z", "+010000-01-01T03:00:00Z");
    check("P1W", "UTC", last, "9999-12-27T00:00:00Z", "+010000-01-03T00:00:00Z");
    check("P1M", "Europe/Paris", last, "9999-12-31T23:00:00Z", "+010000-01-31T23:00:00Z");
    check("P5M", "Europe/Paris", "9999-12-01T00:00:00Z", "9999-07-31T22:00:00Z", "9999-12-31T23:00:00Z");
    check("P7Y", "UTC", last, "9996-01-01T00:00:00Z", "+010003-01-01T00:00:00Z");
    for zone in ["UTC", "Asia/Tokyo"] {
        // Open ends are in some window, found without a search.
        let windows = Windows::parse("P1D", zone).unwrap();
        assert!([i64::MIN, i64::MAX].map(|end| windows.window_of(end)).iter().all(|w| w.start <= w.end));
    }
}

#[test]
fn what_is_not_a_window_is_refused() {
    for bad in ["", "1h", "PT0S", "-PT1H", "P1M2D", "P1DT1H", "P", "PT0.0001S", "P99999Y", "hour", "PT"] {
        let error = Windows::parse(bad, "UTC").unwrap_err();
        assert_eq!(error.field.as_deref(), Some("window"), "{bad}: {error}");
    }
    assert_eq!(Windows::parse("PT1H", "Mars/Base").unwrap_err().field.as_deref(), Some("zone"));
}

#[test]
fn windows_are_counted_before_they_are_made() {
    for (duration, zone, first, last) in [
        ("PT1H", "UTC", "2026-03-01T00:00:00Z", "2026-03-08T05:00:00Z"),
        ("PT6H", "Europe/Paris", "2026-10-20T22:00:00Z", "2026-10-30T05:00:00Z"),
        ("P1D", "America/Sao_Paulo", "2018-10-30T03:00:00Z", "2018-11-20T02:00:00Z"),
        ("P1M", "Pacific/Apia", "2011-01-01T12:00:00Z", "2012-12-01T10:00:00Z"),
    ] {
        let windows = Windows::parse(duration, zone).unwrap();
        let (first, last) = (windows.window_of(at(first)), windows.window_of(at(last)));
        let (mut window, mut made) = (first, 1);
        while window != last {
            (window, made) = (windows.window_of(window.end), made + 1);
        }
        let min = windows.count_at_least(first.start, last.start);
        assert!(min <= made && min * 4 > made * 3 - 8, "{duration} {zone}: {min} of {made}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_instant_lies_in_one_window_and_the_finder_agrees(
        time in meridian_model::time::TIME_MIN..=meridian_model::time::TIME_MAX,
        near in -2_000_000_000_000_000i64..4_000_000_000_000_000,
        duration in prop::sample::select(vec!["PT1H", "PT15M", "PT7H", "P1D", "P3D", "P1W", "P1M", "P3M", "P1Y", "P100Y"]),
        zone in prop::sample::select(vec![
            "UTC", "Europe/Paris", "America/St_Johns", "America/Sao_Paulo", "Pacific/Apia", "+05:45",
        ]),
    ) {
        let windows = Windows::parse(duration, zone).unwrap();
        let mut finder = windows.finder(Interval { start: near - 90 * DAY_US, end: near + 90 * DAY_US });
        // 180 days in quarter hours are 17,280 windows: too many.
        prop_assert_eq!(finder.number(near).is_some(), duration != "PT15M");
        for t in [time, near, near + 1, near - 3_600_000_000] {
            let found = windows.window_of(t);
            prop_assert!(found.holds(t), "{t} is not in {found:?}");
            prop_assert_eq!(windows.window_of(found.start), found);
            prop_assert_eq!(windows.window_of(found.end - 1), found);
            if found.end <= meridian_model::time::TIME_MAX {
                prop_assert_eq!(windows.window_of(found.end).start, found.end);
            }
            prop_assert_eq!(finder.find(t), found);
            if let Some(number) = finder.number(t) {
                prop_assert_eq!(finder.numbers.get().unwrap().as_ref().unwrap().starts[number], found.start);
            }
        }
    }
}
