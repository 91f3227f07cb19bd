//! The number of groups among which the partitions of a bucket are divided, and the lease of each group's owner.
//!
//! The first owner decides, with an object that is never replaced: processes with different counts would take
//! partitions from each other. An older bucket has one group, whose lease keeps its old name.

use super::create::{CreateOutcome, create};
use super::lease::OWNER;
use super::{Bucket, Terms};
use crate::error::StoreError;
use crate::seams::Clock;
use meridian_model::policy::groups::{Group, Groups};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the object that holds the number of groups, as text.
const NAME: &str = "groups";

/// Returns the name of the lease of a group's owner.
pub fn lease_of(group: Group) -> String {
    match group.is_all() {
        true => OWNER.to_owned(),
        false => format!("{OWNER}-{}", group.number()),
    }
}

/// Returns the number of groups of a bucket; `None` if no owner has decided yet.
///
/// # Errors
/// [`StoreError::Corrupt`] if the object cannot be parsed; [`StoreError::Io`] if the bucket does not answer.
pub fn groups_of(bucket: &dyn Bucket) -> Result<Option<Groups>, StoreError> {
    if let Some(said) = said(bucket)? {
        return Ok(Some(said));
    }
    // Only collections were restored: their first owner decides.
    let folder = format!("leases/{OWNER}/");
    let there = bucket.list(&folder).map_err(StoreError::io("list", &path(bucket, &folder)))?;
    Ok((!there.is_empty()).then_some(Groups::ONE))
}

/// Returns the content of the object, if it exists.
pub(crate) fn said(bucket: &dyn Bucket) -> Result<Option<Groups>, StoreError> {
    match bucket.get(NAME) {
        Ok(found) => parse(bucket, &found).map(Some),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(StoreError::io("read", &path(bucket, NAME))(e)),
    }
}

/// Returns the groups of a bucket, for a process that may become an owner. A new bucket gets the wanted number; any
/// other keeps its own.
///
/// # Errors
/// Those of [`groups_of`].
pub fn decide_groups(bucket: &dyn Bucket, clock: &dyn Clock, wanted: Groups) -> Result<Groups, StoreError> {
    if let Some(groups) = said(bucket)? {
        // Its creator may have ended before it was durable.
        bucket.settle(NAME).map_err(StoreError::io("sync", &path(bucket, NAME)))?;
        return Ok(groups);
    }
    if let Some(groups) = groups_of(bucket)? {
        return Ok(groups);
    }
    match create(bucket, clock, NAME, wanted.count().to_string().as_bytes()) {
        Ok(CreateOutcome::Ours) => Ok(wanted),
        // Another process was first.
        Ok(CreateOutcome::Theirs(found)) => parse(bucket, &found),
        Err(failure) => Err(StoreError::io("create", &path(bucket, NAME))(failure.into_error())),
    }
}

/// Returns the terms of each group's lease, in order.
pub fn terms_of(bucket: &Arc<dyn Bucket>, groups: Groups) -> Vec<Terms> {
    groups.all().map(|group| Terms::new(bucket, &lease_of(group))).collect()
}

fn parse(bucket: &dyn Bucket, found: &[u8]) -> Result<Groups, StoreError> {
    let count = std::str::from_utf8(found).ok().and_then(|text| text.parse().ok()).and_then(Groups::new);
    count.ok_or_else(|| StoreError::corrupt(&path(bucket, NAME), "it names no number of groups"))
}

fn path(bucket: &dyn Bucket, name: &str) -> PathBuf {
    Path::new(&bucket.place()).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::MemoryBucket;
    use crate::seams::ManualClock;

    #[test]
    fn the_first_owner_decides() {
        let (bucket, clock) = (MemoryBucket::new(), ManualClock::new(0));
        let (three, four) = (Groups::new(3).unwrap(), Groups::new(4).unwrap());
        assert_eq!(groups_of(&bucket).unwrap(), None);
        assert_eq!(decide_groups(&bucket, &clock, three).unwrap(), three);
        assert_eq!(decide_groups(&bucket, &clock, four).unwrap(), three);
        assert_eq!(groups_of(&bucket).unwrap(), Some(three));
        for harm in ["0", "65", "x", ""] {
            bucket.harm(NAME, Some(harm.as_bytes().to_vec()));
            assert!(matches!(groups_of(&bucket), Err(StoreError::Corrupt { .. })), "{harm:?}");
        }
    }

    #[test]
    fn a_bucket_from_before_has_one_group() {
        let four = Groups::new(4).unwrap();
        for (name, groups) in [("leases/owner/0000000000000001", Groups::ONE), ("collections/t/c/00000000", four)] {
            let (bucket, clock) = (MemoryBucket::new(), ManualClock::new(0));
            bucket.put(name, b"").unwrap();
            assert_eq!(decide_groups(&bucket, &clock, four).unwrap(), groups, "{name}");
        }
        let names: Vec<String> = Groups::new(2).unwrap().all().map(lease_of).collect();
        assert_eq!(
            (lease_of(Group::ONLY), names),
            ("owner".to_owned(), vec!["owner-0".to_owned(), "owner-1".to_owned()])
        );
    }
}
