//! The objects of one partition in a bucket, as visible to the protocol.

use meridian_model::policy::owner::{Breakage, Head, Link, LogPlace, Rules};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// One of the two events of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Event {
    pub position: u64,
    pub write: u8,
    pub half: u8,
}

/// An object of the log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LogObject {
    pub writer: u32,
    pub place: LogPlace,
    pub before: u32,
    pub content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Content {
    Group(Vec<Event>),
    Fence(u64),
}

impl LogObject {
    /// Its checksum.
    pub fn sum(&self) -> u32 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish() as u32
    }

    /// Its meaning for a replay.
    pub fn link(&self) -> Link {
        let fence = match self.content {
            Content::Fence(epoch) => Some(epoch),
            Content::Group(_) => None,
        };
        Link::Object { before: self.before, sum: self.sum(), fence }
    }
}

/// The state of the partition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Manifest {
    /// A file number, within the epoch of its writer.
    pub version: u64,
    pub flushed: u64,
    pub log: LogPlace,
    pub files: Vec<u64>,
}

/// An object of the catalog.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CatalogObject {
    pub writer: u32,
    pub head: Head,
    pub manifest: Manifest,
}

/// A call to the bucket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Call {
    PutLog(Arc<LogObject>),
    PutManifest(Arc<CatalogObject>),
    PutFile(u64, Arc<[Event]>),
    GetLog(LogPlace),
    GetManifest(u64),
    /// Reads several at once: they never change, so only their existence matters.
    GetFiles(Vec<u64>),
    HasManifest(u64),
    ListLog,
    ListManifests,
    ListFiles,
    DeleteLog(LogPlace),
    DeleteManifest(u64),
    DeleteFile(u64),
}

impl Call {
    pub fn is_put(&self) -> bool {
        matches!(self, Call::PutLog(_) | Call::PutManifest(_) | Call::PutFile(..))
    }

    /// Whether it changes the bucket.
    pub fn changes(&self) -> bool {
        self.is_put() || matches!(self, Call::DeleteLog(_) | Call::DeleteManifest(_) | Call::DeleteFile(_))
    }
}

/// The response to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    Created,
    Exists,
    /// Refused for lack of space.
    Full,
    /// There was no response.
    Lost,
    Log(Option<Arc<LogObject>>),
    Manifest(Option<Arc<CatalogObject>>),
    /// `None` if one of them does not exist.
    Files(Option<Vec<Event>>),
    Has(bool),
    Places(Vec<LogPlace>),
    Max(u64),
    Names(Vec<u64>),
    Gone,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Bucket {
    pub log: BTreeMap<LogPlace, Arc<LogObject>>,
    pub manifests: BTreeMap<u64, Arc<CatalogObject>>,
    pub files: BTreeMap<u64, Arc<[Event]>>,
}

impl Bucket {
    /// Applies a call. Listings show the contents of `listed`.
    pub fn execute(&mut self, call: &Call, listed: Option<&Bucket>, rules: Rules) -> Response {
        let shown = listed.unwrap_or(self);
        match call {
            Call::ListLog => return Response::Places(shown.log.keys().copied().collect()),
            Call::ListManifests => {
                return Response::Max(shown.manifests.keys().next_back().copied().unwrap_or(0));
            }
            Call::ListFiles => return Response::Names(shown.files.keys().copied().collect()),
            _ => {}
        }
        match call {
            Call::PutLog(object) => {
                let overwrites = rules.breaks(Breakage::NoExpectation);
                if self.log.contains_key(&object.place) && !overwrites {
                    return Response::Exists;
                }
                self.log.insert(object.place, object.clone());
                Response::Created
            }
            Call::PutManifest(object) => {
                if self.manifests.contains_key(&object.head.number) {
                    return Response::Exists;
                }
                self.manifests.insert(object.head.number, object.clone());
                Response::Created
            }
            Call::PutFile(number, events) => {
                if self.files.contains_key(number) {
                    return Response::Exists;
                }
                self.files.insert(*number, events.clone());
                Response::Created
            }
            Call::GetLog(place) => Response::Log(self.log.get(place).cloned()),
            Call::GetManifest(number) => Response::Manifest(self.manifests.get(number).cloned()),
            Call::GetFiles(numbers) => Response::Files(self.read_files(numbers)),
            Call::HasManifest(number) => Response::Has(self.manifests.contains_key(number)),
            Call::DeleteLog(place) => {
                self.log.remove(place);
                Response::Gone
            }
            Call::DeleteManifest(number) => {
                self.manifests.remove(number);
                Response::Gone
            }
            Call::DeleteFile(number) => {
                self.files.remove(number);
                Response::Gone
            }
            Call::ListLog | Call::ListManifests | Call::ListFiles => Response::Gone,
        }
    }

    /// The events of files; `None` if one of them does not exist.
    pub fn read_files(&self, numbers: &[u64]) -> Option<Vec<Event>> {
        let mut events = Vec::new();
        for number in numbers {
            events.extend(self.files.get(number)?.iter().copied());
        }
        Some(events)
    }
}
