pub mod bundle;
pub mod capabilities;
pub mod error;
pub mod project;
pub mod stream;
pub mod time;
