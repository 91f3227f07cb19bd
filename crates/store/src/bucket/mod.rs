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
//! Records and the audit log are chains to which every process appends (`chain.rs`). `survey.rs` reads all of it for
//! operators, and writes nothing.
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
mod create;
mod expected;
mod groups;
pub(crate) mod kind;
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

pub use crate::seams::{Bucket, Put, Span, Upload};
pub use expected::expect_streams;
pub use groups::{decide_groups, groups_of, lease_of, terms_of};
pub use kind::expect_log;
pub use lease::{Lease, LeaseState, OWNER, Statement};
pub use levels::Levels;
pub use memory::{BucketFault, MemoryBucket};
pub use meridian_model::policy::lease::Term;
pub use next::NextLevel;
pub use orders::{Order, OrderKind, OrderOutcome, Orders};
pub use peers::{Peers, SERVER_HELD};
pub use pins::ScanServerStatus;
pub(crate) use records::RECORDS;
pub use records::SharedRecords;
pub use restoring::check_whole;
pub use roll::{Condition, Node, Roll, RollEntry};
pub use scan_servers::{ScanServer, ScanServers};
pub use storage::BucketStorage;
pub use survey::{
    FlushedTotals, GroupOwner, PIN_HELD, PinUse, ReaderPin, StoredStatus, Survey, SurveyedCollection, Tail,
};
pub use terms::Terms;

pub(crate) use groups::said as said_groups;
pub(crate) use kind::check_log;
pub(crate) use log::BucketLog;
pub(crate) use pins::{Announcement, Pin, TTL as PIN_TTL, renewing};
pub(crate) use read_only::ReadOnly;

/// The prefix of the names of collections.
const COLLECTIONS: &str = "collections/";
