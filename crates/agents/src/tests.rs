//! Tests through the public surface, with agents in temporary folders.

mod divergence;
mod fixtures;
mod flows;
mod functions;
mod hostile_code;
mod loading;
mod models;
mod networks;
mod replay;
mod rust_code;
mod speech;
mod tools;
mod transports;
mod type_declarations;
mod watching;
