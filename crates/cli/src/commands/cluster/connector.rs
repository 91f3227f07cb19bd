//! Connections for a cluster's survey besides its bucket: the log in NATS, and the owners.

use super::probe;
use crate::config::Nats;
use meridian_backend::cluster::Connector;
use meridian_remote::RoleTls;
use meridian_store::SharedLog;
use tokio::runtime::Handle;

/// Connects to NATS and to owners.
#[derive(Debug)]
pub struct NetworkConnector {
    /// Connection to NATS; `None` without settings.
    pub nats: Option<Nats>,
    /// TLS between roles, if the settings have it.
    pub tls: Option<RoleTls>,
    /// Runtime of the calls.
    pub runtime: Handle,
}

impl Connector for NetworkConnector {
    #[cfg(feature = "nats")]
    fn streams(&self) -> Result<SharedLog, String> {
        let Some(nats) = &self.nats else {
            return Err(
                "where its servers are is in the settings of a process (cluster.nats.urls), and none were named \
                        (--config)"
                    .to_owned(),
            );
        };
        let streams = meridian_nats::open_to_look(&nats.options(), &self.runtime).map_err(|e| e.to_string())?;
        Ok(SharedLog::Streams { streams, accept_loss: false })
    }

    #[cfg(not(feature = "nats"))]
    fn streams(&self) -> Result<SharedLog, String> {
        Err("this program was built without the feature `nats`".to_owned())
    }

    fn reaches(&self, address: &str) -> Result<(), String> {
        self.runtime.block_on(probe::answers(address, self.tls.as_ref())).map_err(|e| e.to_string())
    }
}
