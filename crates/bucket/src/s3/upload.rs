//! Objects of any size: small ones with one create, larger ones in parts, which then get the name if it is free.

use super::S3Bucket;
use crate::calls::{LARGE, put_of};
use bytes::BytesMut;
use meridian_store::bucket::{Bucket, Put, Upload};
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path as Name;
use object_store::{MultipartId, PutPayload};
use std::io;

/// Bytes of a part, and the max of an object made by one create. Stores require at least 5 MiB, and accept 10,000
/// parts.
const PART_BYTES: usize = 8 << 20;

/// An object being uploaded to the store.
pub(super) struct S3Upload {
    bucket: S3Bucket,
    name: String,
    part: BytesMut,
    /// `None` while everything fits into one part.
    parts: Option<Parts>,
}

/// The uploaded parts of an object that has no name yet.
struct Parts {
    key: Name,
    id: MultipartId,
    sent: Vec<PartId>,
}

impl S3Upload {
    pub(super) fn new(bucket: S3Bucket, name: &str) -> S3Upload {
        S3Upload { bucket, name: name.to_owned(), part: BytesMut::new(), parts: None }
    }

    /// Sends the full part. One at a time, so that memory holds one, and the next while it fills.
    pub(super) fn send(&mut self) -> io::Result<()> {
        if self.parts.is_none() {
            let key = self.bucket.key(&self.name)?;
            let (begun, at) = (self.bucket.clients.reads.clone(), key.clone());
            let id = self.bucket.wait(LARGE, async move { begun.create_multipart(&at).await })?;
            self.parts = Some(Parts { key, id, sent: Vec::new() });
        }
        let Some(parts) = &mut self.parts else { return Err(io::Error::other("an upload lost its parts")) };
        let (store, bytes) = (self.bucket.clients.parts.clone(), PutPayload::from_bytes(self.part.split().freeze()));
        let (key, id, number) = (parts.key.clone(), parts.id.clone(), parts.sent.len());
        let sent = self.bucket.wait(LARGE, async move { store.put_part(&key, &id, number, bytes).await })?;
        parts.sent.push(sent);
        Ok(())
    }
}

impl Upload for S3Upload {
    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (now, rest) = bytes.split_at(bytes.len().min(PART_BYTES - self.part.len()));
            self.part.extend_from_slice(now);
            bytes = rest;
            if self.part.len() == PART_BYTES {
                self.send()?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<Put> {
        if self.parts.is_none() {
            return self.bucket.put(&self.name, &self.part);
        }
        if !self.part.is_empty() {
            self.send()?;
        }
        let Some(parts) = &mut self.parts else { return Err(io::Error::other("an upload lost its parts")) };
        let (store, sent) = (self.bucket.clients.completes.clone(), std::mem::take(&mut parts.sent));
        let (key, id) = (parts.key.clone(), parts.id.clone());
        let completed =
            self.bucket.wait(LARGE, async move { store.complete_multipart(&key, &id, sent).await.map(drop) });
        let put = put_of(completed);
        if matches!(put, Ok(Put::Created)) {
            self.parts = None;
        }
        // Otherwise its parts are removed. If the object got its name but the response was lost, it stays whole: the
        // store no longer knows the upload.
        put
    }
}

impl Drop for S3Upload {
    fn drop(&mut self) {
        if let Some(Parts { key, id, .. }) = self.parts.take() {
            let store = self.bucket.clients.reads.clone();
            // Leftover parts only take space; a lifecycle rule of the bucket can remove them.
            let _ = self.bucket.wait(LARGE, async move { store.abort_multipart(&key, &id).await });
        }
    }
}
