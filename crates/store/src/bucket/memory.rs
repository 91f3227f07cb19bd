//! A bucket in memory with fault injection.

use super::{Bucket, Put, Upload};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// How a create fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketFault {
    /// It does not arrive, and times out.
    Before,
    /// It takes effect and times out.
    After,
    /// It takes effect, but the answer is "exists" because it was sent twice.
    Doubled,
    /// It times out, and arrives at [`MemoryBucket::deliver`], if the name is still free then.
    Stalled,
    /// There is no room.
    Full,
    /// The store fails without a specific cause.
    Broken,
}

/// Objects in memory. Clones share them, as processes share a bucket.
#[derive(Debug, Clone, Default)]
pub struct MemoryBucket(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, Arc<[u8]>>,
    /// Number of creates to let pass, and the fault of the next one.
    faults: Vec<(u64, BucketFault)>,
    stalled: Vec<(String, Arc<[u8]>)>,
    /// The objects shown by listings while they are stale.
    listed: Option<Vec<String>>,
    cut: bool,
    /// Number of calls to let pass, and what happens before the next one.
    pause: Option<(u64, PauseHook)>,
}

/// The work of other processes while one is paused in a call.
struct PauseHook(Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for PauseHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PauseHook")
    }
}

impl MemoryBucket {
    /// Creates an empty bucket.
    pub fn new() -> MemoryBucket {
        MemoryBucket::default()
    }

    /// Injects a fault into a create, after `after` creates that succeed.
    pub fn fail(&self, fault: BucketFault, after: u64) {
        self.0.lock().faults.push((after, fault));
    }

    /// Makes every call fail, or lets calls through again.
    pub fn cut(&self, cut: bool) {
        self.0.lock().cut = cut;
    }

    /// Freezes listings at the current state; `false` makes them current again.
    pub fn freeze_listings(&self, frozen: bool) {
        let mut state = self.0.lock();
        state.listed = frozen.then(|| state.objects.keys().cloned().collect());
    }

    /// Removes all faults, except for calls that are already stalled.
    pub fn heal(&self) {
        let mut state = self.0.lock();
        state.faults.clear();
        state.listed = None;
        state.cut = false;
    }

    /// Lets stalled creates arrive, in order.
    pub fn deliver(&self) {
        let mut state = self.0.lock();
        for (name, bytes) in std::mem::take(&mut state.stalled) {
            // A create never replaces: the name may have been taken meanwhile.
            state.objects.entry(name).or_insert(bytes);
        }
    }

    /// Returns all objects, with their sizes.
    pub fn objects(&self) -> Vec<(String, usize)> {
        self.0.lock().objects.iter().map(|(name, bytes)| (name.clone(), bytes.len())).collect()
    }

    /// Replaces or removes an object, which no client can do.
    pub fn harm(&self, name: &str, bytes: Option<Vec<u8>>) {
        let mut state = self.0.lock();
        match bytes {
            Some(bytes) => drop(state.objects.insert(name.to_owned(), bytes.into())),
            None => drop(state.objects.remove(name)),
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

    fn object(&self, name: &str) -> io::Result<Arc<[u8]>> {
        let state = self.call()?;
        state.objects.get(name).cloned().ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn call(&self) -> io::Result<parking_lot::MutexGuard<'_, State>> {
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
        // After the hook, which may have cut the connection.
        if state.cut { Err(ErrorKind::TimedOut.into()) } else { Ok(state) }
    }
}

impl State {
    fn create(&mut self, name: &str, bytes: &[u8]) -> Put {
        if self.objects.contains_key(name) {
            return Put::Exists;
        }
        self.objects.insert(name.to_owned(), bytes.into());
        Put::Created
    }

    /// Returns the fault of the next create, if any.
    fn fault(&mut self) -> Option<BucketFault> {
        // Only the first fault counts down: a later one counts from the moment at which the one before it has happened.
        match self.faults.first_mut()? {
            (0, _) => Some(self.faults.remove(0).1),
            (left, _) => {
                *left -= 1;
                None
            }
        }
    }
}

impl Bucket for MemoryBucket {
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<Put> {
        let mut state = self.call()?;
        match state.fault() {
            None => Ok(state.create(name, bytes)),
            // To the caller this, `After` and `Stalled` are the same time-out: it must determine the outcome itself.
            Some(BucketFault::Before) => Err(ErrorKind::TimedOut.into()),
            Some(BucketFault::After) => {
                state.create(name, bytes);
                Err(ErrorKind::TimedOut.into())
            }
            // The caller cannot tell this from the object of another writer, except by its bytes.
            Some(BucketFault::Doubled) => {
                state.create(name, bytes);
                Ok(Put::Exists)
            }
            Some(BucketFault::Stalled) => {
                state.stalled.push((name.to_owned(), bytes.into()));
                Err(ErrorKind::TimedOut.into())
            }
            Some(BucketFault::Full) => Err(ErrorKind::StorageFull.into()),
            Some(BucketFault::Broken) => Err(io::Error::from_raw_os_error(5)),
        }
    }

    fn upload(&self, name: &str) -> io::Result<Box<dyn Upload>> {
        Ok(Box::new(MemoryUpload { bucket: self.clone(), name: name.to_owned(), bytes: Vec::new() }))
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        Ok(self.object(name)?.to_vec())
    }

    fn get_range(&self, name: &str, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let object = self.object(name)?;
        let end = offset as usize + into.len();
        into.copy_from_slice(object.get(offset as usize..end).ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        Ok(self.object(name)?.len() as u64)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let state = self.call()?;
        // While listings are frozen, they miss new objects and name deleted ones. A real bucket may do both.
        let below = |name: &&String| name.starts_with(folder);
        Ok(match &state.listed {
            Some(listed) => listed.iter().filter(below).cloned().collect(),
            None => state.objects.keys().filter(below).cloned().collect(),
        })
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.call()?.objects.remove(name);
        Ok(())
    }

    fn place(&self) -> String {
        "memory:".to_owned()
    }
}

struct MemoryUpload {
    bucket: MemoryBucket,
    name: String,
    bytes: Vec<u8>,
}

impl Upload for MemoryUpload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<Put> {
        // The upload shows only now, and like any other create it can fail, or find its name taken.
        self.bucket.put(&self.name, &self.bytes)
    }
}
