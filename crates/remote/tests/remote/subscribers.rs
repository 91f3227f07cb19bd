//! Subscribers of a gateway get the owner's writes, once and in order.

use super::proxy::Proxy;
use super::reluctant::{BUSY, RETRIED, Refusal, Reluctant};
use super::world::{Owner, PATIENCE, SHIPS, Ship, TENANT, World, fleet, gateway, ships, store};
use meridian_backend::{Backend, Collection, Settings, Write};
use meridian_model::{IdRole, Schema, Seq, Subscriber, WrittenBatch, schema_spec};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Default)]
struct Listener(Mutex<Vec<(String, Seq, String)>>);

impl Subscriber for Listener {
    fn listens(&self) -> bool {
        true
    }

    fn notify(&self, written: WrittenBatch) {
        let seqs = written.seqs();
        let ids = seqs.iter().enumerate().map(|(row, seq)| written.batch.id_of(row, *seq));
        let name = written.collection.to_string();
        self.0.lock().extend(seqs.iter().zip(ids).map(|(seq, id)| (name.clone(), *seq, id)));
    }
}

impl Listener {
    /// Waits for an event with this id, and returns all events so far.
    fn upto(&self, id: &str) -> Vec<(String, Seq, String)> {
        let began = std::time::Instant::now();
        loop {
            let heard = self.0.lock().clone();
            if heard.last().is_some_and(|last| last.2 == id) {
                return heard;
            }
            assert!(began.elapsed() < PATIENCE, "{id} never came: {heard:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn one(n: u32) -> Vec<Ship> {
    fleet(n + 1).split_off(n as usize)
}

fn write(collection: &Arc<dyn Collection>, n: u32) {
    collection.write(Write::new(ships(&collection.schema(), &one(n)))).unwrap();
}

#[test]
fn each_write_once_and_in_order_though_the_connection_breaks() {
    let world = World::new();
    let (theirs, _) = world.collection("ships", IdRole::Given);
    // Before anyone subscribes.
    write(&theirs, 0);
    let proxy = Proxy::to(world.owner.as_ref().unwrap().address);
    let (_address, remote) = gateway(Some(proxy.address));
    let listener = Arc::new(Listener::default());
    remote.subscribe(listener.clone());
    // It is subscribed once a write arrives; which of these is the first is a matter of timing.
    let mut first = 0;
    while listener.0.lock().is_empty() {
        first += 1;
        write(&theirs, first);
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut n = first;
    for round in 0..5 {
        for _ in 0..10 {
            n += 1;
            write(&theirs, n);
            if round == 2 {
                proxy.cut();
            }
        }
        listener.upto(&format!("id{n}"));
    }
    let heard = listener.upto(&format!("id{n}"));
    let ids: Vec<u32> = heard.iter().map(|(_, _, id)| id[2..].parse().unwrap()).collect();
    let from = ids[0];
    assert!(from >= 1);
    assert_eq!(ids, (from..=n).collect::<Vec<_>>());
    assert!(heard.is_sorted_by(|a, b| a.1 < b.1) && heard.iter().all(|(name, ..)| name == "ships"));
    // A collection created later is reported from its first write on.
    let (later, _) = world.collection("later", IdRole::Given);
    write(&later, 0);
    assert_eq!(listener.upto("id0").iter().filter(|(name, ..)| name == "later").count(), 1);
    assert!(remote.collection(TENANT, "later").unwrap().is_some());
}

#[test]
fn a_collection_that_is_busy_holds_no_other_up_and_is_heard_later() {
    let backend = Reluctant::over(store());
    let owner = Owner::serve(backend.clone(), 1);
    let (_address, remote) = gateway(Some(owner.address));
    let others: Vec<String> = (0..16).map(|n| format!("other{n}")).collect();
    let schema = Schema { id: IdRole::Given, ..schema_spec::parse(SHIPS).unwrap() };
    let make = |name: &str| backend.create(TENANT, name, schema.clone(), Settings::default()).unwrap();
    let busy = make(BUSY);
    let others: Vec<Arc<dyn Collection>> = others.iter().map(|name| make(name)).collect();
    let listener = Arc::new(Listener::default());
    remote.subscribe(listener.clone());
    let mut first = 0;
    while listener.0.lock().is_empty() {
        first += 1;
        write(&busy, first);
        std::thread::sleep(Duration::from_millis(20));
    }
    others.iter().for_each(|other| write(other, 0));
    let heard = |name: &str, id: &str| listener.0.lock().iter().any(|(of, _, other)| of == name && other == id);
    let until = |name: &str, id: &str| {
        let began = std::time::Instant::now();
        while !heard(name, id) {
            assert!(began.elapsed() < PATIENCE, "{id} of {name} never came");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    others.iter().for_each(|other| until(other.name(), "id0"));
    for (n, refusal) in (1..).zip([Refusal::Busy, Refusal::Unreadable, Refusal::Apart(RETRIED)]) {
        backend.refuse(Some(refusal));
        write(&busy, 1000 + n);
        others.iter().for_each(|other| write(other, n));
        others.iter().for_each(|other| until(other.name(), &format!("id{n}")));
        let held_back = format!("id{}", 1000 + n);
        assert!(!heard(BUSY, &held_back), "{refusal:?}");
        backend.refuse(None);
        // Without another write.
        until(BUSY, &held_back);
    }
}

#[test]
fn what_the_owner_before_took_while_nobody_listened_is_heard_from_the_next_one() {
    let world = World::new();
    let ((idle, _), (other, _)) = (world.collection("idle", IdRole::Given), world.collection("other", IdRole::Given));
    write(&idle, 0);
    // A new gateway learns the position of the idle collection.
    let (address, remote) = gateway(Some(world.owner.as_ref().unwrap().address));
    let listener = Arc::new(Listener::default());
    remote.subscribe(listener.clone());
    let mut n = 0;
    while listener.0.lock().is_empty() {
        n += 1;
        write(&other, n);
        std::thread::sleep(Duration::from_millis(20));
    }
    address.send_replace(None);
    write(&idle, 101);
    let (made, _) = world.collection("made", IdRole::Given);
    write(&made, 102);
    let next = Owner::serve(world.embedded.clone(), 2);
    address.send_replace(Some(next.address.to_string().into()));
    let began = std::time::Instant::now();
    loop {
        let heard = listener.0.lock().clone();
        let of = |name: &str| -> Vec<String> {
            heard.iter().filter(|(of, ..)| of == name).map(|(_, _, id)| id.clone()).collect()
        };
        if [of("idle"), of("made")] == [["id101"], ["id102"]] {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{heard:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
