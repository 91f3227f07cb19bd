use super::*;
use crate::folder::{Run, Sample, Trial, Writer};
use crate::picture::Marks;
use crate::record::{Outcome, Phase, Record};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::fs;

/// Simulates a server that responds in 2 to 4 ms and stalls from 8 s to 10 s. One client sends 50 requests per second
/// on schedule, one at a time, so it sends late after the stall.
fn stalled() -> Vec<Record> {
    let mut random = Pcg64::seed_from_u64(1);
    let mut free = 0;
    let mut records = Vec::new();
    for n in 0..1_000i64 {
        let intended = n * 20_000;
        let begins = intended.max(free);
        let begins = if (8_000_000..10_000_000).contains(&begins) && n > 400 { 10_000_000 } else { begins };
        let takes = random.random_range(2_000..4_000);
        free = begins + takes;
        // The request that meets the stall is sent before it; those after it wait their turn.
        let sent = if n == 401 { intended } else { begins };
        records.push(Record {
            n: n as u32 + 1,
            phase: if n < 50 { Phase::WarmUp } else { Phase::Measured },
            intended,
            sent: Some(sent),
            first_byte: Some(free - 1_000),
            first_result: Some(free - 1_000),
            last_result: Some(free),
            done: Some(free),
            in_flight: ((begins - intended) / 20_000) as u32,
            packets: 3,
            results: 10 + (n % 5) as u64,
            bytes: 900,
            status: 200,
            outcome: if n % 100 == 99 { Outcome::Unsound } else { Outcome::Sound },
            detail: (n % 100 == 99).then(|| "9 results where 10 are due".to_owned()),
            ..Record::default()
        });
    }
    records
}

fn folder(dir: &Path, records: &[Record], void: Vec<String>) -> PathBuf {
    folder_of(dir, records, void, &["near"])
}

fn folder_of(dir: &Path, records: &[Record], void: Vec<String>, requests: &[&str]) -> PathBuf {
    let place = dir.join("run");
    let mut writer = Writer::create(&place, "name = \"a <stall>\"\n").unwrap();
    writer.push(records).unwrap();
    let sample =
        |at: i64| Sample { trial: 0, at, source: "target".into(), metric: "cpu".into(), value: at as f64 / 1e7 };
    writer.sample((0..20).map(|second| sample(second * 1_000_000))).unwrap();
    let run = Run {
        name: "a <stall>".into(),
        source: "run".into(),
        targets: vec!["http://127.0.0.1:7117".into()],
        populations: vec!["everyone".into()],
        requests: requests.iter().map(|name| (*name).to_owned()).collect(),
        trials: vec![Trial { target: 0, started: String::new(), measured_us: [1_000_000, 20_000_000] }],
        void,
        ..Run::default()
    };
    writer.finish(&run).unwrap();
    place
}

#[test]
fn requests_of_a_mix_stand_apart() {
    let dir = tempfile::tempdir().unwrap();
    let mut records = stalled();
    records.iter_mut().for_each(|record| record.request = u16::from(record.n % 5 == 0));
    let report = write(&folder_of(dir.path(), &records, Vec::new(), &["near", "far & wide"])).unwrap();
    let page = fs::read_to_string(&report.page).unwrap();
    // 950 measured requests. Every fifth one is drawn, and so are all unsound ones.
    assert!(page.contains("<tr><td>near</td><td>760</td><td>760</td>"), "{page}");
    assert!(page.contains("<tr><td>far &amp; wide</td><td>190</td><td>180</td>"), "{page}");
}

#[test]
fn each_population_has_its_own_heat_map_and_bars_and_the_trial_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("run");
    let mut writer = Writer::create(&place, "").unwrap();
    for trial in 0..2 {
        for population in 0..2 {
            let mut records = stalled();
            records.iter_mut().for_each(|record| (record.trial, record.population) = (trial, population));
            writer.push(&records).unwrap();
        }
    }
    let trial = Trial { target: 0, started: String::new(), measured_us: [1_000_000, 20_000_000] };
    let populations = vec!["load".to_owned(), "probe".to_owned()];
    writer.finish(&Run { populations, trials: vec![trial.clone(), trial], ..Run::default() }).unwrap();
    let report = write(&place).unwrap();
    for name in ["requests-0-0", "requests-0-1", "heat-0-0", "heat-0-1", "mode-0-1", "mode-0-1-trial-2"] {
        assert!(report.pictures.join(format!("{name}.svg")).is_file(), "{name}");
    }
    let page = fs::read_to_string(&report.page).unwrap();
    for said in ["Latency over time: probe", "Each request as a bar: load", "This is trial 1.", ">not sound</text>"] {
        assert!(page.contains(said), "{said}");
    }
}

#[test]
fn the_page_says_what_happened_and_needs_nothing_from_outside() {
    let dir = tempfile::tempdir().unwrap();
    let place = folder(dir.path(), &stalled(), vec!["other load took 12 % of the machine".into()]);
    let report = write(&place).unwrap();
    // A tenth of the requests met the stall, which determines p95 and p99 but not the median.
    assert!(report.words.starts_with("This run is void, and its figures say nothing"), "{}", report.words);
    assert!(report.words.contains("940 of 950 measured requests had a sound answer (10 unsound)"), "{}", report.words);
    assert!(report.words.contains("would have reported"), "the hidden wait is named: {}", report.words);
    let page = fs::read_to_string(&report.page).unwrap();
    for said in [
        "a &lt;stall&gt;",
        "This run is void",
        "other load took 12 %",
        "9 results where 10 are due",
        "Latency over time",
    ] {
        assert!(page.contains(said), "{said}");
    }
    for outside in ["<script", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    let names: Vec<String> =
        fs::read_dir(&report.pictures).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
    for name in [
        "requests",
        "percentiles",
        "heat",
        "outcomes",
        "first-last",
        "first-last-difference",
        "concurrency",
        "size",
        "sampled-cpu",
    ] {
        for extension in ["svg", "png"] {
            assert!(names.contains(&format!("{name}.{extension}")), "{name}.{extension} of {names:?}");
        }
    }
    if let Some(kept) = std::env::var_os("MERIDIAN_KEEP_REPORT") {
        let kept = PathBuf::from(kept);
        fs::create_dir_all(&kept).unwrap();
        fs::copy(&report.page, kept.join("report.html")).unwrap();
        for name in names {
            fs::copy(report.pictures.join(&name), kept.join(&name)).unwrap();
        }
    }
}

/// The difference of two medians is not the median of the differences. Here first results differ by more than a
/// second. Nine requests in ten have their last result 20 ms after the first, the others after 500 ms.
#[test]
fn first_and_last_results_are_shown_with_their_difference() {
    let mut digest = Digest::new();
    for n in 0..1_000 {
        let (intended, first) = (i64::from(n) * 1_000, i64::from(n) * 2_500 + 10_000);
        let last = first + if n % 10 == 0 { 500_000 } else { 20_000 };
        let times = (Some(first), Some(last));
        digest.add(&Record {
            n,
            intended,
            first_result: times.0,
            last_result: times.1,
            done: times.1,
            ..Record::default()
        });
    }
    let pictures = pictures::all(&Run::default(), &digest, &[]);
    let picture = pictures.iter().find(|picture| picture.name == "first-last-difference").unwrap();
    assert!(picture.caption.contains("last result at most 20"), "{}", picture.caption);
    assert!(picture.caption.contains("ms after their first, 95 % at most 50"), "{}", picture.caption);
    let heights: Vec<f64> = match &picture.plot.layers[0].marks {
        Marks::Heat(bars) => bars.iter().map(|bar| bar.3).collect(),
        other => panic!("{other:?}"),
    };
    assert_eq!(heights, [900.0, 100.0]);
}

/// Theory: 100 of 950 measured requests are due in the 2 s of the stall, and wait from 2 s down. The backlog is
/// processed in 3 ms per request, so the i-th of them waits 2 s - i (20 - 3) ms. So one in a hundred of all waits at
/// least 2 s - 9.5 x 17 ms = 1.84 s. A client that sends again only after a response meets the stall once, and its p99
/// does not show it.
#[test]
fn a_stall_of_two_seconds_shows_at_p99_as_theory_says_where_a_closed_loop_hides_it() {
    let mut digest = Digest::new();
    stalled().iter().for_each(|record| digest.add(record));
    let series = &digest.series[&(0, 0)];
    let p99 = |histogram: &hdrhistogram::Histogram<u64>| histogram.value_at_quantile(0.99) as f64 / 1e6;
    assert!((p99(&series.latency) / 1.84 - 1.0).abs() < 0.02, "{} s", p99(&series.latency));
    assert!(p99(&series.naive) < 0.005, "{} s", p99(&series.naive));
    // The run states its own precision: the tail of 950 requests determines it within a fifth of a second.
    let interval = series.interval(0.99).unwrap();
    assert!(interval.holds(1.84e6) && interval.high - interval.low < 0.3e6, "{interval:?}");
}

/// Three trials with medians of 19, 20 and 21 ms. By Student's t of two degrees of freedom the median lies within 2.48
/// ms of 20. The responses of one trial, which are all alike, would claim to know it exactly.
#[test]
fn a_page_of_several_trials_has_intervals_over_repeats() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("run");
    let mut writer = Writer::create(&place, "").unwrap();
    let record = |trial: u16, n: i64| {
        let done = Some(n * 1_000 + 19_000 + i64::from(trial) * 1_000);
        Record { trial, n: n as u32, intended: n * 1_000, sent: Some(n * 1_000), done, ..Record::default() }
    };
    for trial in 0..3 {
        writer.push(&(1..=100).map(|n| record(trial, n)).collect::<Vec<_>>()).unwrap();
    }
    writer.finish(&Run { trials: vec![Trial::default(); 3], ..Run::default() }).unwrap();
    let page = fs::read_to_string(write(&place).unwrap().page).unwrap();
    assert!(page.contains("(17.53\u{a0}to\u{a0}22.49\u{a0}ms)"), "{page}");
    assert!(page.contains("The other 2 trials were similar."), "{page}");
}

/// A page of many requests is no larger than one of some, and states which share of the points is drawn.
#[test]
fn pages_stay_small_however_many_requests_there_were() {
    let size = |count: u32| {
        let dir = tempfile::tempdir().unwrap();
        let mut rng = crate::random::SeededRng::new(6);
        let mut record = |n: u32| {
            let intended = i64::from(n) * 100;
            let first = intended + 1_000 + (4_000.0 * rng.fraction()) as i64;
            let last = Some(first + 500 + (500.0 * rng.fraction()) as i64);
            Record {
                n,
                intended,
                sent: Some(intended),
                first_result: Some(first),
                last_result: last,
                done: last,
                in_flight: n % 30,
                results: u64::from(n % 90),
                ..Record::default()
            }
        };
        let records: Vec<Record> = (0..count).map(&mut record).collect();
        let report = write(&folder(dir.path(), &records, Vec::new())).unwrap();
        let page = fs::read_to_string(&report.page).unwrap();
        assert_eq!(count > 10_000, page.contains("everyone (1 of 32 shown)"));
        page.len()
    };
    let (some, many) = (size(3_000), size(40_000));
    assert!(many < 600_000 && many < some * 2, "{some} and {many} bytes");
}

/// Two kinds of responses, and all take longer towards the end.
#[test]
fn the_words_name_humps_and_drift_where_there_are_any() {
    let mut rng = crate::random::SeededRng::new(3);
    let mut run = |slow: f64, drift: f64| {
        let records: Vec<Record> = (0..3_000i64)
            .map(|n| {
                let kind = if rng.chance(slow) { 40_000.0 } else { 4_000.0 };
                let took = kind * (0.8 + 0.4 * rng.fraction()) * (1.0 + drift * n as f64 / 3_000.0);
                let intended = n * 100_000;
                let done = Some(intended + took as i64);
                Record {
                    n: n as u32 + 1,
                    intended,
                    sent: Some(intended),
                    first_result: done,
                    done,
                    ..Record::default()
                }
            })
            .collect();
        let dir = tempfile::tempdir().unwrap();
        write(&folder(dir.path(), &records, Vec::new())).unwrap().words
    };
    let (plain, two, drifting) = (run(0.0, 0.0), run(0.3, 0.0), run(0.0, 0.5));
    assert!(!plain.contains("two kinds") && !plain.contains("towards the end"), "{plain}");
    assert!(
        two.contains("two kinds of answers: 70 %")
            || two.contains("two kinds of answers: 69 %")
            || two.contains("two kinds of answers: 71 %"),
        "{two}"
    );
    assert!(drifting.contains("Answers took longer towards the end"), "{drifting}");
}

#[test]
fn the_words_say_whether_it_stayed_degraded_after_the_load() {
    let mut rng = crate::random::SeededRng::new(4);
    let mut asked = |took_after: f64, lost: u32| {
        let record = |n: u32, phase: Phase, took: f64, outcome: Outcome| {
            let (intended, done) = (i64::from(n) * 10_000, i64::from(n) * 10_000 + took as i64);
            Record { n, phase, intended, sent: Some(intended), done: Some(done), outcome, ..Record::default() }
        };
        let mut vary = |mean: f64| mean * (0.8 + 0.4 * rng.fraction());
        let mut records: Vec<Record> =
            (0..400).map(|n| record(n, Phase::Measured, vary(4_000.0), Outcome::Sound)).collect();
        records.extend((400..600).map(|n| {
            let outcome = if n < 400 + lost { Outcome::Failed } else { Outcome::Sound };
            record(n, Phase::Again, vary(took_after), outcome)
        }));
        let dir = tempfile::tempdir().unwrap();
        let scenario = "name = \"x\"\n[phases]\nstart = \"warm\"\n";
        let mut writer = Writer::create(&dir.path().join("run"), scenario).unwrap();
        writer.push(&records).unwrap();
        let trial = Trial { target: 0, started: String::new(), measured_us: [0, 4_000_000] };
        writer.finish(&Run { trials: vec![trial], ..Run::default() }).unwrap();
        let report = write(&dir.path().join("run")).unwrap();
        assert!(fs::read_to_string(&report.page).unwrap().contains("The target began warm."));
        report.words
    };
    for (took, lost, words) in [
        (4_000.0, 0, ", as before."),
        (6_000.0, 0, "before: it stayed slower."),
        (2_000.0, 0, "before: it is faster now."),
        (4_000.0, 50, "150 of 200 then had a sound answer."),
        (4_000.0, 200, "it gave no sound answer."),
    ] {
        let said = asked(took, lost);
        assert!(said.contains("Asked again after the load") && said.contains(words), "{words}: {said}");
    }
}

#[test]
fn a_run_that_measured_nothing_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let report = write(&folder(dir.path(), &[], Vec::new())).unwrap();
    assert!(report.words.starts_with("Nothing was measured"), "{}", report.words);
    assert!(report.page.is_file());
}
