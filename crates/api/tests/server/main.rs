//! The server from outside: real sockets, a real store in memory.

// Clippy takes only the test functions themselves for tests.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(clippy::disallowed_methods, reason = "tests read files and clocks as they are")]

mod owner;
mod support;

mod access;
mod alternatives;
mod attacks;
mod audit;
mod audit_floods;
mod bad_input;
mod bounds;
mod caches;
mod callers;
mod confirmed;
mod described;
mod disconnects;
mod events;
mod faults;
mod fences;
mod following;
mod gateways;
mod guard;
mod hostile;
mod http2;
mod http2_attacks;
mod intake;
mod jwt;
mod limits;
mod lines;
mod live;
mod metadata;
mod mock_issuer;
mod modes;
mod observed;
mod openid;
mod overload;
mod parents;
mod places;
mod proxies;
mod quotas;
mod readers;
mod reading;
mod saved;
mod saved_tenants;
mod searches;
mod sessions;
mod shared;
mod shares;
mod sign_in;
mod sizes;
mod snapshots;
mod source_calls;
mod sources;
mod stages;
mod stored_results;
mod streaming;
mod tls;
mod truth;
mod unread;
mod users;
mod writing;
