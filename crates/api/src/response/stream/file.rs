//! Responses that are made in a file, and sent once they are whole.
//!
//! Making one is a query, with its permit and until its deadline. Sending it computes nothing. So it takes no permit,
//! and only its client ends it: by leaving, or by taking less than it must of any response, or too little in all.
//! The file is read piece by piece, as the client takes them.

use super::pipe::{Pipe, ReaderGone};
use super::reader::Reader;
use super::wait::{disconnected, wait};
use super::{capacity, job, respond, sink};
use crate::protocol::problem::{Problem, Result};
use crate::request::blocking::{self, Run};
use crate::request::overload::no_room;
use crate::response::whole;
use crate::state::AppState;
use crate::state::answer_files::FileShare;
use crate::state::readers::{ParkedQuery, RETRY_INTERVAL};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use meridian_admission::ByteShare;
use meridian_observe as observe;
use meridian_query::{CancelFlag, Control};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use tokio::time::{Duration, Instant};

/// Bytes per second that a client must take on average, after a grace period: a file holds disk that others could use.
const BYTES_PER_SECOND: u64 = 64 << 10;
const GRACE: Duration = Duration::from_secs(300);

/// A response that is whole.
pub struct WholeFile {
    file: File,
    length: u64,
    _share: FileShare,
}

impl WholeFile {
    /// Takes a file, with its share of the disk. The share is given back once all of the file is read, or its client is
    /// gone.
    ///
    /// # Errors
    /// The disk's.
    pub fn new(file: File, share: FileShare) -> io::Result<WholeFile> {
        Ok(WholeFile { length: file.metadata()?.len(), file, _share: share })
    }

    fn read(&self, from: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let mut piece = vec![0; bytes];
        self.file.read_exact_at(&mut piece, from)?;
        Ok(piece)
    }
}

/// Sends the response that `make` makes in a file, with its length. Until it is whole, an error can set the status.
pub async fn made_in_file(
    state: &AppState,
    run: Run,
    arrived: Instant,
    make: impl FnOnce(&Control) -> Result<(HeaderMap, WholeFile)> + Send + 'static,
) -> Result<Response> {
    let answers = state.answers.of(run.permit.account().ledger.tenant());
    let current = run.current.clone();
    let (mut headers, file) = blocking::run(run, make).await?;
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(file.length));
    let (pipe, cancel) = (Arc::new(Pipe::new(capacity(state), answers)), CancelFlag::new());
    let reader = Reader::new(pipe.clone(), cancel.clone());
    pipe.put(Some(Box::new(headers)), std::iter::empty(), false).map_err(|ReaderGone| disconnected())?;
    let until = Instant::now() + GRACE + Duration::from_secs(file.length / BYTES_PER_SECOND);
    let sender = FileSender { state: state.clone(), pipe: pipe.clone(), cancel, arrived, until };
    tokio::spawn(observe::within(current, async move {
        if let Err(problem) = sender.send(file).await {
            sender.fail(problem);
        }
    }));
    respond(state, &pipe, reader).await
}

/// Puts a file into the pipe of its client.
struct FileSender {
    state: AppState,
    pipe: Arc<Pipe>,
    /// Raised by a client that leaves.
    cancel: CancelFlag,
    arrived: Instant,
    /// When the client must have taken all of the file.
    until: Instant,
}

impl FileSender {
    async fn send(&self, file: WholeFile) -> Result<()> {
        let (file, mut from) = (Arc::new(file), 0);
        loop {
            let bytes = (sink::chunk_bytes(&self.state) as u64).min(file.length - from) as usize;
            // Before it is read: what waits is on disk, and not in memory.
            let share = self.share(bytes).await?;
            let (at, read) = (from, file.clone());
            let piece = tokio::task::spawn_blocking(move || read.read(at, bytes)).await;
            let piece = piece.map_err(Problem::internal)?.map_err(Problem::internal)?;
            from += bytes as u64;
            let (piece, last) = (whole::of_share(piece, share), from == file.length);
            self.pipe.put(None, std::iter::once(piece), last).map_err(|ReaderGone| disconnected())?;
            if last {
                return Ok(());
            }
        }
    }

    /// Waits until the client wants the next piece, then for memory. The server may let the client wait as long as a
    /// client may let the server.
    async fn share(&self, bytes: usize) -> Result<ByteShare> {
        let resting = ParkedQuery::enter(&self.state.readers);
        wait(&self.pipe, self.until).await?;
        drop(resting);
        let until = Instant::now() + self.state.config.write_stall;
        loop {
            if let Some(share) = self.state.readers.try_reserve(self.pipe.answers(), bytes) {
                return Ok(share);
            }
            if Instant::now() >= until {
                return Err(no_room(&self.state));
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
            // Ends if the client has left, or was evicted.
            wait(&self.pipe, self.until).await?;
        }
    }

    fn fail(&self, problem: Problem) {
        job::fail(&self.state, &self.pipe, &self.cancel, problem);
    }
}

impl Drop for FileSender {
    /// Ends the pipe, because a task that ends by a panic must not leave its reader waiting.
    fn drop(&mut self) {
        if !self.pipe.has_ended() {
            self.fail(Problem::internal("a file was not sent to its end"));
        }
        self.state.metrics.streams.record(self.arrived.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServerConfig;
    use crate::request::body::frame;
    use crate::request::dispatch::Lease;
    use axum::body::Body;
    use meridian_admission::Ledger;
    use meridian_admission::gate::{Account, Class};
    use meridian_backend::{Embedded, Seams};
    use meridian_store::{Options, Store};
    use std::io::Write;
    use std::sync::atomic::Ordering;

    const LENGTH: usize = 1 << 20;
    const DEADLINE: Duration = Duration::from_secs(10);

    fn state() -> AppState {
        let seams = Seams::real();
        let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
        let config = ServerConfig { answer_disk_free_min: 0, ..ServerConfig::default() };
        AppState::new(Embedded::new(store), &seams, config).unwrap()
    }

    /// Returns the length of a response in its head, and its body.
    async fn made(state: &AppState) -> (HeaderValue, Body) {
        let ledger = Arc::new(Ledger::new("default"));
        let account = Account { ledger, class: Class::Interactive, is_write: false };
        let lease = Lease::new(state.gate.clone(), account, None);
        let run = lease.run(state, Instant::now() + DEADLINE).await.unwrap();
        let shared = state.clone();
        let making = made_in_file(state, run, Instant::now(), move |_| {
            let share = shared.files.begin(&"default".into()).unwrap();
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&vec![7; LENGTH]).unwrap();
            Ok((HeaderMap::new(), WholeFile::new(file, share).unwrap()))
        });
        let response = making.await.unwrap();
        (response.headers()[header::CONTENT_LENGTH].clone(), response.into_body())
    }

    #[tokio::test]
    async fn a_client_that_reads_slowly_gets_all_of_it_after_the_deadline_and_holds_no_permit() {
        let state = state();
        tokio::time::pause();
        let (length, mut body) = made(&state).await;
        assert_eq!(length, LENGTH.to_string().as_str());
        let mut received = 0;
        while let Some(piece) = frame(&mut body).await {
            let piece = piece.unwrap();
            assert!(piece.iter().all(|byte| *byte == 7));
            received += piece.len();
            assert_eq!(state.gate.counts().running, 0);
            // All of it takes more than a minute.
            tokio::time::sleep(DEADLINE / 2).await;
        }
        assert_eq!(received, LENGTH);
        assert_eq!((state.files.held(), state.answers.held()), (0, 0));
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_disconnected_and_leaves_no_file() {
        let state = state();
        tokio::time::pause();
        let (_, mut body) = made(&state).await;
        assert!(state.files.held() > 0);
        tokio::time::sleep(2 * GRACE).await;
        assert_eq!((state.files.held(), state.answers.held()), (0, 0));
        assert!(frame(&mut body).await.unwrap().is_err(), "it must not look complete");
    }

    #[tokio::test]
    async fn a_client_that_leaves_ends_it_at_once() {
        let state = state();
        let (_, body) = made(&state).await;
        drop(body);
        let ended = async {
            while state.files.held() > 0 || state.metrics.clients_gone.load(Ordering::Relaxed) == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(state.config.write_stall, ended).await.expect("it ends before any limit of its client");
    }
}
