//! The `tandem` binary. Everything is in the library of this package.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    tandem::run_command_line()
}
