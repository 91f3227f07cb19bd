//! HTML pages rendered on the server.
//!
//! Their style and script are files of `web/` (`/assets/pages.css`, `/assets/pages.js`), so that no page has inline
//! ones. All content and links work without the script.

pub mod ask;
pub mod card;
pub mod collections;
pub mod error;
pub mod items;
pub mod live;
pub mod login;

use std::borrow::Cow;
use std::fmt::Write;

/// Escapes a text for use between tags and in quoted attributes.
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

/// The logo in the header; `web/src/map.html` has the same.
const BRAND: &str = "<a class=\"brand\" href=\"/\" title=\"Start page of this server\"><svg viewBox=\"0 0 32 32\" aria-hidden=\"true\">\
<circle cx=\"16\" cy=\"16\" r=\"13\"/><ellipse cx=\"16\" cy=\"16\" rx=\"5.5\" ry=\"13\"/><path d=\"M3 16h26\"/><circle class=\"dot\" cx=\"21\" cy=\"11\" r=\"3.4\"/></svg>\
<span>Meridian</span></a>";

/// Pages linked in the header, by path and name; those of the web build first.
const SECTIONS: [(&str, &str); 4] =
    [("/map", "Map"), ("/search", "Search"), ("/collections", "Collections"), ("/api", "API")];

/// The viewer of a page.
#[derive(Debug, Clone, Copy, Default)]
pub struct Viewer<'a> {
    /// The sign-in state shown in the header.
    pub account: Account<'a>,
    /// Whether the viewer may see the state of the server.
    pub is_operator: bool,
}

/// The sign-in state shown in the header.
#[derive(Debug, Clone, Copy, Default)]
pub enum Account<'a> {
    /// Nothing: no one can sign in, or the caller is unknown.
    #[default]
    Unknown,
    /// The viewer can sign in.
    SignedOut,
    /// The viewer is signed in as this user.
    User(&'a str),
}

/// A page before its viewer is known.
pub struct Page {
    title: String,
    trail: String,
    body: String,
    section: &'static str,
    assets: &'static str,
}

impl Page {
    /// Marks the page as part of a header section, named by its path.
    pub fn within(self, section: &'static str) -> Page {
        Page { section, ..self }
    }

    /// Adds a script and a style of the page's own; `name` is that of both files.
    pub fn with_assets(self, name: &'static str) -> Page {
        Page { assets: name, ..self }
    }

    /// Renders the page for an unknown viewer.
    pub fn plain(self) -> String {
        self.seen_by(Viewer::default())
    }

    /// Renders the page for a viewer.
    pub fn seen_by(self, viewer: Viewer<'_>) -> String {
        let Page { title, trail, body, section, assets } = self;
        let mut nav = String::new();
        let operators = [("/admin/load", "Server")];
        // A build without the map lacks the first two pages.
        let built = if cfg!(feature = "map") { &SECTIONS[..] } else { &SECTIONS[2..] };
        for (path, name) in built.iter().chain(operators.iter().filter(|_| viewer.is_operator)) {
            let current = if *path == section { " aria-current=\"page\"" } else { "" };
            let _ = write!(nav, "<a href=\"{path}\"{current}>{name}</a>");
        }
        let account = match viewer.account {
            Account::Unknown => String::new(),
            Account::SignedOut => "<p class=\"account\"><a href=\"/login\">Sign in</a></p>".to_owned(),
            Account::User(user) => {
                let (user, signed) = (escape(user), "Signed in as");
                format!(
                    "<p class=\"account\"><span class=\"session-user\"><span class=\"hidden\">{signed} </span><b title=\"{signed} {user}\">{user}</b></span><a href=\"/login\">Account</a></p>"
                )
            }
        };
        // The start page is titled with the product's name alone.
        let tab = if title == "Meridian" { title.clone() } else { format!("{title} · Meridian") };
        let more = match assets {
            "" => String::new(),
            name => format!(
                "<link rel=\"stylesheet\" href=\"/assets/{name}.css\"><script type=\"module\" src=\"/assets/{name}.js\"></script>"
            ),
        };
        format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\"><title>{tab}</title><link rel=\"icon\" type=\"image/svg+xml\" href=\"/favicon.svg\">\
             <link rel=\"stylesheet\" href=\"/assets/pages.css\"><script type=\"module\" src=\"/assets/pages.js\"></script>{more}</head><body>\
             <a class=\"skip\" href=\"#content\">Skip to the content</a>\
             <header class=\"bar\">{BRAND}<nav class=\"pages\" aria-label=\"Pages\">{nav}</nav><span class=\"gap\"></span>{account}</header>\
             <main id=\"content\" tabindex=\"-1\">{trail}<h1>{title}</h1>{body}</main></body></html>"
        )
    }
}

/// Creates a complete page. `body` is already HTML; the title and the trail (name and URL of each parent page below the
/// start page) are plain text.
pub fn page(title: &str, trail: &[(&str, String)], body: &str) -> Page {
    let mut links = String::new();
    for (name, href) in trail {
        let _ = write!(links, "<a href=\"{}\">{}</a>", escape(href), escape(name));
    }
    if !trail.is_empty() {
        links = format!("<nav class=\"trail\" aria-label=\"Where you are\">{links}</nav>");
    }
    Page { title: escape(title).into_owned(), trail: links, body: body.to_owned(), section: "", assets: "" }
}

/// Renders a two-column table of names and values; the values are already HTML.
pub fn facts(rows: &[(&str, String)]) -> String {
    let mut out = String::from("<table class=\"facts\">");
    for (name, value) in rows {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th><td>{value}</td></tr>", escape(name));
    }
    out.push_str("</table>");
    out
}

/// Formats a whole number with spaces between thousands.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// Formats a count with its noun, given in the singular.
fn counted(n: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(n), if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_can_become_markup() {
        let viewer = Viewer { account: Account::User("<script>"), is_operator: false };
        let trail = [("a\"b", "/x\"onclick='y'".to_owned())];
        let page = page("<script>alert(1)</script>", &trail, "").seen_by(viewer);
        assert!(!page.contains("<script>"));
        assert!(page.contains("&lt;script&gt;"));
        assert!(page.contains("/x&quot;onclick=&#39;y&#39;"));
    }

    #[test]
    fn the_header_marks_its_section_and_shows_operators_the_server() {
        let of = |is_operator| {
            let viewer = Viewer { is_operator, ..Viewer::default() };
            page("Load", &[], "").within("/admin/load").seen_by(viewer)
        };
        assert!(of(true).contains("<a href=\"/admin/load\" aria-current=\"page\">Server</a>"));
        assert!(!of(false).contains("/admin/load"));
        assert!(page("API", &[], "").within("/api").plain().contains("<a href=\"/api\" aria-current=\"page\">"));
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(grouped(1), "1");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!([counted(1, "event"), counted(1_000, "event")], ["1 event", "1,000 events"]);
    }
}
