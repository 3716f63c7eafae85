mod address;
mod guard;
mod identity;
mod resolver;
mod trace;
