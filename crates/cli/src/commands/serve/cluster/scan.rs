//! `--role scan`: serves what owners have flushed to the bucket, to clients and to gateways, and refuses writes.

use super::super::http::{self, Source};
use super::log::open_log;
use super::memory::Pool;
use super::owner::reached_by;
use super::{OpenRole, blocking, dilate, membership, records};
use crate::certificates::Certificates;
use crate::config::{Config, Role, Roles, Scan};
use crate::failure::Failure;
use crate::output::say;
use crate::roles;
use meridian_backend::{Embedded, Metric, MetricKind};
use meridian_model::policy::busy::Limits;
use meridian_query::{CancelFlag, Control};
use meridian_remote::{Pace, RoleTls, ScanExecutor, ScanLoad, ServeOptions};
use meridian_store::bucket::ScanServerStatus;
use meridian_store::seams::Seams;
use meridian_store::{ControlPlane, SharedLog, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How often the bucket is polled for new manifests, and for the owners' reports on them.
const LOOK: Duration = Duration::from_secs(1);

/// Runs a read-only server until `stop`.
pub(in super::super) async fn scan(
    mut config: Config,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Failure> {
    let OpenRole { listeners, seams, bucket, member, drained, obeying } =
        OpenRole::open(&mut config, Role::Scan).await?;
    let stop = member.until(stop);
    let mut port = GatewayListener::open(&config.cluster.scan, &config.cluster.tls).await?;
    let host = port.as_ref().and_then(|port| port.address.rsplit_once(':')).map(|(host, _)| host.to_owned());
    let certificates = roles::open(&config.cluster.tls, host.as_deref())?;
    let control = ControlPlane::new(bucket.clone(), &seams, config.store.audit_bytes);
    let tls = certificates.as_ref().map(Certificates::tls);
    if let Some(port) = &mut port {
        port.tls = tls.clone();
    }
    // Its tasks end with this function.
    let mut following = JoinSet::new();
    roles::follow(certificates, &mut following)?;
    let membership = Some(membership("scan", &config.cluster, &bucket, (&seams, tls)).await?);
    // Gateways match, poll and send them. Here each event would be matched once more, and late.
    config.server.saved.enabled = false;
    config.store.skew = config.cluster.skew;
    config.store.follow_log = config.cluster.scan.follow_log;
    let cache = config.cluster.cache;
    (config.store.extent_memory, config.store.extent_disk) = (cache.memory, cache.disk);
    config.store.tree_bytes = Some(cache.trees);
    let (options, for_open) = (config.store.clone(), seams.clone());
    // Without need it connects to nothing.
    let log = if options.follow_log { open_log(&config.cluster).await? } else { SharedLog::Bucket };
    let open = move || Store::open_read_only_over(options, for_open, bucket, log);
    let opened = blocking("opening the bucket", open).await?;
    let store = Arc::new(opened?);
    for problem in store.problems() {
        tracing::error!("{problem}");
    }
    records::compare(&config, &control, &store).await?;
    let (told, stopping) = watch::channel(false);
    let tell = told.clone();
    tokio::spawn(async move {
        stop.await;
        tell.send_replace(true);
    });
    let place = format!("read only, as flushed to {}", config.cluster.bucket);
    let folder = Some(config.store.data.clone());
    let backend = Embedded::with_records(store.clone(), control);
    let mut gateways = JoinSet::new();
    if let Some(port) = port {
        let memory = Arc::new(Pool::new(config.server.query_bytes_total));
        gateways.spawn(port.answer(store.clone(), backend.clone(), memory, seams.clone(), stopping.clone()));
    }
    // After the listener: the next pin names its address.
    following.spawn(follow(store.clone()));
    let source = Source { backend, place, folder, bucket: Some(config.cluster.bucket.clone()), membership, drained };
    let mut clients = stopping;
    let until = async move { drop(clients.wait_for(|stop| *stop).await) };
    let served = http::serve(listeners, config, source, &seams, until).await;
    // Also after a failure, so that gateways are no longer served either.
    told.send_replace(true);
    while let Some(ended) = gateways.join_next().await {
        if let Ok(Err(error)) = ended {
            tracing::error!(%error, "answering gateways failed");
        }
    }
    following.shutdown().await;
    drop(obeying);
    let closed = blocking("closing", move || store.close()).await;
    member.leave().await?;
    served?;
    closed??;
    say("stopped");
    Ok(())
}

/// The listener for gateways.
struct GatewayListener {
    listener: TcpListener,
    /// The address by which they find it.
    address: String,
    group: String,
    turns: Arc<ScanExecutor>,
    /// TLS between roles, if the settings have it.
    tls: Option<RoleTls>,
    /// Modelled time of row batches, in a study.
    pace: Option<Arc<dyn Pace>>,
}

impl GatewayListener {
    /// Binds the address in the settings, if there is one.
    async fn open(settings: &Scan, tls: &Roles) -> Result<Option<GatewayListener>, Failure> {
        let (listen, given) = ("cluster.scan.listen", settings.listen.as_str());
        if given.is_empty() {
            return Ok(None);
        }
        let listener = TcpListener::bind(given).await;
        let listener = listener.map_err(|e| Failure::Usage(format!("{listen} {given}: cannot listen there: {e}")))?;
        let local = listener.local_addr().map_err(|e| Failure::Refused(format!("no local address: {e}")))?;
        let address = reached_by((listen, given), ("cluster.scan.advertise", &settings.advertise), local)?;
        tls.expect_protected(listen, local)?;
        let limits = Limits { places: settings.places, started: settings.started, waiting: settings.waiting };
        let (group, turns, pace) = (settings.group.clone(), ScanExecutor::new(limits), dilate::pace(false)?);
        Ok(Some(GatewayListener { listener, address, group, turns, tls: None, pace }))
    }

    /// Serves gateways until `stopping`. From then on they get busy responses, and use other servers.
    async fn answer(
        self,
        store: Arc<Store>,
        backend: Arc<Embedded>,
        memory: Arc<Pool>,
        seams: Seams,
        mut stopping: watch::Receiver<bool>,
    ) -> std::io::Result<()> {
        let GatewayListener { listener, address, group, turns, tls, pace } = self;
        let counted = turns.clone();
        backend.count_also(Arc::new(move || figures(&counted)));
        say(&format!("answers gateways on {address}"));
        let (loaded, draining) = (turns.clone(), turns.clone());
        store.announce(Arc::new(move || {
            let ScanLoad { working, started, waiting } = loaded.load();
            ScanServerStatus { address: address.clone(), group: group.clone(), working, started, waiting }
        }));
        let clock = seams.clock.clone();
        let control = Arc::new(move |left: Duration, cancel: CancelFlag| {
            Control::new(clock.clone(), left, cancel).sharing(memory.clone())
        });
        let options = ServeOptions::of_scans(store.reader().unwrap_or_default(), turns, control, seams.random.clone());
        let options = ServeOptions { tls, pace, ..options };
        let until = async {
            drop(stopping.wait_for(|stop| *stop).await);
            // Before the pin is removed. Without the pin, a query on an earlier snapshot would fail as gone, although
            // another server has it.
            draining.drain();
            // Gateways use other servers from their next listing on.
            let leaving = store.clone();
            if let Err(failure) = blocking("leaving", move || leaving.leave()).await {
                tracing::error!("{failure}");
            }
        };
        meridian_remote::serve(backend, listener, options, until).await
    }
}

/// Metrics of a scan server.
fn figures(turns: &ScanExecutor) -> Vec<Metric> {
    use MetricKind::{Counter, Gauge};
    let ScanLoad { working, started, waiting } = turns.load();
    let figure = |kind, name, help, value| Metric { kind, name, help, value };
    vec![
        figure(Gauge, "meridian_scan_turns_working", "Questions of gateways that work on a batch.", working),
        figure(Gauge, "meridian_scan_turns_started", "Questions of gateways that have started.", started),
        figure(Gauge, "meridian_scan_turns_waiting", "Questions of gateways that wait for their start.", waiting),
        figure(Counter, "meridian_scan_turns_total", "Questions of gateways that were started.", turns.begun()),
        figure(
            Counter,
            "meridian_scan_turns_busy_total",
            "Questions of gateways that were answered busy.",
            turns.answered_busy(),
        ),
    ]
}

/// Loads what owners flush. While the bucket does not respond, the server continues with what it has.
async fn follow(store: Arc<Store>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let looked = store.clone();
        match blocking("looking for new manifests", move || looked.refresh()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "what the owner has flushed since could not be read: trying again")
            }
            Err(failure) => tracing::error!("{failure}"),
        }
    }
}
