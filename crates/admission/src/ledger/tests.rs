use super::*;

fn ledger(limits: &[(Quota, u64)]) -> Arc<Ledger> {
    let (ledger, mut quotas) = (Arc::new(Ledger::new("harbour")), Quotas::default());
    for (quota, limit) in limits {
        quotas.set(*quota, Some(*limit)).unwrap();
    }
    ledger.set(2, &quotas);
    ledger
}

#[tokio::test(start_paused = true)]
async fn requests_are_admitted_at_their_rate() {
    let ledger = ledger(&[(Quota::RequestsPerSecond, 3)]);
    for _ in 0..3 {
        ledger.enter(&[], Share::Whole, Instant::now()).unwrap();
    }
    let refused = ledger.enter(&[], Share::Whole, Instant::now()).unwrap_err();
    assert_eq!((refused.quota, ledger.refused(Quota::RequestsPerSecond)), (Quota::RequestsPerSecond, 1));
    tokio::time::advance(refused.wait.unwrap()).await;
    ledger.enter(&[], Share::Whole, Instant::now()).unwrap();
    ledger.enter(&[], Share::Whole, Instant::now()).unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_debt_refuses_only_what_it_concerns() {
    let ledger = ledger(&[(Quota::EventsPerSecond, 100), (Quota::ScannedBytesPerSecond, 10)]);
    ledger.charge(Quota::EventsPerSecond, 400);
    ledger.enter(&[Quota::ScannedBytesPerSecond], Share::Whole, Instant::now()).unwrap();
    ledger.charge(Quota::ScannedBytesPerSecond, 100);
    // Of two debts, the one that lasts longer is reported.
    let both = [Quota::EventsPerSecond, Quota::ScannedBytesPerSecond];
    assert_eq!(ledger.enter(&both, Share::Whole, Instant::now()).unwrap_err().quota, Quota::ScannedBytesPerSecond);
    assert_eq!(ledger.enter(&both[..1], Share::Whole, Instant::now()).unwrap_err().quota, Quota::EventsPerSecond);
    tokio::time::advance(Duration::from_secs(4)).await;
    ledger.enter(&both[..1], Share::Whole, Instant::now()).unwrap();
    ledger.enter(&both, Share::Whole, Instant::now()).unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_server_has_a_part_by_what_it_needs() {
    let ledger = ledger(&[(Quota::RequestsPerSecond, 80), (Quota::Searches, 8), (Quota::StoredBytes, 100)]);
    for _ in 0..60 {
        ledger.enter(&[], Share::Whole, Instant::now()).unwrap();
    }
    let search = || ledger.hold(Quota::Searches, Share::Whole).unwrap();
    let (_one, _two) = (search(), search());
    let mine = ledger.needs();
    let need =
        |needs: &Needs| (needs.of(Quota::RequestsPerSecond), needs.of(Quota::Searches), needs.of(Quota::StoredBytes));
    assert_eq!(need(&mine), (60, 2, 0));
    let mut other = Needs::default();
    other.add(Quota::RequestsPerSecond, 20);
    ledger.divide(Division::among(&mine, [Some(&other)]));
    let limits = [Quota::RequestsPerSecond, Quota::Searches, Quota::StoredBytes].map(|quota| ledger.limit(quota));
    assert_eq!(limits, [Some(55), Some(7), Some(100)]);
    // More than its share was used: the rest is refused, but counts as needed all the same.
    let refused = ledger.enter(&[], Share::Whole, Instant::now()).unwrap_err();
    assert_eq!((refused.limit, refused.whole), (55, 80));
    let said = refused.to_string();
    assert!(said.contains("part of 55") && said.contains("of 80"), "{said}");
    assert_eq!(need(&ledger.needs()), (1, 2, 0), "since the last time");
    // A change of the quota is divided as well. A lone server has all of it.
    let mut quotas = Quotas::default();
    quotas.set(Quota::RequestsPerSecond, Some(800)).unwrap();
    ledger.set(1, &quotas);
    assert_eq!(ledger.limit(Quota::RequestsPerSecond), Some(550));
    ledger.divide(Division::default());
    assert_eq!((ledger.limit(Quota::RequestsPerSecond), ledger.limit(Quota::Searches)), (Some(800), None));
}

#[tokio::test]
async fn places_at_a_time_come_back_and_a_lifted_quota_admits_all() {
    let ledger = ledger(&[(Quota::ConcurrentRequests, 2), (Quota::Searches, 0), (Quota::StoredBytes, 10)]);
    let first = ledger.enter(&[], Share::Whole, Instant::now()).unwrap();
    let _second = ledger.enter(&[], Share::Whole, Instant::now()).unwrap();
    assert_eq!(ledger.enter(&[], Share::Whole, Instant::now()).unwrap_err().wait, None);
    drop(first);
    let _third = ledger.enter(&[], Share::Whole, Instant::now()).unwrap();
    ledger.enter(&[], Share::Whole, Instant::now()).unwrap_err();
    assert_eq!(ledger.hold(Quota::Searches, Share::Whole).unwrap_err().limit, 0);
    ledger.within(Quota::StoredBytes, || 9).unwrap();
    ledger.within(Quota::StoredBytes, || 10).unwrap_err();
    ledger.set(1, &Quotas::default());
    ledger.enter(&[], Share::Whole, Instant::now()).unwrap();
    ledger.hold(Quota::Searches, Share::Whole).unwrap();
    ledger.within(Quota::StoredBytes, || unreachable!("nobody asks")).unwrap();
}

#[tokio::test]
async fn half_of_the_places_are_left_to_those_with_the_whole() {
    let ledger = ledger(&[(Quota::ConcurrentRequests, 5), (Quota::Streams, 1)]);
    let enter = |share| ledger.enter(&[], share, Instant::now());
    let (first, second) = (enter(Share::Half).unwrap().unwrap(), enter(Share::Half).unwrap());
    let refused = enter(Share::Half).unwrap_err();
    assert_eq!((refused.limit, refused.whole, refused.wait), (2, 5, None));
    let users: Vec<_> = (0..3).map(|_| enter(Share::Whole).unwrap()).collect();
    enter(Share::Whole).unwrap_err();
    // A place that comes back is one of the half again, also by way of an owned permit.
    drop((first.keep(), users));
    let third = enter(Share::Half).unwrap();
    enter(Share::Half).unwrap_err();
    drop((second, third));
    let users: Vec<_> = (0..4).map(|_| enter(Share::Whole).unwrap()).collect();
    let _fourth = enter(Share::Half).unwrap();
    assert_eq!((users.len(), enter(Share::Half).unwrap_err().limit), (4, 2), "the whole is used up");
    // One place cannot be halved, so the half has none.
    assert_eq!(ledger.hold(Quota::Streams, Share::Half).unwrap_err().limit, 0);
    ledger.hold(Quota::Streams, Share::Whole).unwrap();
}
