//! The API as commands ask it: of a running server, or of a data folder that this process serves to itself.
//!
//! Both answer the same requests with the same code, so that `--data` and `--url` cannot differ.

use crate::args::{Target, folder_exists};
use crate::failure::Failure;
use crate::http::{Parameter, Server};
use meridian_api::{AppState, ServerConfig};
use meridian_backend::Embedded;
use meridian_store::seams::Seams;
use meridian_store::{Options, Store};
use serde_json::Value;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// What answers requests.
pub struct Client {
    server: Server,
    /// Where a folder is served by this process.
    own: Option<Own>,
}

/// A data folder, opened and served on a loopback port that only this process knows of.
struct Own {
    store: Arc<Store>,
    runtime: Runtime,
    stop: oneshot::Sender<()>,
    served: JoinHandle<io::Result<()>>,
}

impl Client {
    /// A client of this target.
    pub fn open(target: &Target) -> Result<Client, Failure> {
        match target {
            Target::Server(url) => Ok(Client { server: Server::at(url)?, own: None }),
            Target::Folder(folder) => {
                folder_exists(folder, ", or a server with --url")?;
                let (own, url) = Own::open(folder)?;
                Ok(Client { server: Server::at(&url)?, own: Some(own) })
            }
        }
    }

    /// Asks, and gives the answer's bytes as they come.
    pub fn stream(&self, path: &[&str], parameters: &[Parameter]) -> Result<Box<dyn Read>, Failure> {
        Ok(Box::new(self.server.stream(path, parameters)?))
    }

    /// Asks for a JSON document.
    pub fn json(&self, path: &[&str], parameters: &[Parameter]) -> Result<Value, Failure> {
        serde_json::from_reader(io::BufReader::new(self.stream(path, parameters)?))
            .map_err(|e| Failure::Refused(format!("the answer is not JSON, or broke off: {e}")))
    }

    /// Requests work without a time limit, and returns its result as a JSON document.
    pub fn post(&self, path: &[&str]) -> Result<Value, Failure> {
        self.server.work(path)
    }

    /// Sends a JSON document, and returns the response as a stream, without a time limit.
    pub fn post_stream(&self, path: &[&str], document: &Value) -> Result<Box<dyn Read>, Failure> {
        Ok(Box::new(self.server.post_stream(path, document)?))
    }

    /// Ends the client; a folder is closed cleanly.
    pub fn close(self) -> Result<(), Failure> {
        self.own.map_or(Ok(()), Own::close)
    }
}

impl Own {
    fn open(folder: &Path) -> Result<(Own, String), Failure> {
        let seams = Seams::real();
        let store = Arc::new(Store::open(Options::at(folder), seams.clone()).map_err(Failure::of_folder)?);
        // No other request waits behind this one, so only the user ends it.
        let patient = Duration::from_secs(7 * 86_400);
        let mut config = ServerConfig {
            timeout_default: patient,
            timeout_stream: patient,
            timeout_max: patient,
            write_stall: patient,
            shutdown_grace: Duration::from_secs(1),
            ..ServerConfig::default()
        };
        // They wait for a server: this process asks its question and ends.
        config.saved.enabled = false;
        let failed = |e: io::Error| Failure::Refused(format!("cannot serve the folder to this command: {e}"));
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(failed)?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).map_err(failed)?;
        let url = format!("http://{}", listener.local_addr().map_err(failed)?);
        let (stop, stopped) = oneshot::channel();
        let state = AppState::new(Embedded::new(store.clone()), &seams, config);
        let served = runtime.spawn(meridian_api::serve(listener, state, async {
            let _ = stopped.await;
        }));
        Ok((Own { store, runtime, stop, served }, url))
    }

    fn close(self) -> Result<(), Failure> {
        let _ = self.stop.send(());
        let _ = self.runtime.block_on(self.served);
        self.runtime.shutdown_timeout(Duration::from_secs(1));
        Ok(self.store.close()?)
    }
}
