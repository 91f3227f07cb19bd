mod away;
mod properties;
mod retries;

use super::*;
use std::collections::HashMap;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn ask(tenant: u32, class: Class, deadline: u64) -> SlotRequest<u32> {
    SlotRequest { tenant, weight: 1, class, is_write: false, deadline: ms(deadline), resumed: None }
}

fn quick(tenant: u32) -> SlotRequest<u32> {
    ask(tenant, Class::Interactive, 1_000_000)
}

fn one_slot() -> Admission<u32> {
    Admission::new(Settings::default())
}

fn runs(admission: &mut Admission<u32>, now: u64, ask: &SlotRequest<u32>) -> Ticket {
    match admission.enter(ms(now), ask.as_ref()).unwrap() {
        Entry::Run(ticket) => ticket,
        Entry::Wait(ticket) => panic!("{ticket:?} waits"),
    }
}

fn waits(admission: &mut Admission<u32>, now: u64, ask: &SlotRequest<u32>) -> Ticket {
    match admission.enter(ms(now), ask.as_ref()).unwrap() {
        Entry::Wait(ticket) => ticket,
        Entry::Run(ticket) => panic!("{ticket:?} runs"),
    }
}

#[test]
fn a_line_of_writes_is_late_once_another_would_wait_for_half_of_its_patience() {
    let mut admission = one_slot();
    let is_late = |admission: &Admission<u32>, now| admission.is_late(ms(now), &1, Class::Interactive);
    let mut running = runs(&mut admission, 0, &quick(1));
    // However long a query runs, none waits behind it.
    assert!(!is_late(&admission, 10_000));
    let write = SlotRequest { is_write: true, ..quick(1) };
    for _ in 0..20 {
        waits(&mut admission, 10_000, &write);
    }
    assert!(!is_late(&admission, 10_000), "a burst");
    // One each 10 ms: twenty of them take 200 ms.
    for n in 1..=10 {
        admission.leave(running, Duration::ZERO);
        let Some(WaitOutcome::Run(next)) = admission.next(ms(10_000 + 10 * n)) else { panic!("none runs") };
        running = next;
        assert!(!is_late(&admission, 10_000 + 10 * n), "{n}");
    }
    // Then no more arrive: at this pace the ten waiting ones take longer than 500 ms.
    assert!(!is_late(&admission, 10_500) && is_late(&admission, 10_560));
    assert!(!admission.is_late(ms(10_560), &2, Class::Interactive), "another tenant");
    // Behind more queries than writes, a write takes its turn: it would otherwise be refused as long as they arrive.
    for _ in 0..10 {
        waits(&mut admission, 10_560, &quick(1));
    }
    assert!(is_late(&admission, 10_560));
    waits(&mut admission, 10_560, &quick(1));
    assert!(!is_late(&admission, 10_560));
}

#[test]
fn a_burst_is_served_in_order_of_arrival() {
    let mut admission = one_slot();
    let mut running = runs(&mut admission, 0, &quick(1));
    let waiting: Vec<_> = (1..10).map(|n| waits(&mut admission, n, &quick(1))).collect();
    for (n, expected) in waiting.into_iter().enumerate() {
        admission.leave(running, ms(10));
        assert_eq!(admission.next(ms(10 + 10 * n as u64)), Some(WaitOutcome::Run(expected)));
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
    assert_eq!(admission.next(ms(1150)), Some(WaitOutcome::Refuse(first, Refusal::Waited)));
    assert_eq!(admission.next(ms(1150)), Some(WaitOutcome::Run(third)));
    admission.leave(third, ms(10));
    assert_eq!(admission.next(ms(1160)), Some(WaitOutcome::Run(second)));
}

#[test]
fn a_queue_that_was_never_empty_for_long_refuses_after_the_target() {
    let mut admission = one_slot();
    let mut running = runs(&mut admission, 0, &quick(1));
    let mut refused = Vec::new();
    // A query every 10 ms, each of 20 ms: the queue builds up from the beginning.
    for now in (10..4000).step_by(10) {
        let _ = admission.enter(ms(now), quick(1).as_ref());
        if now % 20 == 0 {
            admission.leave(running, ms(20));
        }
        while let Some(outcome) = admission.next(ms(now)).or_else(|| admission.expire(ms(now))) {
            match outcome {
                WaitOutcome::Run(ticket) => running = ticket,
                WaitOutcome::Refuse(ticket, why) => {
                    admission.leave(ticket, Duration::ZERO);
                    refused.push((now, why));
                }
            }
        }
    }
    assert!(refused.iter().all(|(_, why)| *why == Refusal::Waited));
    // After 500 ms the waiting queries would take longer than that, and their number grows.
    assert!(refused.first().is_some_and(|(at, _)| (500..=600).contains(at)), "{refused:?}");
    assert!(refused.len() > 160, "{}", refused.len());
    assert!(admission.counts().waiting <= 26, "{:?}", admission.counts());
}

/// One slot, and queries of 10 ms that arrive at times given by `arrive`. Returns the wait of each that ran, and the
/// number refused.
fn waits_of(until: u64, arrive: impl Fn(u64) -> usize) -> (Vec<u64>, usize) {
    let (mut admission, mut since, mut waits, mut refused) = (one_slot(), HashMap::new(), Vec::new(), 0);
    let mut running: Option<(Ticket, u64)> = None;
    for now in 0..until {
        for _ in 0..arrive(now) {
            match admission.enter(ms(now), ask(1, Class::Interactive, now + 60_000).as_ref()).unwrap() {
                Entry::Run(ticket) => running = Some((ticket, now + 10)),
                Entry::Wait(ticket) => _ = since.insert(ticket, now),
            }
        }
        if let Some((ticket, _)) = running.take_if(|(_, ends)| *ends <= now) {
            admission.leave(ticket, ms(10));
        }
        while let Some(outcome) = admission.next(ms(now)).or_else(|| admission.expire(ms(now))) {
            match outcome {
                WaitOutcome::Run(ticket) => {
                    running = Some((ticket, now + 10));
                    waits.push(now - since.remove(&ticket).unwrap());
                }
                WaitOutcome::Refuse(ticket, _) => {
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
    assert!(waits.iter().all(|wait| *wait <= 150), "{waits:?}");
    assert!(refused > 600, "{refused}");
}

#[test]
fn many_short_queries_show_a_flood_before_they_wait_for_long() {
    // Twice the capacity of a query a millisecond.
    let (mut admission, mut since, mut waits) = (one_slot(), HashMap::new(), Vec::new());
    let mut running = runs(&mut admission, 0, &quick(1));
    for now in 1..400 {
        for _ in 0..2 {
            since.insert(self::waits(&mut admission, now, &quick(1)), now);
        }
        admission.leave(running, ms(1));
        let Some(WaitOutcome::Run(ticket)) = admission.next(ms(now)) else { panic!("nothing runs at {now} ms") };
        assert_eq!(admission.next(ms(now)), None, "refused at {now} ms");
        waits.push(now - since.remove(&ticket).unwrap());
        running = ticket;
    }
    let (early, late) = waits.split_at(150);
    assert!(early.is_sorted() && early.last().is_some_and(|wait| *wait <= 76), "in order: {early:?}");
    assert!(late.iter().skip(1).all(|wait| *wait == 0), "newest first: {late:?}");
}

#[test]
fn a_burst_that_can_be_worked_off_is() {
    let (waits, refused) = waits_of(1200, |now| if now == 0 { 90 } else { 0 });
    assert_eq!((waits.len(), refused), (89, 0), "in order: {waits:?}");
    assert!(waits.is_sorted());
    // A page that requests its tiles one after another.
    let (waits, refused) = waits_of(1200, |now| usize::from(now < 90));
    assert_eq!((waits.len(), refused), (89, 0), "in order: {waits:?}");
    assert!(waits.is_sorted());
}

#[test]
fn a_passed_deadline_is_refused_without_a_slot() {
    let mut admission = one_slot();
    let running = runs(&mut admission, 0, &quick(1));
    assert_eq!(admission.enter(ms(5), ask(1, Class::Interactive, 5).as_ref()), Err(Refusal::Deadline));
    let short = waits(&mut admission, 5, &ask(1, Class::Interactive, 20));
    let long = waits(&mut admission, 5, &quick(1));
    admission.leave(running, ms(30));
    assert_eq!(admission.next(ms(30)), Some(WaitOutcome::Refuse(short, Refusal::Deadline)));
    assert_eq!(admission.next(ms(30)), Some(WaitOutcome::Run(long)));
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
    assert_eq!(admission.next(ms(202)), Some(WaitOutcome::Run(light)));
    // The light tenant keeps the slot for its credit, then both take turns.
    let mut used = 0;
    while admission.slice(light, ms(2)) == Verdict::Continue {
        used += 2;
    }
    assert!((40..=60).contains(&used), "{used}");
    assert_eq!(admission.next(ms(300)), Some(WaitOutcome::Run(heavy)));
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
    assert_eq!(admission.next(ms(202)), Some(WaitOutcome::Run(short)));
    admission.leave(short, ms(1));
    assert_eq!(admission.next(ms(203)), Some(WaitOutcome::Run(long)));
}

#[test]
fn a_full_queue_still_takes_a_tenant_that_waits_with_little() {
    let mut admission = Admission::new(Settings { waiting_max: 10, ..Settings::default() });
    let _running = runs(&mut admission, 0, &quick(1));
    for _ in 0..10 {
        waits(&mut admission, 0, &quick(1));
    }
    assert_eq!(admission.enter(ms(1), quick(1).as_ref()), Err(Refusal::QueueFull));
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
    assert_eq!(admission.next(ms(0)), Some(WaitOutcome::Run(other)), "another tenant may");
}

#[test]
fn a_resumed_question_keeps_the_class_to_which_it_had_sunk() {
    let mut admission = one_slot();
    let running = runs(&mut admission, 0, &quick(1));
    let long = SlotRequest { resumed: Some(ms(60)), ..quick(1) };
    let long = waits(&mut admission, 1, &long);
    let short = waits(&mut admission, 2, &quick(1));
    admission.leave(running, ms(10));
    let load = admission.load(ms(10));
    assert_eq!((load[0].1[0].waiting, load[0].1[1].paused), (1, 1), "{load:?}");
    assert_eq!(admission.next(ms(10)), Some(WaitOutcome::Run(long)), "its class has used nothing yet");
    assert_eq!(admission.slice(long, ms(2)), Verdict::Continue);
    assert_eq!(admission.slice(long, ms(2)), Verdict::Pause);
    assert_eq!(admission.next(ms(14)), Some(WaitOutcome::Run(short)));
}

#[test]
fn a_paused_question_that_is_given_up_leaves_its_queue() {
    let mut admission = one_slot();
    let heavy = runs(&mut admission, 0, &quick(1));
    assert_eq!(admission.slice(heavy, ms(49)), Verdict::Continue);
    let light = waits(&mut admission, 0, &quick(2));
    while admission.slice(heavy, Duration::from_micros(100)) == Verdict::Continue {}
    assert_eq!(admission.next(ms(50)), Some(WaitOutcome::Run(light)));
    // The usage of its helpers is reported at its end, and exceeds the limit of its class.
    admission.leave(heavy, ms(10));
    admission.leave(light, ms(1));
    assert_eq!((admission.next(ms(51)), admission.counts().paused), (None, 0));
}

#[test]
fn all_tenants_together_may_begin_only_so_many_questions() {
    let mut admission = Admission::new(Settings { slots: 8, threads_max: 2, ..Settings::default() });
    let first = runs(&mut admission, 0, &quick(1));
    runs(&mut admission, 0, &quick(2));
    let third = waits(&mut admission, 0, &quick(3));
    assert_eq!(admission.next(ms(0)), None);
    admission.leave(first, ms(1));
    assert_eq!(admission.next(ms(1)), Some(WaitOutcome::Run(third)));
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

#[test]
fn the_load_shows_who_runs_and_waits_by_class_and_for_how_long() {
    let mut admission = one_slot();
    let running = runs(&mut admission, 0, &quick(1));
    waits(&mut admission, 10, &ask(2, Class::Batch, 1_000_000));
    waits(&mut admission, 40, &ask(2, Class::Batch, 1_000_000));
    admission.enter(ms(50), SlotRequest { resumed: Some(Duration::ZERO), ..quick(3) }.as_ref()).unwrap();
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
