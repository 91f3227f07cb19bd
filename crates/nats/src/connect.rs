//! The connection to the servers.

use crate::calls::{CALL, Calls};
use crate::options::NatsOptions;
use async_nats::{Client, ConnectOptions, Event};
use meridian_model::Invalid;
use meridian_store::StoreError;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// How long one server may take to be connected to.
const SERVER: Duration = Duration::from_secs(5);

/// Connects. From then on a lost connection is made again without end, while calls time out.
pub(crate) fn connect(options: &NatsOptions, calls: &Calls) -> Result<Client, StoreError> {
    let mut connection = ConnectOptions::new()
        .name("meridian")
        .connection_timeout(SERVER)
        .request_timeout(Some(CALL))
        .max_reconnects(None)
        .event_callback(tell);
    if !options.credentials.is_empty() {
        let file = options.credentials.clone();
        // The file's content is not in the error.
        connection = calls.wait(async move { connection.credentials_file(file).await }).map_err(|error| {
            let detail = format!("{:?}: {error}: expected a file that `nsc` makes", options.credentials);
            Invalid::field("cluster.nats.credentials", detail)
        })?;
    }
    if !options.tls_ca.is_empty() {
        connection = connection.add_root_certificates(PathBuf::from(&options.tls_ca)).require_tls(true);
    }
    if !options.tls_cert.is_empty() {
        connection = connection.add_client_certificate(options.tls_cert.clone().into(), options.tls_key.clone().into());
    }
    let urls = options.urls.clone();
    // One after the other is tried.
    let most = CALL.max(SERVER * u32::try_from(urls.len()).unwrap_or(u32::MAX));
    let connected =
        calls.within(most, async move { connection.connect(urls.as_slice()).await.map_err(io::Error::other) });
    let client = connected.map_err(|error| {
        let detail = format!("{}: cannot connect: {error}", options.urls.join(", "));
        StoreError::from(Invalid::field("cluster.nats.urls", detail))
    })?;
    if !client.server_info().jetstream {
        let detail =
            format!("{}: the server has no JetStream: start it with `jetstream` in its settings", options.place());
        return Err(Invalid::field("cluster.nats.urls", detail).into());
    }
    Ok(client)
}

async fn tell(event: Event) {
    match event {
        Event::Connected => tracing::info!("connected to NATS"),
        Event::Disconnected => tracing::warn!("the connection to NATS is lost: trying again"),
        Event::SlowConsumer(_) | Event::Draining | Event::Closed | Event::LameDuckMode => {
            tracing::warn!("NATS: {event}")
        }
        Event::ServerError(error) => tracing::warn!(%error, "NATS refused something"),
        Event::ClientError(error) => tracing::warn!(%error, "a call to NATS failed"),
    }
}
