//! Collections in a bucket that several processes share: log, catalog and objects of a partition, and the lease of their owner.
//!
//! One operation carries all of it: [`Bucket::put`] creates an object if there is none of its name, so of all that try exactly one
//! does. No object is ever replaced. `docs/decisions/043-log-in-a-bucket.md` has the argument why a former owner can change nothing.
//!
//! What is called next, and what an answer means, is decided in `model::policy::owner`, which the explorer of that crate's tests runs as well. The
//! files here execute its steps: `create.rs` finds out what came of a create, `log.rs` and `catalog.rs` are chains of such creates. `objects.rs`
//! holds segments. `lease.rs` says which process may try to be the owner, and `groups.rs` of what. `pins.rs` says what readers use, `peers.rs`
//! what servers need, and `storage.rs` puts a store together. `roll.rs` says which processes there are, and `orders.rs` what an operator wants of
//! one. `levels.rs` says which forms all of them read (`next.rs`: a bucket as the next version would write it). `ahead.rs` reads a chain some
//! objects at a time, `patches.rs` has what was rebuilt, and `memory.rs` is a bucket that fails on purpose.
//!
//! Records and the audit log (`control.rs`) are chains to which every process appends (`chain.rs`).
//! `survey.rs` reads all of it for people, and writes nothing. `check.rs` names what is damaged.
//!
//! | name | holds |
//! |---|---|
//! | `collections/{tenant}/{collection}/{life}` | that there is such a collection |
//! | `tenants/{tenant}/{collection}/p0/{life}/wal/{epoch}-{number}` | a group of writes, or a fence |
//! | `tenants/{tenant}/{collection}/p0/{life}/manifests/{number}` | a manifest, or that the collection was dropped |
//! | `tenants/{tenant}/{collection}/p0/{life}/manifests/0-newest-{number}` | empty: this manifest was the newest |
//! | `tenants/{tenant}/{collection}/p0/{life}/segments/{file}` | what a manifest names, as in a data folder |
//! | `leases/{name}/{number}` | a term of a lease |
//! | `records/{kind}/{number}` | a change of records, or all of them |
//! | `audit/{number}` | lines of the audit log |
//! | `pins/{reader}/{number}` | what a reader uses, and where it answers gateways |
//! | `peers/{server}/{number}` | what a server tells the others, for as long as it runs |
//! | `restoring`, `restoring-empty` | that a restore is at work, of which backup, and that it began with an empty bucket |
//! | `groups` | into how many groups of partitions the bucket is divided, each with an owner |
//! | `nodes/{process}/{number}` | what a process is, for as long as it runs |
//! | `orders/{process}/{number}` | what a process is to do |
//! | `levels/{level}` | that forms of this level are written |
//! | `log` | that the log of the collections is not in the bucket, where it is, and the bucket's id there |

mod ahead;
mod catalog;
pub(crate) mod chain;
mod check;
mod control;
mod create;
mod groups;
mod kind;
mod lease;
mod levels;
mod log;
mod memory;
mod next;
mod objects;
mod orders;
mod patches;
mod peers;
mod pins;
mod read_only;
mod reader;
mod records;
pub(crate) mod restoring;
mod roll;
mod scan_servers;
mod storage;
mod survey;
mod terms;

pub use check::{Checked, check};
pub use control::{ControlPlane, InFolder, Moved};
pub use groups::{decide_groups, groups_of, lease_of, terms_of};
pub use kind::{expect_log, expect_streams};
pub use lease::{Lease, OWNER, Standing, Statement};
pub use levels::Levels;
pub use memory::{BucketFault, MemoryBucket};
pub use meridian_model::policy::lease::Term;
pub use next::NextLevel;
pub use orders::{Done, Order, OrderKind, Orders};
pub use peers::{Peers, SERVER_HELD};
pub use records::SharedRecords;
pub use restoring::check_whole;
pub use roll::{Condition, Node, OnRoll, Roll};
pub use scan_servers::{ScanServer, ScanServers, Serves};
pub use storage::BucketStorage;
pub use survey::{Flushed, GroupOwner, PIN_HELD, PinUse, ReaderPin, StoredStatus, Survey, Surveyed, Tail};
pub use terms::Terms;

pub(crate) use check::renewing;
pub(crate) use groups::said as said_groups;
pub(crate) use kind::check_log;
pub(crate) use pins::{Announcement, Pin, TTL as PIN_TTL};
pub(crate) use read_only::ReadOnly;

use std::io;
use std::ops::Range;
use std::sync::Arc;

/// A flat set of immutable objects that several processes share. Calls block, and each has a deadline.
///
/// # Contract
/// - **Create-only.** Of concurrent creates of one name exactly one takes effect. An object is readable whole or not at all.
/// - **Reads are current.** [`Bucket::get`] and [`Bucket::len`] see every create and delete that finished before the call.
///   [`Bucket::list`] may be behind.
/// - **Durable.** What [`Put::Created`] was answered for survives a crash of the store.
/// - **Errors.** A call that fails may have taken effect, or may yet, except where the error's kind says that it cannot: no room, no
///   rights. A create may be answered [`Put::Exists`] though it took effect, as a client below may have sent it twice.
pub trait Bucket: Send + Sync + std::fmt::Debug {
    /// Creates an object whole.
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<Put>;

    /// Creates an object of any size, piece by piece. Nothing is readable before [`Upload::finish`].
    fn upload(&self, name: &str) -> io::Result<Box<dyn Upload>>;

    /// Reads an object whole; absent: [`io::ErrorKind::NotFound`].
    fn get(&self, name: &str) -> io::Result<Vec<u8>>;

    /// Fills `into` from `offset`; an object that ends before is an error of kind [`io::ErrorKind::UnexpectedEof`].
    fn get_range(&self, name: &str, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Reads ranges of objects that do not depend on each other: at once, where the bucket can. Answers are
    /// in the order of `wanted`, with the errors of [`Bucket::get_range`].
    fn get_ranges(&self, wanted: &[Span]) -> Vec<io::Result<Vec<u8>>> {
        let read = |span: &Span| {
            let mut bytes = vec![0; span.bytes()];
            self.get_range(&span.name, span.range.start, &mut bytes).map(|()| bytes)
        };
        wanted.iter().map(read).collect()
    }

    /// Length in bytes; absent: [`io::ErrorKind::NotFound`].
    fn len(&self, name: &str) -> io::Result<u64>;

    /// Names below a folder (`a/b/`), sorted; it may be of an earlier moment.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;

    /// Removes an object; one that is absent is well.
    fn delete(&self, name: &str) -> io::Result<()>;

    /// Makes an object durable that can be read, where its being readable does not prove that.
    fn settle(&self, name: &str) -> io::Result<()> {
        let _ = name;
        Ok(())
    }

    /// When an object was written, by the bucket's clock, in microseconds since 1970; `None`: the bucket does not say. For people to read:
    /// nothing is decided by it.
    fn modified(&self, name: &str) -> io::Result<Option<i64>> {
        let _ = name;
        Ok(None)
    }

    /// How messages name the bucket.
    fn place(&self) -> String;
}

/// A range of bytes of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The object.
    pub name: Arc<str>,
    /// From its first byte to the one after its last.
    pub range: Range<u64>,
}

impl Span {
    /// Its length in bytes.
    pub fn bytes(&self) -> usize {
        usize::try_from(self.range.end.saturating_sub(self.range.start)).unwrap_or(usize::MAX)
    }
}

/// The outcome of a create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// The object is there, durably.
    Created,
    /// The name was taken.
    Exists,
}

/// An object on its way into a bucket. Dropped before [`Upload::finish`], it leaves the name free.
pub trait Upload: Send {
    /// Appends bytes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Creates the object, if there is none of the name.
    fn finish(self: Box<Self>) -> io::Result<Put>;
}
