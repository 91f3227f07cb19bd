//! Ctrl-C and SIGTERM, for commands that clean up before they end.

use crate::failure::Failure;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Exit code of a program that a second Ctrl-C ended.
pub const INTERRUPTED: i32 = 130;

/// Calls `first` at the first signal, on a separate thread. A second signal ends this program at once.
pub fn at_interrupt(first: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::Refused(format!("cannot watch for signals: {e}"));
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    // Registered before this returns: an early signal must not find the default handler.
    let (mut interrupt, mut terminate) = {
        let _inside = runtime.enter();
        (signal(SignalKind::interrupt()).map_err(failed)?, signal(SignalKind::terminate()).map_err(failed)?)
    };
    std::thread::spawn(move || {
        runtime.block_on(either(&mut interrupt, &mut terminate));
        // On its own thread, so that a second signal is noticed while the first one's work hangs.
        std::thread::spawn(first);
        runtime.block_on(either(&mut interrupt, &mut terminate));
        std::process::exit(INTERRUPTED);
    });
    Ok(())
}

async fn either(a: &mut Signal, b: &mut Signal) {
    tokio::select! {
        _ = a.recv() => {}
        _ = b.recv() => {}
    }
}
