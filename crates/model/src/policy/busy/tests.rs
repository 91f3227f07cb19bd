//! The executor against a plain list of scans, and the guarantees that clients rely on.

use super::*;
use proptest::prelude::*;

const FOR_EVER: Duration = Duration::ZERO;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn executor(places: usize, started: usize, waiting: usize) -> Executor<u32> {
    Executor::new(Limits { places, started, waiting })
}

fn steps(executor: &mut Executor<u32>, now: u64) -> Vec<ExecutorStep<u32>> {
    std::iter::from_fn(|| executor.next(ms(now))).collect()
}

#[test]
fn a_scan_that_did_not_start_in_time_never_does() {
    let mut executor = executor(1, 9, 9);
    executor.arrive(1, ms(33), ms(0)).unwrap();
    assert_eq!(steps(&mut executor, 0), [ExecutorStep::Work(1)]);
    executor.arrive(2, ms(33), ms(0)).unwrap();
    executor.arrive(3, FOR_EVER, ms(1)).unwrap();
    assert_eq!((steps(&mut executor, 32), executor.due()), (vec![], Some(ms(33))));
    // Its timeout and the place come at the same moment.
    executor.leave(&1);
    assert_eq!(steps(&mut executor, 33), [ExecutorStep::Busy(2), ExecutorStep::Work(3)]);
    assert_eq!((executor.due(), executor.started(), executor.waiting()), (None, 1, 0));
}

#[test]
fn a_started_scan_is_never_busy_and_gives_its_place_to_those_before_it() {
    let mut executor = executor(1, 9, 9);
    for scan in [1, 2, 3] {
        executor.arrive(scan, ms(10), ms(0)).unwrap();
    }
    assert_eq!(steps(&mut executor, 0), [ExecutorStep::Work(1)]);
    executor.rest(&1);
    executor.again(&1);
    assert_eq!(steps(&mut executor, 9), [ExecutorStep::Work(2)]);
    executor.rest(&2);
    executor.again(&2);
    // 3 was queued before the further batches of 1 and 2, and waited too long; 1 was started, and waited longer.
    assert_eq!(steps(&mut executor, 5_000), [ExecutorStep::Busy(3), ExecutorStep::Work(1)]);
}

#[test]
fn the_limit_of_started_scans_holds_new_ones_back_and_lets_started_ones_pass() {
    let mut executor = executor(2, 2, 9);
    for scan in [1, 2, 3] {
        executor.arrive(scan, FOR_EVER, ms(0)).unwrap();
    }
    assert_eq!(steps(&mut executor, 0), [ExecutorStep::Work(1), ExecutorStep::Work(2)]);
    executor.rest(&1);
    assert_eq!(steps(&mut executor, 1), [], "1 rests and holds its memory");
    executor.again(&1);
    assert_eq!(steps(&mut executor, 2), [ExecutorStep::Work(1)]);
    executor.leave(&2);
    assert_eq!(steps(&mut executor, 3), [ExecutorStep::Work(3)]);
}

#[test]
fn a_server_that_drains_turns_away_all_but_started_scans() {
    let mut executor = executor(1, 9, 2);
    executor.arrive(1, FOR_EVER, ms(0)).unwrap();
    assert_eq!(steps(&mut executor, 0), [ExecutorStep::Work(1)]);
    executor.arrive(2, FOR_EVER, ms(0)).unwrap();
    assert_eq!(executor.arrive(2, FOR_EVER, ms(0)), Err(ScanRefusal::Known));
    executor.arrive(3, ms(5), ms(0)).unwrap();
    assert_eq!(executor.arrive(4, FOR_EVER, ms(0)), Err(ScanRefusal::Full));
    assert_eq!(executor.drain(), [2, 3]);
    assert_eq!(executor.arrive(5, FOR_EVER, ms(1)), Err(ScanRefusal::Draining));
    executor.rest(&1);
    executor.again(&1);
    assert_eq!(steps(&mut executor, 9), [ExecutorStep::Work(1)]);
    executor.leave(&1);
    assert_eq!((executor.started(), executor.scans.len()), (0, 0));
}

#[derive(Debug, Clone)]
enum Step {
    Arrive(u32, u64),
    Next,
    Rest(u32),
    Again(u32),
    Leave(u32),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let scan = 0..12u32;
    prop_oneof![
        4 => (scan.clone(), 0..40u64).prop_map(|(scan, timeout)| Step::Arrive(scan, timeout)),
        6 => Just(Step::Next),
        2 => scan.clone().prop_map(Step::Rest),
        2 => scan.clone().prop_map(Step::Again),
        1 => scan.prop_map(Step::Leave),
        2 => (0..30u64).prop_map(Step::Pass),
    ]
}

/// A scan of the plain list. Queued scans are in list order.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Plain {
    scan: u32,
    started: bool,
    wants: bool,
    works: bool,
    until: Option<u64>,
}

proptest! {
    /// Agrees with a list that is searched from the front each time.
    #[test]
    fn turns_are_those_of_a_plain_list(
        steps in prop::collection::vec(step(), 0..120), places in 1usize..4, started in 1usize..6, waiting in 1usize..5,
    ) {
        let mut executor = executor(places, started, waiting);
        let mut list: Vec<Plain> = Vec::new();
        let mut now = 0;
        for step in steps {
            match step {
                Step::Arrive(scan, timeout) => {
                    let expected = if list.iter().any(|plain| plain.scan == scan) {
                        Err(ScanRefusal::Known)
                    } else if list.iter().filter(|plain| !plain.started).count() >= waiting {
                        Err(ScanRefusal::Full)
                    } else {
                        let until = (timeout > 0).then_some(now + timeout);
                        list.push(Plain { scan, started: false, wants: true, works: false, until });
                        Ok(())
                    };
                    prop_assert_eq!(executor.arrive(scan, ms(timeout), ms(now)), expected);
                }
                Step::Next => {
                    let overdue = |plain: &&Plain| !plain.started && plain.until.is_some_and(|until| until <= now);
                    let busy = list.iter().filter(overdue).min_by_key(|plain| plain.until).map(|plain| plain.scan);
                    let expected = if let Some(scan) = busy {
                        list.retain(|plain| plain.scan != scan);
                        Some(ExecutorStep::Busy(scan))
                    } else if list.iter().filter(|plain| plain.works).count() < places {
                        let room = list.iter().filter(|plain| plain.started).count() < started;
                        let first = list.iter_mut().find(|plain| plain.wants && (plain.started || room));
                        first.map(|plain| {
                            (plain.started, plain.wants, plain.works) = (true, false, true);
                            ExecutorStep::Work(plain.scan)
                        })
                    } else {
                        None
                    };
                    prop_assert_eq!(executor.next(ms(now)), expected);
                }
                Step::Rest(scan) => {
                    executor.rest(&scan);
                    list.iter_mut().filter(|plain| plain.scan == scan).for_each(|plain| plain.works = false);
                }
                Step::Again(scan) => {
                    executor.again(&scan);
                    let rests = |plain: &Plain| plain.scan == scan && plain.started && !plain.works && !plain.wants;
                    if let Some(at) = list.iter().position(rests) {
                        let plain = list.remove(at);
                        list.push(Plain { wants: true, ..plain });
                    }
                }
                Step::Leave(scan) => {
                    executor.leave(&scan);
                    list.retain(|plain| plain.scan != scan);
                }
                Step::Pass(time) => now += time,
            }
            prop_assert_eq!(executor.working(), list.iter().filter(|plain| plain.works).count());
            prop_assert_eq!(executor.started(), list.iter().filter(|plain| plain.started).count());
            prop_assert_eq!(executor.waiting(), list.iter().filter(|plain| !plain.started).count());
            let due = list.iter().filter(|plain| !plain.started).filter_map(|plain| plain.until).min();
            prop_assert_eq!(executor.due(), due.map(ms));
            prop_assert!(executor.working() <= places && executor.started() <= started);
        }
    }
}
