//! Checks the one guarantee of a bucket that everything depends on.

use meridian_model::Invalid;
use meridian_store::StoreError;
use meridian_store::bucket::{Bucket, Put};
use meridian_store::seams::Random;
use std::path::PathBuf;
use std::sync::{Arc, Barrier};

/// Number of concurrent creates of one object.
const CREATES: usize = 32;

/// Creates one object from many threads at once. Refuses the bucket unless exactly one of them wins.
pub(crate) fn probe(bucket: &Arc<dyn Bucket>, random: &dyn Random) -> Result<(), StoreError> {
    let name = format!("probe/{:016x}{:016x}", random.next_u64(), random.next_u64());
    let failed = |action, source| StoreError::Io { action, path: PathBuf::from(bucket.place()).join(&name), source };
    let start = Barrier::new(CREATES);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let create = |number: usize| {
            let (start, name) = (&start, &name);
            move || {
                // All at once, or a bucket that merely checks before it writes would pass.
                start.wait();
                bucket.put(name, &content(number))
            }
        };
        let threads: Vec<_> = (0..CREATES).map(|number| scope.spawn(create(number))).collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let (mut winners, mut lost, mut first_error) = (Vec::new(), Vec::new(), None);
    for (number, answer) in answers.into_iter().enumerate() {
        match answer.map_err(|_| failed("create", std::io::Error::other("a thread of the probe panicked")))? {
            Ok(Put::Created) => winners.push(number),
            Ok(Put::Exists) => {}
            // A store may fail some of many creates of one name, and one of those may have won.
            Err(error) => {
                lost.push(number);
                first_error.get_or_insert(error);
            }
        }
    }
    let found = bucket.get(&name);
    // A leftover belongs to no one: its name is random.
    let _ = bucket.delete(&name);
    let one_of = |numbers: &[usize]| numbers.iter().any(|number| found.as_ref().is_ok_and(|f| *f == content(*number)));
    match (&winners[..], first_error) {
        ([_], _) if one_of(&winners) => Ok(()),
        ([], Some(_)) if one_of(&lost) => Ok(()),
        ([], Some(error)) => Err(failed("create", error)),
        _ => {
            found.map_err(|e| failed("read", e))?;
            Err(Invalid::field(
                "bucket",
                format!(
                    "{} cannot hold collections: of {CREATES} creates of one object at once {} succeeded, where exactly one must; \
                     expected a folder on a file system with exclusive creates, or a store that takes If-None-Match",
                    bucket.place(),
                    winners.len()
                ),
            )
            .into())
        }
    }
}

fn content(number: usize) -> Vec<u8> {
    vec![number as u8; 64]
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_store::bucket::{MemoryBucket, Upload};
    use meridian_store::seams::SeededRandom;
    use std::io;

    /// A bucket that lets every create win.
    #[derive(Debug)]
    struct Lax(MemoryBucket);

    impl Bucket for Lax {
        fn put(&self, name: &str, bytes: &[u8]) -> io::Result<Put> {
            self.0.harm(name, Some(bytes.to_vec()));
            Ok(Put::Created)
        }
        fn upload(&self, name: &str) -> io::Result<Box<dyn Upload>> {
            self.0.upload(name)
        }
        fn get(&self, name: &str) -> io::Result<Vec<u8>> {
            self.0.get(name)
        }
        fn get_range(&self, name: &str, offset: u64, into: &mut [u8]) -> io::Result<()> {
            self.0.get_range(name, offset, into)
        }
        fn len(&self, name: &str) -> io::Result<u64> {
            self.0.len(name)
        }
        fn list(&self, folder: &str) -> io::Result<Vec<String>> {
            self.0.list(folder)
        }
        fn delete(&self, name: &str) -> io::Result<()> {
            self.0.delete(name)
        }
        fn place(&self) -> String {
            "lax".to_owned()
        }
    }

    #[test]
    fn a_bucket_where_two_creates_win_is_refused() {
        let random = SeededRandom::new(1);
        let good: Arc<dyn Bucket> = Arc::new(MemoryBucket::new());
        probe(&good, &random).unwrap();
        assert!(good.list("probe/").unwrap().is_empty());
        let lax: Arc<dyn Bucket> = Arc::new(Lax(MemoryBucket::new()));
        let refused = probe(&lax, &random).unwrap_err().to_string();
        assert!(refused.contains("32 succeeded, where exactly one must"), "{refused}");
    }
}
