//! Log lines of the server: on standard error, as text or JSON, at most one a second for each message.
//!
//! `MERIDIAN_LOG` filters them (`warn`, `meridian_store=debug`). A line names the request and the trace that the work
//! belongs to.

mod line;
mod repeats;

pub use line::Format;

use line::{Line, Message};
use repeats::{Decision, RepeatLimiter};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// Interval at which suppressed lines are reported if no more of them come.
const TELL_INTERVAL: Duration = Duration::from_secs(1);

/// Starts logging, and returns the task that reports how many lines were suppressed. It works while it is polled.
pub fn start(format: Format) -> impl Future<Output = ()> + Send {
    let lines = Lines(Arc::new(Inner {
        format,
        colours: format == Format::Text && std::io::stderr().is_terminal(),
        repeats: Mutex::default(),
    }));
    let named = std::env::var("MERIDIAN_LOG").ok().and_then(|text| text.parse::<Targets>().ok());
    let filter = named.unwrap_or_else(quiet);
    tracing_subscriber::registry().with(lines.clone()).with(filter).init();
    async move {
        let mut ticks = tokio::time::interval(TELL_INTERVAL);
        loop {
            ticks.tick().await;
            lines.tell();
        }
    }
}

/// Default filter without `MERIDIAN_LOG`. The client of stores logs each retry, so a store that is away for a minute
/// would fill the log. The caller logs the outcome of the call.
fn quiet() -> Targets {
    Targets::new().with_default(LevelFilter::INFO).with_target("object_store", LevelFilter::WARN)
}

/// Writes lines.
#[derive(Clone)]
struct Lines(Arc<Inner>);

struct Inner {
    format: Format,
    colours: bool,
    repeats: Mutex<RepeatLimiter>,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let mut message = Message::default();
        event.record(&mut message);
        // An operator who asks for debug or trace lines gets all of them.
        let suppressed = match *metadata.level() > Level::INFO {
            true => 0,
            false => match self.counted(event, &message) {
                Decision::Write { suppressed } => suppressed,
                Decision::Suppress => return,
            },
        };
        let line = Line {
            level: *metadata.level(),
            target: metadata.target(),
            message: &message,
            of: meridian_observe::current(),
            suppressed,
        };
        self.write(&line);
    }
}

impl Lines {
    fn counted(&self, event: &Event<'_>, message: &Message) -> Decision {
        let metadata = event.metadata();
        let mut key = DefaultHasher::new();
        // The place in the code and the message, since some places write different messages.
        (metadata.callsite(), &message.text).hash(&mut key);
        let mut repeats = self.0.repeats.lock().unwrap_or_else(PoisonError::into_inner);
        repeats.count(key.finish(), Instant::now(), || (*metadata.level(), metadata.target(), message.text.clone()))
    }

    /// Reports suppressed messages that have stopped.
    fn tell(&self) {
        let stopped = self.0.repeats.lock().unwrap_or_else(PoisonError::into_inner).stopped(Instant::now());
        for ((level, target, text), suppressed) in stopped {
            let message = Message { text, fields: serde_json::Map::new() };
            self.write(&Line { level, target, message: &message, of: Default::default(), suppressed });
        }
    }

    fn write(&self, line: &Line<'_>) {
        let mut text = match self.0.format {
            Format::Text => line.as_text(self.0.colours),
            Format::Json => line.as_json(),
        };
        text.push('\n');
        // In one write, so that it does not interleave with lines of other threads. A closed standard error must not
        // stop the server.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_warnings_of_the_stores_client_are_written() {
        let written = |target: &str, level: Level| quiet().would_enable(target, &level);
        assert!(!written("object_store::client::retry", Level::INFO));
        assert!(written("object_store::client::retry", Level::WARN));
        assert!(written("meridian_store", Level::INFO) && !written("meridian_store", Level::DEBUG));
    }
}
