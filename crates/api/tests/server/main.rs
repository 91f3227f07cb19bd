//! The server from outside: real sockets, a real store in memory.

mod support;

mod bad_input;
mod metadata;
mod overload;
mod places;
mod reading;
mod streaming;
mod writing;
