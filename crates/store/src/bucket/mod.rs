//! Collections in a bucket that several processes share: log, catalog and objects of a partition, and the lease of
//! their owner.
//!
//! Everything builds on one operation: [`Bucket::put`] creates an object if its name is free, so exactly one of the
//! competitors succeeds. No object is ever replaced. `docs/decisions/043-log-in-a-bucket.md` argues why a former owner
//! cannot change anything.
//!
//! `model::policy::owner` decides the next call and the meaning of an answer; the explorer in that crate's tests runs
//! the same code. The files here execute its steps: `create.rs` determines the outcome of a create, `log.rs` and
//! `catalog.rs` are chains of creates. `objects.rs` holds segments. `lease.rs` decides which process may try to be the
//! owner, and `groups.rs` of what. `pins.rs` has what readers use, `peers.rs` what servers need, and `storage.rs`
//! assembles a store. `roll.rs` lists the processes, and `orders.rs` holds an operator's orders to one. `levels.rs` has
//! the formats that all of them read (`next.rs`: a bucket as the next version would write it). `ahead.rs` reads a chain
//! several objects at a time, `patches.rs` has rebuilt objects, and `memory.rs` is a bucket with fault injection.
//!
//! Records and the audit log (`control.rs`) are chains to which every process appends (`chain.rs`). `survey.rs` reads
//! all of it for operators, and writes nothing. `check.rs` reports damage.
//!
//! | name | holds |
//! |---|---|
//! | `collections/{tenant}/{collection}/{life}` | empty: the collection exists |
//! | `tenants/{tenant}/{collection}/p0/{life}/wal/{epoch}-{number}` | a group of writes, or a fence |
//! | `tenants/{tenant}/{collection}/p0/{life}/manifests/{number}` | a manifest, or the mark of a drop |
//! | `tenants/{tenant}/{collection}/p0/{life}/manifests/0-newest-{number}` | empty: this manifest was the newest |
//! | `tenants/{tenant}/{collection}/p0/{life}/segments/{file}` | an object named by a manifest, as in a data folder |
//! | `leases/{name}/{number}` | a term of a lease |
//! | `records/{kind}/{number}` | a change of records, or all of them |
//! | `audit/{number}` | lines of the audit log |
//! | `pins/{reader}/{number}` | the objects a reader uses, and the address at which gateways reach it |
//! | `peers/{server}/{number}` | what a running server needs of quotas |
//! | `restoring`, `restoring-empty` | the backup being restored, and that the bucket was empty before |
//! | `groups` | the number of groups of partitions, each with an owner |
//! | `nodes/{process}/{number}` | the state of a running process |
//! | `orders/{process}/{number}` | an order to a process |
//! | `levels/{level}` | formats of this level are written |
//! | `log` | the kind of an external log, and the bucket's id there |

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

/// A flat set of immutable objects shared by several processes. Calls block, and each has a deadline.
///
/// # Contract
/// - **Create-only.** Exactly one of several concurrent creates of a name takes effect. An object is readable
///   completely or not at all.
/// - **Reads are current.** [`Bucket::get`] and [`Bucket::len`] see every create and delete that finished before the
///   call. [`Bucket::list`] may be stale.
/// - **Durable.** An object acknowledged with [`Put::Created`] survives a crash of the store.
/// - **Errors.** A failed call may have taken effect, or may yet, unless the kind of the error rules that out: no
///   space, no rights. A create may return [`Put::Exists`] although it took effect, because a client below may have
///   sent it twice.
pub trait Bucket: Send + Sync + std::fmt::Debug {
    /// Creates an object in one call.
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<Put>;

    /// Creates an object of any size, piece by piece. Nothing is readable before [`Upload::finish`].
    fn upload(&self, name: &str) -> io::Result<Box<dyn Upload>>;

    /// Reads a complete object; an absent one is [`io::ErrorKind::NotFound`].
    fn get(&self, name: &str) -> io::Result<Vec<u8>>;

    /// Fills `into` from `offset`; an object that ends earlier is [`io::ErrorKind::UnexpectedEof`].
    fn get_range(&self, name: &str, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Reads independent ranges of objects, concurrently if the bucket can. Results are in the order of `wanted`, with
    /// the errors of [`Bucket::get_range`].
    fn get_ranges(&self, wanted: &[Span]) -> Vec<io::Result<Vec<u8>>> {
        let read = |span: &Span| {
            let mut bytes = vec![0; span.bytes()];
            self.get_range(&span.name, span.range.start, &mut bytes).map(|()| bytes)
        };
        wanted.iter().map(read).collect()
    }

    /// Returns the length in bytes; an absent object is [`io::ErrorKind::NotFound`].
    fn len(&self, name: &str) -> io::Result<u64>;

    /// Returns the names below a folder (`a/b/`), sorted; the listing may be stale.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;

    /// Removes an object; an absent one is not an error.
    fn delete(&self, name: &str) -> io::Result<()>;

    /// Makes a readable object durable, for buckets where readable does not imply durable.
    fn settle(&self, name: &str) -> io::Result<()> {
        let _ = name;
        Ok(())
    }

    /// Returns when an object was written, by the bucket's clock, in microseconds since 1970; `None` if the bucket does
    /// not report it. For display only: nothing is decided by it.
    fn modified(&self, name: &str) -> io::Result<Option<i64>> {
        let _ = name;
        Ok(None)
    }

    /// Returns the bucket's name in messages.
    fn place(&self) -> String;
}

/// A range of bytes of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The object.
    pub name: Arc<str>,
    /// From the first byte to the one after the last.
    pub range: Range<u64>,
}

impl Span {
    /// Returns its length in bytes.
    pub fn bytes(&self) -> usize {
        usize::try_from(self.range.end.saturating_sub(self.range.start)).unwrap_or(usize::MAX)
    }
}

/// The outcome of a create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// The object exists and is durable.
    Created,
    /// The name was taken.
    Exists,
}

/// An object being uploaded. Dropping it before [`Upload::finish`] leaves the name free.
pub trait Upload: Send {
    /// Appends bytes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Creates the object, if the name is free.
    fn finish(self: Box<Self>) -> io::Result<Put>;
}
