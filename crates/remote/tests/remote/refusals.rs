//! Eventual reads of a collection that no scan server has.

use super::reluctant::{BUSY, Refusal, Reluctant};
use super::scans::{LIMITS, at, eventual, gateway_with, options};
use super::world::{Owner, PATIENCE, SHIPS, TENANT, control, store};
use meridian_backend::{Backend, Operation, Settings, StoreError};
use meridian_model::policy::selector::{NoServerRule, Profiles};
use meridian_model::schema_spec;
use meridian_query::{Items, QueryError};
use meridian_remote::{ScanExecutor, ScanOptions, ScanServerLocation};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Counts the events of a collection through a new gateway. Returns the result, and the number of requests to scan
/// servers.
fn counted(
    owner: &Owner,
    servers: &[ScanServerLocation],
    rule: NoServerRule,
    name: &str,
) -> (Result<Option<u64>, QueryError>, u64) {
    counted_within(PATIENCE, owner, servers, rule, name)
}

fn counted_within(
    time: Duration,
    owner: &Owner,
    servers: &[ScanServerLocation],
    rule: NoServerRule,
    name: &str,
) -> (Result<Option<u64>, QueryError>, u64) {
    let plans = r#"[{"servers": "1", "busyTimeout": "33ms"}]"#;
    let profiles = format!(r#"[{{"isDefault": true, "timeToWaitForScanServers": "0s", "attemptPlans": {plans}}}]"#);
    let (told, scans) = options(rule);
    let gateway = gateway_with(owner, ScanOptions { profiles: Profiles::parse(&profiles).unwrap(), ..scans });
    told.send_replace(Arc::from(servers));
    let collection = gateway.collection(TENANT, name).unwrap().unwrap();
    let all = Items::all(&collection.schema()).predicate;
    let found = collection.count(eventual(), &all, u64::MAX, &control(time));
    let figures = gateway.figures();
    (found, figures.iter().find(|one| one.name == "meridian_scan_attempts_total").map_or(0, |one| one.value))
}

#[test]
fn damage_at_all_scan_servers_is_named_at_once_unless_the_owner_may_answer() {
    let backend = Reluctant::over(store());
    backend.create(TENANT, BUSY, schema_spec::parse(SHIPS).unwrap(), Settings::default()).unwrap();
    let owner = Owner::serve(backend.backend.clone(), 1);
    let scan = |process| Owner::scan(backend.clone(), process, ScanExecutor::new(LIMITS));
    let (first, second) = (scan(11), scan(12));
    // As of a killed server, which stays listed for a minute.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let servers = [at(11, first.address), at(12, second.address), at(13, gone)];
    backend.refuse(Some(Refusal::Apart("put the object back")));
    for rule in [NoServerRule::Fail, NoServerRule::Wait] {
        let (found, attempts) = counted(&owner, &servers, rule, BUSY);
        assert!(matches!(found, Err(QueryError::Store(StoreError::Damaged(_)))), "{rule:?}: {found:?}");
        assert!((2..=3).contains(&attempts), "{rule:?}: {attempts} requests, and each server is asked once");
    }
    let (found, attempts) = counted(&owner, &servers, NoServerRule::Fallback, BUSY);
    assert_eq!(found.unwrap(), Some(0), "the owner has it");
    assert!((2..=3).contains(&attempts), "{attempts} requests");
    // One that is whole answers, however many are not.
    let whole = Owner::scan(backend.backend.clone(), 14, ScanExecutor::new(LIMITS));
    let servers = [at(11, first.address), at(12, second.address), at(14, whole.address)];
    assert_eq!(counted(&owner, &servers, NoServerRule::Fail, BUSY).0.unwrap(), Some(0));
}

#[test]
fn a_collection_that_no_scan_server_knows_is_the_owners_or_absent() {
    let backend = store();
    backend.create(TENANT, "ships", schema_spec::parse(SHIPS).unwrap(), Settings::default()).unwrap();
    let owner = Owner::serve(backend, 1);
    let scan = |process| Owner::scan(store(), process, ScanExecutor::new(LIMITS));
    let (first, second) = (scan(11), scan(12));
    let servers = [at(11, first.address), at(12, second.address)];
    let (found, attempts) = counted(&owner, &servers, NoServerRule::Fallback, "ships");
    assert_eq!((found.unwrap(), attempts), (Some(0), 2));
    let (found, attempts) = counted(&owner, &servers, NoServerRule::Fail, "ships");
    assert!(matches!(found, Err(QueryError::Store(StoreError::Closed))), "{found:?}");
    assert_eq!(attempts, 2);
}

#[test]
fn a_sole_server_that_takes_no_call_counts_as_absent() {
    let backend = store();
    backend.create(TENANT, "ships", schema_spec::parse(SHIPS).unwrap(), Settings::default()).unwrap();
    let owner = Owner::serve(backend, 1);
    // As of a paused process: the kernel takes connections, and nobody reads from them. The deadline is before the end
    // of such a connection.
    let paused = TcpListener::bind("127.0.0.1:0").unwrap();
    let servers = [at(11, paused.local_addr().unwrap())];
    let counted = |rule| counted_within(Duration::from_secs(2), &owner, &servers, rule, "ships");
    let (found, attempts) = counted(NoServerRule::Fallback);
    assert_eq!((found.unwrap(), attempts), (Some(0), 2), "the owner answers");
    let (found, attempts) = counted(NoServerRule::Fail);
    assert!(matches!(found, Err(QueryError::Store(StoreError::Busy(_)))) && attempts == 2, "{found:?} {attempts}");
}

#[test]
fn killed_servers_count_as_absent_until_their_successors_come() {
    let backend = store();
    backend.create(TENANT, "ships", schema_spec::parse(SHIPS).unwrap(), Settings::default()).unwrap();
    let owner = Owner::serve(backend.clone(), 1);
    let gone: Vec<TcpListener> = (0..2).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let killed = [11, 12].map(|process| at(process, gone[process as usize - 11].local_addr().unwrap()));
    drop(gone);
    let (found, attempts) = counted(&owner, &killed, NoServerRule::Fallback, "ships");
    assert_eq!((found.unwrap(), attempts), (Some(0), 4), "the owner answers, and each server is asked twice");
    let (found, attempts) = counted(&owner, &killed, NoServerRule::Fail, "ships");
    assert!(matches!(found, Err(QueryError::Store(StoreError::Busy(_)))) && attempts == 4, "{found:?} {attempts}");

    let (told, scans) = options(NoServerRule::Wait);
    let gateway = gateway_with(&owner, scans);
    told.send_replace(Arc::from(killed.clone()));
    let collection = gateway.collection(TENANT, "ships").unwrap().unwrap();
    let all = Items::all(&collection.schema()).predicate;
    let attempts = || gateway.figures().iter().find(|one| one.name == "meridian_scan_attempts_total").unwrap().value;
    let successor = Owner::scan(backend, 13, ScanExecutor::new(LIMITS));
    std::thread::scope(|scope| {
        let found = scope.spawn(|| collection.count(eventual(), &all, u64::MAX, &control(PATIENCE)));
        let begun = Instant::now();
        while attempts() < 4 {
            assert!(begun.elapsed() < PATIENCE, "they are never asked");
            std::thread::sleep(Duration::from_millis(5));
        }
        let [first, second] = killed;
        told.send_replace(Arc::from(vec![first, second, at(13, successor.address)]));
        assert_eq!(found.join().unwrap().unwrap(), Some(0));
    });
}
