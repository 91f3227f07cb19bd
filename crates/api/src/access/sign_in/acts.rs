//! Audit lines for signing in and out. They never contain a password or an unknown user name, which may be a password
//! typed into the wrong field.

use crate::access::audit;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::dispatch::Dispatch;
use crate::request::scope::Scope;
use crate::state::audit_log::Source;
use meridian_admission::identity::{Login, Session};
use meridian_backend::Act;

/// A user's act on its own session or password: `operationId` and path.
pub type SelfServiceAct = (&'static str, &'static str);

pub const SIGN_IN: SelfServiceAct = ("signIn", "/login");
pub const SIGN_OUT: SelfServiceAct = ("signOut", "/logout");
pub const PASSWORD: SelfServiceAct = ("changePassword", "/password");

/// Records a user's act.
///
/// # Errors
/// 507 if it cannot be recorded.
pub async fn record(state: &Scope, dispatch: &Dispatch, done: SelfServiceAct, session: &Session) -> Result<()> {
    let caller = session.caller();
    // An operator works in a tenant, and belongs to none.
    let tenant = if caller.is_operator() { String::new() } else { caller.tenant.to_string() };
    let who = caller.name.to_string();
    state.audit.record(Act { who, tenant, status: Some(200), ..of(dispatch, done) }).await.map(drop)
}

/// Records a failed attempt, with the attempted name if such a user exists. An attempt that came too early is only
/// counted, since there can be any number of them.
pub fn refused(state: &Scope, dispatch: &Dispatch, done: SelfServiceAct, tried: Option<&Login>, problem: &Problem) {
    let mut act = of(dispatch, done);
    let user = tried.and_then(|login| state.registry.user(login));
    let source = Source::SignIn(user.as_ref().map(|user| user.tenant.as_str().into()));
    if problem.kind() == Kind::TooManyAttempts {
        return state.audit.counted(source);
    }
    if let Some(user) = user {
        (act.who, act.tenant) = (format!("user:{}", user.login()), user.tenant.clone());
    }
    state.audit.refused(source, Act { status: Some(problem.status().as_u16()), ..act });
}

fn of(dispatch: &Dispatch, done: SelfServiceAct) -> Act {
    audit::act(done, &dispatch.caller, (dispatch.arrival.client, &dispatch.id))
}
