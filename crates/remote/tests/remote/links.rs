//! The owner moves, goes away, and learns when the caller has.

use super::proxy::Proxy;
use super::world::{Group, Owner, PATIENCE, PROCESS, TENANT, World, control, fleet, gateway, ships, store};
use meridian_backend::{Backend, Collection, DeleteFault, Operation, ReadPoint, Rows, StoreError, Write, WriteError};
use meridian_model::IdRole;
use meridian_model::filter::Predicate;
use meridian_observe::{EndedSpan, Kind, Sampling, SpanSink, Tracer, TracerStats, WorkContext};
use meridian_query::{CancelFlag, Control, Items, QueryError};
use meridian_remote::{MountedGroup, OwnerLocation};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const MANY: u32 = 60_000;

/// A collection of many events behind a gateway; its responses take many messages.
fn large(world: &World) -> Arc<dyn Collection> {
    let (theirs, ours) = world.collection("ships", IdRole::Given);
    theirs.write(Write::new(ships(&theirs.schema(), &fleet(MANY)))).unwrap();
    ours
}

fn begin(collection: &dyn Collection, control: &Control) -> Box<dyn Rows> {
    collection.items(ReadPoint::newest(), &Items::all(&collection.schema()), control).unwrap()
}

#[test]
fn a_large_answer_comes_in_pieces() {
    let world = World::new();
    let ours = large(&world);
    let (mut rows, mut events, mut pieces) = (begin(&*ours, &control(PATIENCE)), 0, 0);
    rows.limit_batches(1000);
    while let Some(hits) = rows.next() {
        let hits = hits.unwrap();
        assert!(hits.batch.rows() <= 1000 && !rows.is_over() || events + hits.batch.rows() == MANY as usize);
        events += hits.batch.rows();
        pieces += 1;
    }
    assert_eq!(events, MANY as usize);
    assert!(pieces >= MANY / 1000, "{pieces}");
    assert!(rows.is_over());
}

#[test]
fn an_owner_that_goes_away_in_the_middle_is_an_error_and_no_short_answer() {
    let world = World::new();
    large(&world);
    let proxy = Proxy::to(world.owner.as_ref().unwrap().address);
    let (_address, remote) = gateway(Some(proxy.address));
    let ours = remote.collection(TENANT, "ships").unwrap().unwrap();
    let mut rows = begin(&*ours, &control(PATIENCE));
    let first = rows.next().unwrap().unwrap().batch.rows();
    assert!(first < MANY as usize);
    proxy.cut_after(64 << 10);
    let (mut events, mut error) = (first, None);
    for hits in rows.by_ref() {
        match hits {
            Ok(hits) => events += hits.batch.rows(),
            Err(e) => error = Some(e),
        }
    }
    assert!(events < MANY as usize);
    assert!(matches!(error, Some(QueryError::Store(StoreError::Busy(_)))), "{error:?}");
    assert!(rows.next().is_none() && rows.next_page().is_none());
    // The next query gets through.
    proxy.heal();
    assert!(begin(&*ours, &control(PATIENCE)).next().unwrap().is_ok());
}

#[test]
fn a_caller_that_goes_away_stops_the_question_at_the_owner() {
    let world = World::new();
    let ours = large(&world);
    let flags = world.owner.as_ref().unwrap().flags.clone();
    flags.lock().clear();
    let mut rows = begin(&*ours, &control(PATIENCE));
    rows.next().unwrap().unwrap();
    let flag = flags.lock().iter().find(|flag| !flag.is_cancelled()).cloned().unwrap();
    drop(rows);
    let began = std::time::Instant::now();
    while !flag.is_cancelled() {
        assert!(began.elapsed() < PATIENCE, "the owner was not told");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn callers_that_leave_early_end_no_other_call() {
    let world = World::new();
    let ours = large(&world);
    // More streams reset with frames in flight than HTTP/2 allows a connection.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for n in 0..600 {
                    let first = begin(&*ours, &control(PATIENCE)).next();
                    assert!(matches!(first, Some(Ok(_))), "call {n}: {:?}", first.map(|first| first.map(drop)));
                }
            });
        }
    });
}

#[test]
fn a_question_ends_with_its_deadline_and_with_its_flag_though_the_owner_is_silent() {
    let world = World::new();
    large(&world);
    let proxy = Proxy::to(world.owner.as_ref().unwrap().address);
    let (_address, remote) = gateway(Some(proxy.address));
    let ours = remote.collection(TENANT, "ships").unwrap().unwrap();
    let items = Items::all(&ours.schema());
    proxy.swallow(true);
    let late = ours.items(ReadPoint::newest(), &items, &control(Duration::from_millis(50))).err();
    assert!(matches!(late, Some(QueryError::Deadline)), "{late:?}");
    let cancel = CancelFlag::new();
    let control = Control::new(meridian_backend::Seams::real().clock, PATIENCE, cancel.clone());
    let asking = std::thread::spawn(move || ours.items(ReadPoint::newest(), &items, &control).err());
    cancel.cancel();
    let cancelled = asking.join().unwrap();
    assert!(matches!(cancelled, Some(QueryError::Cancelled)), "{cancelled:?}");
}

#[test]
fn a_deletion_whose_owner_is_silent_is_in_doubt() {
    let world = World::new();
    large(&world);
    let proxy = Proxy::to(world.owner.as_ref().unwrap().address);
    let (_address, remote) = gateway(Some(proxy.address));
    let ours = remote.collection(TENANT, "ships").unwrap().unwrap();
    proxy.swallow(true);
    let late = control(Duration::from_millis(50));
    let stopped = ours.delete_matching(&Predicate::all(), ReadPoint::newest(), &late).unwrap_err();
    assert!(matches!(stopped.why, DeleteFault::Query(QueryError::Store(StoreError::Unknown(_)))), "{stopped:?}");
}

#[test]
fn an_owner_that_moves_is_followed_and_a_former_one_is_refused() {
    let world = World::new();
    let (_, ours) = world.collection("ships", IdRole::Given);
    let successor = Owner::serve(world.embedded.clone(), 2);
    world.address.send_replace(Some(successor.address.to_string().into()));
    ours.write(Write::new(ships(&ours.schema(), &fleet(3)))).unwrap();
    assert!(ours.event("id1").unwrap().value.is_some());
    // The former owner answers again, with an epoch that has passed.
    world.address.send_replace(Some(world.owner.as_ref().unwrap().address.to_string().into()));
    let error = ours.event("id1").map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::Busy(ref why) if why.contains("no longer owns")), "{error:?}");
    world.address.send_replace(Some(successor.address.to_string().into()));
    assert!(ours.event("id1").unwrap().value.is_some());
}

#[test]
fn an_owner_whose_lease_has_ended_shows_nothing_though_no_other_was_heard_of() {
    let world = World::new();
    let (theirs, ours) = world.collection("ships", IdRole::Given);
    ours.write(Write::new(ships(&ours.schema(), &fleet(3)))).unwrap();
    let owns = &world.owner.as_ref().unwrap().owns;
    owns.store(false, Ordering::Relaxed);
    let error = ours.event("id1").map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::Busy(_)), "{error:?}");
    // Nothing is reported missing, and nothing is deleted.
    assert!(world.remote.collection(TENANT, "others").is_err());
    assert!(ours.delete(&["id1".to_owned()]).is_err());
    // Nor does it refuse existing ids, as they may be deleted by now.
    let write = || ours.write(Write::new(ships(&ours.schema(), &fleet(3)))).unwrap_err();
    let refused = write();
    assert!(matches!(refused, WriteError::Busy(_)), "{refused:?}");
    assert!(theirs.event("id1").unwrap().value.is_some());
    owns.store(true, Ordering::Relaxed);
    assert!(ours.event("id1").unwrap().value.is_some());
    let refused = write();
    assert!(matches!(refused, WriteError::Conflict { .. }), "{refused:?}");
    // A write to a collection that this server lacks, but the next owner may have.
    assert!(world.embedded.remove(TENANT, "ships").unwrap());
    owns.store(false, Ordering::Relaxed);
    let refused = write();
    assert!(matches!(refused, WriteError::Busy(_)), "{refused:?}");
    owns.store(true, Ordering::Relaxed);
    let gone = write();
    assert!(matches!(gone, WriteError::Closed), "{gone:?}");
}

#[test]
fn a_process_that_owns_other_data_is_not_taken_for_the_owner() {
    let world = World::new();
    let (theirs, ours) = world.collection("ships", IdRole::Given);
    let at = |process| {
        let address = world.owner.as_ref().unwrap().address.to_string();
        world.address.send_replace(Some(OwnerLocation { address, process: Some(process), leaves: false }));
    };
    at(PROCESS + 1);
    assert!(ours.write(Write::new(ships(&ours.schema(), &fleet(3)))).is_err());
    assert!(ours.event("id1").is_err() && ours.delete(&["id1".to_owned()]).is_err());
    assert_eq!(theirs.stats().events, 0);
    at(PROCESS);
    ours.write(Write::new(ships(&ours.schema(), &fleet(3)))).unwrap();
    assert!(ours.event("id1").unwrap().value.is_some());
}

#[test]
fn without_an_owner_everything_is_refused_and_nothing_is_absent() {
    let (address, remote) = gateway(None);
    let refused = |error: StoreError| matches!(error, StoreError::Busy(why) if why.contains("no server owns the data"));
    assert!(refused(remote.collection(TENANT, "ships").unwrap_err()));
    assert!(refused(remote.list(TENANT).unwrap_err()));
    // Records need no owner.
    remote.records("access").put("one", b"here").unwrap();
    assert_eq!(remote.records("access").get("one").unwrap().as_deref(), Some(&b"here"[..]));
    assert!(refused(remote.reach().unwrap_err()));
    // An address without a listening process is no owner either.
    let gone = Owner::serve(store(), 1).address;
    address.send_replace(Some(gone.to_string().into()));
    assert!(matches!(remote.list(TENANT), Err(StoreError::Busy(_))));
    let owner = Owner::serve(store(), 1);
    address.send_replace(Some(owner.address.to_string().into()));
    assert!(remote.list(TENANT).unwrap().is_empty());
    assert!(remote.is_ephemeral());
}

#[test]
fn calls_wait_on_any_thread_of_any_runtime() {
    let world = World::new();
    let (_, ours) = world.collection("ships", IdRole::Given);
    let asks = || async {
        ours.write(Write::new(ships(&ours.schema(), &fleet(2))).replacing()).unwrap();
        let appended = ours
            .append(Write::new(ships(&ours.schema(), &fleet(2))).replacing(), tokio::time::Instant::now() + PATIENCE);
        assert_eq!(appended.unwrap().await.unwrap().written, 2);
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(asks());
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(asks());
}

/// Collects ended spans.
#[derive(Debug, Default)]
struct Spans(Mutex<Vec<EndedSpan>>);

impl SpanSink for Spans {
    fn take(&self, span: EndedSpan) {
        self.0.lock().push(span);
    }

    fn figures(&self) -> TracerStats {
        TracerStats::default()
    }
}

#[test]
fn what_the_owner_does_is_a_part_of_the_callers_trace() {
    let tracer = || {
        let spans = Arc::new(Spans::default());
        let sampling = Sampling { ratio: 1.0, parents_per_second: 1000 };
        (Tracer::new(sampling, Box::new(|| 1_700_000_000_000_000_000), 7, spans.clone()), spans)
    };
    let ((theirs, at_owner), (ours, _)) = (tracer(), tracer());
    let owner = Owner::traced(store(), 1, theirs);
    let (_address, remote) = gateway(Some(owner.address));
    let (trace, _request) = ours.begin(|| None, "request", Kind::Server);
    let id = trace.as_ref().unwrap().id();
    let made = meridian_model::schema_spec::parse("note:String,*geom:Point").unwrap();
    WorkContext { trace, ..WorkContext::default() }.run(|| {
        let made = remote.create(TENANT, "notes", made, Default::default()).unwrap();
        let items = Items::all(&made.schema());
        assert_eq!(made.items(ReadPoint::newest(), &items, &control(PATIENCE)).unwrap().count(), 0);
    });
    let began = std::time::Instant::now();
    let ended = |name: &str| at_owner.0.lock().iter().any(|span| span.name == name);
    while !(ended("act") && ended("answer")) {
        assert!(began.elapsed() < PATIENCE, "{:?}", at_owner.0.lock());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(at_owner.0.lock().iter().all(|span| format!("{:032x}", span.trace) == id));
    // A call without a trace starts none.
    at_owner.0.lock().clear();
    remote.list(TENANT).unwrap();
    assert!(at_owner.0.lock().is_empty());
}

#[test]
fn calls_wait_for_a_process_that_opens_what_it_took_over() {
    let world = World::new();
    let (theirs, ours) = world.collection("ships", IdRole::Given);
    ours.write(Write::new(ships(&ours.schema(), &fleet(3)))).unwrap();
    let taking_over = |leaves: bool, serve: &dyn Fn() -> Owner| {
        let at = world.address.borrow().clone().unwrap();
        world.address.send_replace(Some(OwnerLocation { leaves, ..at }));
        let next = serve();
        world.address.send_replace(Some(next.address.to_string().into()));
        next
    };
    // Each of these is the first call to a process that serves nothing for a second.
    let embedded = world.embedded.clone();
    let opening = |epoch| {
        let embedded = embedded.clone();
        move || Owner::opening(embedded.clone(), epoch, Duration::from_secs(1))
    };
    let _second = taking_over(true, &opening(2));
    assert!(ours.event("id1").unwrap().value.is_some());
    let _third = taking_over(true, &opening(3));
    ours.write(Write::new(ships(&ours.schema(), &fleet(4)[3..]))).unwrap();
    // Calls that must run at most once are not sent before it has identified itself.
    let _fourth = taking_over(true, &opening(4));
    assert_eq!(ours.delete(&["id1".to_owned()]).unwrap().deleted, 1);
    let _fifth = taking_over(false, &opening(5));
    assert!(world.remote.create(TENANT, "boats", (*ours.schema()).clone(), Default::default()).is_ok());
    assert_eq!(theirs.stats().events, 3);
}

/// Reads a large response, and ends its group this way once it has begun. Returns the number of events, and the error.
fn read_across<F: Future<Output = ()> + Send + 'static>(
    way: impl FnOnce(MountedGroup) -> F,
) -> (usize, Option<QueryError>) {
    let world = World::new();
    large(&world);
    let mut former = Group::serve(world.embedded.clone(), 0, 2);
    let (address, remote) = gateway(Some(former.address));
    let ours = remote.collection(TENANT, "ships").unwrap().unwrap();
    let mut rows = begin(&*ours, &control(PATIENCE));
    let mut events = rows.next().unwrap().unwrap().batch.rows();
    former.end(way);
    let next = Owner::serve(world.embedded.clone(), 3);
    address.send_replace(Some(next.address.to_string().into()));
    // Calls that start now are answered by the next owner.
    assert!(ours.event("id1").unwrap().value.is_some());
    let mut error = None;
    for hits in rows.by_ref() {
        match hits {
            Ok(hits) => events += hits.batch.rows(),
            Err(e) => error = Some(e),
        }
    }
    (events, error)
}

#[test]
fn an_answer_goes_on_when_its_group_is_passed_on_and_is_cut_when_it_is_lost_or_comes_back() {
    let (events, error) = read_across(|mounted| mounted.pass_on(std::future::pending()));
    assert!(error.is_none(), "{error:?}");
    assert_eq!(events, MANY as usize);
    for is_lost in [true, false] {
        let way = |mounted: MountedGroup| async move {
            if is_lost { mounted.unmount().await } else { mounted.pass_on(std::future::ready(())).await }
        };
        let (events, error) = read_across(way);
        assert!(events < MANY as usize, "lost: {is_lost}");
        assert!(matches!(error, Some(QueryError::Store(StoreError::Busy(_)))), "{error:?}");
    }
}

#[test]
fn a_call_that_is_refused_waits_until_the_next_owner_is_named() {
    let world = World::new();
    let (_, ours) = world.collection("ships", IdRole::Given);
    let batch = |n: usize| Write::new(ships(&ours.schema(), &fleet(n as u32 + 1)[n..]));
    ours.write(batch(1)).unwrap();
    let mut former = Owner::serve(world.embedded.clone(), 2);
    world.address.send_replace(Some(former.address.to_string().into()));
    let calls: [(u64, &dyn Fn()); 3] = [
        (3, &|| assert!(ours.event("id1").unwrap().value.is_some())),
        (4, &|| assert_eq!(ours.write(batch(2)).unwrap().written, 1)),
        (5, &|| assert_eq!(ours.delete(&["id1".to_owned()]).unwrap().deleted, 1)),
    ];
    for (epoch, call) in calls {
        // It has answered, and its lease passes on without the gateway's knowledge.
        world.remote.reach().unwrap();
        let next = Owner::serve(world.embedded.clone(), epoch);
        former.owns.store(false, Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_secs(1));
                world.address.send_replace(Some(next.address.to_string().into()));
            });
            call();
        });
        former = next;
    }
}
