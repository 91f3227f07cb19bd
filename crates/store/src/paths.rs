//! Names of folders and files in a data folder.

use crate::error::StoreError;
use crate::options::PARTITIONS_MAX;
use meridian_model::Invalid;
use std::path::{Path, PathBuf};

/// Name of the folder in a partition's folder for files that a repair set aside.
pub(crate) const LOST: &str = "lost";

/// Returns the folder of a partition of a collection in a data folder.
pub fn partition_dir(root: &Path, tenant: &str, name: &str, partition: u32) -> PathBuf {
    root.join("tenants").join(tenant).join(name).join(partition_folder(partition))
}

/// Returns the name of the folder of a partition.
pub(crate) fn partition_folder(partition: u32) -> String {
    format!("p{partition}")
}

/// Returns the partition that has a folder of this name.
pub(crate) fn number_of(name: &str) -> Option<u32> {
    let number = name.strip_prefix('p')?.parse().ok().filter(|number| *number < u32::from(PARTITIONS_MAX))?;
    // One name for each: `p01` is not a valid one.
    (partition_folder(number) == name).then_some(number)
}

/// Checks that a record may have this name.
pub(crate) fn check_record_name(name: &str) -> Result<(), StoreError> {
    match is_plain(name) {
        true => Ok(()),
        false => Err(Invalid::new(format!("{name:?} cannot name a record: expected letters, digits, - and _")).into()),
    }
}

/// Returns true if it consists of letters, digits, `-` and `_`, and is not too long.
pub(crate) fn is_plain(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    (1..=128).contains(&name.len()) && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_has_one_name() {
        for partition in [0, 1, 9, 10, 255] {
            assert_eq!(number_of(&partition_folder(partition)), Some(partition));
        }
        for other in ["p", "p01", "p256", "q0", "p-1", "p0.new", "0"] {
            assert_eq!(number_of(other), None, "{other}");
        }
    }
}
