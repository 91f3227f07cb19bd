//! Streams in memory with fault injection.
//!
//! A stalled message keeps its expected number. It is stored only if no other message took the number first, as with a
//! real server.

use super::{Bounds, PublishOutcome, Stream, Streams};
use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// How the publish of a message fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamFault {
    /// It does not arrive, and times out.
    Before,
    /// It is stored and times out.
    After,
    /// It arrives twice, and the answer is that of the second one.
    Doubled,
    /// It times out, and arrives at [`MemoryStreams::deliver`].
    Stalled,
    /// There is no room.
    Full,
}

/// Streams in memory. Clones share them, as processes share a server.
#[derive(Debug, Clone, Default)]
pub struct MemoryStreams(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    streams: BTreeMap<String, Messages>,
    /// Number of messages to let pass, and the fault of the next one.
    faults: Vec<(u64, StreamFault)>,
    stalled: Vec<(String, u64, Bytes)>,
    cut: bool,
    /// How many messages before the last requested one reads end.
    behind: u64,
    /// Numbers that reads leave out.
    skipped: Vec<u64>,
    /// Number of calls to let pass, and what happens before the next one.
    pause: Option<(u64, PauseHook)>,
    /// Max bytes of a message; 0 means 1 MiB.
    message_max: usize,
    /// Max bytes that groups take of a stream; `None` for no limit.
    bytes_max: Option<u64>,
}

/// Bytes around a message besides its subject, as counted by a server.
const FRAME: u64 = 79;
/// Space of a stream beyond the limit for groups.
const RESERVE: u64 = 16 << 10;

#[derive(Debug, Default)]
struct Messages {
    messages: BTreeMap<u64, Bytes>,
    last: u64,
}

/// The work of other processes while one is paused in a call.
struct PauseHook(Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for PauseHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PauseHook")
    }
}

impl MemoryStreams {
    /// Creates an empty server. `message_max` is the max bytes of a message; 0 means 1 MiB.
    pub fn new(message_max: usize) -> MemoryStreams {
        let streams = MemoryStreams::default();
        streams.0.lock().message_max = message_max;
        streams
    }

    /// Injects a fault into a publish, after `after` messages that succeed.
    pub fn fail(&self, fault: StreamFault, after: u64) {
        self.0.lock().faults.push((after, fault));
    }

    /// Limits each stream to `bytes` bytes, including frames, plus some space for owner records.
    pub fn limit(&self, bytes: u64) {
        self.0.lock().bytes_max = Some(bytes);
    }

    /// Makes every call fail, or lets calls through again.
    pub fn cut(&self, cut: bool) {
        self.0.lock().cut = cut;
    }

    /// Makes reads of ranges end `messages` messages early, as on a lagging server.
    pub fn lag(&self, messages: u64) {
        self.0.lock().behind = messages;
    }

    /// Makes reads of ranges omit a number, as if a batch were lost on its way.
    pub fn skip(&self, number: u64) {
        self.0.lock().skipped.push(number);
    }

    /// Removes all faults, except for messages that are already stalled.
    pub fn heal(&self) {
        let mut state = self.0.lock();
        state.faults.clear();
        state.cut = false;
        state.behind = 0;
        state.skipped.clear();
    }

    /// Lets stalled messages arrive, in order.
    pub fn deliver(&self) {
        let mut state = self.0.lock();
        for (name, expected, message) in std::mem::take(&mut state.stalled) {
            state.streams.get_mut(&name).map(|stream| stream.store(expected, &message));
        }
    }

    /// Returns all messages of the streams, by name and number, with their sizes.
    pub fn messages(&self) -> Vec<(String, u64, usize)> {
        let state = self.0.lock();
        let of = |(name, stream): (&String, &Messages)| {
            stream.messages.iter().map(|(number, message)| (name.clone(), *number, message.len())).collect::<Vec<_>>()
        };
        state.streams.iter().flat_map(of).collect()
    }

    /// Loses the last messages of every stream, and the memory of their numbers, like a log that loses acknowledged
    /// data.
    pub fn lose(&self, messages: u64) {
        for stream in self.0.lock().streams.values_mut() {
            stream.last = stream.last.saturating_sub(messages);
            let last = stream.last;
            stream.messages.retain(|number, _| *number <= last);
        }
    }

    /// Loses all streams.
    pub fn lose_all(&self) {
        self.0.lock().streams.clear();
    }

    /// Replaces a message of every stream that has it, which no client can do; `None` removes it.
    pub fn harm(&self, number: u64, bytes: Option<&[u8]>) {
        for stream in self.0.lock().streams.values_mut() {
            match bytes {
                Some(bytes) => {
                    stream.messages.entry(number).and_modify(|message| *message = Bytes::copy_from_slice(bytes));
                }
                None => drop(stream.messages.remove(&number)),
            }
        }
    }

    /// Pauses the process that makes a call, after `after` calls that pass: `hook` runs before that call takes
    /// effect.
    pub fn pause(&self, after: u64, hook: impl FnOnce() + Send + 'static) {
        self.0.lock().pause = Some((after, PauseHook(Box::new(hook))));
    }

    /// Cancels a pause that is still to come; returns true if there was one.
    pub fn take_pause(&self) -> bool {
        self.0.lock().pause.take().is_some()
    }

    fn call(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.0.lock();
        match &mut state.pause {
            Some((0, _)) => {
                let hook = state.pause.take();
                // Not under the lock: others make calls.
                drop(state);
                hook.into_iter().for_each(|(_, PauseHook(work))| work());
                state = self.0.lock();
            }
            Some((left, _)) => *left -= 1,
            None => {}
        }
        if state.cut { Err(ErrorKind::TimedOut.into()) } else { Ok(state) }
    }
}

impl Messages {
    /// Returns the bytes that it takes at a server.
    fn bytes(&self, name: &str) -> u64 {
        self.messages.values().map(|message| framed(name, message)).sum()
    }

    /// Stores a message if `expected` is the stream's last number: the compare-and-swap that fences former writers.
    fn store(&mut self, expected: u64, message: &Bytes) -> PublishOutcome {
        if self.last != expected {
            return PublishOutcome::Refused;
        }
        self.last += 1;
        self.messages.insert(self.last, message.clone());
        PublishOutcome::Stored(self.last)
    }
}

fn framed(name: &str, message: &Bytes) -> u64 {
    FRAME + name.len() as u64 + message.len() as u64
}

impl State {
    /// Returns the fault of the next message, if any.
    fn fault(&mut self) -> Option<StreamFault> {
        match self.faults.first_mut()? {
            (0, _) => Some(self.faults.remove(0).1),
            (left, _) => {
                *left -= 1;
                None
            }
        }
    }

    /// Publishes a message with the fault that is due. `Lost` hides whether it was stored, as a timeout does.
    fn publish(&mut self, name: &str, expected: u64, message: &Bytes) -> PublishOutcome {
        let lost = || PublishOutcome::Lost(ErrorKind::TimedOut.into());
        let fault = self.fault();
        // No such stream takes it.
        let Some(stream) = self.streams.get_mut(name) else {
            return PublishOutcome::Denied(ErrorKind::NotConnected.into());
        };
        let max = self.bytes_max.map_or(u64::MAX, |max| max + RESERVE);
        match fault {
            None if max < u64::MAX && stream.bytes(name) + framed(name, message) > max => {
                PublishOutcome::Denied(ErrorKind::StorageFull.into())
            }
            None => stream.store(expected, message),
            Some(StreamFault::Before) => lost(),
            Some(StreamFault::After) => {
                stream.store(expected, message);
                lost()
            }
            Some(StreamFault::Doubled) => {
                stream.store(expected, message);
                stream.store(expected, message)
            }
            Some(StreamFault::Stalled) => {
                self.stalled.push((name.to_owned(), expected, message.clone()));
                lost()
            }
            Some(StreamFault::Full) => PublishOutcome::Denied(ErrorKind::StorageFull.into()),
        }
    }
}

impl Streams for MemoryStreams {
    fn create(&self, name: &str) -> io::Result<()> {
        self.call()?.streams.entry(name.to_owned()).or_default();
        Ok(())
    }

    fn open(&self, name: &str) -> io::Result<Option<Arc<dyn Stream>>> {
        let there = self.call()?.streams.contains_key(name);
        Ok(there.then(|| Arc::new(MemoryStream { streams: self.clone(), name: name.to_owned() }) as Arc<dyn Stream>))
    }

    fn names(&self, prefix: &str) -> io::Result<Vec<String>> {
        Ok(self.call()?.streams.keys().filter(|name| name.starts_with(prefix)).cloned().collect())
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.call()?.streams.remove(name);
        Ok(())
    }

    fn message_max(&self) -> usize {
        match self.0.lock().message_max {
            0 => 1 << 20,
            max => max,
        }
    }

    fn place(&self) -> String {
        "memory".to_owned()
    }
}

#[derive(Debug)]
struct MemoryStream {
    streams: MemoryStreams,
    name: String,
}

impl MemoryStream {
    fn with<T>(&self, look: impl FnOnce(&mut Messages) -> T) -> io::Result<T> {
        let mut state = self.streams.call()?;
        state.streams.get_mut(&self.name).map(look).ok_or_else(|| ErrorKind::NotFound.into())
    }
}

impl Stream for MemoryStream {
    fn publish(&self, expected: u64, messages: &[Bytes]) -> Vec<PublishOutcome> {
        let one = |(place, message): (usize, &Bytes)| match self.streams.call() {
            Ok(mut state) => state.publish(&self.name, expected + place as u64, message),
            Err(error) => PublishOutcome::Lost(error),
        };
        messages.iter().enumerate().map(one).collect()
    }

    fn bounds(&self) -> io::Result<Bounds> {
        self.with(|stream| Bounds {
            first: stream.messages.keys().next().copied().unwrap_or(stream.last + 1),
            last: stream.last,
        })
    }

    fn get(&self, sequence: u64) -> io::Result<Option<Bytes>> {
        self.with(|stream| stream.messages.get(&sequence).cloned())
    }

    fn read(&self, from: u64, to: u64, each: &mut dyn FnMut(u64, Bytes)) -> io::Result<()> {
        let (to, skipped) = {
            let state = self.streams.0.lock();
            (to.saturating_sub(state.behind), state.skipped.clone())
        };
        let messages = self.with(|stream| {
            let range = stream.messages.range(from..).take_while(|(number, _)| **number <= to);
            let range = range.filter(|(number, _)| !skipped.contains(*number));
            range.map(|(number, message)| (*number, message.clone())).collect::<Vec<_>>()
        })?;
        messages.into_iter().for_each(|(number, message)| each(number, message));
        Ok(())
    }

    fn purge(&self, below: u64) -> io::Result<()> {
        self.with(|stream| stream.messages.retain(|number, _| *number >= below))
    }

    fn bytes_max(&self) -> u64 {
        self.streams.0.lock().bytes_max.unwrap_or(u64::MAX)
    }
}
