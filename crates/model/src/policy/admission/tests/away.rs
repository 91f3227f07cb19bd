//! Queries that wait for another process.

use super::*;

#[test]
fn a_question_that_is_away_leaves_its_slot_and_takes_one_in_its_turn() {
    let mut admission = one_slot();
    let first = runs(&mut admission, 0, &quick(1));
    let second = waits(&mut admission, 0, &quick(1));
    admission.rest(first, ms(1));
    assert_eq!(admission.next(ms(1)), Some(WaitOutcome::Run(second)));
    assert_eq!((admission.counts().running, admission.counts().away), (1, 1));
    let third = waits(&mut admission, 2, &quick(1));
    assert_eq!(admission.wake(first), Verdict::Pause, "the slot is another's");
    assert_eq!((admission.counts().paused, admission.counts().away), (1, 0));
    admission.leave(second, ms(1));
    // It has started, so it goes before one that has not.
    assert_eq!(admission.next(ms(3)), Some(WaitOutcome::Run(first)));
    admission.rest(first, ms(1));
    assert_eq!(admission.next(ms(4)), Some(WaitOutcome::Run(third)));
    admission.leave(third, ms(1));
    assert_eq!(admission.wake(first), Verdict::Continue, "a slot is free");
    admission.leave(first, ms(1));
    assert_eq!(admission.counts(), Counts { slots: 1, ..Counts::default() });
}

#[test]
fn what_a_question_used_before_it_went_away_is_charged() {
    let mut admission = one_slot();
    let heavy = runs(&mut admission, 0, &quick(1));
    admission.rest(heavy, ms(300));
    let running = runs(&mut admission, 300, &quick(3));
    let of_heavy = waits(&mut admission, 300, &quick(1));
    let light = waits(&mut admission, 301, &quick(2));
    assert_eq!(admission.wake(heavy), Verdict::Pause);
    admission.leave(running, ms(1));
    assert_eq!(admission.next(ms(302)), Some(WaitOutcome::Run(light)), "the other tenant used nothing");
    admission.leave(light, ms(1));
    let load = admission.load(ms(303));
    let classes = &load.iter().find(|(tenant, _)| *tenant == 1).unwrap().1;
    assert_eq!((classes[0].waiting, classes[1].paused), (1, 1), "it sank: {classes:?}");
    assert!(matches!(admission.next(ms(303)), Some(WaitOutcome::Run(ticket)) if ticket == heavy || ticket == of_heavy));
}

#[test]
fn time_that_a_tenant_was_away_saves_it_no_right() {
    let mut admission = one_slot();
    let away = runs(&mut admission, 0, &quick(1));
    admission.rest(away, ms(0));
    let other = runs(&mut admission, 0, &quick(2));
    for now in 0..500 {
        assert_eq!(admission.slice(other, ms(2)), Verdict::Continue, "{now}");
    }
    assert_eq!(admission.wake(away), Verdict::Pause);
    assert_eq!(admission.slice(other, ms(2)), Verdict::Pause);
    assert_eq!(admission.next(ms(1_000)), Some(WaitOutcome::Run(away)));
    // It has the credit of an idle tenant, and not a second more.
    let mut used = 0;
    while admission.slice(away, ms(2)) == Verdict::Continue {
        used += 2;
    }
    assert!(used <= 60, "{used}");
}

#[test]
fn a_question_that_is_given_up_while_it_is_away_is_gone() {
    let mut admission = one_slot();
    let away = runs(&mut admission, 0, &quick(1));
    admission.rest(away, ms(1));
    admission.leave(away, ms(0));
    assert_eq!(admission.counts().away, 0);
    assert_eq!(admission.wake(away), Verdict::Continue, "as one that is unknown");
    assert_eq!(admission.counts(), Counts { slots: 1, ..Counts::default() });
    let waits_too = runs(&mut admission, 2, &quick(1));
    admission.rest(waits_too, ms(1));
    let running = runs(&mut admission, 3, &quick(1));
    assert_eq!(admission.wake(waits_too), Verdict::Pause);
    admission.leave(waits_too, ms(0));
    admission.leave(running, ms(1));
    assert_eq!((admission.next(ms(4)), admission.counts().paused), (None, 0));
}

/// Admits a query of a tenant; `None` if it has to wait.
fn begins(admission: &mut Admission<u32>, tenant: u32) -> Option<Ticket> {
    match admission.enter(ms(0), quick(tenant).as_ref()).unwrap() {
        Entry::Run(ticket) => Some(ticket),
        Entry::Wait(asked) => match admission.next(ms(0)) {
            Some(WaitOutcome::Run(ticket)) => {
                assert_eq!(ticket, asked, "earlier waiters may not begin");
                Some(ticket)
            }
            _ => None,
        },
    }
}

#[test]
fn a_tenant_whose_questions_are_away_leaves_threads_to_others() {
    let mut admission = Admission::new(Settings { threads_max: 12, ..Settings::default() });
    let mut away = Vec::new();
    for tenant in [1, 2] {
        let went = (0..12).map_while(|_| {
            let ticket = begins(&mut admission, tenant)?;
            admission.rest(ticket, ms(0));
            Some(ticket)
        });
        away.extend(went);
    }
    let counts: HashMap<u32, usize> = admission.by_tenant().map(|(name, counts)| (*name, counts.away)).collect();
    // The first had half of all, the second half of the rest.
    assert_eq!((counts[&1], counts[&2]), (6, 3));
    let other = begins(&mut admission, 3).expect("it has a thread and a slot");
    assert_eq!(admission.next(ms(0)), None, "neither of the others begins");
    admission.leave(other, ms(1));
    away.into_iter().for_each(|ticket| _ = admission.leave(ticket, ms(0)));
    assert!(matches!(admission.next(ms(1)), Some(WaitOutcome::Run(_))), "there are threads again");
}

#[test]
fn a_tenant_with_questions_away_is_not_forgotten() {
    let mut admission = one_slot();
    let away = runs(&mut admission, 0, &quick(7));
    admission.rest(away, ms(0));
    admission.set_slots(1);
    assert_eq!(admission.by_tenant().map(|(name, _)| *name).collect::<Vec<_>>(), [7]);
    assert_eq!(admission.wake(away), Verdict::Continue);
}
