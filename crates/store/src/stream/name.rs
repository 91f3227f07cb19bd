//! Names of streams.

use std::fmt::Write;
use std::path::Path;

/// Returns the name of the stream of a partition: `m.{bucket}.{tenant}.{collection}.p0.{life}.{generation}`.
///
/// `bucket` is the bucket's id, since several buckets may share an account. `dir` is the partition's folder below the
/// data folder.
pub(crate) fn name_of(bucket: &str, dir: &Path, life: u64, generation: u64) -> String {
    format!("{}{generation}", prefix_of(bucket, dir, life))
}

/// Returns the prefix of the names of all streams of a bucket.
pub(crate) fn bucket_prefix(bucket: &str) -> String {
    format!("m.{bucket}.")
}

/// Returns the prefix of the names of all generations.
pub(crate) fn prefix_of(bucket: &str, dir: &Path, life: u64) -> String {
    let parts = dir.iter().filter_map(|part| part.to_str()).filter(|part| *part != "/");
    let mut name = format!("m.{bucket}");
    for part in parts.enumerate().filter(|(at, part)| *at > 0 || *part != "tenants").map(|(_, part)| part) {
        name.push('.');
        token(part, &mut name);
    }
    // Writing to a `String` never fails.
    let _ = write!(name, ".{life}.");
    name
}

/// Appends a part of a path as a token of a subject. Characters other than letters, digits, `-` and `_` are written as
/// bytes, like `=2E`.
fn token(part: &str, name: &mut String) {
    for byte in part.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            other => {
                let _ = write!(name, "={other:02X}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_partitions_have_one_stream() {
        let of = |dir: &str, life, generation| name_of("b", Path::new(dir), life, generation);
        assert_eq!(of("tenants/t/ships/p0", 0, 1), "m.b.t.ships.p0.0.1");
        assert_eq!(of("tenants/t/sh.ips=2E*/p0", 0, 1), "m.b.t.sh=2Eips=3D2E=2A.p0.0.1");
        assert_eq!(of("tenants/tenants/é >/p0", 2, 0), "m.b.tenants.=C3=A9=20=3E.p0.2.0");
        assert_eq!(of("/p0", 0, 0), "m.b.p0.0.0");
    }
}
