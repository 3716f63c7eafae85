//! The host: configuration, wiring, command line; and the library for programs that embed it. The only
//! crate that names a concrete store.
//!
//! Entry points: [`Tandem::builder`] starts a server inside a program, with agents, flows, tools and nodes
//! in Rust. [`run_command_line`] is the binary: `serve` starts the server, `dev` starts it with samples, and
//! `commands` contains everything that is a client of a server or needs none.
//!
//! Decides nothing about runs and conversations: it opens, connects and closes what does.
//!
//! Invariants:
//! - `tandem serve`, `tandem dev` and an embedded server are opened, served and closed by the same code
//!   (`serve`). They differ in what they prepare.
//! - Only the command line ends the process, writes to stdout, starts the log and sets the allocator.

mod cli;
mod client;
mod commands;
mod config;
mod dev;
mod documents;
mod editor_files;
mod embed;
mod failure;
mod output;
mod private;
mod serve;
#[cfg(feature = "otel")]
mod telemetry;

pub use embed::{ServeError, Tandem, TandemBuilder, TandemServer};

// What authors of agents, flows, tools and nodes use.
pub use serde_json;
pub use tandem_agents::{RustAgent, RustTool, ToolContext};
pub use tandem_engine::flow::FlowError;
pub use tandem_flow::{
    AdminInput, Ask, Confirm, ContextCall, Escalate, FilterContext, FlowContext, FlowResult,
    FlowReturn, FlowStop, InputDecision, OpenedEscalation, ProxyOutcome, ProxyStart, ProxyWait,
    RustFlow, SessionKeys, StartedProxy, StoppedProxy, Wait, WaitOutcome, WorkflowOutcome,
    WorkflowRun,
};
pub use tandem_nodes::{NodeCall, RustNode};
pub use tandem_record::{ErrorInfo, Object, Timestamp};

use clap::Parser as _;
use std::process::ExitCode;

/// The command line of the binary `tandem`.
pub fn run_command_line() -> ExitCode {
    let cli = cli::Cli::parse();
    match cli.run() {
        Ok(code) => code,
        // `tandem runs list | head` is not a failure.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&error);
            ExitCode::FAILURE
        }
    }
}
