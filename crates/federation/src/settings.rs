//! What an operator can set about searches; every limit that bounds their memory and time is here.

use crate::provider::{Declared, Own};
use crate::search::last_bytes;
use meridian_labels::Classifier;
use std::sync::Arc;
use std::time::Duration;

/// Settings of searches. [`Settings::default`] asks nobody outside.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Outside sources, read and checked.
    pub providers: Vec<Arc<Declared>>,
    /// Most searches at once; later ones are refused at once.
    pub searches_max: usize,
    /// While work waits longer than this for a processor no search begins.
    pub delay_max: Duration,
    /// Deadline of a search that names none, from its arrival.
    pub deadline: Duration,
    /// Longest deadline that a search may ask for.
    pub deadline_max: Duration,
    /// Results wanted of each provider where the question names no number.
    pub limit: usize,
    /// Most results of each provider that a question may ask for.
    pub limit_max: usize,
    /// Largest packet in bytes.
    pub packet_bytes: usize,
    /// Bytes of packets kept for each search: those not yet taken, and those taken that a reader may ask for again.
    pub buffer_bytes: usize,
    /// The same for all searches together.
    pub buffer_bytes_total: usize,
    /// Bytes of answers of outside sources in memory, all together, until they are read.
    pub answer_bytes_total: usize,
    /// For so long after it began, a search is joined by the same question of the same asker; zero: never.
    pub join: Duration,
    /// A search whose reader has left stops after this.
    pub gone: Duration,
    /// A search that nobody has come to read stops after this.
    pub wait: Duration,
    /// For so long after its end a search can still be read.
    pub keep: Duration,
    /// Pieces of work that wait before a stage, for each priority.
    pub queue: usize,
    /// Pieces of work that a stage does at once; calls to sources have limits of their own.
    pub at_once: usize,
    /// Collection of places that addresses are looked up in: `name`, and where it has them `postal_code`, `country`,
    /// `admin1`, `admin2`.
    pub addresses: String,
    /// Collection of places whose names are looked for in texts of results that have no place: `name`, and where it has it
    /// `population`. Empty: none.
    pub gazetteer: String,
    /// Where it has a population: places with fewer people are left out.
    pub gazetteer_population: u64,
    /// The model that looks at images of results; without one they are not fetched.
    pub images: Option<Arc<Classifier>>,
}

impl Settings {
    /// The bytes that the last packet of a search may take, since it names all providers: `packet_bytes` must hold them.
    pub fn last_packet_bytes(&self) -> usize {
        let names: Vec<&str> =
            self.providers.iter().map(|declared| declared.name.as_str()).chain([Own::NAME]).collect();
        last_bytes(&names)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            providers: Vec::new(),
            searches_max: 256,
            delay_max: Duration::from_millis(500),
            deadline: Duration::from_secs(20),
            deadline_max: Duration::from_secs(120),
            limit: 100,
            limit_max: 1_000,
            packet_bytes: 10_240,
            buffer_bytes: 2 << 20,
            buffer_bytes_total: 256 << 20,
            answer_bytes_total: 256 << 20,
            join: Duration::from_secs(1),
            // A departure is noticed at once; with what it takes to stop, the work has ended within a second.
            gone: Duration::from_millis(750),
            wait: Duration::from_secs(5),
            keep: Duration::from_secs(60),
            queue: 64,
            at_once: 2,
            addresses: "postal-places".to_owned(),
            gazetteer: "capitals".to_owned(),
            gazetteer_population: 100_000,
            images: None,
        }
    }
}
