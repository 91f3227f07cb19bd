//! The followed saved search: temporary, permanent, or an existing one.

use crate::failure::Failure;
use crate::http::Server;
use crate::units;
use clap::Args;
use serde_json::{Map, Value, json};

/// Page size of saved searches when one is looked up by name.
const PAGE: usize = 10_000;
/// Max bytes of a question in the name of a temporary saved search.
const QUESTION_BYTES_MAX: usize = 120;

/// How a saved search is followed.
#[derive(Args, Debug, Clone, Default)]
pub struct FollowArgs {
    /// Print new results from now on, as they arrive, until Ctrl-C
    #[arg(long, help_heading = "Following")]
    pub follow: bool,
    /// Save the question permanently under this name; without a question, follow the saved search of this name or id
    #[arg(long, value_name = "NAME", requires = "follow", help_heading = "Following")]
    pub name: Option<String>,
    /// Also poll outside sources at this interval, such as 5m
    #[arg(long, value_name = "DURATION", requires = "follow", help_heading = "Following")]
    pub poll: Option<String>,
    /// Transitions of moving objects to report: some of enter,inside,exit
    #[arg(long, value_name = "WHEN", requires = "follow", value_delimiter = ',', help_heading = "Following")]
    pub when: Vec<String>,
    /// Resume after the packet of this number [default: from the oldest that the server keeps]
    #[arg(long, value_name = "NUMBER", requires = "follow", help_heading = "Following")]
    pub after: Option<u64>,
}

/// The properties of a saved search needed to follow it.
pub struct SavedSearch {
    /// Its name in addresses.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Whether it is deleted when following ends.
    pub passing: bool,
}

impl SavedSearch {
    /// Creates the saved search that the options specify, or finds it.
    pub fn of(server: &Server, args: &FollowArgs, question: Map<String, Value>) -> Result<SavedSearch, Failure> {
        let name = args.name.as_deref().map(str::trim);
        match (name, question.is_empty()) {
            (Some(""), _) => Err(Failure::Usage("--name: expected a name".to_owned())),
            (Some(name), true) => SavedSearch::there(server, args, name),
            (None, true) => Err(Failure::Usage(
                "--follow: expected a question, or --name with the name or id of a saved search".to_owned(),
            )),
            (_, false) if args.after.is_some() => Err(Failure::Usage(
                "--after: a saved search that is new has no packets yet: omit it, or the question".to_owned(),
            )),
            // Names need not be unique on the server. Here they are: a second one could not be followed by its name.
            (Some(name), false) => match find(server, name)? {
                Some(_) => Err(Failure::Usage(format!(
                    "--name: there is a saved search {name:?} already: omit the question to follow it, or use another name"
                ))),
                None => SavedSearch::made(server, args, question, name.to_owned(), false),
            },
            (None, false) => {
                let asked = question.get("keywords").and_then(Value::as_str).unwrap_or_default();
                let asked = &asked[..asked.floor_char_boundary(QUESTION_BYTES_MAX)];
                let name = format!("meridian search --follow {asked}").trim_end().to_owned();
                SavedSearch::made(server, args, question, name, true)
            }
        }
    }

    fn made(
        server: &Server,
        args: &FollowArgs,
        mut question: Map<String, Value>,
        name: String,
        passing: bool,
    ) -> Result<SavedSearch, Failure> {
        if !args.when.is_empty() {
            question.insert("when".to_owned(), json!(args.when));
        }
        let mut asked = json!({ "name": name, "question": question });
        if let Some(poll) = &args.poll {
            let pause = units::duration(poll).map_err(|e| Failure::Usage(format!("--poll: {e}")))?;
            asked["poll_s"] = json!(pause.as_secs());
        }
        let made = server.ask(&["saved-searches"], &asked)?;
        SavedSearch::read(&made, passing)
    }

    fn there(server: &Server, args: &FollowArgs, name: &str) -> Result<SavedSearch, Failure> {
        // These belong to the question of a saved search, and cannot be changed.
        if args.poll.is_some() || !args.when.is_empty() {
            let why = "--poll and --when need a question: without one, an existing saved search is followed";
            return Err(Failure::Usage(why.to_owned()));
        }
        let found = find(server, name)?;
        let found = found.ok_or_else(|| Failure::Usage(format!("--name: there is no saved search {name:?}")))?;
        let next = found["next_packet"].as_u64().unwrap_or(0);
        match args.after {
            // The stream would wait for a packet that may never come.
            Some(after) if after >= next => Err(Failure::Usage(format!(
                "--after {after}: the next packet of this saved search has number {next}: expected a smaller number"
            ))),
            _ => SavedSearch::read(&found, false),
        }
    }

    fn read(status: &Value, passing: bool) -> Result<SavedSearch, Failure> {
        let text = |name: &str| status[name].as_str().map(str::to_owned);
        let wrong = || Failure::Refused(format!("the server answered without the id of a saved search: {status}"));
        Ok(SavedSearch { id: text("id").ok_or_else(wrong)?, name: text("name").unwrap_or_default(), passing })
    }

    /// Returns the value to use for `--name`.
    pub fn handle(&self) -> &str {
        if self.name.is_empty() { &self.id } else { &self.name }
    }
}

/// Returns the saved search with this id or name, if any.
fn find(server: &Server, name: &str) -> Result<Option<Value>, Failure> {
    // An id has this form. A name may have it too, so a miss falls through to the names.
    if name.len() == 32
        && name.bytes().all(|b| b.is_ascii_hexdigit())
        && let Some(found) = server.find_json(&["saved-searches", name], &[])?
    {
        return Ok(Some(found));
    }
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let parameters = [("limit", PAGE.to_string()), ("after", after)];
        let page = server.find_json(&["saved-searches"], &parameters)?;
        let page = page.ok_or_else(|| Failure::Refused("the server has no saved searches".to_owned()))?;
        let list = page["saved_searches"].as_array().map(Vec::as_slice).unwrap_or_default();
        found.extend(list.iter().filter(|search| search["name"] == name).cloned());
        match list.last().and_then(|last| last["id"].as_str()) {
            // Only a page with a link has a next one.
            Some(last) if page["links"].as_array().is_some_and(|links| !links.is_empty()) => after = last.to_owned(),
            _ => break,
        }
    }
    // Guessing would follow the wrong one.
    if found.len() > 1 {
        let ids: Vec<&str> = found.iter().filter_map(|search| search["id"].as_str()).collect();
        let (count, ids) = (ids.len(), ids.join(", "));
        return Err(Failure::Usage(format!("--name: {count} saved searches are called {name:?}: take an id: {ids}")));
    }
    Ok(found.pop())
}
