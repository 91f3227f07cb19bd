//! The handlers of routes.

use crate::state::AppState;
use axum::extract::Request;
use axum::response::Response;
use std::future::Future;
use std::pin::Pin;

/// A pending response.
pub type ResponseFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A function from a request to its response.
pub type BoxedHandler = Box<dyn Fn(Request, AppState) -> ResponseFuture + Send + Sync>;

/// The handler of a route.
pub enum Handler {
    /// A function of extractors. Its future is boxed, which costs about 100 ns.
    Boxed(BoxedHandler),
    /// The near query, which is so cheap that boxing would be noticeable (docs/decisions/007). It reads only its path
    /// and query string.
    Near,
}

impl Handler {
    /// Wraps a function of extractors as a handler.
    pub fn of<H, T>(handler: H) -> Handler
    where
        H: axum::handler::Handler<T, AppState>,
        T: 'static,
    {
        Handler::Boxed(Box::new(move |request, state| Box::pin(handler.clone().call(request, state))))
    }
}
