//! Saved searches without a server.

mod deaths;
mod late;
mod matching;
mod missed;
mod paused;
mod shared;
mod slots;
mod standing;
mod tenants;
mod webhooks;
mod world;
