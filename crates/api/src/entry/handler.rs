//! What answers a route.

use crate::state::AppState;
use axum::extract::Request;
use axum::response::Response;
use std::future::Future;
use std::pin::Pin;

type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

/// What answers a route.
pub enum Handler {
    /// A function of extractors, whose future is boxed: some 100 ns.
    Boxed(Box<dyn Fn(Request, AppState) -> Answering + Send + Sync>),
    /// The near question, which costs so little that a box tells (docs/decisions/007). It reads nothing but its path.
    Near,
}

impl Handler {
    /// A function of extractors.
    pub fn of<H, T>(handler: H) -> Handler
    where
        H: axum::handler::Handler<T, AppState>,
        T: 'static,
    {
        Handler::Boxed(Box::new(move |request, state| Box::pin(handler.clone().call(request, state))))
    }
}
