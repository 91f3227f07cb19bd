//! Federated search: one question to many sources, results as they arrive, and an exact account of missing results.
//!
//! The crate is a library around [`Searches`]. It takes a question as JSON, queries Meridian's collections and the
//! remote providers that the operator declared, and delivers packets to readers. Its guarantees:
//! - Every search ends with a `complete` packet, by its deadline, that holds the state of every provider.
//! - No source delays another's results: each has its own queue and its own calls.
//! - No work is done for a search that has ended.
//! - A panic costs only the piece of work in which it happened; long-running tasks restart after one.
//! - Packets are numbered without gaps, and a client that reconnects gets the packets that it missed.
//! - Memory is bounded by [`Settings`]; work over the bound is refused at once.
//! - No source can make the server call a private address.
//!
//! Start reading at [`Searches::start`], then `search.rs` (how a search ends), `pipeline/mod.rs` (the stages) and
//! `provider/mod.rs` (the sources). The HTTP interface is in the api crate. Saved searches are a crate on top of this
//! one.

mod area;
mod asker;
pub mod classification;
pub mod declaration;
pub mod delivery;
pub mod event;
pub mod fetch;
mod gazetteer;
mod geojson;
mod health;
mod keep_options;
mod keywords;
pub mod matching;
mod members;
pub mod pipeline;
mod places;
pub mod provider;
mod question;
mod refusal;
mod result_store;
mod search;
mod search_result;
mod searches;
mod seen;
mod settings;
mod status;
mod supervise;
mod tally;
pub mod words;

pub use area::Area;
pub use asker::{SearchClient, SearchKey};
pub use declaration::SourceDeclaration;
pub use delivery::{Outbox, PacketEvicted, Reader};
pub use keep_options::KeepOptions;
pub use keywords::KeywordQuery;
pub use meridian_labels::{Classifier, ImageSettings, Label, Labels, Layout, Scores};
pub use provider::{Fault, Provider, Sink};
pub use question::{Location, Media, Priority, Question};
pub use refusal::Refusal;
pub use result_store::ResultStore;
pub use search::{Search, State};
pub use search_result::SearchResult;
pub use searches::Searches;
pub use seen::hash;
pub use settings::Settings;
pub use status::{LegStatus, ProviderStatus, SearchStatus};
#[cfg(any(test, feature = "testing"))]
pub use supervise::faults;
pub use supervise::{supervise, supervise_thread, task_panics};
pub use tally::Tally;
