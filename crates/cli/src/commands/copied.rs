//! The progress of a copy, on standard error.

use crate::output::remark;
use crate::units::size_short;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// Interval between lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows bytes as they are copied.
pub struct CopyProgress {
    bar: ProgressBar,
    name: &'static str,
    bytes: u64,
    begun: Instant,
    last_line: Instant,
}

impl CopyProgress {
    /// Starts to show a copy of unknown size.
    pub fn start(name: &'static str) -> CopyProgress {
        // Hidden if standard error is not a terminal.
        let bar = ProgressBar::no_length();
        if let Ok(style) = ProgressStyle::with_template("{prefix} {spinner}  {msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(name);
        let now = Instant::now();
        CopyProgress { bar, name, bytes: 0, begun: now, last_line: now }
    }

    /// Adds copied bytes.
    pub fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        let rate = self.bytes as f64 / self.begun.elapsed().as_secs_f64().max(1e-3);
        let message = format!("{}  {}/s", size_short(self.bytes), size_short(rate as u64));
        if self.bar.is_hidden() && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            remark(&format!("{}: {message}", self.name));
        }
        self.bar.set_message(message);
        self.bar.tick();
    }

    /// Ends the display.
    pub fn end(self) {
        self.bar.finish_and_clear();
    }
}
