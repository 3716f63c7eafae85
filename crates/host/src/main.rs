//! The `tandem` binary: configuration, wiring, command line. The only crate that names a concrete
//! store, and the only one that ends the process.
//!
//! Entry points: `serve` starts the server, `dev` starts it with samples, and `commands` contains
//! everything that is a client of a server or needs none.

mod cli;
mod client;
mod commands;
mod config;
mod dev;
mod documents;
mod editor_files;
mod failure;
mod output;
mod private;
mod serve;
#[cfg(feature = "otel")]
mod telemetry;

use clap::Parser as _;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
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
