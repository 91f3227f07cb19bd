//! A request on its way to its handler: its route, caller, permit, quotas, body and scope.

pub mod after;
pub mod ask;
pub mod blocking;
pub mod body;
pub mod brief;
pub mod context;
pub mod dispatch;
pub mod errors;
mod memory;
pub mod overload;
pub mod quota;
pub mod route;
pub mod scope;
