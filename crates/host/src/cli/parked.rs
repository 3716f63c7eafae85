//! Options of `tandem parked`.

use super::ConnectionArgs;
use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum ParkedCommand {
    /// List parked timers and effects, and why they failed
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
    /// As shown by the list: run:ID or webhook:ID
    #[arg(value_name = "SUBJECT")]
    pub(crate) subject: String,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}
