//! A store with a server over it, and helpers of the tests.

use crate::Parts;
use crate::SavedSearches;
use crate::SavedSettings;
use crate::assigned::AssignedSearches;
use crate::parts::SlotParts;
use crate::slots::SavedSlots;
use meridian_admission::Ledger;
use meridian_admission::identity::Identity;
use meridian_backend::{Embedded, View};
use meridian_federation::Reader;
use meridian_federation::Searches;
use meridian_federation::Settings;
use meridian_federation::provider::Provider;
use meridian_model::Background;
use meridian_model::BatchBuilder;
use meridian_model::Schema;
use meridian_model::builder::Value as Field;
use meridian_model::policy::access::{Grant, Role};
use meridian_model::schema_spec;
use meridian_store::Options;
use meridian_store::Store;
use meridian_store::Write;
use meridian_store::seams::Seams;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A test that hangs should fail with a message.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct World {
    pub(super) store: Arc<Store>,
    /// Over the store.
    pub(super) backend: Arc<Embedded>,
    seams: Seams,
    /// Whether the tenant [`OTHER`] is suspended.
    pub(super) suspended: Arc<AtomicBool>,
    pub(super) settings: Settings,
    pub(super) saved: SavedSettings,
    pub(super) providers: Vec<Arc<dyn Provider>>,
    pub(super) background: Arc<dyn Background>,
}

/// A second tenant.
pub(super) const OTHER: &str = "other";

/// A client that sees every collection of the default tenant.
pub(super) fn everything(saved: &SavedSearches) -> View {
    all_of("default", saved)
}

/// A client that sees every collection of a tenant.
pub(super) fn all_of(tenant: &str, saved: &SavedSearches) -> View {
    View::new(saved.backend.clone(), Arc::new(Identity::new(tenant, Grant::over_all(Role::Admin), "tests")))
}

impl World {
    pub(super) fn new(spec: &str) -> World {
        let seams = Seams::real();
        let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
        let schema: Schema = schema_spec::parse(spec).unwrap();
        // Each tenant has a collection of this name.
        for tenant in ["default", OTHER] {
            store.create(tenant, "events", schema.clone(), Default::default()).unwrap();
        }
        World {
            backend: Embedded::new(store.clone()),
            store,
            seams,
            suspended: Arc::default(),
            settings: Settings::default(),
            saved: SavedSettings::default(),
            providers: Vec::new(),
            background: Arc::new(()),
        }
    }

    /// Starts a server.
    pub(super) fn open(&self) -> Arc<SavedSearches> {
        let saved = self.assigned().current();
        saved.run().unwrap();
        saved
    }

    /// Opens the saved searches of a server.
    pub(super) fn assigned(&self) -> AssignedSearches {
        AssignedSearches::open(SlotParts::whole(self.parts()))
    }

    /// Opens those of a gateway, which takes slots.
    pub(super) fn slots(&self) -> SavedSlots {
        SavedSlots::divided(self.parts())
    }

    /// Returns the components from which saved searches are opened.
    pub(super) fn parts(&self) -> Parts {
        let (clock, random) = (self.seams.clock.clone(), self.seams.random.clone());
        let suspended = self.suspended.clone();
        let mut searches = Searches::new(
            self.settings.clone(),
            self.backend.clone(),
            "default".to_owned(),
            clock.clone(),
            random.clone(),
        );
        for provider in &self.providers {
            searches = searches.with(provider.clone());
        }
        Parts {
            searches: Arc::new(searches),
            backend: self.backend.clone(),
            ledgers: Arc::new(move |tenant: &str| {
                let ledger = Ledger::new(tenant);
                ledger.set_suspended(suspended.load(Ordering::Relaxed) && tenant == OTHER);
                Some(Arc::new(ledger))
            }),
            background: self.background.clone(),
            settings: self.saved.clone(),
            clock,
            random,
        }
    }

    /// Writes an event of the default tenant: texts by field, a position.
    pub(super) fn write(&self, texts: &[(&str, &str)], second: i64, place: (f64, f64)) {
        self.write_of("default", texts, second, place);
    }

    /// Writes an event of a tenant.
    pub(super) fn write_of(&self, tenant: &str, texts: &[(&str, &str)], second: i64, (lon, lat): (f64, f64)) {
        // Under its current name.
        let renamed = || self.store.list(tenant).first().cloned();
        let collection = self.store.collection(tenant, "events").or_else(renamed).unwrap();
        let schema = collection.schema();
        let mut builder = BatchBuilder::new(schema.clone());
        for (name, text) in texts {
            builder.set(schema.field_index(name).unwrap(), Field::Text((*text).to_owned())).unwrap();
        }
        if let Some(at) = schema.field_index("at") {
            builder.set(at, Field::Time(second * 1_000_000)).unwrap();
        }
        builder.set_point(lon, lat).unwrap();
        builder.end_event().unwrap();
        collection.write(Write::new(builder.finish().unwrap())).unwrap();
    }
}

pub(super) const NEWS: &str = "title:String,*geom:Point:srid=4326";

pub(super) async fn next(reader: &mut Reader) -> Value {
    let (seq, packet) = tokio::time::timeout(PATIENCE, reader.next()).await.expect("in time").expect("a packet");
    let packet: Value = serde_json::from_str(&packet).expect("JSON");
    assert_eq!(packet["seq"], seq);
    packet
}

pub(super) fn titles(packet: &Value) -> Vec<&str> {
    packet["features"].as_array().unwrap().iter().map(|f| f["properties"]["title"].as_str().unwrap()).collect()
}

pub(super) async fn stop(saved: &Arc<SavedSearches>) {
    let saved = saved.clone();
    tokio::task::spawn_blocking(move || saved.stop()).await.unwrap().unwrap();
}
