//! What can be typed about work that keeps failing.

use super::ConnectionArgs;
use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum ParkedCommand {
    /// List timers and effects that are tried no more, and why
    List(ParkedListArgs),
    /// Try the parked work of a run or webhook again
    Retry(ParkedRetryArgs),
}

#[derive(Args)]
pub(crate) struct ParkedListArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Args)]
pub(crate) struct ParkedRetryArgs {
    /// As the list names it: run:ID or webhook:ID
    #[arg(value_name = "SUBJECT")]
    pub(crate) subject: String,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}
