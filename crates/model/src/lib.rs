//! Schemas, events, geometry, time and filters: the vocabulary of every other crate.
//!
//! This crate has the domain model and nothing else: no I/O, no clock, no threads, no HTTP, no files. Invalid input
//! is reported as one [`Invalid`], which names the field or line at fault and the expected value.
//!
//! Start reading at [`Schema`] (what a collection holds), then [`Batch`] (events as columns). Next is [`Bounds`] (the
//! box in longitude, latitude and time of every index in Meridian). Last is [`filter::Predicate`] (the form of every
//! query). [`policy`] holds the rules that server and simulator share; other crates receive new events through
//! [`Subscriber`].

mod background;
pub mod batch;
pub mod bounds;
pub mod builder;
pub mod caseless;
pub mod civil;
pub mod crs;
pub mod error;
pub mod fence;
pub mod filter;
pub mod geometry;
pub mod layout;
mod memory;
pub mod mend;
pub mod naming;
mod planar;
pub mod policy;
mod record_change;
mod record_part;
mod ring;
pub mod schema;
pub mod schema_json;
pub mod schema_spec;
pub mod seq;
pub mod sphere;
mod split;
pub mod subscription;
pub mod time;
pub mod unrepeated;
mod vector;

pub use background::Background;
pub use batch::{Batch, FieldColumn};
pub use bounds::Bounds;
pub use builder::BatchBuilder;
pub use crs::Crs;
pub use error::{Invalid, cut};
pub use fence::{FenceTransition, Fences};
pub use layout::{Layout, Projection};
pub use memory::memory_of;
pub use record_change::{RecordChange, RecordChanges};
pub use record_part::RecordPart;
pub use schema::{Field, FieldType, GeometryType, IdRole, Mode, Schema, TimeRole};
pub use seq::{Numbering, Seq, SeqLayout, partition_of};
pub use split::partitions_of_rows;
pub use subscription::{Subscriber, WrittenBatch};
pub use time::Interval;
pub use vector::{Positions, Seqs, Vector};
