//! Several owners, each of one group of partitions.

use super::scans::{LIMITS, at, eventual, options, rows};
use super::world::{Group, Owner, SHIPS, TENANT, fleet, ships, store};
use meridian_backend::{Backend, Collection, Seams, Settings, Write};
use meridian_model::policy::groups::Groups;
use meridian_model::policy::selector::NoServerRule;
use meridian_model::schema_spec;
use meridian_query::Items;
use meridian_remote::{GroupsBackend, OwnerLocation, RemoteOptions, ScanExecutor, ScanOptions};
use meridian_store::{Options, Store};
use std::net::TcpListener;
use std::sync::Arc;
use tokio::sync::watch;

const GROUPS: u16 = 2;

/// A store and an owner for each group, and a gateway.
struct World {
    stores: Vec<Arc<dyn Backend>>,
    addresses: Vec<watch::Sender<Option<OwnerLocation>>>,
    gateway: Arc<GroupsBackend>,
    _owners: Vec<Group>,
}

impl World {
    fn new(scans: Option<ScanOptions>) -> World {
        let stores: Vec<Arc<dyn Backend>> = (0..GROUPS).map(|_| store()).collect();
        let owners: Vec<Group> =
            stores.iter().zip(0..).map(|(store, number)| Group::serve(store.clone(), number, 1)).collect();
        let (mut addresses, mut told) = (Vec::new(), Vec::new());
        for owner in &owners {
            let (address, at) = watch::channel(Some(owner.address.to_string().into()));
            addresses.push(address);
            told.push(at);
        }
        let records = Arc::new(Store::open(Options::ephemeral(), Seams::real()).unwrap());
        let options = RemoteOptions { scans, ..RemoteOptions::new(Seams::real().random) };
        let gateway = GroupsBackend::connect(told, records, options).unwrap();
        World { stores, addresses, gateway, _owners: owners }
    }

    /// Replaces the owner of a group by one that never responds.
    fn silence(&self, group: u16) -> TcpListener {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        self.addresses[usize::from(group)].send_replace(Some(silent.local_addr().unwrap().to_string().into()));
        silent
    }

    fn create(&self, name: &str, partitions: u16) -> Arc<dyn Collection> {
        let schema = schema_spec::parse(SHIPS).unwrap();
        self.gateway.create(TENANT, name, schema, Settings { partitions, ..Settings::default() }).unwrap()
    }
}

/// Returns a name whose first partition is in a group.
fn name_in(group: u16) -> String {
    let is_there = |name: &String| Groups::new(GROUPS).unwrap().of(TENANT, name, 0).number() == group;
    (0..).map(|n| format!("ships{n}")).find(is_there).unwrap()
}

#[test]
fn what_the_owner_of_the_first_partition_decides_does_not_need_the_others() {
    let world = World::new(None);
    let (first, second) = (name_in(0), name_in(1));
    let of_second = world.create(&second, 1);
    let _silent = world.silence(1);
    // Whether the collection exists.
    assert!(world.gateway.collection(TENANT, &first).unwrap().is_none());
    assert!(world.gateway.why_damaged(TENANT, &first).unwrap().is_none());
    // Created and dropped without them: they find out later.
    world.create(&first, 2);
    assert!(world.gateway.remove(TENANT, &first).unwrap());
    assert!(world.gateway.collection(TENANT, &first).unwrap().is_none());
    let empty = world.create(&first, 1);
    assert!(world.gateway.remove_unwritten(TENANT, &first, empty.created(), &empty.definition()).unwrap());
    assert!(world.gateway.collection(TENANT, &first).unwrap().is_none());
    // The last known state is used.
    let known = world.gateway.collection(TENANT, &second).unwrap().expect("it is known");
    assert_eq!(known.created(), of_second.created());
    assert_eq!(known.schema(), of_second.schema());
}

#[test]
fn eventual_rows_of_one_partition_come_from_scan_servers() {
    let (told, scans) = options(NoServerRule::Fail);
    let world = World::new(Some(scans));
    for group in 0..GROUPS {
        let ours = world.create(&name_in(group), 1);
        ours.write(Write::new(ships(&ours.schema(), &fleet(20)))).unwrap();
        let turns = ScanExecutor::new(LIMITS);
        let server = Owner::scan(world.stores[usize::from(group)].clone(), 11 + u64::from(group), turns.clone());
        told.send_replace(Arc::from(vec![at(11 + u64::from(group), server.address)]));
        assert_eq!(rows(&*ours, eventual(), &Items::all(&ours.schema()), || ()).0.len(), 20);
        assert_eq!(turns.begun(), 1);
    }
}
