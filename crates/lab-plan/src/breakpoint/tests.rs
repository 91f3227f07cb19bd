use super::search::Purpose;
use super::*;
use meridian_lab_drive::mock::{Mock, MockFile};
use meridian_lab_results::stats::mode::Mode;
use std::collections::BTreeMap;

/// Starts mock sources on a free port of loopback, served by a thread of their own.
fn mock(text: &str) -> String {
    let file = MockFile::parse(text, "mock.toml").unwrap();
    let mock = Arc::new(Mock::new(&file, None).unwrap());
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            mock.serve(listener).await;
        });
    });
    format!("http://{}", told.recv().unwrap())
}

fn scenario(url: &str, rest: &str) -> Scenario {
    let text = format!(
        "name = \"try\"\n[target]\nurl = \"{url}\"\n[request]\npath = \"/a\"\n[trials]\npause_s = 0.1\n\
         [limits]\nlate_ms = 1e6\nother_load = 1e3\n{rest}"
    );
    Scenario::parse(&text, "try.toml", &[]).unwrap()
}

/// 4 workers of 20 ms each hold 200 per second. Above, the wait grows by (rate / 200 - 1) per second. So in 0.6 s the
/// 95th percentile passes 100 ms at (100 - 20) / (0.95 x 600) above: 228 per second. Below 200 no request waits.
#[test]
fn the_breakpoint_of_a_server_of_known_capacity_is_found() {
    let url = mock("[[source]]\nname = \"a\"\nitems = 1\nworkers = 4\ndelay = { kind = \"fixed\", ms = 20 }\n");
    let objective = "[[objective]]\nmetric = \"p95_ms\"\nat_most = 100\n";
    let scenario =
        scenario(&url, &format!("[arrival]\nkind = \"constant\"\nrate = 120\n[phases]\nmeasured_s = 0.6\n{objective}"));
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("found");
    let options = Options { out: out.clone(), within: 0.1, ..Options::default() };
    let mut told = Vec::new();
    let found = run(&scenario, &options, &mut |step| told.push(step.clone())).unwrap();
    assert_eq!(found.conclusion, Conclusion::Found, "{}", found.sentence);
    let at = found.breakpoint.unwrap();
    // A busy machine makes a step fail early now and then; the edge cannot be above the load that the queue allows.
    assert!(at.value > 170.0 && at.low < 228.0 && at.value < 245.0, "{}", found.sentence);
    assert!(found.within.unwrap() <= 0.1 && found.is_good() && found.holds_at(150.0) && !found.holds_at(260.0));
    assert_eq!(found.objective.as_deref(), Some("p95_ms at most 100"));
    // In such a short step the objective holds above the sustainable rate, which is a separate number. CI sees both.
    let sustainable = found.sustainable.unwrap();
    assert!(sustainable.value > 150.0 && sustainable.low < 201.0 && sustainable.value < 206.0, "{}", found.sentence);
    assert!(found.sentence.contains("at which no backlog grows"), "{}", found.sentence);
    assert!(!found.holds_at(sustainable.low.max(at.low) + 1.0) && !found.holds_at(sustainable.low.min(at.low) + 1.0));
    let shape = found.shape.as_ref().unwrap();
    assert!(!shape.gives_way && matches!(shape.kind, ShapeKind::Queue | ShapeKind::Slower), "{shape:?}");
    assert_eq!(told, found.steps);
    assert!(told.iter().filter(|step| step.purpose == Purpose::Confirm).count() >= 4);
    // Twice the capacity was tried; the result is the capacity.
    let furthest = told.iter().max_by(|a, b| a.load.total_cmp(&b.load)).unwrap();
    assert!((170.0..210.0).contains(&furthest.sound_per_s), "{furthest:?}");
    // Every step is a results folder, and the whole can be read and shown again.
    for step in &told {
        assert_eq!(
            meridian_lab_results::folder::open(&out.join(&step.folder)).unwrap().run.name,
            format!("try at {} requests a second", step.load)
        );
    }
    let read = Breakpoint::open(&out).unwrap();
    assert_eq!((&read.sentence, read.conclusion, read.steps.len()), (&found.sentence, found.conclusion, told.len()));
    let shown = report(&out).unwrap();
    let page = std::fs::read_to_string(&shown.page).unwrap();
    assert!(
        page.contains("The breakpoint lies at")
            && page.contains("confirm")
            && out.join("pictures/breakpoint.png").is_file()
    );
    if let Some(kept) = std::env::var_os("MERIDIAN_KEEP_REPORT") {
        std::fs::create_dir_all(&kept).unwrap();
        std::fs::copy(out.join("pictures/breakpoint.png"), PathBuf::from(&kept).join("breakpoint.png")).unwrap();
        std::fs::copy(shown.page, PathBuf::from(kept).join("breakpoint.html")).unwrap();
    }
    assert!(!dir.path().join("found.partial").exists());
}

#[test]
fn a_server_that_refuses_breaks_by_its_share_of_sound_answers_and_no_objective_is_needed() {
    let url = mock("[[source]]\nname = \"a\"\nitems = 1\nrate_limit = 20\n");
    let mut scenario = scenario(&url, "[arrival]\nkind = \"constant\"\nrate = 100\n[phases]\nmeasured_s = 0.5\n");
    // The limit's bucket holds one second of requests, so an idle target has a full bucket again.
    scenario.trials.pause_s = 1.0;
    let dir = tempfile::tempdir().unwrap();
    let options = Options { out: dir.path().join("found"), steps: 8, ..Options::default() };
    let found = run(&scenario, &options, &mut |_| ()).unwrap();
    let shape = found.shape.as_ref().unwrap();
    assert_eq!((found.objective.as_deref(), shape.kind), (Some("sound_share at least 0.99"), ShapeKind::Refusing));
    assert!(shape.words.contains("are refused"), "{}", shape.words);
}

#[test]
fn a_target_that_is_not_there_and_mistakes_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let arrival = "[arrival]\nkind = \"constant\"\nrate = 10\n";
    let refused = |scenario: &Scenario, change: fn(&mut Options)| {
        let mut options = Options { out: dir.path().join("found"), ..Options::default() };
        change(&mut options);
        let error = run(scenario, &options, &mut |_| ()).unwrap_err();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        error
    };
    let gone = scenario("http://127.0.0.1:1", arrival);
    assert!(matches!(refused(&gone, |_| ()), LabError::Target(_)));
    assert!(refused(&gone, |o| o.factor = 1.0).to_string().contains("--factor 1: expected"));
    assert!(refused(&gone, |o| o.most = Some(5.0)).to_string().contains("--most 5: expected a load from 10"));
    assert!(
        refused(&gone, |o| o.population = Some("x".into()))
            .to_string()
            .contains("expected one of the scenario's: users")
    );
    let ramp = scenario("http://127.0.0.1:1", "[arrival]\nkind = \"ramp\"\nfrom = 1\nto = 2\n");
    assert!(refused(&ramp, |_| ()).to_string().contains("expected constant, poisson, closed"));
}

pub(super) fn step(load: f64, held: bool, p95_ms: Option<f64>, outcomes: &[(&str, u64)]) -> Step {
    let failed =
        if held { vec![] } else { vec![MissedObjective { objective: "p95_ms at most 100".into(), value: p95_ms }] };
    Step {
        n: 1,
        purpose: Purpose::Step,
        load,
        seed: 1,
        folder: String::new(),
        held,
        failed,
        void: vec![],
        cut_short: None,
        arrivals: 1_000,
        outcomes: outcomes.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect::<BTreeMap<_, _>>(),
        sound_per_s: load.min(200.0),
        p95_ms,
        mode: Mode::Flat,
        growth_ms: None,
        backlog: None,
        stalls: vec![],
    }
}

fn told(steps: Vec<Step>, conclusion: Conclusion) -> Breakpoint {
    let scenario = scenario("http://127.0.0.1:1", "[arrival]\nkind = \"constant\"\nrate = 10\n");
    let load = Load::of(&scenario, None).unwrap();
    let at = meridian_lab_results::stats::Estimate { value: 200.0, low: 195.0, high: 205.0 };
    let at = (conclusion == Conclusion::Found).then_some(at);
    verdict::found(&scenario, load, &Options::default(), (conclusion, at), String::new(), steps)
}

#[test]
fn the_words_say_what_failed_and_how() {
    let steps = |last: Step| {
        vec![
            step(190.0, true, Some(20.0), &[("sound", 1_000)]),
            step(206.0, false, Some(150.0), &[("sound", 1_000)]),
            last,
        ]
    };
    let holds = told(steps(step(400.0, false, None, &[("sound", 500), ("timed out", 500)])), Conclusion::Found);
    let shape = holds.shape.as_ref().unwrap();
    assert!(shape.abrupt && !shape.gives_way, "{shape:?}");
    for said in [
        "200 requests a second (195 to 205 with 95 % confidence, ±2.5 %)",
        "\"p95_ms at most 100\" fails first",
        "breaks abruptly",
        "throughput holds",
    ] {
        assert!(holds.sentence.contains(said), "{said}: {}", holds.sentence);
    }
    let weak = Step { sound_per_s: 90.0, ..step(400.0, false, None, &[("sound", 200), ("failed", 800)]) };
    let weak = told(steps(weak), Conclusion::Found);
    assert!(
        weak.shape.as_ref().unwrap().gives_way
            && weak.sentence.contains("throughput falls: at 400, 90.0 sound answers a second")
    );
    let above = told(vec![step(10.0, true, Some(1.0), &[("sound", 10)])], Conclusion::Above);
    assert!(above.sentence.starts_with("Every load held, up to 10 requests a second") && !above.is_good());
    assert!(above.holds_at(10.0) && !above.holds_at(11.0));
    let void = Step { void: vec!["the host took 20 %".into()], ..step(50.0, false, None, &[]) };
    let void = told(vec![step(10.0, true, Some(1.0), &[("sound", 10)]), void], Conclusion::Void);
    assert!(void.sentence.contains("not fit to measure: the host took 20 %. It held up to 10"), "{}", void.sentence);
    assert_eq!(void.objective, None);
}
