//! An owner in this process, and the backend of a gateway that reaches it over loopback.

use meridian_backend::{Backend, Collection, Embedded, Seams};
use meridian_model::builder::Value;
use meridian_model::{Batch, BatchBuilder, IdRole, Schema, schema_spec};
use meridian_observe::Tracer;
use meridian_query::{CancelFlag, Control};
use meridian_remote::{
    MountedGroup, OwnerLocation, RemoteBackend, RemoteOptions, ScanExecutor, ServeOptions, ServedGroups, serve,
    serve_groups,
};
use meridian_store::{Options, Settings, Store};
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{oneshot, watch};

/// Max wait for anything: a test that hangs should report where.
pub const PATIENCE: Duration = Duration::from_secs(30);
pub const TENANT: &str = "default";
/// Number of each owner's process in its lease.
pub const PROCESS: u64 = 7;

/// A server of a backend. Dropping it stops it.
pub struct Owner {
    pub address: SocketAddr,
    /// Whether it owns the data; cleared when its lease ends.
    pub owns: Arc<AtomicBool>,
    /// The cancel flags of all calls, in the order in which they began.
    pub flags: Arc<Mutex<Vec<CancelFlag>>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Owner {
    pub fn serve(backend: Arc<dyn Backend>, epoch: u64) -> Owner {
        Owner::traced(backend, epoch, Tracer::default())
    }

    pub fn traced(backend: Arc<dyn Backend>, epoch: u64, tracer: Tracer) -> Owner {
        Owner::with(backend, Duration::ZERO, |options| ServeOptions { tracer, epoch, ..options })
    }

    /// Serves a backend that closes each connection for this long, like a process that is opening partitions it took
    /// over.
    pub fn opening(backend: Arc<dyn Backend>, epoch: u64, time: Duration) -> Owner {
        Owner::with(backend, time, |options| ServeOptions { epoch, ..options })
    }

    /// Serves a scan server with this process number.
    pub fn scan(backend: Arc<dyn Backend>, process: u64, scans: Arc<ScanExecutor>) -> Owner {
        let scan = |options| ServeOptions { process: Some(process), scans: Some(scans), ..options };
        Owner::with(backend, Duration::ZERO, scan)
    }

    fn with(backend: Arc<dyn Backend>, opening: Duration, change: impl FnOnce(ServeOptions) -> ServeOptions) -> Owner {
        let (stop, stopped) = oneshot::channel::<()>();
        let (told, address) = std::sync::mpsc::channel();
        let (seams, flags) = (Seams::real(), Arc::<Mutex<Vec<CancelFlag>>>::default());
        let (clock, noted) = (seams.clock.clone(), flags.clone());
        let control = Arc::new(move |left, cancel: CancelFlag| {
            noted.lock().push(cancel.clone());
            Control::new(clock.clone(), left, cancel)
        });
        let owns = Arc::new(AtomicBool::new(true));
        let asked = owns.clone();
        let options = change(ServeOptions {
            owns: Arc::new(move || asked.load(Ordering::Relaxed)),
            process: Some(PROCESS),
            ..ServeOptions::new(1, control, seams.random)
        });
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                told.send(listener.local_addr().unwrap()).unwrap();
                let turns_away = async {
                    while let Ok(connection) = listener.accept().await {
                        drop(connection);
                    }
                };
                drop(tokio::time::timeout(opening, turns_away).await);
                serve(backend, listener, options, async move { drop(stopped.await) }).await.unwrap();
            });
        });
        Owner { address: address.recv().unwrap(), owns, flags, stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// A group of partitions that a process serves and may hand over.
pub struct Group {
    pub address: SocketAddr,
    mounted: Option<MountedGroup>,
    runtime: Option<Runtime>,
}

impl Group {
    pub fn serve(backend: Arc<dyn Backend>, number: u16, epoch: u64) -> Group {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let seams = Seams::real();
        let clock = seams.clock.clone();
        let control = Arc::new(move |left, cancel: CancelFlag| Control::new(clock.clone(), left, cancel));
        let served = Arc::new(ServedGroups::default());
        let mounted = served.mount(number, backend, ServeOptions::new(epoch, control, seams.random));
        runtime.spawn(serve_groups(served, (listener, None), std::future::pending()));
        Group { address, mounted: Some(mounted), runtime: Some(runtime) }
    }

    /// Ends it in this way, in the background.
    pub fn end<F: Future<Output = ()> + Send + 'static>(&mut self, way: impl FnOnce(MountedGroup) -> F) {
        self.runtime.as_ref().unwrap().spawn(way(self.mounted.take().unwrap()));
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A store in memory, its owner, and a gateway's backend.
pub struct World {
    pub embedded: Arc<dyn Backend>,
    pub remote: Arc<RemoteBackend>,
    pub address: watch::Sender<Option<OwnerLocation>>,
    pub owner: Option<Owner>,
}

impl World {
    pub fn new() -> World {
        let embedded = store();
        let owner = Owner::serve(embedded.clone(), 1);
        let (address, remote) = gateway(Some(owner.address));
        World { embedded, remote, address, owner: Some(owner) }
    }

    /// Returns a collection as the owner has it, and as the gateway does.
    pub fn collection(&self, name: &str, id: IdRole) -> (Arc<dyn Collection>, Arc<dyn Collection>) {
        self.partitioned(name, id, 1)
    }

    /// As [`World::collection`], with `partitions` partitions.
    pub fn partitioned(&self, name: &str, id: IdRole, partitions: u16) -> (Arc<dyn Collection>, Arc<dyn Collection>) {
        let schema = Schema { id, ..schema_spec::parse(SHIPS).unwrap() };
        let settings = Settings { partitions, ..Settings::default() };
        let theirs = self.embedded.create(TENANT, name, schema, settings).unwrap();
        (theirs, self.remote.collection(TENANT, name).unwrap().unwrap())
    }
}

pub fn store() -> Arc<dyn Backend> {
    Embedded::new(Arc::new(Store::open(Options::ephemeral(), Seams::real()).unwrap()))
}

/// Returns a gateway's backend with records of its own, and the sender of its owner's address.
pub fn gateway(at: Option<SocketAddr>) -> (watch::Sender<Option<OwnerLocation>>, Arc<RemoteBackend>) {
    let (address, owner) = watch::channel(at.map(|at| at.to_string().into()));
    let records = Arc::new(Store::open(Options::ephemeral(), Seams::real()).unwrap());
    let remote = RemoteBackend::connect(owner, records, RemoteOptions::new(Seams::real().random)).unwrap();
    (address, remote)
}

pub fn control(time: Duration) -> Control {
    Control::new(Seams::real().clock, time, CancelFlag::new())
}

/// An event of a collection of ships: an id where ids are given, object, number, time in seconds, place.
#[derive(Debug, Clone)]
pub struct Ship {
    pub id: u32,
    pub object: u8,
    pub speed: Option<f64>,
    pub crew: Option<i64>,
    pub second: i64,
    pub place: Option<(f64, f64)>,
}

pub const SHIPS: &str = "ship:String:object=true,speed:Double,crew:Long,at:Date,*geom:Point:srid=4326";

pub fn ships(schema: &Arc<Schema>, ships: &[Ship]) -> Batch {
    let mut builder = BatchBuilder::new(schema.clone());
    let field = |name: &str| schema.field_index(name).unwrap();
    for ship in ships {
        if schema.id == IdRole::Given {
            builder.set_id(format!("id{}", ship.id)).unwrap();
        }
        builder.set(field("ship"), Value::Text(format!("ship{}", ship.object))).unwrap();
        if let Some(speed) = ship.speed {
            builder.set(field("speed"), Value::Float(speed)).unwrap();
        }
        if let Some(crew) = ship.crew {
            builder.set(field("crew"), Value::Int(crew)).unwrap();
        }
        builder.set(field("at"), Value::Time(ship.second * 1_000_000)).unwrap();
        if let Some((lon, lat)) = ship.place {
            builder.set_point(lon, lat).unwrap();
        }
        builder.end_event().unwrap();
    }
    builder.finish().unwrap()
}

/// `count` ships, all different.
pub fn fleet(count: u32) -> Vec<Ship> {
    let ship = |n: u32| Ship {
        id: n,
        object: (n % 7) as u8,
        speed: (!n.is_multiple_of(5)).then_some(f64::from(n) * 0.37),
        crew: (!n.is_multiple_of(3)).then_some(i64::from(n) - 40),
        second: 1_700_000_000 + i64::from(n) * 60,
        place: Some((f64::from(n % 360) - 180.0, f64::from(n % 170) - 85.0)),
    };
    (0..count).map(ship).collect()
}
