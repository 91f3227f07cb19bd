//! The output of a search for people and scripts, during the search and at its end.

use crate::failure::Failure;
use crate::output::remark;
use crate::units::count_text;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// Max characters of a headline in a line.
const HEADLINE_MAX: usize = 90;
/// How often the status line is drawn.
const TICK: Duration = Duration::from_millis(200);

/// Prints results and states as they arrive.
pub struct ResultPrinter {
    text: bool,
    bar: ProgressBar,
    /// State packets of providers; `None` while they are awaited.
    providers: BTreeMap<String, Option<Value>>,
    results: u64,
    gone: bool,
}

impl ResultPrinter {
    /// The sources of a started search.
    pub fn new(format: &str, begun: &Value) -> ResultPrinter {
        let names = begun["providers"].as_object().into_iter().flatten().map(|(name, _)| (name.clone(), None));
        let bar = ProgressBar::no_length();
        let terminal = io::stderr().is_terminal();
        bar.set_draw_target(match terminal {
            // On standard error, so that results can be piped while the status is seen.
            true => ProgressDrawTarget::stderr_with_hz(8),
            false => ProgressDrawTarget::hidden(),
        });
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed}  {wide_msg}") {
            bar.set_style(style);
        }
        if terminal {
            bar.enable_steady_tick(TICK);
        }
        let show = ResultPrinter { text: format == "text", bar, providers: names.collect(), results: 0, gone: false };
        show.tell_awaited();
        show
    }

    /// Prints the results of a packet.
    pub fn results(&mut self, packet: &Value) {
        let provider = packet["provider"].as_str().unwrap_or_default();
        // The transition of a moving object: enter, inside or exit.
        let when = packet["when"].as_str();
        let source = when.map_or_else(|| provider.to_owned(), |when| format!("{provider} {when}"));
        let width = self.providers.keys().map(String::len).max().unwrap_or(0);
        let mut lines = String::new();
        for feature in packet["features"].as_array().into_iter().flatten() {
            self.results += 1;
            match self.text {
                true => lines.push_str(&line(&source, width, feature)),
                false => {
                    let mut feature = feature.clone();
                    feature["provider"] = json!(provider);
                    if let Some(when) = when {
                        feature["when"] = json!(when);
                    }
                    lines.push_str(&feature.to_string());
                }
            }
            lines.push('\n');
        }
        // The status line shares the terminal, so it is cleared while results are printed. Output is flushed with each
        // packet: a reader behind a pipe wants results as they arrive.
        let printed = self.bar.suspend(|| {
            let mut out = io::stdout().lock();
            out.write_all(lines.as_bytes()).and_then(|()| out.flush())
        });
        // An error here means that the output is closed.
        self.gone |= printed.is_err();
        self.tell_awaited();
    }

    /// Records how a provider ended.
    pub fn state(&mut self, packet: &Value) {
        if let Some(provider) = packet["provider"].as_str() {
            self.providers.insert(provider.to_owned(), Some(packet.clone()));
        }
        self.tell_awaited();
    }

    /// Prints the message of a packet of another kind.
    pub fn remark(&mut self, packet: &Value) {
        if let Some(detail) = packet["detail"].as_str() {
            self.say(detail);
        }
    }

    /// Prints a line on standard error.
    pub fn say(&self, text: &str) {
        self.bar.suspend(|| remark(&plain(text)));
    }

    /// Returns the number of printed results, as text.
    pub fn count(&self) -> String {
        let noun = if self.results == 1 { "result" } else { "results" };
        format!("{} {noun}", count_text(self.results))
    }

    /// Whether the output is closed.
    pub fn reader_has_gone(&self) -> bool {
        self.gone
    }

    /// Removes the status line.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }

    fn tell_awaited(&self) {
        let awaited: Vec<&str> =
            self.providers.iter().filter(|(_, state)| state.is_none()).map(|(name, _)| name.as_str()).collect();
        self.bar.set_message(match awaited.is_empty() {
            true => format!("{} results", count_text(self.results)),
            false => format!("{} results, awaited: {}", count_text(self.results), awaited.join(", ")),
        });
    }

    /// Reports on standard error how the search ended; anything but `complete` is a failure.
    pub fn summary(&self, last: &Value) -> Result<(), Failure> {
        let ms = |name: &str| last[name].as_u64().map(count_text);
        let times = match (ms("ttfp_ms"), ms("ttlp_ms")) {
            (Some(first), Some(last)) => format!(": the first after {first} ms, the last after {last} ms"),
            _ => String::new(),
        };
        remark(&format!("{}{times}", self.count()));
        if let Some(kept) = last["kept"].as_u64() {
            remark(&format!("{} are kept", count_text(kept)));
        }
        let states = last["providers"].as_object().cloned().unwrap_or_else(Map::new);
        let width = states.keys().map(String::len).max().unwrap_or(0);
        for (name, state) in &states {
            // A provider whose state packet was lost is listed with its final state only.
            let told = self.providers.get(name).and_then(Option::as_ref).unwrap_or(&Value::Null);
            let (results, ms) = (told["results"].as_u64().unwrap_or(0), told["ms"].as_u64().unwrap_or(0));
            let line = format!(
                "  {name:<width$}  {:<8}  {:>7}  {:>7} ms  {}",
                state.as_str().unwrap_or_default(),
                count_text(results),
                count_text(ms),
                plain(told["detail"].as_str().unwrap_or_default()),
            );
            remark(line.trim_end());
        }
        let lacking = |(name, state): (&String, &Value)| {
            (!matches!(state.as_str(), Some("complete" | "skipped"))).then(|| name.clone())
        };
        let missing: Vec<String> = states.iter().filter_map(lacking).collect();
        match (last["state"].as_str(), missing.is_empty()) {
            (Some("complete"), _) => Ok(()),
            (_, true) => Err(Failure::Bad("no source accepts such a question".to_owned())),
            (Some("absent"), _) => Err(Failure::Bad(format!("nothing came: {} did not answer", missing.join(", ")))),
            _ => Err(Failure::Bad(format!("this is not all: {} did not give all", missing.join(", ")))),
        }
    }
}

/// Formats a result as a line: time, author, title and link.
fn line(provider: &str, width: usize, feature: &Value) -> String {
    let properties = &feature["properties"];
    let text = |name: &str| properties[name].as_str().map(plain).filter(|text| !text.is_empty());
    let time: String =
        text("time").unwrap_or_default().chars().take(16).map(|c| if c == 'T' { ' ' } else { c }).collect();
    // The first of the names that sources and collections commonly give to what a person reads.
    let headline = ["title", "text", "name", "place", "label"].into_iter().find_map(text);
    let headline = headline.or_else(|| feature["id"].as_str().map(plain));
    let headline = cut(&headline.unwrap_or_default());
    let link = text("link").map(|link| format!("  {link}")).unwrap_or_default();
    format!("{time:<16}  {provider:<width$}  {headline}{link}")
}

/// Returns a source's text in one line and without control characters, which a terminal would obey.
fn plain(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(HEADLINE_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_no_sign_that_steers_a_terminal() {
        let feature = json!({"id": "1", "properties": {"title": "a\u{1b}[2Jb\nc", "time": "2026-01-05T10:00:00Z", "link": "https://x/1"}});
        assert_eq!(line("a", 3, &feature), "2026-01-05 10:00  a    a [2Jb c  https://x/1");
        let bare = json!({"id": "1", "properties": {"text": "x".repeat(200)}});
        assert_eq!(line("a", 1, &bare).chars().count(), 16 + 2 + 1 + 2 + HEADLINE_MAX + 1);
    }
}
