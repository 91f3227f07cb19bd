//! A handler's instructions to the connection of its response, as extensions of the response.

use axum::http::Extensions;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::time::Duration;

/// Ends the connection of a response at once, releasing what it holds for a client that does not read. Over HTTP/2, it
/// ends only the response, unless the client takes nothing of its socket either.
#[derive(Debug, Clone, Default)]
pub struct HangUp(Arc<Call>);

#[derive(Debug, Default)]
struct Call {
    called: AtomicBool,
    waker: AtomicWaker,
}

impl HangUp {
    /// Ends the connection.
    pub fn call(&self) {
        // The order matters: the connection registers before it reads the flag, so one of the two sides sees the other.
        self.0.called.store(true, Ordering::Release);
        self.0.waker.wake();
    }

    /// Returns ready once [`Self::call`] was called.
    pub fn poll_called(&self, cx: &Context<'_>) -> Poll<()> {
        self.0.waker.register(cx.waker());
        match self.0.called.load(Ordering::Acquire) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

/// Max time for which a client may read nothing of this response, overriding the setting; for results that only
/// accompany what the client sends. HTTP/2 only.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "flight"), allow(dead_code, reason = "only writes over Flight ask for it"))]
pub struct ReadTimeout(pub Duration);

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Work that follows a protocol switch. It is part of the connection's task, so it counts against the connection limits
/// and ends with the server.
#[derive(Clone)]
pub struct AfterSwitch(Arc<Mutex<Option<Work>>>);

impl AfterSwitch {
    /// Creates work that begins once the connection has switched.
    pub fn new(work: impl Future<Output = ()> + Send + 'static) -> AfterSwitch {
        AfterSwitch(Arc::new(Mutex::new(Some(Box::pin(work)))))
    }
}

/// The instructions to the connection of the response in progress.
#[derive(Default)]
pub struct ConnectionControl {
    hang_up: Mutex<Option<HangUp>>,
    after: Mutex<Option<AfterSwitch>>,
}

impl ConnectionControl {
    /// Takes the instructions of a response, in place of those of the previous one.
    pub fn take(&self, extensions: &mut Extensions) {
        *self.hang_up.lock() = extensions.remove();
        *self.after.lock() = extensions.remove();
    }

    /// Returns whether the response in progress may end the connection.
    pub fn may_hang_up(&self) -> bool {
        self.hang_up.lock().is_some()
    }

    /// Returns ready once the response in progress ends the connection. Poll it after [`Self::take`].
    pub fn poll_hang_up(&self, cx: &Context<'_>) -> Poll<()> {
        self.hang_up.lock().as_ref().map_or(Poll::Pending, |hang_up| hang_up.poll_called(cx))
    }

    /// Returns the work that follows the protocol switch, if there was one.
    pub fn after_switch(&self) -> Option<Work> {
        self.after.lock().take().and_then(|after| after.0.lock().take())
    }
}
