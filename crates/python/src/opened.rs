//! An open data folder: its store, its threads, and their shutdown.

use axum::body::Body;
use axum::http::{Request, Response};
use meridian_api::{AppState, InProcess, ServerConfig};
use meridian_backend::Embedded;
use meridian_store::seams::Seams;
use meridian_store::{Options, Store, StoreError};
use parking_lot::Mutex;
use std::future::Future;
use std::mem;
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Max concurrent calls.
const CALLS_MAX: u32 = 1 << 16;
/// Max time for calls to end during shutdown: a call whose signal handler closes the engine can end only afterwards.
const CALLS_END: Duration = Duration::from_secs(10);
/// Max time for threads to end.
const THREADS_END: Duration = Duration::from_secs(1);

/// Why a folder could not be opened.
pub enum Fault {
    /// The store refused it.
    Store(StoreError),
    /// Anything else.
    Other(String),
}

/// The engine was closed, so a call has no outcome.
pub struct EngineClosed;

/// A call in progress; `close` waits for its end.
pub struct Call(#[allow(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

/// An open folder, shared by the engine and its responses.
pub struct OpenFolder {
    /// The process that opened it: the threads exist in no other one.
    process: u32,
    threads: Handle,
    /// One permit per call; shutdown takes them all.
    calls: Arc<Semaphore>,
    ends: watch::Sender<bool>,
    held: Mutex<Option<OpenParts>>,
}

/// Resources released at shutdown.
struct OpenParts {
    api: Arc<InProcess>,
    store: Arc<Store>,
    runtime: Runtime,
}

impl OpenFolder {
    /// Opens a folder; `None` opens a store in memory.
    pub fn open(folder: Option<PathBuf>, saved_searches: bool) -> Result<OpenFolder, Fault> {
        let other = |e: &dyn std::fmt::Display| Fault::Other(e.to_string());
        let runtime = meridian_api::runtime().thread_name("meridian").build();
        let runtime = runtime.map_err(|e| Fault::Other(format!("cannot start threads: {e}")))?;
        let (options, seams) = (folder.map_or_else(Options::ephemeral, Options::at), Seams::real());
        let store = Arc::new(Store::open(options, seams.clone()).map_err(Fault::Store)?);
        let begin = async {
            let state = AppState::new(Embedded::new(store.clone()), &seams, settings(saved_searches));
            InProcess::begin(state.map_err(|e| other(&e))?).map_err(|e| other(&e))
        };
        let api = match runtime.block_on(begin) {
            Ok(api) => Arc::new(api),
            Err(fault) => {
                // It was not used; the first error is the one that matters.
                let _ = store.close();
                return Err(fault);
            }
        };
        Ok(OpenFolder {
            process: process::id(),
            threads: runtime.handle().clone(),
            calls: Arc::new(Semaphore::new(CALLS_MAX as usize)),
            ends: watch::Sender::new(false),
            held: Mutex::new(Some(OpenParts { api, store, runtime })),
        })
    }

    /// The threads that run calls.
    pub fn threads(&self) -> &Handle {
        &self.threads
    }

    /// Whether this process is a fork of the one that opened the folder, with a copy of its memory and none of its
    /// threads.
    pub fn is_forked(&self) -> bool {
        self.process != process::id()
    }

    /// Whether it was closed.
    pub fn has_ended(&self) -> bool {
        *self.ends.borrow()
    }

    /// Begins a call; the returned guard is held while it is in progress.
    pub fn begin(&self) -> Result<Call, EngineClosed> {
        self.calls.clone().try_acquire_owned().map(Call).map_err(|_| EngineClosed)
    }

    /// Responds to a request.
    pub async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, EngineClosed> {
        let api = self.held.lock().as_ref().map(|held| held.api.clone()).ok_or(EngineClosed)?;
        self.until_closed(async move { api.answer(request).await }).await
    }

    /// The outcome of a part of a call, unless the engine is closed first.
    pub async fn until_closed<T>(&self, part: impl Future<Output = T>) -> Result<T, EngineClosed> {
        let mut ends = self.ends.subscribe();
        tokio::select! {
            biased;
            _ = ends.wait_for(|ends| *ends) => Err(EngineClosed),
            outcome = part => Ok(outcome),
        }
    }

    /// Ends calls and closes the folder. Does nothing if called again.
    pub fn close(&self) -> Result<(), StoreError> {
        if self.is_forked() {
            // The folder belongs to the other process.
            return Ok(());
        }
        let Some(OpenParts { api, store, runtime }) = self.held.lock().take() else { return Ok(()) };
        api.end_streams();
        self.ends.send_replace(true);
        runtime.block_on(async {
            // No call begins any more, and those in progress end.
            let calls = tokio::time::timeout(CALLS_END, self.calls.acquire_many(CALLS_MAX)).await;
            self.calls.close();
            drop(calls);
            if let Some(api) = Arc::into_inner(api) {
                api.end().await;
            }
        });
        let closed = store.close();
        runtime.shutdown_timeout(THREADS_END);
        closed
    }
}

impl Drop for OpenFolder {
    fn drop(&mut self) {
        if self.is_forked() {
            // Shutting down threads that do not exist here would wait forever.
            mem::forget(self.held.get_mut().take());
        }
        // There is no caller left to report an error to; acknowledged writes are on disk.
        let _ = self.close();
    }
}

/// Settings of an engine whose only client is this process.
fn settings(saved_searches: bool) -> ServerConfig {
    // No other client waits behind a request, so only its own `timeout`, or the user, ends it.
    let patient = Duration::from_secs(7 * 86_400);
    let mut config = ServerConfig {
        timeout_default: patient,
        timeout_stream: patient,
        timeout_max: patient,
        write_stall: patient,
        // Nothing is sent over a network.
        compress: false,
        ..ServerConfig::default()
    };
    config.saved.enabled = saved_searches;
    config
}
