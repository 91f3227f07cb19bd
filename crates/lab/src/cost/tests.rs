use super::*;

const SEARCH: &str = include_str!("../../../../bench/studies/search-pipeline.toml");
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

#[test]
fn a_bill_adds_up() {
    let priced = small("").price(SEARCH).unwrap();
    let offer = &priced.offers[0];
    let (few, many) = (&offer.bills[0], &offer.bills[1]);
    // A request a second all day; 13 sources with a call and one with four; 60 workers are four machines.
    let requests = 86_400.0;
    assert!((many.per_day - (4.0 * 0.5 * 24.0 + requests * 17.0 * 0.001)).abs() < 1e-6, "{many:?}");
    assert_eq!((many.satisfied_share, many.worst_share), (1.0, 1.0));
    assert!((many.per_thousand_satisfied.unwrap() - many.per_day / requests * 1_000.0).abs() < 1e-9);
    // Eight workers drown: they satisfy the first few only, and what was spent on the others is spent.
    assert!(few.satisfied_share < 0.2 && few.per_thousand_satisfied > many.per_thousand_satisfied);
    assert_eq!(offer.cheapest.as_ref(), Some(many));
    assert!(
        priced.paragraph().contains("workers = 60 at 1516.80 USD a day, 17.56 per thousand"),
        "{}",
        priced.paragraph()
    );
}

#[test]
fn idle_hours_cost_machines_but_no_calls() {
    let all_day = small("").price(SEARCH).unwrap().offers[0].bills[1].clone();
    let half = small("").pattern[0].clone();
    let mut plan = small("");
    let part = Part { hours: 12.0, ..half.part[0].clone() };
    plan.pattern[0].part = vec![part.clone(), Part { idle: true, ..part }];
    let half_day = plan.price(SEARCH).unwrap().offers[0].bills[1].clone();
    assert!((half_day.per_day - (48.0 + (all_day.per_day - 48.0) / 2.0)).abs() < 1e-6);
    assert_eq!(half_day.worst_share, 1.0);
}

#[test]
fn a_stricter_promise_never_costs_less_and_the_plan_of_the_study_has_an_answer() {
    let mut plan = Plan::read(PLAN).unwrap();
    plan.seeds = 1;
    let priced = plan.price(SEARCH).unwrap();
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
    ] {
        assert!(PLAN.contains(from), "{from}");
        let error = Plan::read(&PLAN.replacen(from, to, 1)).unwrap_err();
        assert!(error.contains(expected), "{to}: {error}");
    }
    let plan = small("");
    assert!(plan.price("kind = 'x'").unwrap_err().contains("has no \"arrival\""));
    let tier = include_str!("../../../../bench/studies/scan-tier.toml");
    let mut plan = small("");
    plan.set.clear();
    plan.size = "servers".to_owned();
    assert!(plan.price(tier).unwrap_err().contains("kind \"pipeline\""));
}
