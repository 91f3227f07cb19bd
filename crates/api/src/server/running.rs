//! Background tasks that run for as long as a process handles requests, and how they end.

use crate::access::credentials;
use crate::access::issuers;
use crate::access::sign_in;
use crate::request::quota;
use crate::state::AppState;
use std::io;
use std::sync::atomic::Ordering;
use tokio::task::JoinSet;

/// Starts the tasks. They end when the returned set is dropped.
pub fn begin(state: &AppState) -> io::Result<JoinSet<()>> {
    // Before the first request, so that no write is acknowledged before the saved searches can evaluate it.
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

/// Ends streams and searches, which would not end by themselves; their readers get a last message.
pub fn end_streams(state: &AppState) {
    state.stopping.store(true, Ordering::Relaxed);
    state.searches.stop_all();
    state.saved.close();
    state.live.close();
    state.config.gateways.iter().for_each(|gateways| gateways.close());
}

/// Evaluates the last acknowledged writes for the saved searches, and stores packets that were not read yet. Called
/// after the last request.
pub async fn stop_saved(state: &AppState) {
    let stopped = state.clone();
    match tokio::task::spawn_blocking(move || stopped.saved.stop()).await {
        Ok(Ok(())) => {}
        Ok(Err(e)) => tracing::error!(error = %e, "waiting packets of saved searches could not be stored"),
        Err(e) => tracing::error!(error = %e, "saved searches did not stop cleanly"),
    }
}
