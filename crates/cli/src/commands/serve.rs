//! `meridian serve`: the server.

use crate::certificates::Certificates;
use crate::config::{self, Config};
use crate::control;
use crate::failure::Failure;
use crate::log;
use crate::machine;
use crate::output::say;
use crate::traces;
use crate::units;
use clap::Args;
use meridian_admission::identity::Fault;
use meridian_api::{AppState, HostName, Hosts};
use meridian_backend::Embedded;
use meridian_store::seams::Seams;
use meridian_store::{Options, Store};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

/// A process with less memory returns free memory to the system at once.
const LITTLE_MEMORY: u64 = 4 << 30;

/// Files that a server has open besides its connections.
const OTHER_FILES: u64 = 1024;

/// Serve collections over HTTP: OGC API, map, places profile
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian serve                                   ./meridian-data on http://127.0.0.1:7117
  meridian serve --data /srv/events --listen 0.0.0.0:7117
  meridian serve --listen 0.0.0.0:7117 --host events.example.org
  meridian serve --listen 0.0.0.0:7117 --tls-cert events.pem --tls-key events.key
  meridian serve --ephemeral                       keep everything in memory
  meridian serve --show-config > meridian.toml     every setting, its meaning and its default
  meridian serve --config meridian.toml

Ctrl-C or SIGTERM stops it cleanly: running requests finish, and all data is on disk.")]
pub struct ServeArgs {
    /// Address and port to listen on; port 0 selects a free one [default: 127.0.0.1:7117]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Host name of the server, besides its address and localhost; may be repeated
    #[arg(long, value_name = "NAME")]
    pub host: Vec<HostName>,
    /// Speak TLS with this certificate (PEM, with those of the authorities between); read again when it changes
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key (PEM, without a passphrase)
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Data folder; created if missing [default: ./meridian-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Settings, in TOML; the command line overrides them
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Keep everything in memory and acknowledge at once: nothing survives the process
    #[arg(long)]
    pub ephemeral: bool,
    /// Role of this process: all (gateway, owner and scan come with the cluster)
    #[arg(long, value_name = "ROLE")]
    pub role: Option<String>,
    /// Durability of the places profile's collection: local or ephemeral [default: local]
    #[arg(long, value_name = "DURABILITY")]
    pub places_durability: Option<String>,
    /// Form of log lines: text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<log::Format>,
    /// Print the effective settings and exit
    #[arg(long)]
    pub show_config: bool,
}

/// Runs the command; returns when the server has stopped.
pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    let mut config = settings(args)?;
    if args.show_config {
        say(config.show().trim_end());
        return Ok(());
    }
    match config.role.as_str() {
        "all" => {}
        "gateway" | "owner" | "scan" => {
            return Err(Failure::Usage(format!(
                "--role {}: this version runs as one process: expected all; the other parts come with the cluster",
                config.role
            )));
        }
        other => return Err(Failure::Usage(format!("--role {other}: expected all, gateway, owner or scan"))),
    }
    // The pages of the program arrive while the data folder is opened.
    machine::read_program_ahead();
    if machine::memory().is_some_and(|bytes| bytes < LITTLE_MEMORY) {
        machine::return_memory_soon(Duration::from_millis(10));
    }
    let telling = log::start(config.log_format);
    if let Some(files) = machine::raise_open_files() {
        let max = usize::try_from(files.saturating_sub(OTHER_FILES).max(files / 2)).unwrap_or(usize::MAX);
        if config.server.connections_max > max {
            tracing::warn!(
                "this process may open {files} files: at most {max} connections instead of requests.connections_max ({})",
                config.server.connections_max
            );
            config.server.connections_max = max;
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::Refused(format!("cannot start threads: {e}")))?;
    runtime.spawn(telling);
    runtime.block_on(serve(config))
}

fn settings(args: &ServeArgs) -> Result<Config, Failure> {
    let mut config = match &args.config {
        Some(file) => Config::read(file)?,
        None => Config::default(),
    };
    if let Some(listen) = &args.listen {
        config.listen.clone_from(listen);
    }
    config.server.hosts.extend(args.host.iter().cloned());
    for (given, place) in [(&args.tls_cert, &mut config.tls.certificate), (&args.tls_key, &mut config.tls.key)] {
        if given.is_some() {
            place.clone_from(given);
        }
    }
    if let Some(data) = &args.data {
        config.store.data.clone_from(data);
    }
    if let Some(role) = &args.role {
        config.role.clone_from(role);
    }
    if let Some(name) = &args.places_durability {
        config.server.places_durability =
            config::durability(name).map_err(|e| Failure::Usage(format!("--places-durability: {e}")))?;
    }
    if let Some(format) = args.log_format {
        config.log_format = format;
    }
    config.store.ephemeral |= args.ephemeral;
    if config.store.ephemeral {
        let memory = Options::ephemeral();
        config.store = Options { data: memory.data, ephemeral: true, ..config.store };
    }
    Ok(config)
}

async fn serve(mut config: Config) -> Result<(), Failure> {
    // A name that the address is given by is a name of the server.
    config.server.hosts.extend(HostName::listened_on(&config.listen));
    // Before the listener: a signal that comes early must not find the default handler.
    let stop = stop_signal()?;
    let certificates = config.tls.open()?;
    // The port first, so that a wrong address is reported before a large log is replayed.
    let listener = TcpListener::bind(&config.listen)
        .await
        .map_err(|e| Failure::Usage(format!("--listen {}: cannot listen there: {e}", config.listen)))?;
    let monitors = match config.metrics_listen {
        None => None,
        Some(address) => Some(
            TcpListener::bind(address)
                .await
                .map_err(|e| Failure::Usage(format!("metrics.listen {address}: cannot listen there: {e}")))?,
        ),
    };
    let address = listener.local_addr().map_err(|e| Failure::Refused(format!("no local address: {e}")))?;
    let seams = Seams::real();
    let (options, for_open) = (config.store.clone(), seams.clone());
    let opened = tokio::task::spawn_blocking(move || Store::open(options, for_open)).await;
    let store = Arc::new(opened.map_err(|e| Failure::Refused(format!("opening the data folder failed: {e}")))??);
    for problem in store.problems() {
        tracing::error!("{problem}");
    }
    let hosts = Hosts::new(&config.server, address);
    let refused = |e: Fault| match e {
        // Of a file that the settings name.
        Fault::Invalid(setting) => Failure::Usage(format!("--config: {setting}")),
        other => Failure::Refused(format!("cannot open {}: {other}", config.store.data.display())),
    };
    let memory = config.memory_text();
    let (wanted, there) = (config.memory_bytes(), machine::memory());
    if let Some(there) = there.filter(|there| *there < wanted) {
        tracing::warn!(
            "the settings let the server take {}, and this process may use {}: it could be killed",
            units::size_short(wanted),
            units::size_short(there)
        );
    }
    let (tracer, sender) = traces::start(&config.traces, &seams)?;
    let backend = Embedded::new(store.clone());
    let state = AppState::traced(backend, &seams, config.server, tracer).map_err(refused)?;
    // Decided after the folder is open, which holds the tokens, and before the first connection.
    let open = state.registry.is_empty();
    if open && !address.ip().to_canonical().is_loopback() {
        return Err(Failure::Usage(format!(
            "--listen {address}: no token exists, so everyone who reaches this address could do anything: \
             create one first with `meridian token create --role operator --data {}`",
            config.store.data.display()
        )));
    }
    let tenants = state.registry.tenants();
    let collections: Vec<_> = tenants.iter().flat_map(|tenant| store.list(&tenant.name)).collect();
    let events: u64 = collections.iter().map(|c| c.stats().events).sum();
    let what = if config.store.ephemeral {
        "in memory, nothing survives this process".to_owned()
    } else {
        format!("data in {}", config.store.data.display())
    };
    let scheme = if certificates.is_some() { "https" } else { "http" };
    let map = if cfg!(feature = "map") { format!("map {scheme}://{address}/map   ") } else { String::new() };
    let folder = (!config.store.ephemeral).then(|| config.store.data.clone());
    // A full or read-only disk must not keep the server from serving what is there.
    let control = folder.as_deref().and_then(|folder| {
        let made = control::listen(folder).and_then(UnixListener::from_std);
        made.inspect_err(|e| tracing::warn!(error = %e, "there is no control socket: `meridian token` needs --url"))
            .ok()
    });
    say(&format!(
        "Meridian {} serves {} collections, {} events on {scheme}://{address} ({what})\n\
         {map}API {scheme}://{address}/   end with Ctrl-C\n\
         answers to {}; other names get 421 (--host, server.hosts)\n\
         {memory}",
        env!("CARGO_PKG_VERSION"),
        collections.len(),
        units::count_text(events),
        hosts,
    ));
    if open {
        say(
            "no token exists: open to programs on this machine. `meridian token create --role operator` makes the first; \
             a proxy, or any other address, needs one",
        );
    }
    let tls = certificates.as_ref().map(Certificates::tls);
    if let Some(warning) = certificates.as_ref().and_then(Certificates::warning) {
        tracing::warn!("{warning}");
    }
    if tls.is_none() && !address.ip().to_canonical().is_loopback() {
        say(
            "without TLS: everyone between this server and its clients can read and change what they send, tokens included \
             (--tls-cert, --tls-key, or a proxy that speaks TLS)",
        );
    }
    let followed = certificates.map(Certificates::follow).transpose();
    let followed = followed.map_err(|e| Failure::Refused(format!("cannot watch for signals: {e}")))?;
    // Its task ends with this function.
    let mut following = JoinSet::new();
    if let Some(followed) = followed {
        following.spawn(followed);
    }
    let monitoring = monitors.map(|listener| tokio::spawn(meridian_api::serve_monitors(listener, state.clone())));
    let served = meridian_api::serve(listener, control, tls, state, stop).await;
    // After the server: monitors see the shutdown until its end.
    if let Some(monitoring) = monitoring {
        monitoring.abort();
    }
    if let Some(sender) = sender {
        sender.stop().await;
    }
    if let Some(folder) = &folder {
        control::remove(folder);
    }
    let closing = store.clone();
    // Also after a failure: closing flushes the memory trees, so that the next start replays no log.
    let closed = tokio::task::spawn_blocking(move || closing.close()).await;
    // After closing: the first error must not skip the clean end.
    served.map_err(|e| Failure::Refused(format!("the server stopped: {e}")))?;
    closed.map_err(|e| Failure::Refused(format!("closing the data folder failed: {e}")))??;
    say("stopped; everything is on disk");
    Ok(())
}

/// Completes at Ctrl-C or SIGTERM.
fn stop_signal() -> Result<impl Future<Output = ()> + Send, Failure> {
    let failed = |e: std::io::Error| Failure::Refused(format!("cannot watch for signals: {e}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
