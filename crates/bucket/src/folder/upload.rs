//! Objects of any size: small ones with one create, larger ones in parts beside their place, which then get the name if
//! it is free.

use super::{FolderBucket, name_of};
use crate::calls::{LARGE, put_of};
use bytes::BytesMut;
use meridian_store::bucket::{Bucket, Put, Upload};
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};
use std::io;

/// Bytes of a part, and the max of an object made by one create.
const PART_BYTES: usize = 8 << 20;
/// Suffix of an object being uploaded. It is neither listed nor named; one left by a crash only takes space.
const STAGED: &str = ".upload";

/// An object being uploaded to the folder.
pub(super) struct FolderUpload {
    bucket: FolderBucket,
    name: String,
    part: BytesMut,
    /// `None` while everything fits into one part.
    parts: Option<Box<dyn MultipartUpload>>,
}

impl FolderUpload {
    pub(super) fn new(bucket: FolderBucket, name: &str) -> FolderUpload {
        FolderUpload { bucket, name: name.to_owned(), part: BytesMut::new(), parts: None }
    }

    fn staged(&self) -> String {
        format!("{}{STAGED}", self.name)
    }

    /// Sends the full part.
    fn send(&mut self) -> io::Result<()> {
        let mut parts = match self.parts.take() {
            Some(parts) => parts,
            None => {
                let (store, staged) = (self.bucket.store.clone(), name_of(&self.staged())?);
                self.bucket.calls.wait(LARGE, async move { store.put_multipart(&staged).await })?
            }
        };
        let part = PutPayload::from_bytes(self.part.split().freeze());
        // One part at a time, so that memory holds one, and the next while it fills.
        let parts = self.bucket.calls.wait(LARGE, async move { parts.put_part(part).await.map(|()| parts) })?;
        self.parts = Some(parts);
        Ok(())
    }
}

impl Upload for FolderUpload {
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
        let Some(mut parts) = self.parts.take() else { return Err(io::Error::other("an upload lost its parts")) };
        let (store, from, to) = (self.bucket.store.clone(), name_of(&self.staged())?, name_of(&self.name)?);
        self.bucket.calls.wait(LARGE, async move { parts.complete().await.map(drop) })?;
        // A link, which fails if the name is taken; a rename would replace the existing object.
        let linked = self.bucket.calls.wait(LARGE, {
            let from = from.clone();
            async move { store.copy_if_not_exists(&from, &to).await }
        });
        // A leftover only takes space.
        let _ = self.bucket.delete(from.as_ref());
        put_of(linked)
    }
}

impl Drop for FolderUpload {
    fn drop(&mut self) {
        if let Some(mut parts) = self.parts.take() {
            let _ = self.bucket.calls.wait(LARGE, async move { parts.abort().await });
        }
    }
}
