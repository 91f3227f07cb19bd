//! The connection to the servers.

use crate::calls::{CALL, Calls};
use crate::options::NatsOptions;
use async_nats::{Client, ConnectOptions, Event};
use meridian_model::Invalid;
use meridian_store::StoreError;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::time::Duration;

/// Timeout of the connection to one server.
const SERVER: Duration = Duration::from_secs(5);

/// Max bytes read of a password.
const PASSWORD_MAX: u64 = 4 << 10;

/// Connects. From then on, a lost connection is reopened indefinitely, while calls time out.
pub(crate) fn connect(options: &NatsOptions, calls: &Calls) -> Result<Client, StoreError> {
    let mut connection = ConnectOptions::new()
        .name("meridian")
        .connection_timeout(SERVER)
        .request_timeout(Some(CALL))
        .max_reconnects(None)
        .event_callback(tell);
    if !options.credentials.is_empty() {
        let file = options.credentials.clone();
        // The error does not contain the file's content.
        connection = calls.wait(async move { connection.credentials_file(file).await }).map_err(|error| {
            let detail = format!("{:?}: {error}: expected a file that `nsc` makes", options.credentials);
            Invalid::field("cluster.nats.credentials", detail)
        })?;
    }
    if !options.user.is_empty() {
        let password = password_of(&options.password_file).map_err(|error| {
            let detail =
                format!("{:?}: {error}: expected a file whose first line is the password", options.password_file);
            Invalid::field("cluster.nats.password_file", detail)
        })?;
        connection = connection.user_and_password(options.user.clone(), password);
    }
    if !options.tls_ca.is_empty() {
        connection = connection.add_root_certificates(PathBuf::from(&options.tls_ca)).require_tls(true);
    }
    if !options.tls_cert.is_empty() {
        connection = connection.add_client_certificate(options.tls_cert.clone().into(), options.tls_key.clone().into());
    }
    let urls = options.urls.clone();
    // They are tried one after another.
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

/// Returns the first line of a file. White space within it belongs to the password.
#[allow(clippy::disallowed_methods, reason = "a file of the operator, and none of the store")]
fn password_of(file: &str) -> io::Result<String> {
    let mut line = String::new();
    // Bounded, since the file may be an endless device.
    BufReader::new(File::open(file)?.take(PASSWORD_MAX)).read_line(&mut line)?;
    let password = line.trim_end_matches(['\r', '\n']);
    match password.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::InvalidData, "its first line is empty")),
        false => Ok(password.to_owned()),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a file of the test")]
    fn a_password_is_the_first_line_of_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        let file = file.to_str().unwrap();
        assert_eq!(password_of(file).unwrap_err().kind(), io::ErrorKind::NotFound);
        for (text, expected) in [("a b \r\nc", Some("a b ")), ("abc", Some("abc")), ("", None), ("\nabc", None)] {
            std::fs::write(file, text).unwrap();
            assert_eq!(password_of(file).ok().as_deref(), expected, "{text:?}");
        }
    }
}
