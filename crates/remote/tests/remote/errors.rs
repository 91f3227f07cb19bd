//! Errors keep their kind and text over the wire.

use super::reluctant::{DOUBTFUL, Reluctant};
use super::world::{Owner, PATIENCE, SHIPS, TENANT, World, control, fleet, gateway, ships, store};
use meridian_backend::{Backend, ReadPoint, StoreError, Write, WriteError};
use meridian_model::filter::Predicate;
use meridian_model::{IdRole, Invalid, Seq, Seqs, schema_spec};
use meridian_query::{Items, Order, QueryError, Track};
use meridian_store::Settings;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[test]
fn of_the_store() {
    let world = World::new();
    let (theirs, _) = world.collection("ships", IdRole::Given);
    let schema = || (*theirs.schema()).clone();
    let error = world.remote.create(TENANT, "ships", schema(), Settings::default()).unwrap_err();
    assert!(matches!(error, StoreError::Exists { ref name, .. } if name == "ships"), "{error:?}");
    let ours = world.remote.create(TENANT, "a/b", schema(), Settings::default()).unwrap_err();
    let embedded = world.embedded.create(TENANT, "a/b", schema(), Settings::default()).unwrap_err();
    assert!(matches!(ours, StoreError::Invalid(Invalid { field: Some(_), .. })), "{ours:?}");
    assert_eq!(ours.to_string(), embedded.to_string());
    assert!(world.remote.collection(TENANT, "absent").unwrap().is_none());
    assert!(!world.remote.remove(TENANT, "absent").unwrap());
}

#[test]
fn what_an_owner_does_not_know_is_said_and_not_done_again() {
    let backend = Reluctant::over(store());
    let owner = Owner::serve(backend.clone(), 1);
    let (_address, remote) = gateway(Some(owner.address));
    let schema = || schema_spec::parse(SHIPS).unwrap();
    let error = remote.create(TENANT, DOUBTFUL, schema(), Settings::default()).unwrap_err();
    assert!(matches!(error, StoreError::Unknown(ref why) if why == "the bucket did not answer"), "{error:?}");
    assert_eq!(backend.doubts.load(Ordering::Relaxed), 1);
    // "Done" and "certainly not done" are other outcomes.
    remote.create(TENANT, "ships", schema(), Settings::default()).unwrap();
    let error = remote.create(TENANT, "ships", schema(), Settings::default()).unwrap_err();
    assert!(matches!(error, StoreError::Exists { .. }), "{error:?}");
    drop(owner);
    // On a connection whose end has not been noticed yet, a call may have arrived.
    remote.reach().unwrap_err();
    let error = remote.create(TENANT, "later", schema(), Settings::default()).unwrap_err();
    assert!(matches!(error, StoreError::Busy(_)), "it never arrived: {error:?}");
}

#[test]
fn of_writes() {
    let world = World::new();
    let (_, ours) = world.collection("ships", IdRole::Given);
    let write = |count| Write::new(ships(&ours.schema(), &fleet(count)));
    ours.write(write(3).with_key("key")).unwrap();
    let again = ours.write(write(3).with_key("key")).unwrap();
    assert_eq!((again.written, again.duplicates), (0, 3));
    let reused = ours.write(write(2).with_key("key")).unwrap_err();
    assert!(matches!(reused, WriteError::KeyReused { events: 3, .. }), "{reused:?}");
    let conflict = ours.write(write(2)).unwrap_err();
    assert!(matches!(conflict, WriteError::Conflict { ref ids, total: 2 } if ids == &["id0", "id1"]), "{conflict:?}");
    let changed = ours.write(Write::new(ships(&ours.schema(), &fleet(1))).replacing_only(Seq::new(99, 0))).unwrap_err();
    assert!(matches!(changed, WriteError::Changed), "{changed:?}");
    assert_eq!(ours.delete(&["id0".into(), "absent".into()]).unwrap().deleted, 1);
    let deleted = ours.delete_matching(&Predicate::all(), ReadPoint::newest(), &control(PATIENCE)).unwrap();
    assert_eq!(deleted.deleted, 2);
}

#[test]
fn of_questions() {
    let world = World::new();
    let (theirs, ours) = world.collection("ships", IdRole::Given);
    let items = Items { order: Order::Fields(Vec::new()), limit: None, ..Items::all(&ours.schema()) };
    let text = |c: &dyn meridian_backend::Collection| match c.items(ReadPoint::newest(), &items, &control(PATIENCE)) {
        Err(QueryError::Invalid(invalid)) => invalid,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("answered"),
    };
    assert_eq!(text(&*ours), text(&*theirs));
    let track = Track { object: "ship1".into(), predicate: Predicate::all(), simplify_m: Some(-1.0) };
    let error = ours.track(ReadPoint::newest(), &track, &control(PATIENCE)).unwrap_err();
    assert!(
        matches!(error, QueryError::Invalid(Invalid { field: Some(ref field), .. }) if field == "simplify"),
        "{error:?}"
    );
    let at = ReadPoint { seq: Some(Seqs::one(Seq::new(77, 3))), history: false, eventual: None };
    match ours.items(at, &Items::all(&ours.schema()), &control(PATIENCE)) {
        Err(QueryError::Gone(gone)) => assert_eq!(gone.seq, Seq::new(77, 3)),
        other => panic!("{:?}", other.err()),
    }
    let over = ours.count(ReadPoint::newest(), &Predicate::all(), u64::MAX, &control(Duration::ZERO)).unwrap_err();
    assert!(matches!(over, QueryError::Deadline), "{over:?}");
}

#[test]
fn a_collection_that_was_removed_is_closed_even_where_another_has_its_name() {
    let world = World::new();
    let (_, ours) = world.collection("ships", IdRole::Given);
    assert!(world.remote.remove(TENANT, "ships").unwrap());
    let (_, newer) = world.collection("ships", IdRole::Given);
    let error = ours.write(Write::new(ships(&ours.schema(), &fleet(1)))).unwrap_err();
    assert!(matches!(error, WriteError::Closed), "{error:?}");
    assert!(matches!(ours.event("id0"), Err(StoreError::Closed)));
    newer.write(Write::new(ships(&newer.schema(), &fleet(1)))).unwrap();
}

#[test]
fn a_collection_is_removed_as_it_was_seen_until_it_is_written_to() {
    let world = World::new();
    let (theirs, ours) = world.collection("ships", IdRole::Given);
    let seen = ours.definition();
    let remove = |created| world.remote.remove_unwritten(TENANT, "ships", created, &seen);
    assert!(matches!(remove(ours.created() - 1), Err(StoreError::Changed)));
    // The gateway has not heard of the write.
    theirs.write(Write::new(ships(&theirs.schema(), &fleet(1)))).unwrap();
    assert!(matches!(remove(ours.created()), Err(StoreError::Changed)));
    assert!(world.remote.remove(TENANT, "ships").unwrap());
    assert!(!remove(ours.created()).unwrap());
    let (_, newer) = world.collection("ships", IdRole::Given);
    assert!(matches!(remove(newer.created() - 1), Err(StoreError::Changed)));
    assert!(remove(newer.created()).unwrap());
    assert!(world.embedded.collection(TENANT, "ships").unwrap().is_none());
}

#[test]
fn files_of_what_is_in_memory_are_refused_by_the_owner() {
    let world = World::new();
    let (_, ours) = world.collection("ships", IdRole::Given);
    let error = ours.files(tokio::time::Instant::now() + PATIENCE, &|| false).unwrap_err();
    assert!(matches!(error, StoreError::Invalid(_)), "{error:?}");
}
