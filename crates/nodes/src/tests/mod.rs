mod address;
mod failures;
mod guard;
mod http;
mod perform;
mod resolver;
mod server;
mod trace;
