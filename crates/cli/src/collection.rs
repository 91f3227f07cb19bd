//! One collection to be made and written to: in a data folder, straight into its store, or on a server.

use crate::args::Target;
use crate::config::durability_name;
use crate::failure::Failure;
use crate::http::Server;
use crate::units::duration_iso;
use crate::upload::{Taken, Upload};
use meridian_model::{Batch, Schema, schema_json};
use meridian_store::seams::Seams;
use meridian_store::{Collection, Options, Settings, Store, Write};
use std::cell::Cell;
use std::sync::Arc;

/// The tenant of a data folder that only one tenant uses.
pub const TENANT: &str = "default";

/// Where a collection is.
pub struct Place {
    name: String,
    schema: Option<Arc<Schema>>,
    inner: Inner,
}

enum Inner {
    Folder {
        store: Arc<Store>,
        collection: Option<Arc<Collection>>,
    },
    /// A server, and the longest body that it is known to take or not known to refuse.
    Server(Server, Cell<usize>),
}

impl Place {
    /// Opens the folder (making it where it is not there) or asks the server.
    pub fn open(target: Target, name: &str) -> Result<Place, Failure> {
        meridian_model::schema::validate_name("collection", name).map_err(|e| Failure::Usage(e.to_string()))?;
        let (schema, inner) = match target {
            Target::Folder(folder) => {
                let store = Arc::new(Store::open(Options::at(folder), Seams::real()).map_err(Failure::of_folder)?);
                let collection = store.collection(TENANT, name);
                (collection.as_ref().map(|c| c.schema()), Inner::Folder { store, collection })
            }
            Target::Server(url) => {
                let server = Server::at(&url)?;
                let document = server.find_json(&["collections", name, "schema"], &[])?;
                let schema = document.map(|d| schema_json::from_json(&d)).transpose().map_err(|e| {
                    Failure::Refused(format!("the server's schema of {name} is not one this program knows: {e}"))
                })?;
                (schema.map(Arc::new), Inner::Server(server, Cell::new(usize::MAX)))
            }
        };
        Ok(Place { name: name.to_owned(), schema, inner })
    }

    /// The collection's schema; `None` where there is no such collection.
    pub fn schema(&self) -> Option<Arc<Schema>> {
        self.schema.clone()
    }

    /// Makes the collection.
    pub fn create(&mut self, schema: &Schema, settings: &Settings) -> Result<(), Failure> {
        match &mut self.inner {
            Inner::Folder { store, collection } => {
                let made = store.create(TENANT, &self.name, schema.clone(), settings.clone())?;
                self.schema = Some(made.schema());
                *collection = Some(made);
            }
            Inner::Server(server, _) => {
                let body = schema_json::to_json(schema, &self.name, "").to_string();
                let mut parameters = vec![("durability", durability_name(settings.durability).to_owned())];
                if let Some(retention) = settings.retention {
                    parameters.push(("retention", duration_iso(retention)));
                }
                if let Some(bytes) = settings.retention_bytes {
                    parameters.push(("retention_bytes", bytes.to_string()));
                }
                server.put(&["collections", &self.name], &parameters, "application/schema+json", body.as_bytes())?;
                self.schema = Some(Arc::new(schema.clone()));
            }
        }
        Ok(())
    }

    /// Writes a batch; with the same key again it changes nothing.
    pub fn write(&self, batch: Batch, key: String) -> Result<Taken, Failure> {
        match &self.inner {
            Inner::Folder { collection: Some(collection), .. } => {
                let written = collection.write(Write::new(batch).with_key(key))?;
                Ok(Taken { written: written.written, before: written.duplicates })
            }
            Inner::Folder { collection: None, .. } => {
                Err(Failure::Refused(format!("there is no collection {}", self.name)))
            }
            Inner::Server(server, limit) => Upload::new(server, &self.name, limit).send(&batch, &key),
        }
    }

    /// Takes back a collection that was made here and into which nothing was written.
    ///
    /// Nobody else writes into a folder. On a server somebody may have by now: there it stays, and `false` says so.
    pub fn unmake(&mut self) -> Result<bool, Failure> {
        match &mut self.inner {
            Inner::Folder { store, collection } => {
                *collection = None;
                store.drop_collection(TENANT, &self.name)?;
                self.schema = None;
                Ok(true)
            }
            Inner::Server(..) => Ok(false),
        }
    }

    /// Ends the work; a folder is closed cleanly.
    pub fn close(self) -> Result<(), Failure> {
        match self.inner {
            Inner::Folder { store, .. } => Ok(store.close()?),
            Inner::Server(..) => Ok(()),
        }
    }
}
