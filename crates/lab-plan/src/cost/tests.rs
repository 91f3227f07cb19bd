use super::*;
use meridian_lab_results::folder::{Run, Trial, Writer};
use meridian_lab_results::record::{Outcome, Phase, Record};

const SEARCH: &str = include_str!("../../../../bench/studies/search-pipeline.toml");
const TIER: &str = include_str!("../../../../bench/studies/scan-tier.toml");
const PLAN: &str = include_str!("../../../../bench/studies/search-cost/cost.toml");

/// A plan small enough to be checked by hand.
fn small(extra: &str) -> Plan {
    Plan::read(&format!(
        "scenario = 'x'\nsize = 'workers'\nsizes = [8, 60]\nseeds = 1\n\
         set = {{ 'arrival.count' = 60, 'arrival.interval_s' = 0.64 }}\n\
         [prices]\ncurrency = 'USD'\nmachine_hour = 0.5\nsize_per_machine = 16\noutside_call = 0.001\n\
         [[promise]]\nname = 'soon'\nfirst_s = 5.0\ncomplete = true\nshare = 0.9\n\
         [[pattern]]\nname = 'steady'\n[[pattern.part]]\nhours = 24\n{extra}"
    ))
    .unwrap()
}

fn priced(plan: &Plan, scenario: &str) -> PricedPlan {
    plan.price(&plan.simulated(scenario).unwrap()).unwrap()
}

/// Returns why a scenario cannot be priced.
fn refused(plan: &Plan, scenario: &str) -> String {
    plan.simulated(scenario).and_then(|model| plan.price(&model)).unwrap_err()
}

#[test]
fn a_bill_adds_up() {
    let priced = priced(&small(""), SEARCH);
    let offer = &priced.offers[0];
    let (few, many) = (&offer.bills[0], &offer.bills[1]);
    // A request a second all day; 13 sources with a call and one with four; 60 workers are four machines.
    let requests = 86_400.0;
    assert!((many.per_day - (4.0 * 0.5 * 24.0 + requests * 17.0 * 0.001)).abs() < 1e-6, "{many:?}");
    assert_eq!((many.satisfied_share, many.worst_share), (1.0, 1.0));
    assert!((many.per_thousand_satisfied.unwrap() - many.per_day / requests * 1_000.0).abs() < 1e-9);
    // Eight workers are overloaded: they satisfy only the first few requests, and the cost of the others is wasted.
    assert!(few.satisfied_share < 0.2 && few.per_thousand_satisfied > many.per_thousand_satisfied);
    assert_eq!(offer.cheapest.as_ref(), Some(many));
    assert!(
        priced.paragraph().contains("workers = 60 at 1516.80 USD a day, 17.56 per thousand"),
        "{}",
        priced.paragraph()
    );
}

#[test]
fn a_gigabyte_has_its_price_whether_packets_are_simulated_or_answers_were_measured() {
    let without = priced(&small(""), SEARCH).offers[0].bills[1].per_day;
    let mut plan = small("");
    (plan.prices.gigabyte, plan.prices.packet_bytes) = (0.1, 10_000.0);
    let with = priced(&plan, SEARCH).offers[0].bills[1].per_day;
    // 86,400 searches of 93 packets.
    assert!((with - without - 86_400.0 * 93.0 * 10_000.0 / 1e9 * 0.1).abs() < 1e-6, "{with} {without}");
    // Two machines are 48 a day for 43.2 million requests, of three calls and 2,000 bytes each.
    let more = "machine_hour = 1.0\ngigabyte = 0.1\noutside_call = 0.00001\ncalls_per_request = 3";
    let mut plan = Plan::read(&MACHINES.replace("machine_hour = 1.0", more)).unwrap();
    let of = |plan: &Plan, answer_bytes: Option<f64>| {
        let machine = Machine { answer_bytes, ..machine(100.0, 0.1) };
        plan.price(&Model::Measured(machine)).map(|priced| priced.offers[0].bills[1].per_day)
    };
    let due = |bytes: f64| 48.0 + 43.2e6 * (3.0 * 0.00001 + bytes / 1e9 * 0.1);
    assert!((of(&plan, Some(2_000.0)).unwrap() - due(2_000.0)).abs() < 1e-6);
    assert!(of(&plan, None).unwrap_err().contains("expected packet_bytes"));
    plan.prices.packet_bytes = 500.0;
    assert!((of(&plan, Some(2_000.0)).unwrap() - due(500.0)).abs() < 1e-6);
}

#[test]
fn idle_hours_cost_machines_but_no_calls() {
    let all_day = priced(&small(""), SEARCH).offers[0].bills[1].clone();
    let half = small("").pattern[0].clone();
    let mut plan = small("");
    let part = Part { hours: 12.0, ..half.part[0].clone() };
    plan.pattern[0].part = vec![part.clone(), Part { idle: true, ..part }];
    let half_day = priced(&plan, SEARCH).offers[0].bills[1].clone();
    assert!((half_day.per_day - (48.0 + (all_day.per_day - 48.0) / 2.0)).abs() < 1e-6);
    assert_eq!(half_day.worst_share, 1.0);
}

#[test]
fn a_stricter_promise_never_costs_less_and_the_plan_of_the_study_has_an_answer() {
    let mut plan = Plan::read(PLAN).unwrap();
    plan.seeds = 1;
    let priced = priced(&plan, SEARCH);
    assert_eq!(priced.offers.len(), plan.pattern.len() * plan.promise.len());
    for pair in priced.offers.windows(2).filter(|pair| pair[0].pattern == pair[1].pattern) {
        let (less, more) = (&pair[0].cheapest, &pair[1].cheapest);
        assert!(less.is_some(), "{:?}", pair[0]);
        if let (Some(less), Some(more)) = (less, more) {
            assert!(more.per_day >= less.per_day);
        }
    }
    let svg = priced.picture();
    assert!(svg.starts_with("<svg") && svg.contains("per thousand satisfied"));
    assert!(priced.table().contains("buy"));
}

#[test]
fn mistakes_are_sentences_that_name_the_key() {
    for (from, to, expected) in [
        ("sizes = [", "sizes = [500, ", "sizes: expected a rising list"),
        ("machine_hour = ", "machine_hour = -", "prices.machine_hour = -"),
        ("hours = 24", "hours = 23", "23 hours: expected 24"),
        ("share = 0.9", "share = 1.9", "a share of (0, 1]"),
        ("currency", "money", "unknown field `money`"),
        ("packet_bytes = 10240", "", "prices.gigabyte: expected packet_bytes"),
        ("packet_bytes = 10240", "packet_bytes = 10240\ncalls_per_request = 3", "with measured only"),
    ] {
        assert!(PLAN.contains(from), "{from}");
        let error = Plan::read(&PLAN.replacen(from, to, 1)).unwrap_err();
        assert!(error.contains(expected), "{to}: {error}");
    }
    let plan = small("");
    assert!(refused(&plan, "kind = 'x'").contains("has no \"arrival\""));
    let mut plan = small("");
    plan.set.clear();
    plan.size = "servers".to_owned();
    assert!(refused(&plan, TIER).contains("promise soon: first_s: only a pipeline"));
    for (from, to, expected) in [
        ("measured = 'runs'", "", "expected either scenario"),
        ("'machines'", "'servers'", "expected size = \"machines\""),
        ("rate = 500", "clients = 5", "expected set = { rate"),
        ("whole_s = 0.02", "", "expected first_s or whole_s"),
        ("machine_hour = 1.0", "machine_hour = 1.0\noutside_call = 0.01", "expected calls_per_request beside it"),
        ("machine_hour = 1.0", "machine_hour = 1.0\ncalls_per_request = -1", "prices.calls_per_request = -1"),
    ] {
        let error = Plan::read(&MACHINES.replacen(from, to, 1)).unwrap_err();
        assert!(error.contains(expected), "{to}: {error}");
    }
}

/// Identical scans from one client: 108.4 ms of processor, 0.5 ms of storage and 0.3 ms of turnaround each.
fn scans(promise: &str) -> Plan {
    Plan::read(&format!(
        "scenario = 'x'\nsize = 'servers'\nsizes = [1, 2]\nset = {{ workload = 'grep', threads = 1, measured_scans = 500, 'clients.scan_ms' = 0.0, \
         'workloads.grep.entries' = {{ mean = 36713.0, sd = 1.0, min = 36613.0, max = 36813.0 }} }}\n\
         [prices]\ncurrency = 'USD'\nmachine_hour = 0.5\n[[promise]]\nname = 'soon'\nwhole_s = {promise}\nshare = 0.99\n\
         [[pattern]]\nname = 'steady'\n[[pattern.part]]\nhours = 24\n"
    ))
    .unwrap()
}

#[test]
fn a_scan_tier_is_priced_by_the_scans_that_its_clients_make() {
    let offer = priced(&scans("0.110"), TIER).offers.remove(0);
    // 86,400 s over 109.2 ms are 791,209 scans a day; one server costs 12 a day.
    let one = &offer.bills[0];
    assert_eq!((one.per_day, one.satisfied_share), (12.0, 1.0));
    assert!((one.per_thousand_satisfied.unwrap() / (12.0 / 791.209) - 1.0).abs() < 0.005, "{one:?}");
    // A second server makes no client faster.
    assert_eq!(offer.bills[1].per_day, 24.0);
    assert_eq!(offer.cheapest.as_ref(), Some(one));
    let none = priced(&scans("0.108"), TIER).offers.remove(0);
    assert_eq!((none.bills[0].satisfied_share, none.bills[0].per_thousand_satisfied, none.cheapest), (0.0, None, None));
}

#[test]
fn what_is_not_made_of_machines_has_a_price_of_its_own() {
    let mut plan = scans("0.110");
    plan.size = "machine.cache_bytes".to_owned();
    plan.sizes = vec![1_000_000_000, 8_000_000_000];
    plan.prices.machines = Some(12);
    plan.prices.size_hour = 5e-12;
    plan.set.insert("data_cache".to_owned(), Value::Boolean(true));
    let offer = priced(&plan, TIER).offers.remove(0);
    // Twelve machines are 144 a day, 8 GB at half a cent an hour and gigabyte 0.96 more.
    assert!(
        (offer.bills[0].per_day - 144.12).abs() < 1e-9 && (offer.bills[1].per_day - 144.96).abs() < 1e-9,
        "{offer:?}"
    );
}

#[test]
fn the_plan_of_the_tier_study_has_an_answer() {
    let plan = Plan::read(include_str!("../../../../bench/studies/tier-cost/cost.toml")).unwrap();
    let priced = priced(&plan, TIER);
    assert!(priced.offers.iter().all(|offer| offer.cheapest.is_some()), "{}", priced.paragraph());
}

const MACHINES: &str = "measured = 'runs'\nsize = 'machines'\nsizes = [1, 2, 4]\n\
    [prices]\ncurrency = 'USD'\nmachine_hour = 1.0\n\
    [[promise]]\nname = 'quick'\nwhole_s = 0.02\nshare = 0.99\n\
    [[pattern]]\nname = 'steady'\n[[pattern.part]]\nhours = 24\nset = { rate = 500 }\n";

/// A machine with this throughput at these numbers of users, where all responses take equally long.
fn machine_of(users: &[f64], throughput: impl Fn(f64) -> f64) -> Machine {
    let level = |n: &f64| Level::of(*n, throughput(*n), vec![n / throughput(*n)]).unwrap();
    Machine::of(users.iter().map(level).collect()).unwrap()
}

/// A machine of this law without coherency, measured up to 16 users.
fn machine(g: f64, a: f64) -> Machine {
    machine_of(&[1.0, 2.0, 4.0, 8.0, 12.0, 16.0], |n| g * n / (1.0 + a * (n - 1.0)))
}

#[test]
fn a_server_is_not_bought_for_a_rate_at_which_none_was_measured_to_be_satisfied() {
    // The law overestimates throughput a little: by it two machines answer 624 a second, as measured 620.
    let of = |n: f64| (100.0 * n / (1.0 + 0.2 * (n - 1.0))).min(310.0);
    let machine = machine_of(&[1.0, 2.0, 4.0, 6.0, 8.0, 12.0], of);
    assert!(machine.law.fits() && machine.law.throughput(10.0) > 312.0, "{:?}", machine.law);
    let plan = MACHINES.replace("0.02", "0.2").replace("rate = 500", "rate = 624");
    let priced = Plan::read(&plan).unwrap().price(&Model::Measured(machine)).unwrap();
    let [one, two, four] = &priced.offers[0].bills[..] else { panic!("three sizes") };
    assert!(one.beyond_measured && two.beyond_measured && !four.beyond_measured, "{priced:?}");
    assert_eq!((two.worst_share, priced.offers[0].cheapest.as_ref().map(|bill| bill.size)), (0.0, Some(4)));
    let words = priced.paragraph();
    assert!(words.contains("With machines = 1, 2 a machine is asked for more than the 310.0 a second"), "{words}");
    assert!(priced.table().contains("not measured"), "{}", priced.table());
}

#[test]
fn a_promise_is_held_against_requests_that_come_by_chance_and_not_against_their_mean() {
    // Each of two machines serves 250 per second in 12 ms on average: by that all are satisfied within 12.5 ms.
    let plan = |within: &str| Plan::read(&MACHINES.replace("0.02", within)).unwrap();
    let priced = |within: &str| plan(within).price(&Model::Measured(machine(100.0, 0.1))).unwrap();
    let two = priced("0.0125").offers[0].bills[1].clone();
    assert!((0.3..0.9).contains(&two.worst_share), "{two:?}");
    let words = priced("0.0125").paragraph();
    assert!(words.contains("no size keeps \"quick\""), "{words}");
    let two = priced("0.02").offers[0].bills[1].clone();
    assert!(two.worst_share > 0.99 && two.worst_sure <= two.worst_share, "{two:?}");
}

#[test]
fn a_machine_of_workers_is_priced_by_its_queue() {
    // Four workers of 20 ms: 50 per second each, 200 in all.
    let machine = machine_of(&[1.0, 2.0, 4.0, 4.0, 8.0, 16.0, 32.0], |n| 50.0 * n.min(4.0));
    assert!(!machine.law.fits());
    let plan = Plan::read(&MACHINES.replace("0.02", "0.03")).unwrap();
    let priced = plan.price(&Model::Measured(machine)).unwrap();
    // 500 a second are 125 for each of four machines: a queue now and then, so that fewer than 99 % keep 30 ms.
    let four = &priced.offers[0].bills[2];
    assert!((0.9..0.99).contains(&four.worst_share) && priced.offers[0].cheapest.is_none(), "{four:?}");
    let words = priced.paragraph();
    for said in ["at most 200.0 requests a second", "does not fit", "up to 4.0 users", "at 4 workers"] {
        assert!(words.contains(said), "{said}: {words}");
    }
    assert!(priced.picture().contains("scalability law (does not fit)"));
}

#[test]
fn machines_are_bought_until_each_has_a_rate_that_it_answers_in_time() {
    let plan = Plan::read(MACHINES).unwrap();
    let priced = plan.price(&Model::Measured(machine(100.0, 0.1))).unwrap();
    let offer = &priced.offers[0];
    let satisfied: Vec<f64> = offer.bills.iter().map(|bill| bill.satisfied_share).collect();
    assert!(satisfied[0] < 0.9 && satisfied[1] > 0.99 && satisfied[2] > 0.999, "{satisfied:?}");
    let cheapest = offer.cheapest.as_ref().unwrap();
    // Two machines are 48 a day, for 43.2 million requests.
    assert_eq!((cheapest.size, cheapest.per_day), (2, 48.0));
    assert!((cheapest.per_thousand_satisfied.unwrap() / (48.0 / 43_200.0) - 1.0).abs() < 0.01);
    let words = priced.paragraph();
    assert!(words.starts_with("Measured at up to 16 users, a machine answers at most 6"), "{words}");
    assert!(words.contains("The scalability law fits") && words.contains("By it one user has 100."), "{words}");
    assert!(words.contains("machines = 2 at 48.00 USD a day, 0.00111 per thousand satisfied"), "{words}");
    let svg = priced.picture();
    assert!(svg.contains("scalability law") && svg.contains("per thousand satisfied"));
}

/// A run of users who wait for responses: `throughput` sound responses in each of two seconds, and one that came
/// after.
fn measured(dir: &Path, users: u32, throughput: u32, void: &[&str]) {
    let scenario = format!(
        "[target]\nurl = \"http://127.0.0.1:1\"\n[arrival]\nkind = \"closed\"\nusers = {users}\n[request]\npath = \"/\"\n"
    );
    let mut writer = Writer::create(&dir.join(format!("at-{users}")), &scenario).unwrap();
    // As long as `users` wait at that throughput.
    let wait = 1_000_000 * i64::from(users) / i64::from(throughput);
    let record = |done: i64, outcome| Record {
        phase: Phase::Measured,
        intended: done - wait,
        done: Some(done),
        bytes: 2_000,
        outcome,
        ..Record::default()
    };
    let step = 2_000_000 / i64::from(2 * throughput);
    let mut records: Vec<Record> = (0..i64::from(2 * throughput)).map(|n| record(n * step, Outcome::Sound)).collect();
    records.extend([record(2_000_001, Outcome::Sound), record(5, Outcome::Failed)]);
    writer.push(&records).unwrap();
    let trial = Trial { target: 0, started: String::new(), measured_us: [0, 2_000_000] };
    let void = void.iter().map(|why| (*why).to_owned()).collect();
    let run = Run { targets: vec!["target".to_owned()], trials: vec![trial], void, ..Run::default() };
    writer.finish(&run).unwrap();
}

#[test]
fn a_folder_of_runs_at_several_numbers_of_users_is_a_machine() {
    let dir = tempfile::tempdir().unwrap();
    // 100 n / (1 + 0.1 (n - 1)), rounded.
    for (users, throughput) in [(1, 100), (2, 182), (4, 308), (8, 471), (12, 571), (16, 640)] {
        measured(dir.path(), users, throughput, &[]);
    }
    let machine = Machine::read(dir.path()).unwrap();
    assert_eq!((machine.users_most, machine.answer_bytes), (16.0, Some(2_000.0)));
    assert!((machine.law.g / 100.0 - 1.0).abs() < 0.02 && (machine.law.a / 0.1 - 1.0).abs() < 0.1, "{machine:?}");
    let (from, ..) = machine.around(8.0);
    assert!(
        (from.users, from.throughput) == (8.0, 471.0) && (from.wait(0.5) - 8.0 / 471.0).abs() < 1e-5,
        "{machine:?}"
    );
    assert_eq!((machine.rate_most, machine.serves), (640.0, ServiceModel::Shared));
    measured(dir.path(), 32, 700, &["the lab was late"]);
    assert!(Machine::read(dir.path()).unwrap_err().contains("the run is void: the lab was late"));
    let empty = tempfile::tempdir().unwrap();
    assert!(Machine::read(empty.path()).unwrap_err().contains("needs at least six"));
    assert!(Machine::read(&empty.path().join("nowhere")).unwrap_err().contains("cannot be read"));
}
