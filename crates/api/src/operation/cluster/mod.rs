//! `/admin/cluster`: the owner, the collections and the servers of a cluster, as its bucket shows them.
//!
//! Like `/admin/load`, it is available as a document for programs and as a page without scripts. Each survey of the
//! bucket costs calls for each collection, so requests share one. Two surveys never run at once, and a result is reused
//! for a second.

mod page;

use crate::contract::{AnsweringServer, ClusterAnswer};
use crate::html::live;
use crate::protocol::params::Params;
use crate::protocol::params::format::{self, Format, PAGES};
use crate::protocol::problem::Result;
use crate::request::context::Context;
use crate::request::scope::Scope;
use crate::response::respond;
use axum::response::Response;
use meridian_model::time;

/// `GET /admin/cluster`
pub async fn get(state: Scope, context: Context) -> Result<Response> {
    let mut params = Params::parse(context.query.as_deref())?;
    let format = format::choose(params.take("f"), &context.headers, PAGES)?;
    let is_live = live::is_live(&mut params)?;
    params.finish()?;
    let member = state.member.as_ref();
    let cluster = match member {
        Some(member) => Some(member.cluster().await?),
        None => None,
    };
    let response = match (format, &cluster) {
        (Format::Html, Some(cluster)) => respond::page(&state, page::page(cluster, is_live)),
        (Format::Html, None) => respond::page(&state, page::alone(&time::format_instant(state.now()), is_live)),
        _ => {
            let server = match member {
                Some(member) => AnsweringServer { role: member.role, node: Some(&member.node) },
                None => AnsweringServer { role: "all", node: None },
            };
            respond::json("application/json", &ClusterAnswer { server, cluster: cluster.as_deref() })?
        }
    };
    Ok(live::of_a_moment(response, format == Format::Html && is_live))
}
