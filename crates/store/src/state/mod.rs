//! State that the partition, its readers and its jobs share.

pub(crate) mod complete;
pub(crate) mod listeners;
pub(crate) mod memory;

use crate::error::{Problem, StoreError};
use crate::manifest::ImportOrigin;
use crate::options::{Options, Settings};
use crate::pace::Load;
use crate::part::cache::BlockCache;
use crate::part::removal::Removal;
use crate::part::segment::SegmentAccess;
use crate::part::{Context, PartView};
use crate::seams::{Objects, Seams};
use crate::snapshot::SnapshotView;
use crate::snapshot::horizon::Horizon;
use crate::state::complete::Completeness;
use crate::state::listeners::Listeners;
use crate::state::memory::WriteMemory;
use crate::stats::Counters;
use arc_swap::ArcSwap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// The state that readers see; replaced as a whole.
#[derive(Debug, Clone)]
pub(crate) struct State {
    /// Position of the newest write.
    pub(crate) position: u64,
    pub(crate) context: Arc<Context>,
    pub(crate) settings: Settings,
    /// All parts, in which every live event is visible.
    pub(crate) history: Arc<[PartView]>,
    /// The parts as the collection shows them: in mode `latest`, only the newest event of each object.
    pub(crate) views: Arc<[PartView]>,
    /// The newest snapshot's view: the parts with rows that it may see.
    pub(crate) seen: Arc<SnapshotView>,
    pub(crate) notes: Arc<[Problem]>,
    /// Why writes are refused, if they are.
    pub(crate) refuses: Option<String>,
    /// Whether writes are refused until it is reopened: its log is shared, and may hold more than is known here.
    pub(crate) reopens: bool,
    pub(crate) log_tail_bytes: u64,
    /// When the oldest write not covered by a manifest was taken, in microseconds since 1970; `None` if there is none,
    /// or no reader follows.
    pub(crate) behind: Option<i64>,
    pub(crate) keys: u64,
    pub(crate) depth: (u32, u64),
}

/// State that partition, readers and jobs share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) seams: Seams,
    /// Segments and their sidecars; in memory for an ephemeral collection.
    pub(crate) objects: Arc<dyn Objects>,
    /// Names of objects to delete once no snapshot pins them.
    pub(crate) removal: Arc<Removal>,
    /// The folder of the partition, as named in messages.
    pub(crate) dir: PathBuf,
    pub(crate) options: Arc<Options>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) horizon: Horizon,
    pub(crate) state: ArcSwap<State>,
    pub(crate) next_file: AtomicU64,
    pub(crate) tenant: Arc<str>,
    /// Bytes of memory trees of this collection; the next field counts all collections.
    pub(crate) memory: AtomicI64,
    pub(crate) memory_all: Arc<WriteMemory>,
    /// Requests in flight, over all collections.
    pub(crate) load: Arc<Load>,
    pub(crate) listeners: Arc<Listeners>,
    /// Whether this process may be behind the log or the catalog of any collection.
    pub(crate) outdated: Arc<AtomicBool>,
    /// Whether a panic has interrupted a change: until a restart nothing else changes it, not even in the background.
    pub(crate) halted: AtomicBool,
    pub(crate) complete: Completeness,
    /// The events that a restore divided; constant for the life of the collection.
    pub(crate) imported: Option<ImportOrigin>,
    /// When its content began, in microseconds since 1970.
    pub(crate) began: i64,
    /// Time until which removals keep the rows of earlier snapshots, in microseconds of the clock's elapsed time.
    pub(crate) pinned_until: Arc<AtomicI64>,
}

impl Shared {
    pub(crate) fn place(&self) -> SegmentAccess {
        SegmentAccess {
            objects: self.objects.clone(),
            removal: Some(self.removal.clone()),
            cache: self.cache.clone(),
            counters: self.counters.clone(),
        }
    }

    /// Makes the names of objects durable, which must happen before a manifest names them.
    pub(crate) fn sync_objects(&self) -> Result<(), StoreError> {
        self.objects.sync().map_err(StoreError::io("sync", &self.objects.path("")))
    }

    /// Returns a file number that no other file of the partition has.
    pub(crate) fn number_file(&self) -> u64 {
        self.next_file.fetch_add(1, Ordering::Relaxed)
    }

    /// Gives back the room of its memory trees, which count for all collections.
    pub(crate) fn release_memory(&self) {
        self.memory_all.change(&self.tenant, self.memory.swap(0, Ordering::AcqRel), 0);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Also for a partition that was never closed, such as one of a collection that could not be opened completely.
        self.release_memory();
    }
}
