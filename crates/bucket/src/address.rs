//! What an address names.

use meridian_model::Invalid;
use std::path::PathBuf;

/// The folder of an address.
pub(crate) fn folder_of(address: &str) -> Result<PathBuf, Invalid> {
    let refuse = |detail: String| Err(Invalid::field("bucket", detail));
    match address.split_once("://") {
        Some(("file", folder)) if !folder.is_empty() => Ok(PathBuf::from(folder)),
        Some(("file", _)) => refuse("file:// names no folder: expected file://DIR".to_owned()),
        Some(("s3" | "s3a", _)) => refuse(format!(
            "{address} is in an S3-compatible store, which this version does not use yet: name a shared folder, file://DIR"
        )),
        _ => refuse(format!("{address:?} is not the address of a bucket: expected file://DIR")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_folder_or_is_refused_with_what_was_expected() {
        assert_eq!(folder_of("file:///srv/bucket").unwrap(), PathBuf::from("/srv/bucket"));
        assert_eq!(folder_of("file://bucket").unwrap(), PathBuf::from("bucket"));
        for (address, part) in
            [("file://", "names no folder"), ("s3://b/p", "S3-compatible"), ("/srv/bucket", "file://DIR")]
        {
            let refused = folder_of(address).unwrap_err();
            assert_eq!(refused.field.as_deref(), Some("bucket"));
            assert!(refused.detail.contains(part), "{refused}");
        }
    }
}
