use super::*;
use crate::simulate::calibrate::{Figures, Residual};
use crate::simulate::{Scenario, settings, table};
use meridian_lab_results::record::Outcome;
use meridian_lab_results::stats::mode::{self, Mode, TrialModes};
use std::path::Path;

const SEARCH: &str = include_str!("../../../../../bench/studies/search-pipeline.toml");
const FIGURES: &str = include_str!("../../../../../bench/studies/search-pipeline.figures.toml");

fn search(sets: &[&str]) -> Pipeline {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    match Scenario::read(SEARCH, &sets).unwrap() {
        Scenario::Pipeline(pipeline) => *pipeline,
        other => panic!("expected a pipeline, found {other:?}"),
    }
}

#[test]
fn one_seed_gives_one_run_and_another_seed_another() {
    let one = run(&search(&["workers=16", "worker_death=true"]));
    assert!(one.deaths > 0, "the seed shows no death, so the test does not cover them");
    assert_eq!(one, run(&search(&["workers=16", "worker_death=true"])));
    assert_ne!(one.packets, run(&search(&["workers=16", "worker_death=true", "seed=2"])).packets);
}

#[test]
fn a_worker_that_dies_is_missed_until_another_takes_its_place() {
    let trial = |for_good: &str| {
        run(&search(&["workers=16", "worker_death=true", "death.probability=1.0", "death.restart_s=30.0", for_good]))
    };
    // Every dropped job kills a worker, until there is none.
    let gone = trial("death.for_good=1.0");
    assert_eq!((gone.deaths, gone.dropped), (16, 16));
    let back = trial("death.for_good=0.0");
    assert!(back.deaths > 16 && back.deaths == back.dropped && back.jobs > gone.jobs, "{} {}", back.deaths, back.jobs);
}

#[test]
fn a_worker_that_crashes_loses_its_job_and_is_missed_until_another_takes_its_place() {
    let text = "kind = \"pipeline\"\nseed = 1\nworkers = 1\npoll_s = 1.0\nsource = []\n\
        arrival = { kind = \"onoff\", count = 0, interval_s = 0.0, bursts = 1, per_burst = 10000 }\n\
        crash = { every_s = 100.0, restart_s = 25.0 }\n\
        [[stage]]\nname = \"work\"\nqueue = \"quick\"\nservice = { mean_s = 1.0 }\n";
    let pipeline = |text: &str| match Scenario::read(text, &[]) {
        Ok(Scenario::Pipeline(pipeline)) => pipeline,
        other => panic!("{other:?}"),
    };
    let trial = run(&pipeline(text));
    assert_eq!(trial, run(&pipeline(text)));
    // One worker that is always busy: each crash costs a job, and the time until another worker replaces it.
    assert_eq!((trial.jobs + trial.lost, trial.dropped), (10_000, 0));
    assert_eq!(trial.lost, trial.deaths);
    let up = crate::simulate::events::seconds(trial.end) - 25.0 * trial.deaths as f64;
    assert!((trial.jobs as f64 - 1.0..=10_001.0).contains(&up), "{up} s of work for {} jobs", trial.jobs);
    // As many as an exponential law predicts, within five standard deviations.
    assert!((50..=150).contains(&trial.deaths), "{}", trial.deaths);
    let never = run(&pipeline(&text.replace("crash = { every_s = 100.0, restart_s = 25.0 }", "")));
    assert_eq!((never.jobs, never.lost, never.deaths), (10_000, 0, 0));
    let wrong = Scenario::read(&text.replace("every_s = 100.0", "every_s = 0.0"), &[]).map(|_| ());
    assert!(wrong.as_ref().is_err_and(|e| e.to_string().contains("crash.every_s = 0")), "{wrong:?}");
}

#[test]
fn a_search_alone_is_complete_and_its_record_says_so() {
    let pipeline = search(&["workers=8", "arrival.count=1"]);
    let trial = run(&pipeline);
    assert_eq!(pipeline.packets(), 93);
    assert_eq!(trial.dropped, 0);
    // Request, providers, 25 listeners, results of 13 calls and of the slow source's four, 93 broadcasts.
    assert_eq!(trial.jobs, 1 + 1 + 25 + 13 + 4 + 93);
    let answer = PipelineOutcome::of(&trial);
    assert_eq!((answer.requests[0].packets, answer.first_absent, answer.growth_per_request_s), (93, None, None));
    let record = &trial.records(93)[0];
    assert_eq!((record.outcome, record.packets), (Outcome::Sound, 93));
    assert_eq!(record.to_first_result().map(|us| us as f64 / 1e6), answer.requests[0].first_s);
}

#[test]
fn the_json_has_the_keys_of_the_contract() {
    let scenario = Scenario::Pipeline(Box::new(search(&["workers=16"])));
    let json: serde_json::Value = serde_json::from_str(&scenario.run().json().unwrap()).unwrap();
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(keys(&json), "requests growth_per_request_s first_absent bursts");
    assert_eq!(keys(&json["requests"][0]), "n start_s first_s last_s packets");
    assert_eq!(keys(&json["bursts"][0]), "after_n before_first_s lost restart_first_s");
    let absent = json["first_absent"].as_u64().unwrap();
    assert!(json["requests"][absent as usize - 1]["first_s"].is_null());
    assert_eq!(json["bursts"][0]["after_n"], absent - 1);
}

#[test]
fn bursts_of_an_on_off_pattern_are_sent_at_once() {
    let answer = PipelineOutcome::of(&run(&search(&[
        "arrival.kind=onoff",
        "arrival.bursts=3",
        "arrival.per_burst=20",
        "arrival.gap_s=30",
        "worker_death=true",
    ])));
    assert_eq!(answer.requests.len(), 60);
    assert!(answer.requests[..20].iter().all(|r| r.start_s == 0.0));
    assert!(answer.requests[20..40].iter().all(|r| (r.start_s - 30.36).abs() < 1e-9));
}

#[test]
fn a_deadline_carried_through_the_stages_bounds_every_wait() {
    let mut carried = search(&["workers=8"]);
    for stage in &mut carried.stage {
        stage.timeout_s = None;
        stage.deadline_s = Some(60.0);
    }
    let latest = |pipeline: &Pipeline| {
        let answer = PipelineOutcome::of(&run(pipeline));
        answer.requests.iter().filter_map(|r| r.first_s).fold(0.0, f64::max)
    };
    // A listener that began before the deadline may end after it, by the longest call.
    assert!(latest(&carried) < 60.0 + 10.0);
    assert!(latest(&search(&["workers=8"])) > 80.0);
}

#[test]
fn urgent_jobs_pass_waiting_ones() {
    let slow =
        PipelineOutcome::of(&run(&search(&["workers=8", "arrival.count=12", "stage.broadcast.queue=background"])));
    let quick = PipelineOutcome::of(&run(&search(&["workers=8", "arrival.count=12"])));
    let last_first = |answer: &PipelineOutcome| answer.requests.iter().filter_map(|r| r.first_s).fold(0.0, f64::max);
    assert!(last_first(&slow) > last_first(&quick) * 1.2);
}

#[test]
fn mistakes_are_sentences_that_name_the_key() {
    for (set, expected) in [
        ("workers=0", "workers = 0: expected 1"),
        ("poll_s=0", "poll_s = 0: expected more than 0"),
        ("arrival.count=0", "0 requests: expected 1"),
        ("arrival.kind=twice", "unknown variant `twice`"),
        ("speed=3", "unknown field `speed`"),
        ("stage.broadcast.queue=slow", "stage broadcast: queue = \"slow\""),
        ("source.slow.call.cv=-1", "source slow: cv = -1"),
    ] {
        let error = Scenario::read(SEARCH, &[set.to_owned()]).unwrap_err();
        assert!(error.contains(expected), "{set}: {error}");
    }
    assert!(
        Scenario::read("kind = 'x'", &[])
            .unwrap_err()
            .contains("expected \"pipeline\", \"scan-tier\", \"tenants\" or \"closed\"")
    );
}

/// Issue 4: predicts the results of 16 and 32 workers from the isolated run and the 24-worker trial.
#[test]
fn the_published_trials_of_the_search_study_are_foretold() {
    let scenario = table(SEARCH, &[]).unwrap();
    let figures = Figures::read(FIGURES, Path::new("")).unwrap();
    let fitted: Vec<&str> = figures.trial.iter().filter(|t| t.fit).map(|t| t.name.as_str()).collect();
    assert_eq!(fitted, ["isolated", "24 workers"]);
    let residuals = figures.residuals(&figures.fit[0], &scenario).unwrap();
    let find = |trial: &str, figure: &str| -> &Residual {
        residuals.iter().find(|r| r.trial == trial && r.figure == figure).unwrap()
    };
    for workers in ["16 workers", "32 workers"] {
        let growth = find(workers, "growth_per_request_s");
        assert!(growth.error().unwrap().abs() <= 0.15, "{growth:?}");
    }
    // The study reports that 34 was the last to be answered, so the 35th was absent; 34 within 20 % is the stricter
    // reading.
    let absent = find("16 workers", "first_absent").simulated.unwrap().median;
    assert!((34.0 * 0.8..=34.0 * 1.2).contains(&absent), "{absent}");
    let restart = find("16 workers", "restart_first_s").simulated.unwrap().median;
    assert!((60.0..=80.0).contains(&restart), "{restart}");
    assert_eq!(find("32 workers", "first_absent").simulated.unwrap().median, 129.0);
    // Later bursts, as distributions over 20 seeds: the published ones lie within a fifth of the median.
    for (figure, published) in
        [("burst_2_absent", 68.0), ("burst_2_lost", 25.0), ("burst_2_restart_s", 68.3), ("burst_3_absent", 111.0)]
    {
        let later = find("16 workers", figure);
        assert_eq!(later.measured, published);
        let found = later.simulated.unwrap();
        assert!(later.error().unwrap().abs() <= 0.2 && found.seeds == [20, 20], "{later:?}");
        assert!(found.min <= found.p10 && found.p10 <= found.median && found.median <= found.p90, "{found:?}");
    }
    assert!(find("24 workers, later", "burst_2_absent").error().unwrap().abs() <= 0.2);
    // Two further known results: the second burst of 24 workers is longer, and no third one comes within 128 searches.
    assert!(find("24 workers, later", "burst_2_lost").error().unwrap() > 0.3);
    assert_eq!(find("24 workers, later", "burst_3_absent").simulated, None);
    // The known misfit: with constant work per search, 8 workers fall behind faster than in the study.
    assert!(find("8 workers", "growth_per_request_s").error().unwrap() > 0.3);
}

/// The calibration itself: from other start values, the fit of the study finds numbers that predict its other trials.
#[test]
fn the_search_study_is_fitted_again_and_foretells_what_was_published() {
    let away = ["stage.process-results.service.mean_s=0.1".to_owned(), "source.slow.call.mean_s=5.2".to_owned()];
    let mut scenario = table(SEARCH, &away).unwrap();
    let mut figures = Figures::read(FIGURES, Path::new("")).unwrap();
    figures.trial.retain(|trial| trial.fit || ["16 workers", "32 workers"].contains(&trial.name.as_str()));
    let last = |residuals: &[Residual]| residuals.iter().find(|r| r.figure == "last_s").unwrap().error().unwrap();
    // Uses fewer seeds than the file specifies, to keep the test short.
    let few = crate::simulate::calibrate::Fit { seeds: 3, ..figures.fit[0].clone() };
    assert!(last(&figures.residuals(&few, &scenario).unwrap()) > 0.15, "the numbers to begin with are no worse");
    for (key, value) in figures.calibrate(&few, &scenario, 80).unwrap().parameters {
        settings::set(&mut scenario, &key, toml::Value::Float(value)).unwrap();
    }
    let residuals = figures.residuals(&figures.fit[0], &scenario).unwrap();
    let found = |trial: &str, figure: &str| {
        residuals.iter().find(|r| r.trial == trial && r.figure == figure).unwrap().simulated.unwrap().median
    };
    assert!(last(&residuals).abs() <= 0.15, "{residuals:?}");
    for (trial, growth) in [("16 workers", 2.37), ("32 workers", 0.51)] {
        let ratio = found(trial, "growth_per_request_s") / growth;
        assert!((0.85..=1.15).contains(&ratio), "{trial}: {ratio}");
    }
    let (absent, restart) = (found("16 workers", "first_absent"), found("16 workers", "restart_first_s"));
    assert!((34.0 * 0.8..=34.0 * 1.2).contains(&absent) && (60.0..=80.0).contains(&restart), "{absent} {restart}");
}

#[test]
fn what_still_gets_through_at_the_edge_of_a_drop_parts_no_bursts() {
    // 11 to 13 and 16 to 20 are lost, then 31: two got through in between, and ten.
    let lost = |n: u64| matches!(n, 11..=13 | 16..=20 | 31);
    let packets = (1..=31).map(|n| if lost(n) { Vec::new() } else { vec![n * 1_000_000 + 500_000] });
    let trial = SimulatedTrial {
        starts: (1..=31).map(|n| n * 1_000_000).collect(),
        packets: packets.collect(),
        ..SimulatedTrial::default()
    };
    let answer = PipelineOutcome::of(&trial);
    let told = |bursts: &[Burst]| bursts.iter().map(|b| (b.after_n, b.lost, b.restart_first_s)).collect::<Vec<_>>();
    assert_eq!(told(&answer.bursts), [(10, 3, Some(0.5)), (15, 5, Some(0.5)), (30, 1, None)]);
    assert_eq!(told(&answer.joined_bursts()), [(10, 8, Some(0.5)), (30, 1, None)]);
}

/// Calibration recovers a parameter from figures that the model itself produced, from a different start.
#[test]
fn calibration_finds_what_made_the_figures() {
    let truth = table(SEARCH, &["arrival.count=1".to_owned(), "workers=16".to_owned()]).unwrap();
    let made = Scenario::of(truth.clone()).unwrap().figures();
    let text = format!(
        "source = 'made'\n[[fit]]\ngroup = 'g'\nparameters = ['source.slow.call.mean_s']\nseeds = 1\n\
         [[trial]]\nname = 't'\ngroup = 'g'\nfit = true\nset = {{ seed = 1 }}\nfigures = {{ last_s = {} }}",
        made["last_s"]
    );
    let figures = Figures::read(&text, Path::new("")).unwrap();
    let mut start = truth.clone();
    settings::set(&mut start, "source.slow.call.mean_s", toml::Value::Float(8.0)).unwrap();
    let found = figures.calibrate(&figures.fit[0], &start, 60).unwrap();
    let expected = settings::number(&truth, "source.slow.call.mean_s").unwrap();
    assert!((found.parameters[0].1 / expected - 1.0).abs() < 0.02, "{:?}", found.parameters);
}

/// The simulator writes the rows of a real run, so its own account is the oracle for the results of [`mode`].
fn course(sets: &[&str]) -> (TrialModes, PipelineOutcome) {
    let pipeline = search(sets);
    let trial = run(&pipeline);
    (mode::of(&trial.records(pipeline.packets())), PipelineOutcome::of(&trial))
}

#[test]
fn the_three_modes_of_the_search_study_are_told_apart() {
    let (flat, _) = course(&["workers=80", "arrival.count=100"]);
    assert_eq!((flat.mode, flat.first_failure), (Mode::Flat, None));
    let (growing, answer) = course(&["workers=32", "arrival.count=100"]);
    assert_eq!(growing.mode, Mode::Growing);
    assert!((growing.growth.unwrap().slope.value - answer.growth_per_request_s.unwrap()).abs() < 1e-9);
    let (failing, answer) = course(&["workers=16"]);
    assert_eq!((failing.mode, failing.first_failure), (Mode::TimingOut, answer.first_absent));
    let of_course: Vec<_> = failing.bursts.iter().map(|b| (b.after_n, b.lost, b.restart_s)).collect();
    let of_answer: Vec<_> = answer.bursts.iter().map(|b| (b.after_n, b.lost, b.restart_first_s)).collect();
    assert_eq!(of_course, of_answer);
    // Each burst is a separate period, and before the first one the wait grows.
    let lost = failing.stretches.iter().filter(|stretch| stretch.mode == Mode::TimingOut);
    let lost: Vec<_> = lost.map(|stretch| (stretch.from_n, stretch.requests, stretch.start_s)).collect();
    let of_bursts: Vec<_> = failing.bursts.iter().map(|b| (b.after_n + 1, b.lost, b.start_s)).collect();
    assert_eq!(lost, of_bursts);
    assert_eq!(failing.stretches[0].mode, Mode::Growing);
}
