//! One collection to create and write to: in the store of a data folder, or on a server.

use crate::args::Target;
use crate::config::durability_name;
use crate::failure::Failure;
use crate::http::Server;
use crate::new_folder;
use crate::units::{count_text, duration_iso};
use crate::upload::{StoredCounts, Upload};
use meridian_backend::{Backend, Collection, Embedded};
use meridian_model::{Batch, Schema, schema_json};
use meridian_store::seams::Seams;
use meridian_store::{Options, Retyped, Settings, SettingsChange, Store, StoreError, Write};
use serde_json::{Value, json};
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;

/// The tenant of a data folder that only one tenant uses.
pub const TENANT: &str = "default";

/// A collection in a folder or on a server.
pub struct CollectionTarget {
    name: String,
    schema: Option<Arc<Schema>>,
    /// The tag of the collection that was created here on a server.
    made: Option<String>,
    inner: Inner,
}

/// Max number of removed events that a client can confirm: any number.
const CONFIRM_ALL: u64 = 1 << 53;

enum Inner {
    /// A data folder that is not there yet. It is made with the collection, so that a refused input leaves nothing.
    NoFolder(PathBuf),
    Folder {
        store: Arc<Store>,
        collection: Option<Arc<dyn Collection>>,
    },
    /// A server, and the max body size that it is known to accept, or not known to refuse.
    Server(Server, Cell<usize>),
}

impl CollectionTarget {
    /// Opens the folder, or asks the server. A missing folder is made with the collection.
    pub fn open(target: Target, name: &str) -> Result<CollectionTarget, Failure> {
        Self::try_open(target, name)?.map_err(Failure::of_folder)
    }

    /// Like [`CollectionTarget::open`]; `None` for a folder that another process has open.
    pub fn open_if_free(target: Target, name: &str) -> Result<Option<CollectionTarget>, Failure> {
        match Self::try_open(target, name)? {
            Ok(place) => Ok(Some(place)),
            Err(StoreError::InUse { .. }) => Ok(None),
            Err(error) => Err(Failure::of_folder(error)),
        }
    }

    /// Opens the folder, whose error is the inner one, or asks the server.
    fn try_open(target: Target, name: &str) -> Result<Result<CollectionTarget, StoreError>, Failure> {
        meridian_model::schema::validate_name("collection", name).map_err(|e| Failure::Usage(e.to_string()))?;
        let (schema, inner) = match target {
            Target::Folder(folder) => match new_folder::is_there(&folder)? {
                false => (None, Inner::NoFolder(folder)),
                true => {
                    let store = match Store::open(Options::at(folder), Seams::real()) {
                        Ok(store) => Arc::new(store),
                        Err(error) => return Ok(Err(error)),
                    };
                    let collection = Embedded::new(store.clone()).collection(TENANT, name)?;
                    (collection.as_ref().map(|c| c.schema()), Inner::Folder { store, collection })
                }
            },
            Target::Server(address) => {
                let server = Server::at(&address)?;
                let schema = schema_on(&server, name)?;
                (schema, Inner::Server(server, Cell::new(usize::MAX)))
            }
        };
        Ok(Ok(CollectionTarget { name: name.to_owned(), schema, made: None, inner }))
    }

    /// The collection's schema; `None` if there is no such collection.
    pub fn schema(&self) -> Option<Arc<Schema>> {
        self.schema.clone()
    }

    /// Asks a server again for the collection, which another client may have created; a folder has no other client.
    pub fn look_again(&mut self) -> Result<Option<Arc<Schema>>, Failure> {
        if let Inner::Server(server, _) = &self.inner {
            self.schema = schema_on(server, &self.name)?;
        }
        Ok(self.schema())
    }

    /// Creates the collection, and its folder if there is none. One that another client made meanwhile is not changed.
    pub fn create(&mut self, schema: &Schema, settings: &Settings) -> Result<(), Failure> {
        let made_in = |store: &Arc<Store>| {
            Embedded::new(store.clone()).create(TENANT, &self.name, schema.clone(), settings.clone())
        };
        match &mut self.inner {
            Inner::NoFolder(folder) => {
                // Before the store is opened, which makes its files.
                Store::check_new(&self.name, schema, settings).map_err(StoreError::from)?;
                let store = Arc::new(Store::open(Options::at(&*folder), Seams::real()).map_err(Failure::of_folder)?);
                let collection = made_in(&store)?;
                self.schema = Some(collection.schema());
                self.inner = Inner::Folder { store, collection: Some(collection) };
            }
            Inner::Folder { store, collection } => {
                let made = made_in(store)?;
                self.schema = Some(made.schema());
                *collection = Some(made);
            }
            Inner::Server(server, _) => {
                let named = SettingsChange {
                    durability: Some(settings.durability),
                    retention: settings.retention.map(Some),
                    retention_bytes: settings.retention_bytes.map(Some),
                    partitions: (settings.partitions > 1).then_some(settings.partitions),
                };
                put(server, &self.name, schema, &named, true)?;
                self.schema = Some(Arc::new(schema.clone()));
                // Without its tag it stays if it turns out to be of no use.
                self.made = server.tag(&["collections", self.name.as_str()]).ok().flatten();
            }
        }
        Ok(())
    }

    /// Replaces the schema of the existing collection, if it was never written to, and changes settings as well.
    pub fn retype(&mut self, schema: &Schema, named: &SettingsChange) -> Result<(), Failure> {
        match &mut self.inner {
            Inner::NoFolder(_) => return Err(self.missing()),
            Inner::Folder { store, collection } => {
                let Some(there) = collection else { return Err(self.missing()) };
                let retyped = store.retype(TENANT, &self.name, schema.clone(), named.of(&there.settings()))?;
                if let Retyped::Kept(why) = retyped {
                    return Err(Failure::Refused(format!(
                        "the collection {} is there already, with another schema than --schema says, and it keeps its types: {why}",
                        self.name
                    )));
                }
                *collection = Embedded::new(store.clone()).collection(TENANT, &self.name)?;
            }
            Inner::Server(server, _) => put(server, &self.name, schema, named, false)?,
        }
        self.schema = Some(Arc::new(schema.clone()));
        Ok(())
    }

    /// Changes settings of the existing collection; a change that would remove events is refused with their number,
    /// unless `yes` is set.
    pub fn change(&self, named: &SettingsChange, yes: bool) -> Result<(), Failure> {
        let removes = match &self.inner {
            Inner::Folder { collection: Some(collection), .. } => change_here(&**collection, named, yes)?,
            Inner::NoFolder(_) | Inner::Folder { collection: None, .. } => return Err(self.missing()),
            Inner::Server(server, _) => {
                let path = ["collections", self.name.as_str()];
                let described = server.find_json(&path, &[])?.ok_or_else(|| self.missing())?;
                // Durability is fixed at creation, so a named one can only be compared.
                if let Some(asked) = named.durability.map(durability_name)
                    && described["durability"] != asked
                {
                    return Err(other_durability(&described["durability"]));
                }
                if let Some(asked) = named.partitions
                    && described["partitions"] != asked
                {
                    return Err(other_partitions(&described["partitions"]));
                }
                let mut change = serde_json::Map::new();
                if let Some(retention) = named.retention {
                    change.insert("retention".to_owned(), json!(retention.map(duration_iso)));
                }
                if let Some(bytes) = named.retention_bytes {
                    change.insert("retention_bytes".to_owned(), json!(bytes));
                }
                let confirm = yes.then(|| ("confirm", CONFIRM_ALL.to_string()));
                server.patch(&path, confirm.as_slice(), &Value::Object(change))?
            }
        };
        removes.map_or(Ok(()), |n| {
            Err(Failure::Refused(format!(
                "this retention removes {} events of {}: nothing was changed; --yes goes through with it",
                count_text(n),
                self.name
            )))
        })
    }

    fn missing(&self) -> Failure {
        Failure::Refused(format!("there is no collection {}", self.name))
    }

    /// Writes a batch; a repetition under the same key changes nothing.
    pub fn write(&self, batch: Batch, key: String) -> Result<StoredCounts, Failure> {
        match &self.inner {
            Inner::Folder { collection: Some(collection), .. } => {
                let written = collection.write(Write::new(batch).with_key(key))?;
                Ok(StoredCounts { written: written.written, before: written.duplicates })
            }
            Inner::NoFolder(_) | Inner::Folder { collection: None, .. } => Err(self.missing()),
            Inner::Server(server, limit) => Upload::new(server, &self.name, limit).send(&batch, &key),
        }
    }

    /// Removes a collection that was created here and is still empty. Its folder stays: only its owner removes files
    /// that this command may not know.
    ///
    /// A folder has no other writer. A server removes what was never written to. If it does not, the collection stays,
    /// and this returns `false`.
    pub fn unmake(&mut self) -> Result<bool, Failure> {
        match &mut self.inner {
            Inner::Folder { store, collection } => {
                *collection = None;
                store.drop_collection(TENANT, &self.name)?;
                self.schema = None;
                Ok(true)
            }
            Inner::Server(server, _) => {
                let Some(tag) = self.made.take() else { return Ok(false) };
                let is_gone = server.delete_tagged(&["collections", self.name.as_str()], &tag).is_ok();
                if is_gone {
                    self.schema = None;
                }
                Ok(is_gone)
            }
            Inner::NoFolder(_) => Ok(false),
        }
    }

    /// Ends the work; a folder is closed cleanly.
    pub fn close(self) -> Result<(), Failure> {
        match self.inner {
            Inner::Folder { store, .. } => Ok(store.close()?),
            Inner::NoFolder(_) | Inner::Server(..) => Ok(()),
        }
    }
}

/// Changes settings as a server would; `Some` is the number of events that a confirmation would remove.
fn change_here(collection: &dyn Collection, named: &SettingsChange, yes: bool) -> Result<Option<u64>, Failure> {
    let before = collection.settings();
    let after = named.of(&before);
    if after.durability != before.durability {
        return Err(other_durability(&json!(before.durability)));
    }
    if after.partitions != before.partitions {
        return Err(other_partitions(&json!(before.partitions)));
    }
    if after == before {
        return Ok(None);
    }
    // Not counted if confirmed: counting walks the trees.
    let removes = if yes { 0 } else { collection.removed_by(&after)? };
    if removes > 0 {
        return Ok(Some(removes));
    }
    collection.change(Vec::new(), Some(after))?;
    Ok(None)
}

/// Returns the schema of a collection on a server; `None` if there is no such collection.
fn schema_on(server: &Server, name: &str) -> Result<Option<Arc<Schema>>, Failure> {
    let document = server.find_json(&["collections", name, "schema"], &[])?;
    let schema = document
        .map(|d| schema_json::from_json(&d))
        .transpose()
        .map_err(|e| Failure::Refused(format!("the server's schema of {name} is not one this program knows: {e}")))?;
    Ok(schema.map(Arc::new))
}

/// Asks a server for a collection with this schema and these settings; with `only_creates`, an existing one is refused.
fn put(
    server: &Server,
    name: &str,
    schema: &Schema,
    named: &SettingsChange,
    only_creates: bool,
) -> Result<(), Failure> {
    let body = schema_json::to_json(schema, name, "").to_string();
    let parameters = [
        ("durability", named.durability.map(|durability| durability_name(durability).to_owned())),
        ("retention", named.retention.flatten().map(duration_iso)),
        ("retention_bytes", named.retention_bytes.flatten().map(|bytes| bytes.to_string())),
        ("partitions", named.partitions.map(|partitions| partitions.to_string())),
    ];
    let parameters: Vec<_> = parameters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let document = ("application/schema+json", body.as_bytes());
    server.put(&["collections", name], &parameters, document, only_creates)
}

fn other_partitions(there: &Value) -> Failure {
    Failure::Refused(format!("--partitions: their number cannot be changed, and that of this collection is {there}"))
}

fn other_durability(there: &Value) -> Failure {
    Failure::Refused(format!("--durability: it cannot be changed, and that of this collection is {there}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_made_with_its_collection_and_outlives_it() {
        let there = tempfile::tempdir().unwrap();
        let folder = there.path().join("data");
        let schema = meridian_model::schema_spec::parse("name:String").unwrap();
        let mut target = CollectionTarget::open(Target::Folder(folder.clone()), "spots").unwrap();
        assert!(!folder.exists());
        target.create(&schema, &Settings::default()).unwrap();
        assert!(target.unmake().unwrap() && target.schema().is_none() && folder.exists());
        target.create(&schema, &Settings::default()).unwrap();
    }

    #[test]
    fn a_path_through_a_missing_folder_leads_to_what_is_there() {
        let there = tempfile::tempdir().unwrap();
        let folder = there.path().join("data");
        let schema = meridian_model::schema_spec::parse("name:String").unwrap();
        let mut target = CollectionTarget::open(Target::Folder(folder), "spots").unwrap();
        target.create(&schema, &Settings::default()).unwrap();
        target.close().unwrap();
        let around = there.path().join("none/../data");
        let mut target = CollectionTarget::open(Target::Folder(around), "spots").unwrap();
        assert!(target.create(&schema, &Settings::default()).is_err(), "the collection is there already");
        drop(target);
        let target = CollectionTarget::open(Target::Folder(there.path().join("data")), "spots").unwrap();
        assert!(target.schema().is_some());
    }
}
