//! Ctrl-C during a load: says how much of the input is in, and that the load can be repeated.

use super::Counts;
use crate::failure::Failure;
use crate::interrupt::{INTERRUPTED, at_interrupt};
use crate::output::remark;
use crate::units::count_text;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};

/// The input being loaded, and how much of it is in.
#[derive(Clone, Default)]
pub struct Standing(Arc<Mutex<(String, Counts)>>);

impl Standing {
    /// Reports the standing at Ctrl-C or SIGTERM, and ends this program. A load of events `again` cannot be repeated.
    pub fn watched(again: bool) -> Result<Standing, Failure> {
        let standing = Standing::default();
        let seen = standing.clone();
        at_interrupt(move || {
            let standing = seen.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Below the line of the progress.
            let below = if std::io::stderr().is_terminal() { "\n" } else { "" };
            remark(&format!("{below}{}", sentence(&standing.0, standing.1, again)));
            std::process::exit(INTERRUPTED);
        })?;
        Ok(standing)
    }

    /// Sets the standing, once more of an input is in.
    pub(super) fn set(&self, name: &str, counts: Counts) {
        let mut standing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if standing.0 != name {
            name.clone_into(&mut standing.0);
        }
        standing.1 = counts;
    }
}

fn sentence(name: &str, counts: Counts, again: bool) -> String {
    let events = count_text(counts.written + counts.before);
    let repeat = if again { "" } else { "; load it again: loaded events are not duplicated" };
    format!("{name}: interrupted: {events} events of it are loaded{repeat}")
}
