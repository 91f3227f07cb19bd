//! HTML pages, made on the server, without scripts.

pub mod collections;
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

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8883;--link:#0b5cb8;--soft:#eef1f4;--page:#ffffff;--text:#1a2430;--muted:#56636f;--edge:#7c8894;--wrong:#b3261e;color:var(--text);background:var(--page)}\
@media(prefers-color-scheme:dark){:root{--link:#8fbfff;--soft:#232d37;--page:#141b22;--text:#e6ebf0;--muted:#a3b0bc;--edge:#75828f;--wrong:#ff9a92}}\
body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:0 auto;padding:1rem 1.25rem 4rem}\
a{color:var(--link)}nav{font-size:.9rem;margin-bottom:1rem}nav a+a::before{content:\"›\";display:inline-block;margin:0 .4rem;color:var(--muted)}\
h1{font-size:1.6rem;margin:.2rem 0 1rem;overflow-wrap:anywhere}h2{font-size:1.15rem;margin-top:2rem}\
table{border-collapse:collapse;width:100%;font-size:.92rem}th,td{text-align:left;padding:.35rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}\
th{font-weight:600}.wide{overflow-x:auto}code{background:var(--soft);padding:.1rem .3rem;border-radius:.2rem;overflow-wrap:anywhere}\
.num{text-align:right;font-variant-numeric:tabular-nums}.muted{color:var(--muted)}.pager a{display:inline-block;padding:.3rem .8rem;border:1px solid var(--line);border-radius:.3rem;text-decoration:none;margin:1rem .5rem 0 0}\
.account{font-size:.9rem;margin:0}.login{display:grid;gap:1rem;max-width:22rem}.login label{display:grid;gap:.3rem;font-weight:600}\
.login input,.login button{font:inherit;font-weight:400;color:inherit;padding:.5rem .7rem;border:1px solid var(--edge);border-radius:.3rem;background:var(--page)}\
.login button{background:var(--link);border-color:var(--link);color:var(--page);font-weight:600;cursor:pointer}\
.login :focus-visible{outline:2px solid var(--link);outline-offset:2px}.wrong{color:var(--wrong);font-weight:600}";

/// A page without the line about its viewer.
pub struct Page {
    before: String,
    after: String,
}

impl Page {
    /// The page without such a line.
    pub fn plain(self) -> String {
        self.before + &self.after
    }

    /// The page for a user, or for a viewer who can sign in (`None`).
    pub fn seen_by(self, user: Option<&str>) -> String {
        let account = match user {
            Some(user) => {
                // A user of an issuer has no password here. No login has a colon.
                let more = if user.contains(':') { "" } else { " or change password" };
                format!("Signed in as <b>{}</b> · <a href=\"/login\">Sign out{more}</a>", escape(user))
            }
            None => "<a href=\"/login\">Sign in</a>".to_owned(),
        };
        format!("{}<p class=\"account\">{account}</p>{}", self.before, self.after)
    }
}

/// A complete page. `body` is HTML already; the title and the trail (name and URL of each parent page) are plain
/// texts.
pub fn page(title: &str, trail: &[(&str, String)], body: &str) -> Page {
    let mut nav = String::new();
    for (name, href) in trail {
        let _ = write!(nav, "<a href=\"{}\">{}</a>", escape(href), escape(name));
    }
    let title = escape(title);
    let before = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{title} · Meridian</title><link rel=\"icon\" type=\"image/svg+xml\" href=\"/favicon.svg\"><style>{STYLE}</style></head><body><nav aria-label=\"Where you are\">{nav}</nav>"
    );
    Page { before, after: format!("<main><h1>{title}</h1>{body}</main></body></html>") }
}

/// A table of two columns: names, and values that are HTML already.
pub fn facts(rows: &[(&str, String)]) -> String {
    let mut out = String::from("<table>");
    for (name, value) in rows {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th><td>{value}</td></tr>", escape(name));
    }
    out.push_str("</table>");
    out
}

/// A whole number with spaces between thousands.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join("\u{202f}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_can_become_markup() {
        let page =
            page("<script>alert(1)</script>", &[("a\"b", "/x\"onclick='y'".to_owned())], "").seen_by(Some("<script>"));
        assert!(!page.contains("<script>"));
        assert!(page.contains("&lt;script&gt;"));
        assert!(page.contains("/x&quot;onclick=&#39;y&#39;"));
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(grouped(1), "1");
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
    }
}
