use super::*;
use crate::bucket::MemoryBucket;
use crate::seams::{ManualClock, MemoryDisk, SeededRandom};

const TTL: Duration = Duration::from_secs(3);

struct Node {
    clock: Arc<ManualClock>,
    lease: Lease,
}

fn node(bucket: &MemoryBucket, seed: u64) -> Node {
    let clock = Arc::new(ManualClock::new(0));
    let seams =
        Seams { disk: Arc::new(MemoryDisk::new()), clock: clock.clone(), random: Arc::new(SeededRandom::new(seed)) };
    let bucket: Arc<dyn Bucket> = Arc::new(bucket.clone());
    Node { clock, lease: Lease::new(&bucket, "owner", format!("n{seed}"), format!("host:{seed}"), TTL, &seams) }
}

fn pass(nodes: &[&Node], seconds: f64) {
    nodes.iter().for_each(|node| node.clock.advance((seconds * 1e6) as i64));
}

#[test]
fn a_lease_passes_on_when_its_holder_pauses_or_resigns() {
    let bucket = MemoryBucket::new();
    let terms = Terms::new(&(Arc::new(bucket.clone()) as Arc<dyn Bucket>), "owner");
    assert!(terms.newest().unwrap().is_none());
    let (one, two) = (node(&bucket, 1), node(&bucket, 2));
    assert!(matches!(one.lease.turn().unwrap(), LeaseState::Owner(after) if after == TTL / 3));
    let LeaseState::Other(Some(term), _) = two.lease.turn().unwrap() else { panic!("two hold it") };
    assert_eq!((term.address.as_str(), term.epoch), ("host:1", 1));
    for _ in 0..40 {
        pass(&[&one, &two], 1.0);
        assert!(matches!(one.lease.turn().unwrap(), LeaseState::Owner(_)));
        assert!(matches!(two.lease.turn().unwrap(), LeaseState::Other(..)));
        assert!(one.lease.holds() && !two.lease.holds());
    }
    assert!(bucket.objects().len() <= KEPT as usize, "old terms stay");
    // The holder pauses: nothing runs, not even its clock.
    pass(&[&two], 3.4);
    assert!(matches!(two.lease.turn().unwrap(), LeaseState::Owner(_)));
    assert!(one.lease.holds(), "its clock stood still");
    assert!(matches!(one.lease.turn().unwrap(), LeaseState::Other(Some(term), _) if term.node == "n2"));
    assert!(!one.lease.holds());
    two.lease.resign().unwrap();
    assert!(!two.lease.holds());
    assert!(matches!(one.lease.turn().unwrap(), LeaseState::Owner(_)));
    assert_eq!(terms.newest().unwrap().unwrap().1.epoch, 3);
}

#[test]
fn a_holder_whose_bucket_is_gone_holds_until_its_term_ends() {
    let bucket = MemoryBucket::new();
    let one = node(&bucket, 1);
    one.lease.turn().unwrap();
    bucket.cut(true);
    pass(&[&one], 2.0);
    assert!(one.lease.turn().is_err() && one.lease.holds());
    pass(&[&one], 1.0);
    assert!(!one.lease.holds());
    bucket.cut(false);
    assert!(matches!(one.lease.turn().unwrap(), LeaseState::Owner(_)));
    assert_eq!(one.lease.term().unwrap().epoch, 1, "nobody else was there");
}

#[test]
fn a_renewal_says_what_its_owner_knows() {
    let bucket = MemoryBucket::new();
    let terms = Terms::new(&(Arc::new(bucket.clone()) as Arc<dyn Bucket>), "owner");
    let one = node(&bucket, 1);
    one.lease.turn().unwrap();
    let said = |terms: &Terms| terms.newest().unwrap().unwrap().1.complete;
    assert_eq!(said(&terms), None);
    one.lease.say(1, Some(Arc::new(|| Some(Complete::at(7, Vec::new())))));
    pass(&[&one], 1.0);
    assert!(matches!(one.lease.turn().unwrap(), LeaseState::Owner(_)));
    assert_eq!(said(&terms), Some(Complete::at(7, Vec::new())));
    assert!(one.lease.holds(), "a term with a statement is held like any other");
    one.lease.say(1, None);
    pass(&[&one], 1.0);
    one.lease.turn().unwrap();
    assert_eq!(said(&terms), None);
}

#[test]
fn a_lease_that_was_lost_and_taken_again_does_not_say_what_it_said_before() {
    let bucket = MemoryBucket::new();
    let terms = Terms::new(&(Arc::new(bucket.clone()) as Arc<dyn Bucket>), "owner");
    let (one, two) = (node(&bucket, 1), node(&bucket, 2));
    one.lease.turn().unwrap();
    one.lease.say(1, Some(Arc::new(|| Some(Complete::at(7, Vec::new())))));
    // It is paused; another takes the lease and gives it up.
    two.lease.turn().unwrap();
    pass(&[&two], 3.4);
    assert!(matches!(two.lease.turn().unwrap(), LeaseState::Owner(_)));
    two.lease.resign().unwrap();
    for _ in 0..3 {
        assert!(matches!(one.lease.turn().unwrap(), LeaseState::Owner(_)));
        let (_, term) = terms.newest().unwrap().unwrap();
        assert_eq!((term.epoch, term.complete), (3, None));
        pass(&[&one], 1.0);
    }
}

#[test]
fn a_lease_passes_to_the_process_that_its_holder_named() {
    let bucket = MemoryBucket::new();
    let (one, two, three) = (node(&bucket, 1), node(&bucket, 2), node(&bucket, 3));
    assert!(matches!(one.lease.turn().unwrap(), LeaseState::Owner(_)));
    assert!(!two.lease.name_heir(Some(two.lease.process())).unwrap(), "it does not hold the lease");
    assert!(one.lease.name_heir(Some(three.lease.process())).unwrap() && one.lease.holds());
    // A renewed term still names the heir.
    pass(&[&one], 1.0);
    assert!(matches!(one.lease.turn().unwrap(), LeaseState::Owner(_)));
    assert!(matches!(three.lease.turn().unwrap(), LeaseState::Other(Some(_), after) if after == TTL / 120));
    one.lease.withdraw(true);
    one.lease.resign().unwrap();
    for other in [&one, &two] {
        assert!(matches!(other.lease.turn().unwrap(), LeaseState::Other(None, _)));
    }
    assert!(matches!(three.lease.turn().unwrap(), LeaseState::Owner(_)));
    assert_eq!(three.lease.term().unwrap().heir, None);
}

#[test]
fn who_knows_a_term_needs_no_listing() {
    let bucket = MemoryBucket::new();
    let terms = Terms::new(&(Arc::new(bucket.clone()) as Arc<dyn Bucket>), "owner");
    let one = node(&bucket, 1);
    one.lease.turn().unwrap();
    let (known, _) = terms.newest().unwrap().unwrap();
    // The known term may be deleted by now.
    for renewals in [1, 3, 20] {
        for _ in 0..renewals {
            pass(&[&one], 1.0);
            one.lease.turn().unwrap();
        }
        let found = terms.newest_from(known).unwrap().unwrap();
        assert_eq!(found, terms.newest().unwrap().unwrap(), "{renewals}");
    }
}

#[test]
fn a_listing_that_is_behind_hides_no_term() {
    let bucket = MemoryBucket::new();
    let (one, two) = (node(&bucket, 1), node(&bucket, 2));
    one.lease.turn().unwrap();
    bucket.freeze_listings(true);
    for _ in 0..5 {
        pass(&[&one], 1.0);
        one.lease.turn().unwrap();
    }
    assert!(matches!(two.lease.turn().unwrap(), LeaseState::Other(Some(term), _) if term.counter == 5));
}

#[test]
fn after_the_last_number_that_there_can_be_comes_no_term() {
    let bucket = MemoryBucket::new();
    let one = node(&bucket, 1);
    one.lease.turn().unwrap();
    let newest = bucket.objects().pop().map(|(name, _)| Bucket::get(&bucket, &name).unwrap()).unwrap();
    bucket.harm(&format!("leases/owner/{:016x}", u64::MAX), Some(newest));
    let two = node(&bucket, 2);
    assert_eq!(two.lease.terms.newest().unwrap().unwrap().0, u64::MAX);
    assert!(matches!(two.lease.turn().unwrap(), LeaseState::Other(Some(_), _)));
    pass(&[&two], 60.0);
    let why = two.lease.turn().unwrap_err();
    assert!(matches!(why, StoreError::Corrupt { .. }), "{why}");
}
