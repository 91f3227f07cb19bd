//! A write whose response is lost is applied once, and its outcome is known or reported as unknown.

use super::proxy::Proxy;
use super::world::{Owner, PATIENCE, TENANT, World, control, fleet, gateway, ships};
use meridian_backend::{Backend, Collection, ReadPoint, Write, WriteError};
use meridian_model::filter::Predicate;
use meridian_model::{IdRole, Positions, partition_of};
use meridian_remote::OwnerLocation;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn count(collection: &dyn Collection) -> u64 {
    collection.count(ReadPoint::newest(), &Predicate::all(), u64::MAX, &control(PATIENCE)).unwrap().unwrap()
}

fn until(mut holds: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "it never held");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_write_is_sent_again_and_applied_once() {
    let world = World::new();
    let (theirs, _) = world.collection("ships", IdRole::Made);
    let proxy = Proxy::to(world.owner.as_ref().unwrap().address);
    let (_address, remote) = gateway(Some(proxy.address));
    let ours = remote.collection(TENANT, "ships").unwrap().unwrap();
    ours.write(Write::new(ships(&ours.schema(), &fleet(1)))).unwrap();
    proxy.swallow(true);
    let (writer, batch) = (ours.clone(), ships(&ours.schema(), &fleet(5)));
    let writing = std::thread::spawn(move || writer.write(Write::new(batch)));
    // It is stored, and the gateway does not know that.
    until(|| count(&*theirs) == 6);
    proxy.cut();
    proxy.heal();
    let written = writing.join().unwrap().unwrap();
    assert_eq!((written.written, written.duplicates, written.position), (5, 0, theirs.position()));
    assert_eq!(count(&*theirs), 6);
}

#[test]
fn where_the_owner_was_replaced_only_a_key_tells_whether_a_write_is_stored() {
    let world = World::new();
    let (theirs, _) = world.collection("ships", IdRole::Made);
    let proxy = Proxy::to(world.owner.as_ref().unwrap().address);
    // Another server takes over the same data, with a later epoch.
    let successor = Owner::serve(world.embedded.clone(), 2);
    let write = |key: Option<&str>, upto: u64| {
        let (address, remote) = gateway(Some(proxy.address));
        let ours = remote.collection(TENANT, "ships").unwrap().unwrap();
        proxy.swallow(true);
        let write = Write::new(ships(&ours.schema(), &fleet(5)));
        let write = key.map_or(write.clone(), |key| write.with_key(key));
        let writer = ours.clone();
        let writing = std::thread::spawn(move || writer.write(write));
        until(|| count(&*theirs) == upto);
        address.send_replace(Some(successor.address.to_string().into()));
        proxy.cut();
        proxy.heal();
        writing.join().unwrap()
    };
    let known = write(Some("key"), 5).unwrap();
    assert_eq!((known.written, known.duplicates), (0, 5));
    let unknown = write(None, 10);
    assert!(matches!(unknown, Err(WriteError::Unknown(_))), "{unknown:?}");
    assert_eq!(count(&*theirs), 10);
}

#[test]
fn a_write_of_many_messages_is_one_batch() {
    let world = World::new();
    let (theirs, ours) = world.collection("ships", IdRole::Given);
    let batch = ships(&ours.schema(), &fleet(60_000));
    assert!(batch.bytes() > 2 << 20, "{}", batch.bytes());
    let written = ours.write(Write::new(batch)).unwrap();
    assert_eq!((written.written, count(&*theirs), theirs.position()), (60_000, 60_000, Positions::one(1)));
    let stats = |c: &Arc<dyn Collection>| (c.stats().events, c.position());
    assert_eq!(stats(&ours), stats(&theirs));
}

#[test]
fn without_an_owner_a_write_is_refused_and_says_so() {
    let world = World::new();
    let (_, ours) = world.collection("ships", IdRole::Given);
    let batch = || Write::new(ships(&ours.schema(), &fleet(1)));
    world.address.send_replace(None);
    let error = ours.write(batch()).unwrap_err();
    assert!(matches!(error, WriteError::Busy(ref why) if why.contains("no server owns the data")), "{error:?}");
    world.address.send_replace(Some(world.owner.as_ref().unwrap().address.to_string().into()));
    ours.write(batch()).unwrap();
}

#[test]
fn a_write_that_reaches_a_former_owner_is_not_written_there() {
    let world = World::new();
    let (theirs, ours) = world.collection("ships", IdRole::Made);
    let successor = Owner::serve(world.embedded.clone(), 2);
    world.address.send_replace(Some(successor.address.to_string().into()));
    ours.write(Write::new(ships(&ours.schema(), &fleet(1)))).unwrap();
    // Back to the former one, which runs and could write. Only the recipient named in the write stops it.
    world.address.send_replace(Some(world.owner.as_ref().unwrap().address.to_string().into()));
    let append = ours.append(Write::new(ships(&ours.schema(), &fleet(2))), tokio::time::Instant::now() + PATIENCE / 60);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let error = runtime.block_on(append.unwrap()).unwrap_err();
    assert!(matches!(error, WriteError::Unknown(_) | WriteError::Busy(_)), "{error:?}");
    assert_eq!(count(&*theirs), 1);
}

#[test]
fn a_keyed_batch_that_a_takeover_cuts_is_written_whole_by_the_next_owner() {
    let world = World::new();
    let (theirs, ours) = world.partitioned("ships", IdRole::Given, 2);
    let batch = fleet(20);
    let partition = |id: u32| partition_of(format!("id{id}").as_bytes(), 2);
    // One partition refuses its share, as if another process had taken it over.
    let taken = batch.iter().find(|ship| partition(ship.id) == 1).unwrap().clone();
    theirs.write(Write::new(ships(&theirs.schema(), std::slice::from_ref(&taken)))).unwrap();
    let write = Write::new(ships(&ours.schema(), &batch)).with_key("key");
    let former = world.owner.as_ref().unwrap();
    former.owns.store(false, Ordering::Relaxed);
    let at = OwnerLocation { address: former.address.to_string(), process: None, leaves: true };
    world.address.send_replace(Some(at));
    let writer = ours.clone();
    let writing = std::thread::spawn(move || writer.write(write));
    let first = batch.iter().filter(|ship| partition(ship.id) == 0).count() as u64;
    until(|| count(&*theirs) == first + 1);
    // The next owner takes it.
    theirs.delete(&[format!("id{}", taken.id)]).unwrap();
    let successor = Owner::serve(world.embedded.clone(), 2);
    world.address.send_replace(Some(successor.address.to_string().into()));
    let written = writing.join().unwrap().unwrap();
    assert_eq!((written.written as u64, written.duplicates as u64), (20 - first, first));
    assert_eq!(count(&*theirs), 20);
}

#[test]
fn without_a_key_the_answer_says_how_much_of_a_batch_is_stored() {
    let world = World::new();
    let (theirs, ours) = world.partitioned("ships", IdRole::Given, 2);
    let batch = fleet(20);
    let taken = batch.iter().find(|ship| partition_of(format!("id{}", ship.id).as_bytes(), 2) == 1).unwrap().clone();
    theirs.write(Write::new(ships(&theirs.schema(), &[taken]))).unwrap();
    let write = Write::new(ships(&ours.schema(), &batch));
    world.owner.as_ref().unwrap().owns.store(false, Ordering::Relaxed);
    let error = ours.write(write).unwrap_err();
    assert!(matches!(error, WriteError::Partly { stored, .. } if stored + 1 == count(&*theirs)), "{error:?}");
}
