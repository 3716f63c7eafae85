//! A fresh start: the time to the first response, and memory when idle.

use crate::client::Failure;
use crate::load::median;
use crate::options::Options;
use crate::server::Server;
use std::time::Duration;

const STARTS: usize = 5;

pub(crate) struct Start {
    pub(crate) ready_ms: f64,
    pub(crate) idle_mb: f64,
}

pub(crate) async fn measure(options: &Options) -> Result<Start, Failure> {
    let mut waits = Vec::new();
    let mut idle_mb = 0.0;
    for _ in 0..STARTS {
        let directory = options.directory()?;
        let server = Server::start(&options.binary, directory.path()).await?;
        waits.push(server.ready_after.as_secs_f64() * 1e3);
        tokio::time::sleep(Duration::from_millis(300)).await;
        idle_mb = server.resident_mb()?.max(idle_mb);
        server.stop().await?;
    }
    Ok(Start {
        ready_ms: median(waits),
        idle_mb,
    })
}
