//! Searches: one question to many sources, answers as they arrive, and the truth about what is missing.
//!
//! The crate is a library around [`Searches`]: it takes a question as JSON, asks Meridian's own collections and the outside
//! providers that the operator has declared, and gives packets to their readers. It promises that
//! - every search ends with a `complete` packet, at its deadline at the latest, and every provider's state is in it;
//! - no source delays another's results: each has a queue and calls of its own;
//! - no work is done for a search that is over, no panic costs more than the piece of work that it happened in, and what serves
//!   searches for good begins again where it dies of one;
//! - packets are numbered without gaps, and a reader that comes back gets what it has not had;
//! - memory is bounded by [`Settings`], and what is over is refused at once;
//! - no source can make the server call a private address.
//!
//! Start reading at [`Searches::start`], then `search.rs` (how a search ends), then `pipeline/mod.rs` (the stages), then
//! `provider/mod.rs` (whom it asks). It knows no HTTP server, which is the api crate's matter, and no question that stands:
//! saved searches are a crate on top of this one.

mod area;
pub mod delivery;
pub mod event;
mod found;
mod gazetteer;
mod keep;
mod leg;
pub mod pipeline;
mod places;
pub mod provider;
mod question;
mod search;
mod searches;
mod settings;
mod shape;
mod status;
mod supervise;
pub mod words;

pub use area::Area;
pub use delivery::{Gone, Outbox, Reader};
pub use found::Found;
pub use keep::{Keep, Keeper};
pub use meridian_labels::{Classifier, ImageSettings, Label, Labels, Layout, Scores};
pub use pipeline::Sink;
pub use provider::{Declared, Fault, Provider};
pub use question::{Location, Media, Priority, Question};
pub use search::{Search, State, Tally};
pub use searches::{Refusal, Searches};
pub use settings::Settings;
pub use status::{LegStatus, ProviderStatus, SearchStatus};
#[cfg(any(test, feature = "testing"))]
pub use supervise::faults;
pub use supervise::supervise;
pub use words::Words;
