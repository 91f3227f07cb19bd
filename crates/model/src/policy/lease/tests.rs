use super::*;
use proptest::prelude::*;

const TTL: Duration = Duration::from_secs(3);

fn candidate(process: u64) -> Candidate {
    Candidate::new(format!("n{process}"), process, format!("host:{process}"), TTL)
}

/// Takes the lease if the record allows it.
fn take(candidate: &mut Candidate, newest: Option<&Term>, now: Duration) -> Term {
    let Step::Write(term) = candidate.look(newest, now) else { panic!("it has to wait") };
    candidate.wrote(term.clone(), now);
    term
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

#[test]
fn a_lease_is_taken_once_it_was_unchanged_for_its_time_and_a_margin() {
    let (mut one, mut two) = (candidate(1), candidate(2));
    let first = take(&mut one, None, seconds(0.0));
    assert_eq!((first.epoch, first.node.as_str()), (1, "n1"));
    assert!(one.held(seconds(2.9)).is_some() && one.held(seconds(3.0)).is_none());
    // The clocks of the two are unrelated.
    let soon = Step::Wait(seconds(0.25));
    assert_eq!(two.look(Some(&first), seconds(100.0)), soon);
    let second = take(&mut one, Some(&first), seconds(1.0));
    assert_eq!((second.epoch, second.counter), (1, 1));
    assert_eq!(two.look(Some(&second), seconds(103.3)), soon, "it was renewed");
    assert_eq!(two.look(Some(&second), seconds(106.6)), Step::Wait(seconds(0.075)));
    let taken = take(&mut two, Some(&second), seconds(106.7));
    assert_eq!((taken.epoch, taken.node.as_str()), (2, "n2"));
    // The previous holder finds that out, and waits its turn.
    assert_eq!(one.look(Some(&taken), seconds(2.0)), soon);
    assert!(one.held(seconds(2.0)).is_none());
}

/// Whenever its holder dies, the lease passes on within the term, the margin and one polling interval.
#[test]
fn a_candidate_that_looks_when_it_should_is_never_late() {
    let step = Duration::from_millis(10);
    for death in (0..300).map(|n| step * n) {
        let (mut one, mut two) = (candidate(1), candidate(2));
        let mut term = take(&mut one, None, Duration::ZERO);
        let (mut now, mut due) = (Duration::ZERO, Duration::ZERO);
        loop {
            if now <= death
                && let Step::Write(renewed) = one.look(Some(&term), now)
            {
                one.wrote(renewed.clone(), now);
                term = renewed;
            }
            if now >= due {
                match two.look(Some(&term), now) {
                    Step::Write(_) => break,
                    Step::Wait(after) => due = now + after,
                }
            }
            now += step;
        }
        assert!(now <= death + TTL + TTL / MARGIN_PART + TTL / LOOK_PART + step, "{now:?} after {death:?}");
    }
}

#[test]
fn who_resigns_is_followed_at_once() {
    let (mut one, mut two) = (candidate(1), candidate(2));
    let first = take(&mut one, None, seconds(0.0));
    let last = first.given_up();
    one.wrote(last.clone(), seconds(1.0));
    assert!(one.held(seconds(1.0)).is_none());
    assert_eq!(take(&mut two, Some(&last), seconds(50.0)).epoch, 2);
}

#[test]
fn a_candidate_leaves_time_to_those_before_it() {
    let (mut one, mut two, mut three) = (candidate(1), candidate(2), candidate(3));
    two.ranks(1);
    three.ranks(2);
    // No process holds it yet.
    assert_eq!(two.look(None, seconds(0.0)), Step::Wait(seconds(0.75)));
    assert!(matches!(one.look(None, seconds(0.0)), Step::Write(_)), "the first does not wait");
    assert!(matches!(two.look(None, seconds(1.5)), Step::Write(_)), "the first did not come");
    let first = take(&mut one, None, seconds(0.0));
    // Its holder is gone: they take over in rank order.
    let waits = |candidate: &mut Candidate| {
        let mut now = seconds(100.0);
        while let Step::Wait(after) = candidate.look(Some(&first), now) {
            now += after;
        }
        now
    };
    let (second, third) = (waits(&mut two), waits(&mut three));
    assert_eq!((second, third), (seconds(103.875), seconds(104.375)));
    // It gave the lease up: it is ranked last now, and does not take it again at once.
    let last = first.given_up();
    one.wrote(last.clone(), seconds(1.0));
    one.ranks(1);
    two.ranks(0);
    assert!(matches!(one.look(Some(&last), seconds(1.0)), Step::Wait(_)));
    assert!(matches!(two.look(Some(&last), seconds(200.0)), Step::Write(_)));
}

#[test]
fn the_heir_follows_at_once_and_others_only_if_it_does_not_come() {
    let (mut one, mut two, mut three) = (candidate(1), candidate(2), candidate(3));
    let first = take(&mut one, None, seconds(0.0));
    let named = first.for_heir(Some(2));
    one.wrote(named.clone(), seconds(1.0));
    assert!(one.held(seconds(1.0)).is_some(), "it owns until it resigns");
    // It polls often from now on, the other as before.
    assert_eq!(two.look(Some(&named), seconds(1.0)), Step::Wait(seconds(0.025)));
    assert_eq!(three.look(Some(&named), seconds(1.0)), Step::Wait(seconds(0.25)));
    let last = named.given_up();
    one.wrote(last.clone(), seconds(1.5));
    let waits = Step::Wait(seconds(0.25));
    assert_eq!([one.look(Some(&last), seconds(1.5)), three.look(Some(&last), seconds(1.5))], [waits.clone(), waits]);
    let mut late = two.clone();
    assert_eq!(take(&mut two, Some(&last), seconds(1.6)).epoch, 2);
    // It never polls: any other may take the lease, even the previous holder.
    assert_eq!(three.look(Some(&last), seconds(2.49)), Step::Wait(seconds(0.01)));
    assert_eq!(take(&mut three.clone(), Some(&last), seconds(2.5)).epoch, 2);
    assert_eq!(take(&mut one, Some(&last), seconds(2.5)).epoch, 2);
    // The next owner's term does not name it.
    assert_eq!(take(&mut late, Some(&last), seconds(9.0)).heir, None);
    assert_eq!((two.has_inherited(), one.has_inherited()), (true, false));
}

#[test]
fn one_that_has_withdrawn_keeps_what_it_holds_and_takes_nothing() {
    let (mut one, mut two) = (candidate(1), candidate(2));
    two.withdraw(true);
    assert!(matches!(two.look(None, seconds(0.0)), Step::Wait(_)));
    let first = take(&mut one, None, seconds(0.0));
    one.withdraw(true);
    assert_eq!(one.look(Some(&first), seconds(1.0)), Step::Write(first.renewed()));
    let last = first.given_up();
    one.wrote(last.clone(), seconds(1.0));
    for at in [1.0, 10.0, 20.0] {
        assert!(matches!(one.look(Some(&last), seconds(at)), Step::Wait(_)));
        assert!(matches!(two.look(Some(&last), seconds(at)), Step::Wait(_)));
    }
    two.withdraw(false);
    assert_eq!(take(&mut two, Some(&last), seconds(21.0)).epoch, 2);
}

#[test]
fn a_term_of_a_newer_program_reads() {
    let term = candidate(1).first(7);
    let mut newer = serde_json::to_value(&term).unwrap();
    newer["unknown"] = serde_json::json!({"to": "this version"});
    newer["level"] = 2.into();
    assert_eq!(serde_json::from_value::<Term>(newer).unwrap(), Term { level: 2, ..term });
}

#[test]
fn a_write_whose_answer_was_lost_is_held_only_after_the_next() {
    let mut one = candidate(1);
    let Step::Write(term) = one.look(None, seconds(0.0)) else { panic!("there is none") };
    // The record was written, but the process got no response.
    assert!(one.held(seconds(0.0)).is_none());
    assert_eq!(one.look(Some(&term), seconds(9.0)), Step::Write(term.renewed()));
}

#[test]
fn an_epoch_is_above_all_that_were_seen() {
    assert_eq!(next_epoch(0, 0, 0), 1);
    assert_eq!([next_epoch(7, 3, 5), next_epoch(3, 7, 5), next_epoch(3, 5, 7)], [8; 3]);
}

proptest! {
    /// Candidates with their own clocks over one register with compare-and-swap. As long as clocks run at about one
    /// rate, no two hold at a time and epochs grow. Some process holds it again after all had time to wait.
    #[test]
    fn no_two_hold_it_at_a_time(
        steps in prop::collection::vec((0..3usize, 1..900u64, 0..20u8), 1..200),
        starts in prop::array::uniform3(0..1_000_000u64),
        rates in prop::array::uniform3(95..=105u64),
    ) {
        let mut all: Vec<Candidate> = (1..=3).map(candidate).collect();
        let clock = |at: usize, ms: u64| Duration::from_millis(starts[at] + ms * rates[at] / 100);
        let (mut register, mut ms): (Option<Term>, u64) = (None, 0);
        let turn = |all: &mut Vec<Candidate>, register: &mut Option<Term>, at: usize, ms: u64, luck: u8| {
            let now = clock(at, ms);
            let step = all[at].look(register.as_ref(), now);
            if let Step::Write(mut term) = step {
                if luck == 0 && term.counter > 0 {
                    term = term.given_up();
                }
                if luck == 2 && term.counter > 0 {
                    // One of them, or a process that is gone.
                    term.heir = Some(ms % 5);
                }
                if let Some(before) = register.as_ref() {
                    assert!((term.epoch, term.counter) > (before.epoch, before.counter));
                }
                *register = Some(term.clone());
                // Occasionally the response is lost.
                if luck != 1 {
                    all[at].wrote(term, now);
                }
            }
        };
        for (at, pass, luck) in steps {
            ms += pass;
            turn(&mut all, &mut register, at, ms, luck);
            let holders = (0..3).filter(|at| all[*at].held(clock(*at, ms)).is_some()).count();
            prop_assert!(holders <= 1, "{holders} hold it");
        }
        for _ in 0..40 {
            ms += 500;
            turn(&mut all, &mut register, 0, ms, 9);
        }
        prop_assert!(all[0].held(clock(0, ms)).is_some());
    }
}
