//! Streams: created, opened, removed.

use crate::calls::{ACK, Calls};
use crate::fault::NAME_TAKEN;
use crate::options::NatsOptions;
use crate::stream::{NatsStream, RESERVE};
use async_nats::Client;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{
    Context, ContextBuilder, CreateStreamErrorKind, DeleteStreamErrorKind, GetStreamErrorKind,
};
use async_nats::jetstream::stream::{Config, DiscardPolicy, PersistenceMode, RetentionPolicy, StorageType};
use data_encoding::BASE64URL_NOPAD;
use futures_util::TryStreamExt;
use meridian_store::stream::{Stream, Streams};
use sha2::{Digest, Sha256};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

/// Max bytes of a message, even if the server accepts more.
const MESSAGE_MAX: usize = 1 << 20;
/// Bytes of a message besides its payload: the header with the expected number, with room to spare.
const HEADERS: usize = 512;

/// The streams of one account.
#[derive(Debug)]
pub(crate) struct NatsStreams {
    context: Context,
    calls: Calls,
    place: String,
    replicas: usize,
    stream_bytes: u64,
    /// Max bytes of a message's payload.
    message_max: usize,
}

impl NatsStreams {
    pub(crate) fn new(client: Client, calls: Calls, options: &NatsOptions) -> NatsStreams {
        let message_max = client.max_payload().min(MESSAGE_MAX).saturating_sub(HEADERS);
        let _runtime = calls.enter();
        let context = ContextBuilder::new().timeout(ACK).ack_timeout(ACK).build(client);
        let (replicas, stream_bytes) = (options.replicas, options.stream_bytes);
        NatsStreams { context, calls: calls.clone(), place: options.place(), replicas, stream_bytes, message_max }
    }

    fn config(&self, name: &str) -> Config {
        Config {
            name: stream_of(name),
            subjects: vec![subject_of(name)],
            retention: RetentionPolicy::Limits,
            storage: StorageType::File,
            num_replicas: self.replicas,
            // With `old`, writes that are in no segment yet would be discarded.
            discard: DiscardPolicy::New,
            max_bytes: match self.stream_bytes {
                0 => -1,
                bytes => i64::try_from(bytes.saturating_add(RESERVE)).unwrap_or(-1),
            },
            max_messages: -1,
            max_messages_per_subject: -1,
            max_consumers: -1,
            max_message_size: i32::try_from(self.message_max + HEADERS).unwrap_or(i32::MAX),
            // Only the leader serves reads.
            allow_direct: false,
            ..Config::default()
        }
    }
}

/// Max attempts to create a stream while the servers elect a leader, and the pause between attempts. Servers do so for
/// a moment after their start.
const TRIES: u32 = 30;
const TRY_INTERVAL: Duration = Duration::from_millis(100);

/// Returns true if a stream could not be created because the servers have no leader yet, or do not know each other. If
/// such an attempt had an effect, the next one finds the stream.
fn is_of_election(kind: &CreateStreamErrorKind) -> bool {
    let awaited = [ErrorCode::CLUSTER_NOT_AVAILABLE, ErrorCode::CLUSTER_NO_PEERS, ErrorCode::CLUSTER_INCOMPLETE];
    match kind {
        CreateStreamErrorKind::JetStreamUnavailable => true,
        CreateStreamErrorKind::JetStream(said) => awaited.contains(&said.error_code()),
        _ => false,
    }
}

/// Returns the name of a stream for the servers: it must not have dots.
fn stream_of(name: &str) -> String {
    name.replace('.', ":")
}

/// Returns the subject of a new stream. It is stored with each message, so it is short: a hash of the name. Two streams
/// cannot have the same subject.
fn subject_of(name: &str) -> String {
    format!("m.{}", BASE64URL_NOPAD.encode(&Sha256::digest(name)[..8]))
}

/// Returns a required setting that a stream lacks: otherwise it drops messages, or acknowledges them before they are
/// stored.
fn misfit(config: &Config) -> Option<&'static str> {
    let checks = [
        (config.discard == DiscardPolicy::New, "discard: new"),
        (config.retention == RetentionPolicy::Limits, "retention: limits"),
        (config.storage == StorageType::File, "storage: file"),
        (config.max_age.is_zero(), "max_age: 0"),
        (config.max_messages_per_subject <= 0, "max_msgs_per_subject: -1"),
        (!config.no_ack, "no_ack: false"),
        (config.persist_mode != Some(PersistenceMode::Async), "persist_mode: default"),
    ];
    checks.into_iter().find(|(holds, _)| !holds).map(|(_, expected)| expected)
}

impl Streams for NatsStreams {
    fn create(&self, name: &str) -> io::Result<()> {
        let config = self.config(name);
        self.calls.wait(async {
            let mut tries = TRIES;
            loop {
                let Err(error) = self.context.create_stream(config.clone()).await else { return Ok(()) };
                tries -= 1;
                match error.kind() {
                    // Created with other settings, or an operator has changed them since.
                    CreateStreamErrorKind::JetStream(said) if said.error_code() == NAME_TAKEN => return Ok(()),
                    kind if tries > 0 && is_of_election(&kind) => tokio::time::sleep(TRY_INTERVAL).await,
                    _ => return Err(io::Error::other(error)),
                }
            }
        })
    }

    fn open(&self, name: &str) -> io::Result<Option<Arc<dyn Stream>>> {
        let found = self.calls.wait(async {
            match self.context.get_stream(stream_of(name)).await {
                Ok(stream) => Ok(Some(stream)),
                Err(error) => match error.kind() {
                    GetStreamErrorKind::JetStream(said) if said.error_code() == ErrorCode::STREAM_NOT_FOUND => Ok(None),
                    _ => Err(io::Error::other(error)),
                },
            }
        })?;
        let Some(stream) = found else { return Ok(None) };
        if let Some(expected) = misfit(&stream.cached_info().config) {
            let detail = format!("its settings lose messages: expected {expected}");
            return Err(io::Error::new(ErrorKind::InvalidInput, detail));
        }
        // The stream's own: streams of earlier versions have the name as their subject.
        let subject = stream.cached_info().config.subjects.first().cloned();
        let subject = subject.ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "it has no subject"))?;
        let (context, calls) = (self.context.clone(), self.calls.clone());
        Ok(Some(Arc::new(NatsStream { context, calls, stream, subject })))
    }

    fn names(&self, prefix: &str) -> io::Result<Vec<String>> {
        let all = self
            .calls
            .wait(async { self.context.stream_names().try_collect::<Vec<_>>().await.map_err(io::Error::other) })?;
        let prefix = stream_of(prefix);
        Ok(all.into_iter().filter(|name| name.starts_with(&prefix)).map(|name| name.replace(':', ".")).collect())
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.calls.wait(async {
            match self.context.delete_stream(stream_of(name)).await {
                Ok(_) => Ok(()),
                Err(error) => match error.kind() {
                    DeleteStreamErrorKind::JetStream(said) if said.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                        Ok(())
                    }
                    _ => Err(io::Error::other(error)),
                },
            }
        })
    }

    fn message_max(&self) -> usize {
        self.message_max
    }

    fn place(&self) -> String {
        self.place.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_short_and_differ() {
        let of = |n: u32| subject_of(&format!("m.0123456789abcdef.default.events.p{n}.0.0"));
        let all: std::collections::BTreeSet<String> = (0..1000).map(of).collect();
        assert_eq!(all.len(), 1000);
        assert!(all.iter().all(|subject| subject.len() == 13 && subject.starts_with("m.")));
    }

    #[test]
    fn a_stream_that_would_drop_messages_is_not_opened() {
        let good = Config { discard: DiscardPolicy::New, max_messages_per_subject: -1, ..Config::default() };
        assert_eq!(misfit(&good), None);
        for (config, expected) in [
            (Config { discard: DiscardPolicy::Old, ..good.clone() }, "discard: new"),
            (Config { storage: StorageType::Memory, ..good.clone() }, "storage: file"),
            (Config { max_age: Duration::from_secs(60), ..good.clone() }, "max_age: 0"),
            (Config { max_messages_per_subject: 9, ..good.clone() }, "max_msgs_per_subject: -1"),
            (Config { persist_mode: Some(PersistenceMode::Async), ..good.clone() }, "persist_mode: default"),
        ] {
            assert_eq!(misfit(&config), Some(expected));
        }
    }
}
