//! What runs beside requests for as long as a process answers them, and how it ends.

use crate::credentials;
use crate::issuers;
use crate::quota;
use crate::sign_in;
use crate::state::AppState;
use std::io;
use std::sync::atomic::Ordering;
use tokio::task::JoinSet;

/// Starts it. The tasks end with the set that is returned.
pub fn begin(state: &AppState) -> io::Result<JoinSet<()>> {
    // Before the first request, so that no write is acknowledged while nothing evaluates it.
    state.saved.run()?;
    let mut tending = JoinSet::new();
    for gate in [state.gate.clone(), state.reserved.clone()] {
        tending.spawn(async move { gate.tend().await });
    }
    tending.spawn(quota::count_stored(state.clone()));
    tending.spawn(sign_in::tend(state.clone()));
    tending.spawn(credentials::follow(state.clone()));
    tending.spawn(issuers::tend(state.clone()));
    Ok(tending)
}

/// Ends streams and searches, which would not end themselves: their readers get a last message.
pub fn end_streams(state: &AppState) {
    state.stopping.store(true, Ordering::Relaxed);
    state.searches.stop_all();
    state.saved.close();
    state.live.close();
    state.config.gateways.iter().for_each(|gateways| gateways.close());
}

/// Checks the last acknowledged writes against the saved searches, and stores packets not read yet. After the last request.
pub async fn stop_saved(state: &AppState) {
    let stopped = state.clone();
    match tokio::task::spawn_blocking(move || stopped.saved.stop()).await {
        Ok(Ok(())) => {}
        Ok(Err(e)) => tracing::error!(error = %e, "waiting packets of saved searches could not be stored"),
        Err(e) => tracing::error!(error = %e, "saved searches did not stop cleanly"),
    }
}
