//! Describes a result with events for Arrow Flight: its schema, and what is known of it before it is requested.

use super::page::matched;
use super::{ItemsRequest, query, writer};
use crate::protocol::problem::{Problem, Result};
use crate::request::ask::ResponseDescription;
use crate::request::blocking::{self, Run};
use crate::request::errors;
use crate::response::tables;
use axum::response::Response;
use meridian_backend::{Collection, ReadPoint};
use meridian_query::Order;
use std::sync::Arc;

/// Describes the result and splits it into parts.
pub(super) async fn answer(
    run: Run,
    collection: Arc<dyn Collection>,
    mut request: ItemsRequest,
    parts: usize,
) -> Result<Response> {
    blocking::run(run, move |control| {
        // A sort must finish before the first event is known, and only the result itself should cost that.
        if let Order::Fields(_) = request.items.order {
            request.items.order = Order::Natural;
        }
        let rows = query(&request, &*collection, control)?;
        let (seq, schema) = (rows.head().seq.clone(), rows.head().schema.clone());
        let mut first = Vec::new();
        writer(collection.name(), &request, &schema)?.start(&mut first).map_err(Problem::internal)?;
        let all = matched(&request, &*collection, &*rows, 0, true, control)?;
        let rows = request.items.limit.map_or(all, |limit| all.map(|all| all.min(limit as u64)));
        let cuts = match parts {
            0 | 1 => Vec::new(),
            parts => {
                let at = ReadPoint { seq: Some(seq.clone()), ..request.at() };
                collection.cuts(at, parts, control).map_err(errors::query_problem)?
            }
        };
        Ok(tables::response(ResponseDescription {
            schema: first,
            rows,
            snapshot: Some(seq),
            began: Some(collection.began()),
            cuts,
        }))
    })
    .await
}
