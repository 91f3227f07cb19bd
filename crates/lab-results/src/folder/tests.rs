use super::*;
use crate::record::{Outcome, Phase, Record};
use proptest::prelude::*;

fn record() -> impl Strategy<Value = Record> {
    let time = || prop::option::of(-1_000_000_i64..10_000_000_000);
    let first =
        (any::<u16>(), 0..4_u8, 0..2_u16, 0..2_u16, 0..3_u16, any::<u32>(), any::<u32>(), any::<u8>(), any::<u32>());
    let before = prop::option::of(-10_000_000..0_i64);
    let second = (0..10_000_000_i64, before, time(), time(), time(), time(), time(), any::<u8>());
    let third = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u16>(), 0..8_u8, prop::option::of("[a-z ]{0,9}"));
    (first, second, third).prop_map(|(a, b, c)| Record {
        trial: a.0,
        phase: Phase::from_code(a.1).expect("a code"),
        target: a.2,
        population: a.3,
        request: a.4,
        user: a.5,
        n: a.6,
        attempt: a.7,
        resends: b.7,
        in_flight: a.8,
        intended: b.0,
        first_intended: b.1,
        sent: b.2,
        first_byte: b.3,
        first_result: b.4,
        last_result: b.5,
        done: b.6,
        packets: c.0,
        results: u64::from(c.1),
        bytes: u64::from(c.2),
        status: c.3,
        outcome: Outcome::from_code(c.4).expect("a code"),
        detail: c.5,
    })
}

fn read_all(dir: &std::path::Path) -> Vec<Record> {
    let results = open(dir).expect("opens");
    results.records().expect("reads").flat_map(|batch| batch.expect("a batch")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn records_and_samples_come_back_as_they_went(records in prop::collection::vec(record(), 0..80)) {
        let dir = tempfile::tempdir().expect("a folder");
        let place = dir.path().join("run");
        let mut writer = Writer::create(&place, "name = \"x\"\n").expect("begins");
        for part in records.chunks(7) {
            writer.push(part).expect("writes");
        }
        let sample = Sample { trial: 1, at: 5, source: "lab".into(), metric: "m".into(), value: 0.5 };
        writer.sample([sample.clone()]).expect("writes");
        prop_assert!(!place.exists());
        writer.finish(&Run { name: "x".into(), ..Run::default() }).expect("finishes");
        prop_assert_eq!(read_all(&place), records);
        let results = open(&place).expect("opens");
        let samples: Vec<Sample> = results.samples().expect("reads").flat_map(|batch| batch.expect("a batch")).collect();
        prop_assert_eq!(samples, vec![sample]);
        prop_assert_eq!(results.scenario, "name = \"x\"\n");
        prop_assert_eq!(std::fs::read_dir(dir.path()).expect("lists").count(), 1);
    }

    #[test]
    fn counts_and_percentiles_agree_with_a_naive_count(records in prop::collection::vec(record(), 1..200)) {
        let mut summary = Summary::default();
        records.iter().for_each(|record| summary.add(record));
        let run = Run::default();
        let groups = summary.groups(&run);
        let all: u64 = groups.iter().flat_map(|group| group.outcomes.values()).sum();
        prop_assert_eq!(all, records.len() as u64);
        for group in groups {
            let own = records.iter().filter(|r| r.phase.name() == group.phase && r.target.to_string() == group.target
                && r.population.to_string() == group.population && r.request.to_string() == group.request);
            let mut times: Vec<i64> = own.filter(|r| r.outcome == Outcome::Sound).filter_map(Record::latency).map(|t| t.max(0)).collect();
            times.sort_unstable();
            prop_assert_eq!(group.latency_ms.count, times.len() as u64);
            if let Some(longest) = times.last() {
                let middle = times[times.len().div_ceil(2) - 1] as f64 / 1e3;
                prop_assert!((group.latency_ms.p50 - middle).abs() <= middle * 0.002 + 0.001);
                prop_assert!((group.latency_ms.max - *longest as f64 / 1e3).abs() <= *longest as f64 / 1e3 * 0.002 + 0.001);
            }
        }
    }
}

#[test]
fn a_rate_over_trials_is_that_of_one_of_them() {
    // Four trials of ten seconds with forty requests per second, each on its own clock. Then one of half the length
    // and twice the rate.
    let mut summary = Summary::default();
    let mut trial = |trial: u16, seconds: i64, rate: i64| {
        for n in 0..seconds * rate {
            let intended = n * 1_000_000 / rate;
            summary.add(&Record { trial, intended, done: Some(intended + 1_000), ..Record::default() });
        }
    };
    (0..4).for_each(|n| trial(n, 10, 40));
    let measured = |summary: &Summary| summary.measured(&Run::default(), |_, _, _| true).expect("a group").sound_per_s;
    trial(4, 5, 80);
    let rate = summary.groups(&Run::default())[0].sound_per_s;
    assert!((rate - 2_000.0 / 45.0).abs() < 0.5, "{rate}");
    assert_eq!(rate, measured(&summary));
    // Two populations of the same trials add up, as they ran at the same time.
    for n in 0..400_i64 {
        let intended = n * 25_000;
        summary.add(&Record { population: 1, intended, done: Some(intended + 1_000), ..Record::default() });
    }
    let both = measured(&summary);
    assert!((both - 2_400.0 / 45.0).abs() < 0.5, "{both}");
}

#[test]
fn a_newer_or_damaged_folder_is_refused_with_a_sentence() {
    let dir = tempfile::tempdir().expect("a folder");
    let place = dir.path().join("run");
    Writer::create(&place, "").expect("begins").finish(&Run::default()).expect("finishes");
    let run = std::fs::read_to_string(place.join("run.json")).expect("reads");
    let refusal = |text: &str| {
        std::fs::write(place.join("run.json"), text).expect("writes");
        open(&place).expect_err("refused").to_string()
    };
    assert!(
        refusal(&run.replace("\"format_version\": 1", "\"format_version\": 2")).contains("a newer meridian reads it")
    );
    assert!(refusal("{").contains("run.json is damaged"));
    assert!(refusal("{}").contains("format_version is missing"));
    assert!(open(dir.path()).expect_err("refused").to_string().contains("not a whole results folder"));
}

#[test]
fn a_device_in_place_of_a_file_is_refused_before_it_is_opened() {
    for name in ["run.json", "summary.json", "scenario.toml", "requests.parquet", "samples.parquet"] {
        let dir = tempfile::tempdir().expect("a folder");
        let place = dir.path().join("run");
        Writer::create(&place, "").expect("begins").finish(&Run::default()).expect("finishes");
        std::fs::remove_file(place.join(name)).expect("removes");
        std::os::unix::fs::symlink("/dev/null", place.join(name)).expect("links");
        let read = open(&place).and_then(|results| {
            results.records().map(drop)?;
            results.samples().map(drop)
        });
        let refusal = read.expect_err("refused").to_string();
        assert!(refusal.contains(name) && refusal.contains("expected a file"), "{refusal}");
    }
}

#[test]
fn a_folder_that_was_not_finished_leaves_nothing_and_one_that_is_there_is_not_touched() {
    let dir = tempfile::tempdir().expect("a folder");
    let place = dir.path().join("run");
    let mut writer = Writer::create(&place, "").expect("begins");
    writer.push(&[Record::default()]).expect("writes");
    drop(writer);
    assert_eq!(std::fs::read_dir(dir.path()).expect("lists").count(), 0);
    std::fs::create_dir(&place).expect("made");
    std::fs::write(place.join("mine"), "x").expect("written");
    assert!(Writer::create(&place, "").expect_err("refused").to_string().contains("is there already"));
    assert!(Writer::create(&place.join("mine").join("run"), "").is_err());
}

#[test]
fn nobody_is_made_fast_by_failing() {
    let mut summary = Summary::default();
    for n in 0..100 {
        let outcome = if n < 90 { Outcome::Sound } else { Outcome::Failed };
        summary.add(&Record { sent: Some(0), done: Some(1_000), outcome, ..Record::default() });
    }
    let of = |share| summary.percentile_of_all(share, false, |_, _, _| true);
    assert_eq!(of(0.9).map(f64::round), Some(1.0));
    assert_eq!(of(0.91), None);
}

#[test]
fn an_answer_that_is_not_sound_has_no_fast_first_result() {
    let mut summary = Summary::default();
    for n in 0..100 {
        let (outcome, first) = if n < 90 { (Outcome::Sound, 9_000) } else { (Outcome::Unsound, 10) };
        // The end of a sound response without a result shows that there is none.
        let first_result = (n % 2 == 0).then_some(first);
        let record = Record { sent: Some(0), first_byte: Some(first), first_result, outcome, ..Record::default() };
        summary.add(&Record { last_result: first_result, done: Some(9_000), ..record });
    }
    let of = |share| summary.percentile_of_all(share, true, |_, _, _| true);
    assert_eq!(of(0.9).map(f64::round), Some(9.0));
    assert_eq!(of(0.91), None);
    let group = summary.groups(&Run::default()).remove(0);
    for times in [group.first_byte_ms, group.first_result_ms, group.last_result_ms] {
        assert!(times.count > 0 && times.min > 8.0, "{times:?}");
    }
}

#[test]
fn a_question_that_was_asked_again_has_waited_since_it_was_first_asked() {
    let mut summary = Summary::default();
    let refused = Record { sent: Some(0), done: Some(5_000), outcome: Outcome::Refused, ..Record::default() };
    summary.add(&refused);
    let (intended, done) = (30_000_000, Some(30_005_000));
    summary.add(&Record {
        attempt: 1,
        intended,
        first_intended: Some(0),
        sent: Some(intended),
        done,
        ..Record::default()
    });
    let wait = summary.percentile_of_all(0.95, false, |_, _, _| true).expect("a wait");
    assert!((wait - 30_005.0).abs() < 60.0, "{wait}");
    let group = summary.groups(&Run::default()).remove(0);
    assert_eq!((group.arrivals, group.retries, group.naive_ms.max.round()), (1, 1, 5.0));
}

#[test]
fn a_folder_of_a_version_that_kept_no_first_time_is_read() {
    let records = vec![Record { intended: 7, done: Some(9), ..Record::default() }];
    let batch = columns::record_batch(&records).expect("a batch");
    let schema = batch.schema();
    let is_old = |at: &usize| schema.field(*at).name() != "first_intended_us";
    let older: Vec<usize> = (0..schema.fields().len()).filter(is_old).collect();
    assert_eq!(older.len() + 1, schema.fields().len());
    assert_eq!(columns::records(&batch.project(&older).expect("columns")).expect("reads"), records);
}
