//! The holders of lines, among whom the log is shared.

use super::act::Act;
use std::collections::BTreeMap;

/// The holder of a line: a tenant, and whether the line is a single one. Single lines are refused attempts and
/// sign-ins. Users without rights can cause them, so they must not push out the tenant's acts.
pub(super) type Holder = (String, bool);

/// Bytes of lines, by holder.
pub(super) type Shares = BTreeMap<Holder, u64>;

/// Returns the holder of the line of an act.
pub(super) fn holder(act: &Act) -> Holder {
    (act.tenant.clone(), act.status.is_some() && act.began.is_none())
}
