//! A store full of waiting runs: they must not slow down the start or new runs, nor use memory.

use crate::client::Failure;
use crate::load::{SingleRequest, Until, drive};
use crate::options::Options;
use crate::scenario::runs;
use crate::server::Server;
use std::path::Path;

pub(crate) struct WaitingRuns {
    pub(crate) waiting: usize,
    pub(crate) resident_mb: f64,
    pub(crate) restart_seconds: f64,
    /// No-op runs, in the process that also had the empty store.
    pub(crate) per_second: f64,
}

impl WaitingRuns {
    pub(crate) async fn measure(
        server: Server,
        options: &Options,
        directory: &Path,
    ) -> Result<Self, Failure> {
        let until = Until::Count(options.waiting);
        let made = drive(
            server.address,
            64,
            until,
            SingleRequest::create("bench-wait"),
        )
        .await?;
        println!(
            "{} waiting runs created at {:.0}/s",
            made.runs.len(),
            made.per_second()
        );
        let beside = runs::measure(&server, "bench-noop", 64, None, options).await?;
        let before = server.resident_mb()?;
        server.stop().await?;
        let server = Server::start(&options.binary, directory).await?;
        let restart_seconds = server.ready_after.as_secs_f64();
        let after = server.resident_mb()?;
        server.stop().await?;
        Ok(Self {
            waiting: made.runs.len(),
            resident_mb: before.max(after),
            restart_seconds,
            per_second: beside.per_second,
        })
    }
}
