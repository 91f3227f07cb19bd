use super::*;
use crate::simulate::Scenario;

const GATEWAYS: &str = include_str!("../../../../../bench/studies/gateways.toml");

fn trial(text: &str, sets: &[&str]) -> ClosedOutcome {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    match Scenario::read(text, &sets).unwrap() {
        Scenario::Closed(network) => run(&network),
        other => panic!("expected a closed network, found {other:?}"),
    }
}

/// Users who visit two machines of one processor for 1 ms each.
fn two(users: u32, cv: f64) -> String {
    format!(
        "kind = 'closed'\nseed = 1\nseconds = 200\nwarm_up_s = 1\n[[station]]\nname = 'a'\n[[station]]\nname = 'b'\n\
         [[population]]\nname = 'all'\nusers = {users}\n[[population.visits]]\nstation = 'a'\nservice = {{ mean_s = 0.001, cv = {cv} }}\n\
         [[population.visits]]\nstation = 'b'\nservice = {{ mean_s = 0.001, cv = {cv} }}\n"
    )
}

/// Throughput of N users over M balanced queues under processor sharing: N / (N + M - 1) of the rate of one queue. This
/// holds for any distribution of the service time (Baskett, Chandy, Muntz and Palacios 1975).
#[test]
fn two_balanced_queues_reach_the_rate_of_the_product_form() {
    for (users, cv) in [(1, 1.0), (2, 0.5), (4, 1.0), (8, 2.0)] {
        let found = trial(&two(users, cv), &[]);
        let expected = f64::from(users) / f64::from(users + 1) * 1000.0;
        assert!(
            (found.per_second / expected - 1.0).abs() < 0.03,
            "{users} users, cv {cv}: {found:?}, expected {expected}"
        );
        // Little's law.
        let mean_ms = f64::from(users) / found.per_second * 1000.0;
        assert!((found.populations[0].mean_ms / mean_ms - 1.0).abs() < 0.01, "{found:?}");
        assert!(found.machines.iter().all(|machine| (machine.used - expected / 1000.0).abs() < 0.03), "{found:?}");
    }
}

#[test]
fn processes_of_one_machine_share_its_processors() {
    let shared = format!("{}[[machine]]\nname = 'm'\ncores = 2\n", two(8, 1.0));
    let found = trial(&shared, &["station.a.machine=m", "station.b.machine=m"]);
    // Two processors, and two milliseconds of work a request.
    assert!((found.per_second / 1000.0 - 1.0).abs() < 0.03, "{found:?}");
    assert_eq!(found.machines.len(), 1);
}

#[test]
fn a_machine_without_a_process_is_not_listed() {
    let names = |sets: &[&str]| -> Vec<String> {
        trial(GATEWAYS, sets).machines.into_iter().map(|machine| machine.name).collect()
    };
    // Its machine `box` is used only by name.
    assert_eq!(names(&["seconds=1"]), ["lab", "gateway", "owner"]);
    assert_eq!(names(&["seconds=1", "station.owner.machine=box"]), ["box", "lab", "gateway"]);
}

#[test]
fn one_seed_gives_one_run_and_more_gateways_more_answers_up_to_the_owner() {
    assert_eq!(trial(GATEWAYS, &["seconds=2"]), trial(GATEWAYS, &["seconds=2"]));
    let rate =
        |gateways: u32| trial(GATEWAYS, &["seconds=5", &format!("station.gateway.processes={gateways}")]).per_second;
    let (one, four, six) = (rate(1), rate(4), rate(6));
    assert!(one < four && four <= six * 1.02, "{one} {four} {six}");
}

#[test]
fn mistakes_name_their_key() {
    for (set, expected) in [
        ("station.a.cores=0", "station.a.cores = 0: expected 1 to 1024"),
        ("station.a.machine=x", "station.a.machine = \"x\": expected the name of a [[machine]]"),
        ("population.all.visits.0.station=x", "population.all.visits: \"x\": expected the name of a [[station]]"),
        ("station.b.name=a", "station: two entries are named \"a\""),
        ("seconds=-1", "seconds = -1: expected 0.001 to 1000000"),
    ] {
        let why = Scenario::read(&two(1, 1.0), &[set.to_owned()]).unwrap_err();
        assert_eq!(why, expected);
    }
}
