//! Serves clients over HTTP, from any source of collections.

use super::greeting::{self, StartMessage};
use crate::certificates::Certificates;
use crate::config::Config;
use crate::control;
use crate::failure::Failure;
use crate::machine;
use crate::traces;
use crate::units;
use meridian_admission::identity::Fault;
use meridian_api::{AppState, HostName, Hosts, Listeners, Member, Tls};
use meridian_backend::Backend;
use meridian_backend::cluster::{ClusterSurvey, ServerStatus};
use meridian_store::ANSWERS;
use meridian_store::bucket::Peers;
use meridian_store::seams::Seams;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The listeners for clients, bound before anything slow begins, so that a wrong address is reported at once.
pub(super) struct ClientListeners {
    certificates: Option<Certificates<Tls>>,
    listener: TcpListener,
    /// Arrow Flight, with its address.
    flight: Option<(TcpListener, SocketAddr)>,
    monitors: Option<TcpListener>,
    address: SocketAddr,
}

impl ClientListeners {
    /// Binds the addresses of the settings, and reads the certificate.
    pub(super) async fn open(config: &mut Config) -> Result<ClientListeners, Failure> {
        // A host name in the listen address is a name of the server.
        config.server.hosts.extend(HostName::listened_on(&config.listen));
        config.server.hosts.extend(HostName::listened_on(&config.flight_listen));
        let certificates = config.tls.open()?;
        let listener = TcpListener::bind(&config.listen)
            .await
            .map_err(|e| Failure::Usage(format!("--listen {}: cannot listen there: {e}", config.listen)))?;
        let flight = flight(&config.flight_listen).await?;
        let monitors = match config.metrics_listen {
            None => None,
            Some(address) => Some(
                TcpListener::bind(address)
                    .await
                    .map_err(|e| Failure::Usage(format!("metrics.listen {address}: cannot listen there: {e}")))?,
            ),
        };
        let address = listener.local_addr().map_err(|e| Failure::Refused(format!("no local address: {e}")))?;
        Ok(ClientListeners { certificates, listener, flight, monitors, address })
    }

    /// The address of HTTP.
    #[cfg(feature = "cluster")]
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether clients use TLS.
    #[cfg(feature = "cluster")]
    pub(super) fn is_secure(&self) -> bool {
        self.certificates.is_some()
    }
}

/// Warns if the settings let the server take more memory than the process may use.
fn warn_of_memory(config: &Config) {
    let wanted = config.memory_bytes();
    if let Some(there) = machine::memory().filter(|there| *there < wanted) {
        tracing::warn!(
            "the settings let the server take {}, and this process may use {}: it could be killed",
            units::size_short(wanted),
            units::size_short(there)
        );
    }
}

/// Binds the address of Arrow Flight, if there is one.
async fn flight(address: &str) -> Result<Option<(TcpListener, SocketAddr)>, Failure> {
    if address.is_empty() {
        return Ok(None);
    }
    if cfg!(not(feature = "flight")) {
        return Err(Failure::Usage(format!("--flight {address}: this program was built without the feature `flight`")));
    }
    let listener = TcpListener::bind(address)
        .await
        .map_err(|e| Failure::Usage(format!("--flight {address}: cannot listen there: {e}")))?;
    let local = listener.local_addr().map_err(|e| Failure::Refused(format!("no local address: {e}")))?;
    Ok(Some((listener, local)))
}

/// The collections that a server serves.
pub(super) struct Source {
    pub(super) backend: Arc<dyn Backend>,
    /// Location of the collections, for the start message and for failures.
    pub(super) place: String,
    /// Folder of this process, which has the socket of `meridian token`.
    pub(super) folder: Option<PathBuf>,
    /// Bucket with the tokens, in a cluster.
    pub(super) bucket: Option<String>,
    /// Membership of the server in its cluster.
    pub(super) membership: Option<ClusterMembership>,
    /// Whether an operator has drained this server.
    pub(super) drained: watch::Receiver<bool>,
}

/// A server as a member of its cluster.
#[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "none is made"))]
pub(super) struct ClusterMembership {
    /// `gateway` or `scan`.
    pub(super) role: &'static str,
    /// Its name.
    pub(super) node: String,
    /// The other servers, which share the quotas of tenants.
    pub(super) peers: Arc<Peers>,
    /// The survey that shows operators the whole cluster.
    pub(super) survey: ClusterSurvey,
    /// Set for a gateway that is one of several.
    #[cfg(feature = "cluster")]
    pub(super) joins: Option<super::cluster::GatewayMembership>,
}

/// Serves until `stop`. The caller closes the source.
pub(super) async fn serve(
    listeners: ClientListeners,
    mut config: Config,
    source: Source,
    seams: &Seams,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Failure> {
    let ClientListeners { certificates, listener, flight, monitors, address } = listeners;
    let tokens_at = greeting::tokens_at(source.bucket.as_deref(), source.folder.as_deref());
    let Source { backend, place, folder, membership, mut drained, .. } = source;
    config.server.answer_folder = folder.as_deref().map(|folder| folder.join(ANSWERS));
    let hosts = Hosts::new(&config.server, address);
    let refused = |e: Fault| match e {
        // The error is in a file named in the settings.
        Fault::Invalid(setting) => Failure::Usage(format!("--config: {setting}")),
        other => Failure::Refused(format!("cannot open what is {place}: {other}")),
    };
    let memory = config.memory_text();
    warn_of_memory(&config);
    let (tracer, sender) = traces::start(&config.traces, seams)?;
    #[cfg(feature = "cluster")]
    let mut joins = None;
    let (peers, said, member) = match membership {
        None => (None, ServerStatus::default(), None),
        Some(membership) => {
            let ClusterMembership { role, node, peers, survey, .. } = membership;
            #[cfg(feature = "cluster")]
            {
                joins = membership.joins;
            }
            let said = ServerStatus {
                role: Some(role.to_owned()),
                node: Some(node.clone()),
                address: Some(address.to_string()),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
                ..ServerStatus::default()
            };
            (Some(peers), said, Some(Member::new(role, node, survey)))
        }
    };
    let state = AppState::with(backend.clone(), seams, config.server, tracer, member).map_err(refused)?;
    // Decided after the folder is open, which holds the tokens, and before the first connection.
    let greeting = StartMessage {
        address,
        flight: flight.as_ref().map(|(_, address)| *address),
        is_secure: certificates.is_some(),
        is_open: state.registry.is_empty(),
        tokens_at,
    };
    greeting.check()?;
    let (mut collections, mut events) = (0, 0);
    for tenant in state.registry.tenants() {
        let all = backend.list(&tenant.name)?;
        collections += all.len();
        events += all.iter().map(|collection| collection.stats().events).sum::<u64>();
    }
    // A full or read-only disk must not keep the server from serving existing data.
    let control = folder.as_deref().and_then(|folder| {
        let made = control::listen(folder).and_then(UnixListener::from_std);
        made.inspect_err(|e| tracing::warn!(error = %e, "there is no control socket: `meridian token` needs --url"))
            .ok()
    });
    greeting.say(&place, (collections, events), &hosts, &memory);
    let tls = certificates.as_ref().map(Certificates::tls);
    if let Some(warning) = certificates.as_ref().and_then(Certificates::warning) {
        tracing::warn!("{warning}");
    }
    let followed = certificates.map(Certificates::follow).transpose();
    let followed = followed.map_err(|e| Failure::Refused(format!("cannot watch for signals: {e}")))?;
    // Its task ends with this function, which drops the set.
    let mut following = JoinSet::new();
    if let Some(followed) = followed {
        following.spawn(followed);
    }
    #[cfg(feature = "cluster")]
    let assignment =
        joins.as_ref().map(|joins| super::cluster::Assignment::begin(joins, &state, seams, &mut following));
    #[cfg(feature = "cluster")]
    if let Some(peers) = peers.clone() {
        following.spawn(super::cluster::tell(peers, state.clone(), said, joins));
    }
    #[cfg(not(feature = "cluster"))]
    let _ = said;
    let ready = state.clone();
    following.spawn(async move {
        loop {
            ready.drained.store(*drained.borrow_and_update(), Ordering::Relaxed);
            if drained.changed().await.is_err() {
                return;
            }
        }
    });
    let monitoring = monitors.map(|listener| tokio::spawn(meridian_api::serve_monitors(listener, state.clone())));
    let listeners = Listeners { http: listener, flight: flight.map(|(listener, _)| listener), control };
    let served = meridian_api::serve(listeners, tls, state, stop).await;
    // After the server, so that monitors see the shutdown until its end.
    if let Some(monitoring) = monitoring {
        monitoring.abort();
    }
    if let Some(sender) = sender {
        sender.stop().await;
    }
    following.shutdown().await;
    #[cfg(feature = "cluster")]
    if let Some(assignment) = assignment {
        assignment.leave().await;
    }
    if let Some(peers) = peers {
        // This frees its shares for the others at once, rather than some seconds later.
        let _ = tokio::task::spawn_blocking(move || peers.leave()).await;
    }
    if let Some(folder) = &folder {
        control::remove(folder);
    }
    served.map_err(|e| Failure::Refused(format!("the server stopped: {e}")))
}
