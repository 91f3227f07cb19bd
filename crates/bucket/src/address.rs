//! Addresses of buckets.

use meridian_model::Invalid;
use object_store::path::Path as Name;
use std::path::PathBuf;

/// Location of a bucket.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// A folder.
    Folder(PathBuf),
    /// A bucket of an S3-compatible store, and the prefix of all names in it, without a trailing slash; may be empty.
    S3 { bucket: String, prefix: String },
}

impl Address {
    /// Parses `file://DIR` or `s3://BUCKET/PREFIX`.
    pub(crate) fn parse(address: &str) -> Result<Address, Invalid> {
        let refuse = |detail: String| Err(Invalid::field("bucket", detail));
        match address.split_once("://") {
            Some(("file", folder)) if !folder.is_empty() => Ok(Address::Folder(PathBuf::from(folder))),
            Some(("file", _)) => refuse("file:// names no folder: expected file://DIR".to_owned()),
            Some(("s3", rest)) => {
                let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
                if !is_name_of_bucket(bucket) {
                    return refuse(format!(
                        "{bucket:?} in {address} is not the name of a bucket: expected 3 to 63 letters, digits, - and ., \
                         as in s3://events/production"
                    ));
                }
                let prefix = prefix.trim_end_matches('/');
                // A path drops a leading slash, and would then name other objects.
                if !Name::parse(prefix).is_ok_and(|path| path.as_ref() == prefix) {
                    return refuse(format!(
                        "{prefix:?} in {address} cannot begin the names of objects: expected names separated by one slash"
                    ));
                }
                Ok(Address::S3 { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
            }
            Some(("s3a" | "s3n", rest)) => refuse(format!("{address}: expected s3://{rest}")),
            Some(("http" | "https", _)) => refuse(format!(
                "{address}: expected s3://BUCKET/PREFIX, and the address of the store in the setting cluster.s3.endpoint"
            )),
            _ => {
                refuse(format!("{address:?} is not the address of a bucket: expected file://DIR or s3://BUCKET/PREFIX"))
            }
        }
    }
}

fn is_name_of_bucket(text: &str) -> bool {
    (3..=63).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_bucket_or_is_refused_with_what_was_expected() {
        let s3 = |bucket: &str, prefix: &str| Address::S3 { bucket: bucket.to_owned(), prefix: prefix.to_owned() };
        for (address, expected) in [
            ("file:///srv/bucket", Address::Folder(PathBuf::from("/srv/bucket"))),
            ("file://bucket", Address::Folder(PathBuf::from("bucket"))),
            ("s3://events", s3("events", "")),
            ("s3://events/", s3("events", "")),
            ("s3://my-events.x/a/b/", s3("my-events.x", "a/b")),
        ] {
            assert_eq!(Address::parse(address).unwrap(), expected, "{address}");
        }
        for (address, part) in [
            ("file://", "names no folder"),
            ("s3://", "not the name of a bucket"),
            ("s3://ab/p", "not the name of a bucket"),
            ("s3://a b c/p", "not the name of a bucket"),
            ("s3://events//p", "separated by one slash"),
            ("s3://events/a/../b", "separated by one slash"),
            ("s3a://events/p", "expected s3://events/p"),
            ("https://store/events", "cluster.s3.endpoint"),
            ("/srv/bucket", "file://DIR or s3://"),
        ] {
            let refused = Address::parse(address).unwrap_err();
            assert_eq!(refused.field.as_deref(), Some("bucket"));
            assert!(refused.detail.contains(part), "{refused}");
        }
    }
}
