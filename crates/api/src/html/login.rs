//! The sign-in page.

use super::{Page, escape, page};
use crate::contract::links;
use std::fmt::Write;

/// Renders the error of the previous attempt.
fn alert(wrong: Option<&str>) -> String {
    let Some(wrong) = wrong else { return String::new() };
    let mut sentence = wrong.chars();
    let first = sentence.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("<p class=\"wrong\" role=\"alert\">{}{}.</p>", escape(&first), escape(sentence.as_str()))
}

/// The ways to sign in that a server offers.
pub struct SignInOptions {
    /// Whether there are users with passwords.
    pub passwords: bool,
    /// The issuers, by name and title.
    pub issuers: Vec<(String, String)>,
}

/// Renders the ways to sign in, with the error of the last attempt.
pub fn form(ways: &SignInOptions, next: &str, name: &str, wrong: Option<&str>) -> Page {
    if !ways.passwords && ways.issuers.is_empty() {
        return nobody();
    }
    let mut body = alert(wrong);
    if ways.passwords {
        body.push_str(&by_password(next, name));
    }
    for (issuer, title) in &ways.issuers {
        let (issuer, next, title) = (links::escape(issuer), links::escape(next), escape(title));
        let _ = write!(body, "<p><a href=\"/login/{issuer}?next={next}\">Sign in with {title}</a></p>");
    }
    page("Sign in", &[], &body)
}

fn by_password(next: &str, name: &str) -> String {
    // The cursor starts in the first field that is still empty.
    let (at_name, at_password) = if name.is_empty() { (" autofocus", "") } else { ("", " autofocus") };
    format!(
        "<form class=\"login\" method=\"post\" action=\"/login\">\
         <input type=\"hidden\" name=\"next\" value=\"{}\">\
         <label>Name <input name=\"name\" value=\"{}\" maxlength=\"201\" autocomplete=\"username\" autocapitalize=\"none\" spellcheck=\"false\" required{at_name}></label>\
         <label>Password <input name=\"password\" type=\"password\" maxlength=\"1024\" autocomplete=\"current-password\" required{at_password}></label>\
         <button type=\"submit\">Sign in</button></form>",
        escape(next),
        escape(name)
    )
}

/// Renders the page for a signed-in user of an issuer: continue, sign out.
pub fn signed_in_elsewhere(user: &str, csrf_token: &str, next: &str) -> Page {
    page("Signed in", &[], &continue_or_sign_out(user, &hidden(csrf_token), next))
}

fn hidden(csrf_token: &str) -> String {
    format!("<input type=\"hidden\" name=\"csrf_token\" value=\"{}\">", escape(csrf_token))
}

fn continue_or_sign_out(user: &str, token: &str, next: &str) -> String {
    let (user, next) = (escape(user), escape(next));
    format!(
        "<p>You are signed in as <b>{user}</b>. <a href=\"{next}\">Continue</a></p>\
         <form class=\"login\" method=\"post\" action=\"/logout\">{token}<button type=\"submit\">Sign out</button></form>"
    )
}

/// Renders the page for a signed-in user: continue, sign out, change the password; with the error of the last attempt.
pub fn signed_in(login: &str, csrf_token: &str, next: &str, wrong: Option<&str>) -> Page {
    let token = hidden(csrf_token);
    let body = format!(
        "{}<h2>Change the password</h2>{}<form class=\"login\" method=\"post\" action=\"/password\">{token}\
         <label>Current password <input name=\"password\" type=\"password\" maxlength=\"1024\" autocomplete=\"current-password\" required></label>\
         <label>New password <input name=\"new\" type=\"password\" minlength=\"12\" maxlength=\"1024\" autocomplete=\"new-password\" required></label>\
         <button type=\"submit\">Change</button></form>",
        continue_or_sign_out(login, &token, next),
        alert(wrong)
    );
    page("Signed in", &[], &body)
}

/// Renders the page shown if no user can sign in.
fn nobody() -> Page {
    page(
        "Sign in",
        &[],
        "<p>There are no users yet. <code>meridian user create NAME --role ROLE</code> creates one.</p>",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_stays_text() {
        let issuers = vec![("company".to_owned(), "\"><script>".to_owned())];
        let ways = SignInOptions { passwords: true, issuers };
        let page = form(&ways, "/\"><script>", "\"><script>", Some("the <b>name</b> is wrong")).plain();
        assert!(!page.contains("<script>") && !page.contains("<b>"));
        assert!(page.contains("The &lt;b&gt;name&lt;/b&gt; is wrong."));
        assert!(page.contains("type=\"password\"") && !page.contains("value=\"\" type=\"password\""));
    }
}
