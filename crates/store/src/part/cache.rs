//! The block cache: decoded blocks of segment files, shared by all collections and bounded in bytes.

use crate::part::keys::{Filter, KeyRows};
use crate::part::objects::ObjectRows;
use crate::part::open_parts::OpenParts;
use arrow_array::ArrayRef;
use meridian_index::{CountPyramid, Forest};
use meridian_model::memory_of;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The decoded content of a block.
#[derive(Debug, Clone)]
pub(crate) enum Block {
    /// Values of one column of one chunk.
    Array(ArrayRef),
    /// A page of the key sidecar.
    Keys(Arc<KeyRows>),
    /// The filter of the key sidecar.
    Filter(Arc<Filter>),
    /// A page of the sidecar of objects.
    Objects(Arc<ObjectRows>),
    /// Counts per map cell.
    Pyramid(Arc<CountPyramid>),
    /// The tree over the order of time.
    Forest(Arc<Forest>),
}

impl Block {
    /// Returns the values of a block that was decoded to an array.
    pub(crate) fn into_array(self) -> Result<ArrayRef, String> {
        match self {
            Block::Array(array) => Ok(array),
            _ => Err("a block of another kind".to_owned()),
        }
    }
}

/// Identifies a block: the number of the part in this process, and the block's number in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockKey {
    pub(crate) part: u64,
    pub(crate) block: u32,
}

impl Hash for BlockKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.part << 32 ^ self.part >> 32 ^ u64::from(self.block));
    }
}

/// Mixes the one number that a [`BlockKey`] writes (the finalizer of MurmurHash3, Appleby 2011). It must be cheap: a
/// query looks up at least one block for each chunk that it reads.
#[derive(Debug, Default)]
struct BlockHasher(u64);

impl Hasher for BlockHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, value: u64) {
        // The cache shards by hash bits, and consecutive block numbers differ in the lowest bits only.
        let mut mixed = self.0 ^ value;
        mixed = (mixed ^ mixed >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed = (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        self.0 = mixed ^ mixed >> 33;
    }
}

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<BlockKey, Block> for Weight {
    fn weight(&self, _: &BlockKey, block: &Block) -> u64 {
        // With the entry's own overhead: many tiny blocks must not exceed the budget unnoticed.
        64 + match block {
            Block::Array(array) => memory_of([array]) as u64,
            Block::Keys(keys) => 12 * keys.keys.len() as u64,
            Block::Filter(filter) => filter.bytes() as u64,
            Block::Objects(objects) => 32 * objects.entries.len() as u64,
            Block::Pyramid(pyramid) => pyramid.bytes() as u64,
            Block::Forest(forest) => forest.bytes() as u64,
        }
    }
}

/// The cache, with its counters.
#[derive(Debug)]
pub(crate) struct BlockCache {
    /// Segments opened for queries.
    pub(crate) opened: OpenParts,
    /// Hashed without a random key, so that evictions (and repeated reads) are the same in each simulation.
    blocks: Cache<BlockKey, Block, Weight, BuildHasherDefault<BlockHasher>>,
    next_part: AtomicU64,
    ticks: AtomicU64,
}

impl BlockCache {
    /// Creates the cache. `bytes` limits blocks; `tree_bytes` limits the trees of segments opened for queries.
    pub(crate) fn new(bytes: u64, tree_bytes: u64) -> BlockCache {
        // Sized for blocks of some 32 KiB; the estimate only shapes the table.
        let items = (bytes / (32 << 10)).clamp(64, 1 << 22) as usize;
        BlockCache {
            opened: OpenParts::new(tree_bytes),
            blocks: Cache::with(items, bytes, Weight, Default::default(), Default::default()),
            next_part: AtomicU64::new(1),
            ticks: AtomicU64::new(1),
        }
    }

    /// Returns a number that no other part of this process has.
    pub(crate) fn number_part(&self) -> u64 {
        // Relaxed: the numbers must differ, and order no other memory.
        self.next_part.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns a number greater than all before, which orders uses.
    pub(crate) fn tick(&self) -> u64 {
        // Relaxed: ranks decide only which rows are dropped first.
        self.ticks.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn get(&self, key: BlockKey) -> Option<Block> {
        self.blocks.get(&key)
    }

    /// Returns true if a block is held; does not count as a use.
    pub(crate) fn holds(&self, key: BlockKey) -> bool {
        self.blocks.peek(&key).is_some()
    }

    pub(crate) fn insert(&self, key: BlockKey, block: Block) {
        self.blocks.insert(key, block);
    }

    /// Returns the bytes currently held.
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks.weight()
    }
}
