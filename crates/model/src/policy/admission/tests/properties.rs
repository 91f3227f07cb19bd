//! Randomized runs.

use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

/// One step of a random run.
#[derive(Debug, Clone)]
enum Step {
    Enter { tenant: u32, class: Class, patience: u64, resumed: bool },
    Slice(usize, u64),
    Leave(usize, u64),
    GiveUp(usize, u64),
    Rest(usize, u64),
    Wake(usize),
    GiveUpAway(usize),
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
        1 => (any::<usize>(), 0..60u64).prop_map(|(n, used)| Step::GiveUp(n, used)),
        3 => (any::<usize>(), 0..20u64).prop_map(|(n, used)| Step::Rest(n, used)),
        3 => any::<usize>().prop_map(Step::Wake),
        1 => any::<usize>().prop_map(Step::GiveUpAway),
        2 => (1..300u64).prop_map(Step::Wait),
        1 => (1..5usize).prop_map(Step::Slots),
    ]
}

proptest! {
    /// Checks against plain sets of running, waiting and absent queries. Every query ends once, and none runs twice.
    /// New queries never exceed the slots, no slot is idle while a query may run, and queries away do not exceed the
    /// threads.
    #[test]
    fn every_question_ends_once_and_no_slot_idles(steps in prop::collection::vec(step(), 0..300)) {
        let settings = Settings { slots: 2, started_max: 3, threads_max: 10, waiting_max: 12, ..Settings::default() };
        let mut admission = Admission::new(settings);
        let (mut running, mut idle): (Vec<Ticket>, Vec<Ticket>) = (Vec::new(), Vec::new());
        let (mut away, mut resumed_ever): (Vec<Ticket>, usize) = (Vec::new(), 0);
        let (mut now, mut slots) = (0, 2);
        for step in steps {
            match step {
                Step::Enter { tenant, class, patience, resumed } => {
                    resumed_ever += usize::from(resumed);
                    let resumed = resumed.then_some(Duration::ZERO);
                    let ask = SlotRequest { resumed, ..ask(tenant, class, now + patience) };
                    match admission.enter(ms(now), ask.as_ref()) {
                        Ok(Entry::Run(ticket)) => running.push(ticket),
                        Ok(Entry::Wait(ticket)) => idle.push(ticket),
                        Err(why) => prop_assert!(resumed.is_none() && why == Refusal::QueueFull),
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
                Step::GiveUp(n, used) if !idle.is_empty() => {
                    let ticket = idle.swap_remove(n % idle.len());
                    admission.leave(ticket, ms(used));
                }
                Step::Rest(n, used) if !running.is_empty() => {
                    let ticket = running.swap_remove(n % running.len());
                    admission.rest(ticket, ms(used));
                    away.push(ticket);
                }
                Step::Wake(n) if !away.is_empty() => {
                    let ticket = away.swap_remove(n % away.len());
                    match admission.wake(ticket) {
                        Verdict::Continue => running.push(ticket),
                        Verdict::Pause => idle.push(ticket),
                    }
                    prop_assert!(running.len() <= slots.max(admission.counts().running), "a slot too many");
                }
                Step::GiveUpAway(n) if !away.is_empty() => {
                    let ticket = away.swap_remove(n % away.len());
                    admission.leave(ticket, Duration::ZERO);
                }
                Step::Wait(time) => now += time,
                Step::Slots(n) => {
                    slots = n;
                    admission.set_slots(n);
                }
                _ => {}
            }
            while let Some(outcome) = admission.next(ms(now)).or_else(|| admission.expire(ms(now))) {
                let (WaitOutcome::Run(ticket) | WaitOutcome::Refuse(ticket, _)) = outcome;
                let place = idle.iter().position(|t| *t == ticket);
                prop_assert!(place.is_some(), "{:?} did not wait", ticket);
                idle.swap_remove(place.unwrap());
                match outcome {
                    WaitOutcome::Run(ticket) => {
                        running.push(ticket);
                        prop_assert!(running.len() <= slots, "{} run", running.len());
                    }
                    WaitOutcome::Refuse(ticket, _) => _ = admission.leave(ticket, Duration::ZERO),
                }
            }
            let counts = admission.counts();
            prop_assert_eq!(counts.running, running.len());
            prop_assert_eq!(counts.waiting + counts.paused, idle.len());
            prop_assert_eq!(counts.away, away.len());
            let distinct: HashSet<_> = running.iter().chain(&idle).chain(&away).collect();
            prop_assert_eq!(distinct.len(), running.len() + idle.len() + away.len());
            // Only work admitted elsewhere exceeds the threads.
            let threads = counts.running + counts.paused + counts.away;
            prop_assert!(threads <= 10 + resumed_ever, "{threads} threads");
            if running.len() < slots {
                prop_assert_eq!(counts.paused, 0, "a slot idles");
                // A waiting tenant then has started as many as it may, or has as many away as there are threads left.
                for (_, tenant) in admission.by_tenant().filter(|(_, tenant)| tenant.waiting > 0) {
                    let left = 10_usize.saturating_sub(threads);
                    let may_start = tenant.running + tenant.paused < 3 && tenant.away < left;
                    prop_assert!(!may_start, "a slot idles: {:?}", tenant);
                }
            }
        }
    }

    /// Tenants that always have queries get processor time by their weights, whatever the size of their queries.
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
        let ask = |tenant: usize| SlotRequest { weight: weights[tenant], ..ask(tenant as u32, Class::Interactive, 100_000_000) };
        let mut now = 0;
        while used.iter().sum::<u64>() < 60_000 {
            for (tenant, size) in (0..weights.len()).zip(&sizes) {
                let waiting = admission.by_tenant().find(|(name, _)| **name == tenant as u32).map_or(0, |(_, c)| c.waiting);
                for _ in waiting..4 {
                    let (Entry::Run(ticket) | Entry::Wait(ticket)) = admission.enter(ms(now), ask(tenant).as_ref()).unwrap();
                    left.insert(ticket, (tenant, *size));
                    if admission.counts().running > running.len() {
                        running.push(ticket);
                    }
                }
            }
            while let Some(outcome) = admission.next(ms(now)) {
                match outcome {
                    WaitOutcome::Run(ticket) => running.push(ticket),
                    WaitOutcome::Refuse(ticket, _) => {
                        left.remove(&ticket);
                        admission.leave(ticket, Duration::ZERO);
                    }
                }
            }
            // All running queries do so for one slice.
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
        // A tenant of weight w of W has w/W of every slot, but at most as many slots as queries.
        let total: u64 = used.iter().sum();
        let weight: u32 = weights.iter().sum();
        for (tenant, used) in used.iter().enumerate() {
            let fair = total as f64 * f64::from(weights[tenant]) / f64::from(weight);
            prop_assert!((*used as f64 / fair - 1.0).abs() < 0.05, "tenant {} of {:?}: {} for {}", tenant, weights, used, fair);
        }
    }
}
