//! The sign-in page.

use super::{escape, page};
use std::fmt::Write;

fn trail() -> [(&'static str, String); 1] {
    [("Meridian", "/".to_owned())]
}

/// The error of the previous attempt.
fn alert(wrong: Option<&str>) -> String {
    let Some(wrong) = wrong else { return String::new() };
    let mut sentence = wrong.chars();
    let first = sentence.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("<p class=\"wrong\" role=\"alert\">{}{}.</p>", escape(&first), escape(sentence.as_str()))
}

/// The form, with what is wrong with an attempt before.
pub fn form(next: &str, name: &str, wrong: Option<&str>) -> String {
    let mut body = alert(wrong);
    // The cursor is where something is missing.
    let (at_name, at_password) = if name.is_empty() { (" autofocus", "") } else { ("", " autofocus") };
    let _ = write!(
        body,
        "<form class=\"login\" method=\"post\" action=\"/login\">\
         <input type=\"hidden\" name=\"next\" value=\"{}\">\
         <label>Name <input name=\"name\" value=\"{}\" maxlength=\"201\" autocomplete=\"username\" autocapitalize=\"none\" spellcheck=\"false\" required{at_name}></label>\
         <label>Password <input name=\"password\" type=\"password\" maxlength=\"1024\" autocomplete=\"current-password\" required{at_password}></label>\
         <button type=\"submit\">Sign in</button></form>",
        escape(next),
        escape(name)
    );
    page("Sign in", &trail(), &body).plain()
}

/// For a signed-in user: to continue, to sign out, to choose another password; with the error of the last attempt.
pub fn signed_in(login: &str, csrf_token: &str, next: &str, wrong: Option<&str>) -> String {
    let token = format!("<input type=\"hidden\" name=\"csrf_token\" value=\"{}\">", escape(csrf_token));
    let body = format!(
        "<p>You are signed in as <b>{}</b>. <a href=\"{}\">Continue</a></p>\
         <form class=\"login\" method=\"post\" action=\"/logout\">{token}<button type=\"submit\">Sign out</button></form>\
         <h2>Change the password</h2>{}<form class=\"login\" method=\"post\" action=\"/password\">{token}\
         <label>Current password <input name=\"password\" type=\"password\" maxlength=\"1024\" autocomplete=\"current-password\" required></label>\
         <label>New password <input name=\"new\" type=\"password\" minlength=\"12\" maxlength=\"1024\" autocomplete=\"new-password\" required></label>\
         <button type=\"submit\">Change</button></form>",
        escape(login),
        escape(next),
        alert(wrong)
    );
    page("Signed in", &trail(), &body).plain()
}

/// Where there is no user.
pub fn nobody() -> String {
    page(
        "Sign in",
        &trail(),
        "<p>There are no users yet. <code>meridian user create NAME --role ROLE</code> creates one.</p>",
    )
    .plain()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_stays_text() {
        let page = form("/\"><script>", "\"><script>", Some("the <b>name</b> is wrong"));
        assert!(!page.contains("<script>") && !page.contains("<b>"));
        assert!(page.contains("The &lt;b&gt;name&lt;/b&gt; is wrong."));
        assert!(page.contains("type=\"password\"") && !page.contains("value=\"\" type=\"password\""));
    }
}
