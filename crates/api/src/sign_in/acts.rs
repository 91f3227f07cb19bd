//! What the audit log says of signing in and out. Never a password, and no name that is nobody's: it may be a password that was
//! typed into the wrong field.

use crate::audit;
use crate::entry::Dispatch;
use crate::problem::{Problem, Result};
use crate::scope::Scope;
use meridian_admission::identity::{Login, Session};
use meridian_backend::Act;

/// What a user did to its own session or password: by `operationId` and path.
pub type Done = (&'static str, &'static str);

pub const SIGN_IN: Done = ("signIn", "/login");
pub const SIGN_OUT: Done = ("signOut", "/logout");
pub const PASSWORD: Done = ("changePassword", "/password");

/// Records what a user has done.
///
/// # Errors
/// 507 where it cannot be recorded.
pub async fn record(state: &Scope, dispatch: &Dispatch, done: Done, session: &Session) -> Result<()> {
    let (who, tenant) = (session.login().to_string(), session.caller().tenant.to_string());
    state.audit.record(Act { who, tenant, status: Some(200), ..of(dispatch, done) }).await.map(drop)
}

/// Records an attempt that failed: by the name that was tried, if there is such a user.
pub fn refused(state: &Scope, dispatch: &Dispatch, done: Done, tried: Option<&Login>, problem: &Problem) {
    let mut act = of(dispatch, done);
    if let Some(user) = tried.and_then(|login| state.registry.user(login)) {
        (act.who, act.tenant) = (user.login().to_string(), user.tenant.clone());
    }
    state.audit.refused(Act { status: Some(problem.status().as_u16()), ..act });
}

fn of(dispatch: &Dispatch, done: Done) -> Act {
    audit::act(done, &dispatch.caller, (dispatch.arrival.client, &dispatch.id))
}
