//! `/collections/{c}/files`: the GeoParquet files of a collection, for programs on the same machine.

use crate::contract::Files;
use crate::protocol::params::Params;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::blocking;
use crate::request::context::Context;
use crate::request::dispatch::{CHALLENGE, Path};
use crate::request::errors;
use crate::request::scope::Scope;
use crate::response::respond;
use axum::http::header;
use axum::response::Response;
use meridian_model::time;
use std::path;

/// `POST /collections/{c}/files`: archives everything, and lists the files that hold exactly the events of the returned
/// snapshot. Programs on this machine get absolute paths; others get paths within the data folder.
pub async fn post(state: Scope, Path(name): Path<String>, context: Context) -> Result<Response> {
    // It flushes and archives, and the files stay for an hour: that is more than an operator opens to everyone.
    if state.caller().is_anonymous() {
        let detail = "a list of files makes the server write: send a token, as Authorization: Bearer TOKEN";
        return Err(Problem::new(Kind::Unauthorized, detail).header(header::WWW_AUTHENTICATE, CHALLENGE.clone()));
    }
    let collection = state.collection(&name)?;
    let mut params = Params::parse(context.query.as_deref())?;
    let timeout = params.take_timeout()?;
    params.finish()?;
    let deadline = context.deadline(timeout, state.config.timeout_stream)?;
    let run = context.lease.run(&state, deadline).await?;
    let local = context.is_local();
    blocking::run(run, move |control| {
        let stop = || control.check().is_err();
        let files = collection.files(deadline, &stop);
        // If the work was cancelled, the cause is the deadline or the client, not the store's error.
        control.check().map_err(errors::query_problem)?;
        let files = files.map_err(errors::store_problem)?;
        let root = state.backend.data_folder();
        let paths: Vec<_> = files
            .paths
            .iter()
            .map(|path| match root {
                _ if is_address(path) => address(path),
                Some(root) if !local => within(root, path),
                _ => absolute(path),
            })
            .collect();
        // Object addresses are the same on every machine.
        let local = local || files.paths.iter().all(|path| is_address(path));
        let document = Files {
            snapshot: files.seq.to_id(),
            files: paths,
            kept_until: time::format_instant(files.kept_until),
            relative_to: (!local).then_some("the data folder of the server"),
        };
        let mut response = respond::json("application/json", &document)?;
        respond::insert(response.headers_mut(), respond::SNAPSHOT.clone(), &files.seq.to_id());
        Ok(response)
    })
    .await
}

/// Returns whether this is the address of an object in a bucket.
fn is_address(path: &path::Path) -> bool {
    path.to_str().is_some_and(|text| text.contains("://"))
}

/// Formats the address of an object, or its path in a folder shared by processes.
fn address(path: &path::Path) -> String {
    let text = path.display().to_string();
    text.strip_prefix("file://").map(|folder| absolute(path::Path::new(folder))).unwrap_or(text)
}

/// Returns the path within the data folder.
fn within(root: &path::Path, path: &path::Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// Returns the absolute path, for programs with another working directory.
fn absolute(path: &path::Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
