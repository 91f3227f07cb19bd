use super::*;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn ask(tenant: u32, class: Class, deadline: u64) -> Ask<u32> {
    Ask { tenant, weight: 1, class, deadline: ms(deadline), resumed: false }
}

fn quick(tenant: u32) -> Ask<u32> {
    ask(tenant, Class::Interactive, 1_000_000)
}

fn one_slot() -> Admission<u32> {
    Admission::new(Settings::default())
}

fn runs(admission: &mut Admission<u32>, now: u64, ask: &Ask<u32>) -> Ticket {
    match admission.enter(ms(now), ask).unwrap() {
        Entry::Run(ticket) => ticket,
        Entry::Wait(ticket) => panic!("{ticket:?} waits"),
    }
}

fn waits(admission: &mut Admission<u32>, now: u64, ask: &Ask<u32>) -> Ticket {
    match admission.enter(ms(now), ask).unwrap() {
        Entry::Wait(ticket) => ticket,
        Entry::Run(ticket) => panic!("{ticket:?} runs"),
    }
}

#[test]
fn a_burst_is_served_in_order_of_arrival() {
    let mut admission = one_slot();
    let mut running = runs(&mut admission, 0, &quick(1));
    let waiting: Vec<_> = (1..10).map(|n| waits(&mut admission, n, &quick(1))).collect();
    for (n, expected) in waiting.into_iter().enumerate() {
        admission.leave(running, ms(10));
        assert_eq!(admission.next(ms(10 + 10 * n as u64)), Some(Turn::Run(expected)));
        assert_eq!(admission.next(ms(10 + 10 * n as u64)), None);
        running = expected;
    }
}

#[test]
fn an_overloaded_queue_refuses_its_oldest_and_runs_its_newest() {
    let mut admission = one_slot();
    let running = runs(&mut admission, 0, &quick(1));
    let [first, second, third] = [0, 1050, 1100].map(|now| waits(&mut admission, now, &quick(1)));
    admission.leave(running, ms(1150));
    assert_eq!(admission.next(ms(1150)), Some(Turn::Refuse(first, Refusal::Waited)));
    assert_eq!(admission.next(ms(1150)), Some(Turn::Run(third)));
    admission.leave(third, ms(10));
    assert_eq!(admission.next(ms(1160)), Some(Turn::Run(second)));
}

#[test]
fn a_queue_that_was_never_empty_for_long_refuses_after_the_target() {
    let mut admission = one_slot();
    let mut running = runs(&mut admission, 0, &quick(1));
    let mut refused = Vec::new();
    // A question every 10 ms, each of 20 ms: the queue stands from the beginning.
    for now in (10..4000).step_by(10) {
        let _ = admission.enter(ms(now), &quick(1));
        if now % 20 == 0 {
            admission.leave(running, ms(20));
        }
        while let Some(turn) = admission.next(ms(now)).or_else(|| admission.expire(ms(now))) {
            match turn {
                Turn::Run(ticket) => running = ticket,
                Turn::Refuse(ticket, why) => {
                    admission.leave(ticket, Duration::ZERO);
                    refused.push((now, why));
                }
            }
        }
    }
    assert!(refused.iter().all(|(_, why)| *why == Refusal::Waited));
    // A burst might be worked off within the first second, and then half of all come too much.
    assert!(refused.first().is_some_and(|(at, _)| *at >= 1000), "{refused:?}");
    assert!(refused.len() > 140, "{}", refused.len());
    assert!(admission.counts().waiting <= 26, "{:?}", admission.counts());
}

/// One slot, and questions of 10 ms that come when `arrive` says: how long each that ran had waited, and how many were refused.
fn waits_of(until: u64, arrive: impl Fn(u64) -> usize) -> (Vec<u64>, usize) {
    let (mut admission, mut since, mut waits, mut refused) = (one_slot(), HashMap::new(), Vec::new(), 0);
    let mut running: Option<(Ticket, u64)> = None;
    for now in 0..until {
        for _ in 0..arrive(now) {
            match admission.enter(ms(now), &ask(1, Class::Interactive, now + 60_000)).unwrap() {
                Entry::Run(ticket) => running = Some((ticket, now + 10)),
                Entry::Wait(ticket) => _ = since.insert(ticket, now),
            }
        }
        if let Some((ticket, _)) = running.take_if(|(_, ends)| *ends <= now) {
            admission.leave(ticket, ms(10));
        }
        while let Some(turn) = admission.next(ms(now)).or_else(|| admission.expire(ms(now))) {
            match turn {
                Turn::Run(ticket) => {
                    running = Some((ticket, now + 10));
                    waits.push(now - since.remove(&ticket).unwrap());
                }
                Turn::Refuse(ticket, _) => {
                    admission.leave(ticket, Duration::ZERO);
                    refused += 1;
                }
            }
        }
    }
    (waits, refused)
}

#[test]
fn a_flood_is_seen_before_a_question_has_waited_long() {
    let (waits, refused) = waits_of(1000, |_| 1);
    assert!(waits.iter().all(|wait| *wait <= 200), "{waits:?}");
    assert!(refused > 600, "{refused}");
}

#[test]
fn a_burst_that_can_be_worked_off_is() {
    let (waits, refused) = waits_of(1200, |now| if now == 0 { 90 } else { 0 });
    assert_eq!((waits.len(), refused), (89, 0), "in order: {waits:?}");
    assert!(waits.is_sorted());
}

#[test]
fn a_passed_deadline_is_refused_without_a_slot() {
    let mut admission = one_slot();
    let running = runs(&mut admission, 0, &quick(1));
    assert_eq!(admission.enter(ms(5), &ask(1, Class::Interactive, 5)), Err(Refusal::Deadline));
    let short = waits(&mut admission, 5, &ask(1, Class::Interactive, 20));
    let long = waits(&mut admission, 5, &quick(1));
    admission.leave(running, ms(30));
    assert_eq!(admission.next(ms(30)), Some(Turn::Refuse(short, Refusal::Deadline)));
    assert_eq!(admission.next(ms(30)), Some(Turn::Run(long)));
}

#[test]
fn a_light_tenant_overtakes_a_heavy_one_after_a_slice() {
    let mut admission = one_slot();
    let heavy = runs(&mut admission, 0, &quick(1));
    for _ in 0..100 {
        assert_eq!(admission.slice(heavy, ms(2)), Verdict::Continue);
    }
    let light = waits(&mut admission, 200, &quick(2));
    assert_eq!(admission.next(ms(200)), None, "not before the slice is over");
    assert_eq!(admission.slice(heavy, ms(2)), Verdict::Pause);
    assert_eq!(admission.next(ms(202)), Some(Turn::Run(light)));
    // The light one keeps the slot for its credit, then both take turns.
    let mut used = 0;
    while admission.slice(light, ms(2)) == Verdict::Continue {
        used += 2;
    }
    assert!((40..=60).contains(&used), "{used}");
    assert_eq!(admission.next(ms(300)), Some(Turn::Run(heavy)));
}

#[test]
fn a_question_sinks_and_short_ones_pass_it() {
    let mut admission = one_slot();
    let long = runs(&mut admission, 0, &quick(1));
    for _ in 0..100 {
        assert_eq!(admission.slice(long, ms(2)), Verdict::Continue);
    }
    let short = waits(&mut admission, 200, &quick(1));
    assert_eq!(admission.slice(long, ms(2)), Verdict::Pause, "of the same tenant");
    assert_eq!(admission.next(ms(202)), Some(Turn::Run(short)));
    admission.leave(short, ms(1));
    assert_eq!(admission.next(ms(203)), Some(Turn::Run(long)));
}

#[test]
fn a_full_queue_still_takes_a_tenant_that_waits_with_little() {
    let mut admission = Admission::new(Settings { waiting_max: 10, ..Settings::default() });
    let _running = runs(&mut admission, 0, &quick(1));
    for _ in 0..10 {
        waits(&mut admission, 0, &quick(1));
    }
    assert_eq!(admission.enter(ms(1), &quick(1)), Err(Refusal::QueueFull));
    waits(&mut admission, 1, &quick(2));
}

#[test]
fn a_tenant_may_begin_only_so_many_questions() {
    let mut admission = Admission::new(Settings { slots: 8, started_max: 2, ..Settings::default() });
    runs(&mut admission, 0, &quick(1));
    runs(&mut admission, 0, &quick(1));
    waits(&mut admission, 0, &quick(1));
    assert_eq!(admission.next(ms(0)), None);
    let other = waits(&mut admission, 0, &quick(2));
    assert_eq!(admission.next(ms(0)), Some(Turn::Run(other)), "another tenant may");
}

#[test]
fn all_tenants_together_may_begin_only_so_many_questions() {
    let mut admission = Admission::new(Settings { slots: 8, threads_max: 2, ..Settings::default() });
    let first = runs(&mut admission, 0, &quick(1));
    runs(&mut admission, 0, &quick(2));
    let third = waits(&mut admission, 0, &quick(3));
    assert_eq!(admission.next(ms(0)), None);
    admission.leave(first, ms(1));
    assert_eq!(admission.next(ms(1)), Some(Turn::Run(third)));
}

#[test]
fn an_idle_tenant_is_forgotten_once_its_debt_is_paid() {
    let mut admission = one_slot();
    let first = runs(&mut admission, 0, &quick(1));
    admission.leave(first, ms(500));
    admission.set_slots(1);
    assert_eq!(admission.by_tenant().count(), 1, "it is ahead of all others");
    for n in 0..100 {
        let ticket = runs(&mut admission, 500 + n, &quick(0));
        admission.leave(ticket, ms(10));
    }
    admission.set_slots(1);
    assert_eq!(admission.by_tenant().map(|(name, _)| *name).collect::<Vec<_>>(), [1, 0], "numbers stay what they are");
}

/// One step of a random run.
#[derive(Debug, Clone)]
enum Step {
    Enter { tenant: u32, class: Class, patience: u64, resumed: bool },
    Slice(usize, u64),
    Leave(usize, u64),
    GiveUp(usize),
    Wait(u64),
    Slots(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let class = prop::sample::select(Class::ALL.to_vec());
    prop_oneof![
        6 => (0..4u32, class, 1..3000u64, prop::bool::weighted(0.1))
            .prop_map(|(tenant, class, patience, resumed)| Step::Enter { tenant, class, patience, resumed }),
        4 => (any::<usize>(), 1..20u64).prop_map(|(n, used)| Step::Slice(n, used)),
        3 => (any::<usize>(), 0..20u64).prop_map(|(n, used)| Step::Leave(n, used)),
        1 => any::<usize>().prop_map(Step::GiveUp),
        2 => (1..300u64).prop_map(Step::Wait),
        1 => (1..5usize).prop_map(Step::Slots),
    ]
}

proptest! {
    /// Against plain sets of running and waiting questions: every question has one end, none runs twice, slots are neither
    /// exceeded by new questions nor left idle while a question may run.
    #[test]
    fn every_question_ends_once_and_no_slot_idles(steps in prop::collection::vec(step(), 0..300)) {
        let settings = Settings { slots: 2, started_max: 3, waiting_max: 12, ..Settings::default() };
        let mut admission = Admission::new(settings);
        let (mut running, mut idle): (Vec<Ticket>, Vec<Ticket>) = (Vec::new(), Vec::new());
        let (mut now, mut slots) = (0, 2);
        for step in steps {
            match step {
                Step::Enter { tenant, class, patience, resumed } => {
                    let ask = Ask { resumed, ..ask(tenant, class, now + patience) };
                    match admission.enter(ms(now), &ask) {
                        Ok(Entry::Run(ticket)) => running.push(ticket),
                        Ok(Entry::Wait(ticket)) => idle.push(ticket),
                        Err(why) => prop_assert!(!resumed && why == Refusal::QueueFull),
                    }
                }
                Step::Slice(n, used) if !running.is_empty() => {
                    let ticket = running[n % running.len()];
                    if admission.slice(ticket, ms(used)) == Verdict::Pause {
                        running.retain(|t| *t != ticket);
                        idle.push(ticket);
                    }
                }
                Step::Leave(n, used) if !running.is_empty() => {
                    let ticket = running.swap_remove(n % running.len());
                    admission.leave(ticket, ms(used));
                }
                Step::GiveUp(n) if !idle.is_empty() => {
                    let ticket = idle.swap_remove(n % idle.len());
                    admission.leave(ticket, Duration::ZERO);
                }
                Step::Wait(time) => now += time,
                Step::Slots(n) => {
                    slots = n;
                    admission.set_slots(n);
                }
                _ => {}
            }
            while let Some(turn) = admission.next(ms(now)).or_else(|| admission.expire(ms(now))) {
                let (Turn::Run(ticket) | Turn::Refuse(ticket, _)) = turn;
                let place = idle.iter().position(|t| *t == ticket);
                prop_assert!(place.is_some(), "{:?} did not wait", ticket);
                idle.swap_remove(place.unwrap());
                match turn {
                    Turn::Run(ticket) => {
                        running.push(ticket);
                        prop_assert!(running.len() <= slots, "{} run", running.len());
                    }
                    Turn::Refuse(ticket, _) => admission.leave(ticket, Duration::ZERO),
                }
            }
            let counts = admission.counts();
            prop_assert_eq!(counts.running, running.len());
            prop_assert_eq!(counts.waiting + counts.paused, idle.len());
            let distinct: HashSet<_> = running.iter().chain(&idle).collect();
            prop_assert_eq!(distinct.len(), running.len() + idle.len());
            if running.len() < slots {
                prop_assert_eq!(counts.paused, 0, "a slot idles");
                // A tenant that waits then has started as many as it may.
                for (_, tenant) in admission.by_tenant().filter(|(_, tenant)| tenant.waiting > 0) {
                    prop_assert!(tenant.running + tenant.paused >= 3, "a slot idles: {:?}", tenant);
                }
            }
        }
    }

    /// Tenants that always have questions get processor time by their weights, whatever the size of their questions.
    #[test]
    fn backlogged_tenants_share_by_weight(
        weights in prop::collection::vec(1..6u32, 2..5),
        sizes in prop::collection::vec(1..200u64, 5),
        slots in 1..4usize,
    ) {
        let mut admission = Admission::new(Settings { slots, ..Settings::default() });
        let mut used = vec![0u64; weights.len()];
        let mut left: HashMap<Ticket, (usize, u64)> = HashMap::new();
        let mut running: Vec<Ticket> = Vec::new();
        let ask = |tenant: usize| Ask { weight: weights[tenant], ..ask(tenant as u32, Class::Interactive, 100_000_000) };
        let mut now = 0;
        while used.iter().sum::<u64>() < 60_000 {
            for (tenant, size) in (0..weights.len()).zip(&sizes) {
                let waiting = admission.by_tenant().find(|(name, _)| **name == tenant as u32).map_or(0, |(_, c)| c.waiting);
                for _ in waiting..4 {
                    let (Entry::Run(ticket) | Entry::Wait(ticket)) = admission.enter(ms(now), &ask(tenant)).unwrap();
                    left.insert(ticket, (tenant, *size));
                    if admission.counts().running > running.len() {
                        running.push(ticket);
                    }
                }
            }
            while let Some(turn) = admission.next(ms(now)) {
                match turn {
                    Turn::Run(ticket) => running.push(ticket),
                    Turn::Refuse(ticket, _) => {
                        left.remove(&ticket);
                        admission.leave(ticket, Duration::ZERO);
                    }
                }
            }
            // All that run do so for one slice.
            now += 2;
            for ticket in std::mem::take(&mut running) {
                let (tenant, size) = left.get_mut(&ticket).unwrap();
                let slice = (*size).min(2);
                *size -= slice;
                used[*tenant] += slice;
                if *size == 0 {
                    left.remove(&ticket);
                    admission.leave(ticket, ms(slice));
                } else if admission.slice(ticket, ms(slice)) == Verdict::Continue {
                    running.push(ticket);
                }
            }
        }
        // A tenant of weight w of W has w/W of every slot, but at most as many slots as it has questions.
        let total: u64 = used.iter().sum();
        let weight: u32 = weights.iter().sum();
        for (tenant, used) in used.iter().enumerate() {
            let fair = total as f64 * f64::from(weights[tenant]) / f64::from(weight);
            prop_assert!((*used as f64 / fair - 1.0).abs() < 0.05, "tenant {} of {:?}: {} for {}", tenant, weights, used, fair);
        }
    }
}

#[test]
fn the_load_shows_who_runs_and_waits_by_class_and_for_how_long() {
    let mut admission = one_slot();
    let running = runs(&mut admission, 0, &quick(1));
    waits(&mut admission, 10, &ask(2, Class::Batch, 1_000_000));
    waits(&mut admission, 40, &ask(2, Class::Batch, 1_000_000));
    admission.enter(ms(50), &Ask { resumed: true, ..quick(3) }).unwrap();
    let none = ClassLoad::default();
    let batch = ClassLoad { waiting: 2, oldest: Some(ms(90)), ..none };
    assert_eq!(
        admission.load(ms(100)),
        [
            (1, [ClassLoad { running: 1, ..none }, none, none]),
            (2, [none, batch, none]),
            (3, [ClassLoad { paused: 1, ..none }, none, none]),
        ]
    );
    admission.leave(running, ms(1));
    assert_eq!(admission.load(ms(100)).len(), 2, "tenants without questions are not shown");
}
