//! Operator pages that browsers reload every two seconds, by means of a header instead of a script.

use super::{escape, grouped};
use crate::protocol::params::Params;
use crate::protocol::problem::{Problem, Result};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use std::fmt::Write;

/// Seconds after which browsers reload the page.
static REFRESH_S: HeaderValue = HeaderValue::from_static("2");

/// Ends a table.
pub const END: &str = "</tbody></table></div>";

/// Returns whether browsers reload the page, according to the parameter `refresh`.
///
/// # Errors
/// 400 for values other than `on` and `off`.
pub fn is_live(params: &mut Params) -> Result<bool> {
    match params.take("refresh").as_deref() {
        None | Some("on") => Ok(true),
        Some("off") => Ok(false),
        Some(_) => Err(Problem::parameter("refresh", "expected on or off")),
    }
}

/// Marks a response as a momentary state: it is not stored, and a live page is reloaded.
pub fn of_a_moment(mut response: Response, is_live_page: bool) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if is_live_page {
        headers.insert(HeaderName::from_static("refresh"), REFRESH_S.clone());
    }
    response
}

/// Renders the line with the time, and a link to another operator page (path and name).
pub fn top(time: &str, is_live: bool, other_page: (&str, &str)) -> String {
    let (what, other) = match is_live {
        true => ("every two seconds", "<a href=\"?f=html&amp;refresh=off\">Stop</a>"),
        false => ("stopped", "<a href=\"?f=html\">Go on</a>"),
    };
    let (time, (path, name)) = (escape(time), other_page);
    format!(
        "<p class=\"muted\">{time} · {what} · {other} · <a href=\"?f=json\">As JSON</a> · <a href=\"{path}\">{name}</a></p>"
    )
}

/// Appends a figure with its name; `part` gives its fraction of a total.
pub fn tile(out: &mut String, name: &str, value: &str, part: Option<(u64, u64)>, note: &str) {
    let meter = part.map_or_else(String::new, |(n, of)| meter(n, of, name));
    let _ = write!(out, "<li><b>{value}</b>{name}{meter} <small>{}</small></li>", escape(note));
}

/// Begins a table with these columns.
pub fn head(out: &mut String, names: &[&str]) {
    out.push_str("<div class=\"wide\" tabindex=\"0\"><table class=\"rows\"><thead><tr>");
    names.iter().for_each(|name| _ = write!(out, "<th scope=\"col\">{name}</th>"));
    out.push_str("</tr></thead><tbody>");
}

/// Appends a cell; `value` is already HTML.
pub fn cell(out: &mut String, name: &str, value: &str) {
    // Without a child element, `td:empty` hides the cell on a narrow screen.
    let (open, close) = if value.is_empty() { ("", "") } else { ("<div>", "</div>") };
    let _ = write!(out, "<td data-name=\"{name}\">{open}{value}{close}</td>");
}

/// Renders a bar that shows how much of a limit is in use.
pub fn meter(n: u64, of: u64, what: &str) -> String {
    let of = of.max(1);
    let (high, what) = (of as f64 * 0.8, escape(what));
    format!(
        "<meter min=\"0\" max=\"{of}\" high=\"{high}\" optimum=\"0\" value=\"{}\" aria-label=\"{what}\"></meter>",
        n.min(of)
    )
}

/// Formats a number of bytes with three digits.
pub fn size(bytes: u64) -> String {
    let (mut n, mut unit) = (bytes as f64, "B");
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if n < 1000.0 {
            break;
        }
        (n, unit) = (n / 1024.0, larger);
    }
    let digits = if unit == "B" || n >= 100.0 { 0 } else { 1 };
    format!("{n:.digits$}\u{202f}{unit}")
}

/// Returns the first of many rows. Notes before the table how many are omitted.
pub fn listed<'a, T>(out: &mut String, all: &'a [T], max: usize, what: &str) -> &'a [T] {
    if all.len() > max {
        let (shown, count) = (grouped(max as u64), grouped(all.len() as u64));
        let _ = write!(out, "<p class=\"muted\">{shown} of {count} {what}; the JSON has all.</p>");
    }
    &all[..all.len().min(max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits_and_names_become_no_markup() {
        for (bytes, text) in
            [(0, "0 B"), (999, "999 B"), (1_536, "1.5 KiB"), (300 << 20, "300 MiB"), (5 << 40, "5.0 TiB")]
        {
            assert_eq!(size(bytes), text.replace(' ', "\u{202f}"));
        }
        assert!(meter(5, 0, "<b>").contains("&lt;b&gt;"));
    }
}
