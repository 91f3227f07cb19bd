//! The progress of a load: events and bytes per second, mistakes, time left.

use crate::output::remark;
use crate::units::{count_text, size_short};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Interval between lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows one input's progress on standard error.
pub struct Progress {
    bar: ProgressBar,
    name: String,
    size: Option<u64>,
    read: Arc<AtomicU64>,
    begun: Instant,
    events: u64,
    quiet: bool,
    lines: bool,
    last_line: Instant,
}

impl Progress {
    /// Starts the display of an input. `size`: the end value of `read`, if known.
    pub fn start(name: &str, size: Option<u64>, read: Arc<AtomicU64>, quiet: bool) -> Progress {
        let terminal = std::io::stderr().is_terminal();
        let bar = match size {
            Some(size) => ProgressBar::new(size),
            None => ProgressBar::no_length(),
        };
        bar.set_draw_target(if quiet || !terminal {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(8)
        });
        let template = match size {
            Some(_) => "{prefix} [{bar:24}] {percent:>3} %  {msg}  {eta} left",
            None => "{prefix} {spinner}  {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(name.rsplit('/').next().unwrap_or(name).to_owned());
        let now = Instant::now();
        Progress {
            bar,
            name: name.to_owned(),
            size,
            read,
            begun: now,
            events: 0,
            quiet,
            lines: !quiet && !terminal,
            last_line: now,
        }
    }

    /// Adds loaded events.
    pub fn add(&mut self, events: u64) {
        self.events += events;
        let read = self.read.load(Ordering::Relaxed);
        let seconds = self.begun.elapsed().as_secs_f64().max(1e-3);
        let rate = |n: u64| (n as f64 / seconds) as u64;
        let message = format!(
            "{} events  {}/s  {}/s  0 errors",
            count_text(self.events),
            count_text(rate(self.events)),
            size_short(rate(read))
        );
        if self.lines && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            let left = self.size.filter(|_| read > 0).map(|size| {
                let left = seconds * (size.saturating_sub(read) as f64 / read as f64);
                format!("  {} %  {} s left", read * 100 / size.max(1), left.ceil())
            });
            remark(&format!("{}: {message}{}", self.name, left.unwrap_or_default()));
        }
        self.bar.set_message(message);
        self.bar.set_position(read);
    }

    /// Ends the display; the loaded count stays on the screen.
    pub fn end(self, mistakes: u64) {
        self.bar.finish_and_clear();
        if self.quiet {
            return;
        }
        let seconds = self.begun.elapsed().as_secs_f64().max(1e-3);
        remark(&format!(
            "{}: {} events, {} read in {seconds:.1} s ({} events/s), {mistakes} {}",
            self.name,
            count_text(self.events),
            size_short(self.read.load(Ordering::Relaxed)),
            count_text((self.events as f64 / seconds) as u64),
            if mistakes == 1 { "error" } else { "errors" },
        ));
    }
}
