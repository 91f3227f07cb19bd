//! Writes rows to disk: the driver fills a batch, another thread counts and writes it.

use super::live::Live;
use crate::rest::rested;
use meridian_lab_results::error::{LabError, Result};
use meridian_lab_results::folder::{Sample, Writer};
use meridian_lab_results::record::Record;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// Max records of a batch.
const BATCH: usize = 4_096;
/// Max batches in flight; the driver waits (and reports it) when the disk is that far behind.
const BATCHES: usize = 64;

/// Records written between two pauses.
const PIECE: usize = 256;

/// A message to the writing thread.
#[derive(Debug)]
enum Rows {
    /// Requests.
    Records(Vec<Record>),
    /// Readings of samplers.
    Samples(Vec<Sample>),
}

/// The driver's end of the channel.
#[derive(Debug)]
pub struct Recorder {
    rows: SyncSender<Rows>,
    batch: RefCell<Vec<Record>>,
    stalls: Cell<u64>,
    broken: Arc<AtomicBool>,
    thread: JoinHandle<Result<Writer>>,
}

impl Recorder {
    /// Starts the writing thread, which also updates `live`.
    pub fn start(writer: Writer, live: Option<Arc<Live>>) -> Result<Recorder> {
        let (rows, incoming) = sync_channel(BATCHES);
        let broken = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&broken);
        let thread = std::thread::Builder::new()
            .name("lab-record".to_owned())
            .spawn(move || write(writer, &incoming, &flag, live.as_deref()))
            .map_err(|e| LabError::results(format!("cannot start a thread: {e}")))?;
        Ok(Recorder { rows, batch: RefCell::new(Vec::with_capacity(BATCH)), stalls: Cell::new(0), broken, thread })
    }

    /// Keeps one record.
    pub fn push(&self, record: Record) {
        let mut batch = self.batch.borrow_mut();
        batch.push(record);
        if batch.len() == BATCH {
            let full = std::mem::replace(&mut *batch, Vec::with_capacity(BATCH));
            drop(batch);
            self.send(full);
        }
    }

    /// Sends an incomplete batch; does nothing if the disk is behind.
    pub fn flush(&self) {
        let mut batch = self.batch.borrow_mut();
        if batch.is_empty() {
            return;
        }
        let part = std::mem::replace(&mut *batch, Vec::with_capacity(BATCH));
        if let Err(TrySendError::Full(Rows::Records(part))) = self.rows.try_send(Rows::Records(part)) {
            // Not an error: the rows go with the next full batch.
            *batch = part;
        }
    }

    /// Returns a function for samplers to add samples; it returns whether more are wanted.
    pub fn samples(&self) -> impl Fn(Vec<Sample>) -> bool + Send + use<> {
        let rows = self.rows.clone();
        move |samples| rows.send(Rows::Samples(samples)).is_ok()
    }

    /// Returns whether the disk has failed: further results would be lost.
    pub fn is_broken(&self) -> bool {
        // Relaxed: the flag guards no data. The error itself is in the thread's result.
        self.broken.load(Ordering::Relaxed)
    }

    /// Returns how often the driver had to wait for the disk.
    pub fn stalls(&self) -> u64 {
        self.stalls.get()
    }

    /// Writes the remaining records and returns the folder, to be finished. Samplers must have ended.
    pub fn finish(self) -> Result<Writer> {
        self.send(self.batch.take());
        drop(self.rows);
        self.thread.join().unwrap_or_else(|_| Err(LabError::results("the thread that writes results ended early")))
    }

    fn send(&self, batch: Vec<Record>) {
        match self.rows.try_send(Rows::Records(batch)) {
            Err(TrySendError::Full(rows)) => {
                // A blocked driver sends late. The count shows in the report that the disk was the cause.
                self.stalls.set(self.stalls.get() + 1);
                // The thread ends early only if writing failed, which `is_broken` reports.
                let _ = self.rows.send(rows);
            }
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
        }
    }
}

fn write(mut writer: Writer, rows: &Receiver<Rows>, broken: &AtomicBool, live: Option<&Live>) -> Result<Writer> {
    for rows in rows {
        let done = match rows {
            Rows::Records(records) => records.chunks(PIECE).try_for_each(|piece| {
                rested(|| {
                    if let Some(live) = live {
                        live.add(piece);
                    }
                    writer.push(piece)
                })
            }),
            Rows::Samples(samples) => writer.sample(samples),
        };
        if let Err(e) = done {
            broken.store(true, Ordering::Relaxed);
            return Err(e);
        }
    }
    Ok(writer)
}
