//! What the partition, its readers and its jobs share.

use crate::collection::stats::Counters;
use crate::error::Problem;
use crate::ingest::listeners::Listeners;
use crate::maintenance::pace::Load;
use crate::options::{Options, Settings};
use crate::part::cache::BlockCache;
use crate::part::segment::SegmentPlace;
use crate::part::{Context, PartView};
use crate::seams::{Disk, Seams};
use crate::snapshot::horizon::Horizon;
use arc_swap::ArcSwap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// What readers see: replaced as a whole.
#[derive(Debug)]
pub(crate) struct State {
    /// Position of the newest write.
    pub(crate) position: u64,
    pub(crate) context: Arc<Context>,
    pub(crate) settings: Settings,
    /// All parts: every live event in them is seen.
    pub(crate) history: Arc<[PartView]>,
    /// The same as the collection shows them: in mode `latest` the newest event of each object.
    pub(crate) views: Arc<[PartView]>,
    /// Those of which the newest snapshot may see something.
    pub(crate) seen: Arc<[PartView]>,
    pub(crate) missing: Arc<[Problem]>,
    pub(crate) notes: Arc<[Problem]>,
    /// Why no writes are taken, if so.
    pub(crate) refuses: Option<String>,
    pub(crate) log_tail_bytes: u64,
    pub(crate) keys: u64,
    pub(crate) depth: (u32, u64),
}

/// What partition, readers and jobs share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) seams: Seams,
    /// Where the data lies; in memory for an ephemeral collection.
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) dir: PathBuf,
    pub(crate) options: Arc<Options>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) horizon: Horizon,
    pub(crate) state: ArcSwap<State>,
    pub(crate) next_file: AtomicU64,
    /// Bytes of memory trees of this collection, and of all.
    pub(crate) memory: AtomicI64,
    pub(crate) memory_all: Arc<AtomicI64>,
    /// Requests in flight, over all collections.
    pub(crate) load: Arc<Load>,
    pub(crate) listeners: Arc<Listeners>,
}

impl Shared {
    pub(crate) fn segments_dir(&self) -> PathBuf {
        self.dir.join("segments")
    }

    pub(crate) fn place(&self) -> SegmentPlace {
        SegmentPlace { disk: self.disk.clone(), cache: self.cache.clone(), counters: self.counters.clone() }
    }

    /// A number for a file that no other file of the partition has.
    pub(crate) fn number_file(&self) -> u64 {
        self.next_file.fetch_add(1, Ordering::Relaxed)
    }
}

/// The parts of which their own snapshot sees something.
pub(crate) fn seen_of(views: &Arc<[PartView]>) -> Arc<[PartView]> {
    let gone = |v: &PartView| v.dead.all_dead(v.part.rows, v.seq);
    if views.iter().any(gone) { views.iter().filter(|v| !gone(v)).cloned().collect() } else { views.clone() }
}
