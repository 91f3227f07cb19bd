//! The settings of `[sign_in]`: sessions of users.

use super::setting::Setting;
use crate::units;
use toml::Value;

pub(super) const SETTINGS: &[Setting] = &[
    duration!(
        "sign_in.session_idle",
        "A session of a user ends after this long without a request.",
        server.session.idle,
        "1m",
        "365d"
    ),
    duration!("sign_in.session_lifetime", "Max duration of a session.", server.session.lifetime, "1m", "365d"),
];
