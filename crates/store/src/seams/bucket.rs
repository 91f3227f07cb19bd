//! The bucket that processes of a cluster share.

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
