//! `meridian serve`: the server, whole or one role of a cluster.

#[cfg(feature = "cluster")]
pub(crate) mod cluster;
mod greeting;
mod http;
mod seams;

use crate::config::{self, Config, Role};
use crate::failure::Failure;
use crate::log;
use crate::machine;
use crate::output::say;
use clap::Args;
use http::{ClientListeners, Source};
use meridian_api::HostName;
use meridian_backend::Embedded;
use meridian_store::{Options, Store};
use seams::seams;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// A process with less memory than this returns freed memory to the system at once.
const LITTLE_MEMORY: u64 = 4 << 30;

/// Open files of a server besides its connections.
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
    /// Role of this process: all, or one of a cluster: gateway, owner or scan [default: all]
    #[arg(long, value_name = "ROLE")]
    pub role: Option<Role>,
    /// Log of a cluster: bucket or nats
    #[arg(long, value_name = "LOG")]
    pub log: Option<String>,
    /// Bucket of a cluster: file://DIR, a folder that all its processes share, or s3://BUCKET/PREFIX
    #[arg(long, value_name = "ADDRESS")]
    pub bucket: Option<String>,
    /// Address and port of Arrow Flight: for clients [default: none]; of an owner, for gateways [default:
    /// 127.0.0.1:7118]
    #[arg(long, value_name = "ADDR")]
    pub flight: Option<String>,
    /// Host and port by which gateways reach an owner, if not by --flight: behind NAT, a proxy or a Service
    #[arg(long, value_name = "ADDR")]
    pub flight_advertise: Option<String>,
    /// Address and port where a scan server answers gateways [default: it answers clients alone]
    #[arg(long, value_name = "ADDR")]
    pub scan_listen: Option<String>,
    /// Host and port by which gateways reach a scan server, if not by --scan-listen
    #[arg(long, value_name = "ADDR")]
    pub scan_advertise: Option<String>,
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
    config.cluster.check(config.role, config.store.ephemeral)?;
    // The program's pages are loaded while the data folder is opened.
    machine::read_program_ahead();
    if machine::memory().is_some_and(|bytes| bytes < LITTLE_MEMORY) {
        machine::return_memory_soon(Duration::from_millis(10));
    }
    // Before the limits are checked, which writes the first warning.
    let telling = log::start(config.log_format);
    if let Some(files) = machine::raise_open_files() {
        // Lowered rather than refused: a connection beyond the file limit could not even be rejected.
        let max = usize::try_from(files.saturating_sub(OTHER_FILES).max(files / 2)).unwrap_or(usize::MAX);
        if config.server.connections_max > max {
            tracing::warn!(
                "this process may open {files} files: at most {max} connections instead of requests.connections_max ({})",
                config.server.connections_max
            );
            config.server.connections_max = max;
        }
    }
    let runtime =
        meridian_api::runtime().build().map_err(|e| Failure::Refused(format!("cannot start threads: {e}")))?;
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
    // The command line overrides the file, option by option.
    for (given, place) in [(&args.tls_cert, &mut config.tls.certificate), (&args.tls_key, &mut config.tls.key)] {
        if given.is_some() {
            place.clone_from(given);
        }
    }
    if let Some(data) = &args.data {
        config.store.data.clone_from(data);
    }
    if let Some(role) = args.role {
        config.role = role;
    }
    // An owner serves gateways, and no clients.
    let flight = match config.role {
        Role::Owner => &mut config.cluster.flight,
        Role::All | Role::Gateway | Role::Scan => &mut config.flight_listen,
    };
    for (given, place) in [
        (&args.log, &mut config.cluster.log),
        (&args.bucket, &mut config.cluster.bucket),
        (&args.flight, flight),
        (&args.flight_advertise, &mut config.cluster.flight_advertise),
        (&args.scan_listen, &mut config.cluster.scan.listen),
        (&args.scan_advertise, &mut config.cluster.scan.advertise),
    ] {
        if let Some(given) = given {
            place.clone_from(given);
        }
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
        // In memory no folder is opened, whatever the settings name; the limits stay.
        let memory = Options::ephemeral();
        config.store = Options { data: memory.data, ephemeral: true, ..config.store };
    }
    Ok(config)
}

async fn serve(mut config: Config) -> Result<(), Failure> {
    // Before anything else: an early signal must not find the default handler.
    let stop = stop_signal()?;
    config.store.snapshot_memory = seams::snapshot_memory()?.unwrap_or(config.store.snapshot_memory);
    match config.role {
        Role::All => all(config, stop).await,
        #[cfg(feature = "cluster")]
        Role::Owner => cluster::owner(config, stop).await,
        #[cfg(feature = "cluster")]
        Role::Gateway => cluster::gateway(config, stop).await,
        #[cfg(feature = "cluster")]
        Role::Scan => cluster::scan(config, stop).await,
        #[cfg(not(feature = "cluster"))]
        role => Err(Failure::Usage(format!("--role {role}: expected all"))),
    }
}

/// Runs everything in this process, over a data folder or in memory.
async fn all(mut config: Config, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), Failure> {
    let listeners = ClientListeners::open(&mut config).await?;
    let seams = seams()?;
    let (options, for_open) = (config.store.clone(), seams.clone());
    // Opening reads footers and replays logs, and must not block the task that watches for signals.
    let opened = tokio::task::spawn_blocking(move || Store::open(options, for_open)).await;
    let store = Arc::new(opened.map_err(|e| Failure::Refused(format!("opening the data folder failed: {e}")))??);
    for problem in store.problems() {
        tracing::error!("{problem}");
    }
    let folder = (!config.store.ephemeral).then(|| config.store.data.clone());
    let place = match &folder {
        Some(folder) => format!("data in {}", folder.display()),
        None => "in memory, nothing survives this process".to_owned(),
    };
    // Only in a cluster can another process take over.
    let (_, drained) = watch::channel(false);
    let source =
        Source { backend: Embedded::new(store.clone()), place, folder, bucket: None, membership: None, drained };
    let served = http::serve(listeners, config, source, &seams, stop).await;
    // Also after a failure: closing flushes the memory trees, so that the next start replays no log.
    let closed = tokio::task::spawn_blocking(move || store.close()).await;
    // The error of serving comes first: a failure to close often follows from it.
    served?;
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
