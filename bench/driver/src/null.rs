//! The ceiling of an HTTP server on this library: a handler that reads the body and does nothing.

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::{Router, http::header};

/// Where to listen.
#[derive(clap::Args)]
pub struct Options {
    /// Address and port.
    #[arg(long)]
    listen: String,
}

/// Serves until killed.
pub fn run(options: &Options) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(&options.listen).await.map_err(|e| e.to_string())?;
        axum::serve(listener, Router::new().fallback(nothing)).await.map_err(|e| e.to_string())
    })
}

async fn nothing(_body: Bytes) -> (StatusCode, [(header::HeaderName, &'static str); 1], &'static str) {
    (StatusCode::CREATED, [(header::CONTENT_TYPE, "application/json")], r#"{"written":1,"replaced":0,"duplicates":0}"#)
}
