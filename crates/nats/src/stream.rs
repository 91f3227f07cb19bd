//! The messages of one stream.

use crate::calls::{ACK, Calls};
use crate::fault::outcome_of;
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, ReplayPolicy, pull};
use async_nats::jetstream::context::Context;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, LastRawMessageErrorKind, Stream as JetStream};
use bytes::Bytes;
use futures_util::StreamExt;
use meridian_store::stream::{Bounds, PublishOutcome, Stream};
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Messages and bytes requested at a time.
const BATCH_MESSAGES: usize = 4096;
const BATCH_BYTES: usize = 8 << 20;
/// Timeout of a batch.
const BATCH: Duration = Duration::from_secs(30);
/// Max consecutive empty batches before a reader gives up.
const EMPTY_MAX: u32 = 20;
/// Pause after an empty batch.
const EMPTY_PAUSE: Duration = Duration::from_millis(100);

/// Space of a stream reserved for owner records, beyond the limit of groups. So a full stream can still be taken over
/// thousands of times.
pub(crate) const RESERVE: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct NatsStream {
    pub(crate) context: Context,
    pub(crate) calls: Calls,
    pub(crate) stream: JetStream,
    pub(crate) subject: String,
}

impl NatsStream {
    async fn publish_all(&self, expected: u64, messages: &[Bytes]) -> Vec<PublishOutcome> {
        // One deadline for all, as they are in flight together.
        let deadline = Instant::now() + ACK;
        let mut sent = Vec::with_capacity(messages.len());
        for (place, message) in messages.iter().enumerate() {
            // A message id would not do: the order in which it and the expectation are checked differs between one
            // replica and several.
            let publish =
                PublishMessage::build().payload(message.clone()).expected_last_sequence(expected + place as u64);
            sent.push(self.context.send_publish(self.subject.clone(), publish).await);
        }
        let mut answers = Vec::with_capacity(sent.len());
        for sent in sent {
            answers.push(match sent {
                Ok(ack) => match timeout_at(deadline, ack).await {
                    Ok(Ok(ack)) => PublishOutcome::Stored(ack.sequence),
                    Ok(Err(error)) => outcome_of(error),
                    Err(_) => {
                        PublishOutcome::Lost(io::Error::new(ErrorKind::TimedOut, "no acknowledgement came within 5 s"))
                    }
                },
                Err(error) => outcome_of(error),
            });
        }
        answers
    }

    async fn reader(&self, from: u64) -> io::Result<Consumer<pull::Config>> {
        let config = pull::Config {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: from },
            ack_policy: AckPolicy::None,
            replay_policy: ReplayPolicy::Instant,
            inactive_threshold: BATCH,
            memory_storage: true,
            num_replicas: 1,
            ..pull::Config::default()
        };
        self.stream.create_consumer(config).await.map_err(io::Error::other)
    }
}

/// Returns the max bytes that groups may take of a stream. The stream's own limit counts: it may be from an earlier
/// version, or set by an operator.
fn bytes_max(config: &Config) -> u64 {
    match u64::try_from(config.max_bytes) {
        Ok(0) | Err(_) => u64::MAX,
        // A small one splits its space.
        Ok(bytes) => bytes - RESERVE.min(bytes / 2),
    }
}

/// Returns the messages of a batch, by number; empty if there are none now.
async fn batch_of(consumer: &Consumer<pull::Config>) -> io::Result<Vec<(u64, Bytes)>> {
    let fetch = consumer.fetch().max_messages(BATCH_MESSAGES).max_bytes(BATCH_BYTES);
    let mut batch = fetch.messages().await.map_err(io::Error::other)?;
    let mut messages = Vec::new();
    while let Some(message) = batch.next().await {
        let message = match message {
            Ok(message) => message,
            // A server ends a batch with an error if the next message exceeds its bytes. A lasting error recurs with
            // the next batch.
            Err(_) if !messages.is_empty() => break,
            Err(error) => return Err(io::Error::other(error)),
        };
        let number = message.info().map_err(io::Error::other)?.stream_sequence;
        messages.push((number, message.message.payload));
    }
    Ok(messages)
}

impl Stream for NatsStream {
    fn publish(&self, expected: u64, messages: &[Bytes]) -> Vec<PublishOutcome> {
        // Twice its own deadline, since sending may wait for buffer space as well.
        let answers = self.calls.within(ACK * 2, async { Ok(self.publish_all(expected, messages).await) });
        answers.unwrap_or_else(|error| {
            messages.iter().map(|_| PublishOutcome::Lost(io::Error::new(error.kind(), error.to_string()))).collect()
        })
    }

    fn bounds(&self) -> io::Result<Bounds> {
        let info = self.calls.wait(async { self.stream.get_info().await.map_err(io::Error::other) })?;
        let last = info.state.last_sequence;
        let first = if info.state.messages == 0 { last + 1 } else { info.state.first_sequence };
        Ok(Bounds { first, last })
    }

    fn get(&self, sequence: u64) -> io::Result<Option<Bytes>> {
        self.calls.wait(async {
            match self.stream.get_raw_message(sequence).await {
                Ok(message) => Ok(Some(message.payload)),
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
                Err(error) => Err(io::Error::other(error)),
            }
        })
    }

    fn read(&self, from: u64, to: u64, each: &mut dyn FnMut(u64, Bytes)) -> io::Result<()> {
        let consumer = self.calls.wait(self.reader(from))?;
        let (mut at, mut empty) = (from, 0);
        while at <= to {
            let messages = self.calls.within(BATCH, batch_of(&consumer))?;
            if messages.is_empty() {
                // The consumer's server may be behind the stream's leader, or the rest is gone.
                empty += 1;
                if empty == EMPTY_MAX {
                    break;
                }
                self.calls.wait(async {
                    tokio::time::sleep(EMPTY_PAUSE).await;
                    Ok(())
                })?;
            }
            for (number, message) in messages {
                at = number + 1;
                if number <= to {
                    each(number, message);
                }
            }
        }
        // It expires by itself when unused.
        let name = &consumer.cached_info().name;
        let _ = self.calls.wait(async { self.stream.delete_consumer(name).await.map_err(io::Error::other) });
        Ok(())
    }

    fn purge(&self, below: u64) -> io::Result<()> {
        self.calls.wait(async { self.stream.purge().sequence(below).await.map(drop).map_err(io::Error::other) })
    }

    fn bytes_max(&self) -> u64 {
        bytes_max(&self.stream.cached_info().config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_leave_room_for_owner_records() {
        let of = |max_bytes| bytes_max(&Config { max_bytes, ..Config::default() });
        let expected = [(-1, u64::MAX), (0, u64::MAX), (1, 1), (1 << 20, 1 << 19), (65 << 20, 64 << 20)];
        expected.into_iter().for_each(|(max_bytes, expected)| assert_eq!(of(max_bytes), expected, "{max_bytes}"));
    }
}
