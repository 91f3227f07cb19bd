use super::*;
use crate::simulate::Scenario;

const FLOOD: &str = include_str!("../../../../../bench/studies/tenants.toml");

fn trial(sets: &[&str]) -> TenantsOutcome {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    match Scenario::read(FLOOD, &sets).unwrap() {
        Scenario::Tenants(server) => run(&server),
        other => panic!("expected tenants, found {other:?}"),
    }
}

fn of<'a>(outcome: &'a TenantsOutcome, name: &str) -> &'a TenantOutcome {
    outcome.tenants.iter().find(|tenant| tenant.name == name).unwrap()
}

#[test]
fn one_seed_gives_one_run_and_another_seed_another() {
    let sets = ["seconds=5"];
    assert_eq!(trial(&sets), trial(&sets));
    assert_ne!(trial(&sets), trial(&["seconds=5", "seed=2"]));
}

/// Without contention both rules amount to processor sharing: an M/G/1 queue, whose mean stay is the service time
/// divided by the idle share (Kleinrock 1967).
#[test]
fn a_plain_queue_without_bounds_is_processor_sharing() {
    let sets = [
        "rule=queue",
        "tenant.heavy.rate=40",
        "tenant.heavy.service.cv=1",
        "seconds=2000",
        "queue.running_max=100000",
        "tenant.light.rate=0",
        "tenant.light-short.rate=0",
        "tenant.heavy.deadline_s=100",
    ];
    let outcome = trial(&sets);
    let heavy = of(&outcome, "heavy");
    // Half of the processor is used. The median of the stay has no formula as simple as the mean's; it is lower.
    assert!((outcome.used - 0.5).abs() < 0.02, "{outcome:?}");
    assert!(heavy.p50_ms < 25.0 && heavy.p95_ms > 25.0, "{heavy:?}");
    assert_eq!((heavy.refused, heavy.late), (0, 0));
}

#[test]
fn a_flood_costs_neither_goodput_nor_the_other_tenant() {
    let flood = trial(&[]);
    let edge = trial(&["tenant.heavy.rate=64", "tenant.heavy.users='never'"]);
    assert!(flood.good_per_s > 0.95 * edge.good_per_s, "{flood:?}\n{edge:?}");
    for name in ["light", "light-short"] {
        let light = of(&flood, name);
        assert_eq!((light.refused, light.late), (0, 0), "{light:?}");
    }
    let alone = trial(&["tenant.heavy.rate=0"]);
    assert!(of(&flood, "light").p95_ms < 1.5 * of(&alone, "light").p95_ms, "{flood:?}\n{alone:?}");
    assert!(of(&flood, "light-short").p95_ms < of(&alone, "light-short").p95_ms + 4.0, "{flood:?}\n{alone:?}");
    // The plain queue lets the flood take both.
    let plain = trial(&["rule=queue"]);
    assert!(of(&plain, "light").good < of(&flood, "light").good / 2, "{plain:?}");
}

/// Over time a tenant gets its quota, whatever its users do, and obedient users are refused less often.
#[test]
fn a_quota_bounds_what_reaches_the_server() {
    let with = |users: &str| {
        let users = format!("tenant.heavy.users='{users}'");
        trial(&["tenant.heavy.requests_per_second=40", &users, "seconds=50"])
    };
    let (impatient, obedient) = (with("impatient"), with("obedient"));
    for outcome in [&impatient, &obedient] {
        let heavy = of(outcome, "heavy");
        assert!(
            heavy.over_quota > 0 && heavy.over_quota == heavy.refused,
            "half of the capacity is never refused: {heavy:?}"
        );
        let admitted = heavy.offered - heavy.over_quota;
        assert!((40 * 50..=40 * 51).contains(&admitted), "{admitted}: {heavy:?}");
    }
    assert!(of(&impatient, "heavy").over_quota > of(&obedient, "heavy").over_quota, "{impatient:?}\n{obedient:?}");
}

#[test]
fn work_for_clients_that_left_multiplies_where_it_is_not_cancelled() {
    let sets = ["rule=queue", "tenant.heavy.rate=160", "tenant.heavy.deadline_s=0.5"];
    let kept = trial(&[&sets[..], &["cancellation=false"]].concat());
    let cancelled = trial(&sets);
    assert!(of(&cancelled, "heavy").good > of(&kept, "heavy").good, "{cancelled:?}\n{kept:?}");
}

#[test]
fn processor_time_is_conserved() {
    for rule in ["rule='fair'", "rule='queue'"] {
        let outcome = trial(&[rule, "seconds=20"]);
        assert!(outcome.used <= 1.2, "{outcome:?}");
        for tenant in &outcome.tenants {
            assert_eq!(tenant.offered, tenant.good + tenant.refused + tenant.late, "{rule}: {tenant:?}");
        }
    }
}

#[test]
fn a_wrong_number_is_named() {
    for (set, expected) in [
        ("cores=0", "cores = 0: expected 1 to 1024"),
        ("fair.slice_s=0", "fair.slice_s = 0: expected 0.00001 to 1000000"),
        ("tenant.light.class='urgent'", "tenant.light.class = \"urgent\": expected interactive, batch or background"),
        ("tenant.light.name='heavy'", "two entries are named \"heavy\""),
        ("tenant.heavy.service.mean_s=-1", "tenant.heavy.service: mean_s = -1"),
        ("tenant.heavy.rate=1e7", "questions of all tenants"),
        ("tenant.light-short.requests_per_second=3", "expected it at the tenant's first entry, \"light\""),
    ] {
        let error = Scenario::read(FLOOD, &[set.to_owned()]).unwrap_err();
        assert!(error.contains(expected), "{set}: {error}");
    }
}
