//! Counts the frames of an HTTP/2 connection that carry neither a request nor its body.
//!
//! SETTINGS, PING and PRIORITY frames cost the server work and their client almost nothing. The library counts only
//! invalid frames. A client that sends more of them than any legitimate use requires is disconnected.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Number of frames that a client may send at once.
const BURST: u64 = 1_000;
/// Further frames allowed per second of the connection.
const PER_SECOND: u64 = 50;
/// A client widens its windows as it reads responses, so one more frame is allowed per this many bytes sent to it.
const BYTES_PER_FRAME: u64 = 256;
/// Length of the client preface, sent before the first frame (RFC 9113, 3.4).
const PREFACE_BYTES: u64 = 24;
/// Length of a frame header: length, type, flags and stream id.
const HEAD_BYTES: usize = 9;

/// Signals, to the task that serves a connection, that the client sent too many frames.
#[derive(Debug, Default)]
pub(super) struct FloodSignal {
    raised: AtomicBool,
    notify: Notify,
}

impl FloodSignal {
    /// Completes once too many frames have been read.
    pub(super) async fn raised(&self) {
        // `notify_one` stores a permit, so a signal raised before this call is seen.
        while !self.raised.load(Ordering::Relaxed) {
            self.notify.notified().await;
        }
    }

    fn raise(&self) {
        if !self.raised.swap(true, Ordering::Relaxed) {
            self.notify.notify_one();
        }
    }
}

/// A connection whose frames are counted as they are read.
pub(super) struct FrameMeter<S> {
    stream: S,
    flood: Arc<FloodSignal>,
    since: Instant,
    control: u64,
    written: u64,
    /// Bytes until the next frame header: the rest of the preface or of a payload.
    skip: u64,
    head: [u8; HEAD_BYTES],
    have: usize,
}

impl<S> FrameMeter<S> {
    pub(super) fn new(stream: S) -> (FrameMeter<S>, Arc<FloodSignal>) {
        let flood = Arc::<FloodSignal>::default();
        let counted = FrameMeter {
            stream,
            flood: flood.clone(),
            since: Instant::now(),
            control: 0,
            written: 0,
            skip: PREFACE_BYTES,
            head: [0; HEAD_BYTES],
            have: 0,
        };
        (counted, flood)
    }

    fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let skipped = bytes.len().min(usize::try_from(self.skip).unwrap_or(usize::MAX));
            self.skip -= skipped as u64;
            bytes = &bytes[skipped..];
            let taken = bytes.len().min(HEAD_BYTES - self.have);
            self.head[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
            self.have += taken;
            bytes = &bytes[taken..];
            if self.have == HEAD_BYTES {
                self.have = 0;
                let [high, middle, low, kind, ..] = self.head;
                self.skip = u64::from(u32::from_be_bytes([0, high, middle, low]));
                // DATA, HEADERS and CONTINUATION frames are bounded by windows and by the library's limits.
                self.control += u64::from(!matches!(kind, 0 | 1 | 9));
            }
        }
        let allowed = BURST + PER_SECOND * self.since.elapsed().as_secs() + self.written / BYTES_PER_FRAME;
        if self.control > allowed {
            self.flood.raise();
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FrameMeter<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.read(&buf.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FrameMeter<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = ready!(Pin::new(&mut self.stream).poll_write(cx, buf))?;
        self.written += wrote as u64;
        Poll::Ready(Ok(wrote))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, bufs))?;
        self.written += wrote as u64;
        Poll::Ready(Ok(wrote))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: usize) -> Vec<u8> {
        let mut bytes = vec![0, (payload >> 8) as u8, payload as u8, kind, 0, 0, 0, 0, 0];
        bytes.resize(HEAD_BYTES + payload, 7);
        bytes
    }

    /// Feeds frames after a preface, in pieces of the given size. Returns whether they are a flood.
    fn floods(frames: &[u8], piece: usize, written: u64) -> bool {
        let (mut counted, flood) = FrameMeter::new(());
        counted.written = written;
        let bytes = [&[0; PREFACE_BYTES as usize], frames].concat();
        bytes.chunks(piece).for_each(|piece| counted.read(piece));
        flood.raised.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn frames_of_control_are_told_from_requests_however_the_bytes_arrive() {
        for piece in [1, 5, 9, 33, 4_096] {
            let (pings, bodies) = (frame(6, 8).repeat(1_001), frame(0, 300).repeat(5_000));
            assert!(floods(&pings, piece, 0), "{piece}");
            assert!(!floods(&pings[17..], piece, 0) && !floods(&bodies, piece, 0), "{piece}");
            // Payloads are skipped, whatever they contain; both kinds of frames are distinguished in one byte stream.
            assert!(floods(&[bodies, pings.clone()].concat(), piece, 0), "{piece}");
            assert!(!floods(&pings, piece, 256), "one that has read a response may send one more");
        }
    }
}
