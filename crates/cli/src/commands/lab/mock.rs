//! `meridian lab mock`: servers to try a scenario on.

use super::failure;
use crate::failure::Failure;
use crate::output::say;
use clap::Args;
use meridian_lab_drive::mock::{Mock, MockFile};
use meridian_store::seams::{expect_file, read_named_text};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Serve mock sources, or the null server that shows the lab's own limit
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian lab mock sources.toml --log calls.ndjson    sources with delays and faults, and the truth of what they answered
  meridian lab mock --null                         answers {} to everything on http://127.0.0.1:7118
  meridian lab mock --null --listen 127.0.0.1:0    on a free port, which it prints

Ctrl-C or SIGTERM ends it.")]
pub struct MockArgs {
    /// The sources
    #[arg(value_name = "FILE.toml", required_unless_present = "null", conflicts_with = "null")]
    pub file: Option<PathBuf>,
    /// Answer every request with 200 and {} as fast as possible, instead of sources
    #[arg(long)]
    pub null: bool,
    /// Write each call and its answer, as JSON lines
    #[arg(long, value_name = "FILE", conflicts_with = "null")]
    pub log: Option<PathBuf>,
    /// Address and port to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7118")]
    pub listen: String,
}

/// Runs the command until it is stopped.
pub fn run(args: &MockArgs) -> Result<(), Failure> {
    let mock = match &args.file {
        None => None,
        Some(path) => {
            let file = MockFile::load(path, read_named_text, expect_file).map_err(failure)?;
            Some(Arc::new(Mock::new(&file, args.log.as_deref()).map_err(failure)?))
        }
    };
    // One core, like the lab itself: the two are measured side by side.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Failure::Refused(format!("cannot start: {e}")))?;
    runtime.block_on(async {
        let wrong = |e| Failure::Refused(format!("--listen {}: {e}", args.listen));
        let listener = TcpListener::bind(&args.listen).await.map_err(wrong)?;
        let what = if mock.is_some() { "mock sources" } else { "null server" };
        say(&format!("{what} on http://{}", listener.local_addr().map_err(wrong)?));
        tokio::select! {
            () = serve(listener, mock) => Ok(()),
            () = told_to_stop() => Ok(()),
        }
    })
}

async fn serve(listener: TcpListener, mock: Option<Arc<Mock>>) {
    match mock {
        Some(mock) => mock.serve(listener).await,
        None => meridian_lab_drive::mock::null::serve(listener).await,
    }
}

async fn told_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut term) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = term.recv() => {}
    }
}
