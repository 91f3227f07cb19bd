//! Every kind of query against a naive scan, over memory trees and segments mixed.

mod averages;
mod costs;
mod items;
mod large;
mod lines;
mod many;
mod numbers;
mod oracle;
mod partials;
mod pictures;
mod stops;
mod weights;
mod wire;
mod world;
