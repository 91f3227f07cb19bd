//! A read-only view of a bucket, as scan servers use it.

use super::{Bucket, Put, Span, Upload};
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// Passes reads on and refuses the rest.
#[derive(Debug)]
pub(crate) struct ReadOnly(pub(crate) Arc<dyn Bucket>);

fn refused() -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, "this process only reads the bucket")
}

impl Bucket for ReadOnly {
    fn put(&self, _: &str, _: &[u8]) -> io::Result<Put> {
        Err(refused())
    }

    fn upload(&self, _: &str) -> io::Result<Box<dyn Upload>> {
        Err(refused())
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        self.0.get(name)
    }

    fn get_range(&self, name: &str, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.get_range(name, offset, into)
    }

    fn get_ranges(&self, wanted: &[Span]) -> Vec<io::Result<Vec<u8>>> {
        self.0.get_ranges(wanted)
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        self.0.len(name)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.0.list(folder)
    }

    fn delete(&self, _: &str) -> io::Result<()> {
        Err(refused())
    }

    fn modified(&self, name: &str) -> io::Result<Option<i64>> {
        self.0.modified(name)
    }

    fn place(&self) -> String {
        self.0.place()
    }
}
