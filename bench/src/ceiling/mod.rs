//! What this machine could do at best with the same data.
//!
//! A shared machine is not equally fast from one minute to the next, so a ceiling is measured in
//! turns with what stands beside it, and not once for all.

pub(crate) mod commits;
pub(crate) mod echo;

use crate::client::Failure;
use crate::load::{Latency, median};
use crate::options::Options;
use crate::scenario::runs::Exchange;
use commits::Stored;
use std::time::Duration;

#[derive(Default)]
pub(crate) struct Commits {
    /// Commits per second of many callers, by a bare loop, window by window.
    pub(crate) grouped: Vec<f64>,
    alone: Alone,
}

impl Commits {
    /// One more window of each.
    pub(crate) async fn measure(
        &mut self,
        stored: &Stored,
        options: &Options,
    ) -> Result<(), Failure> {
        let directory = options.directory()?;
        let rate = commits::grouped(stored, directory.path(), options).await?;
        self.grouped.push(rate);
        self.alone.measure(stored, options)
    }

    pub(crate) fn alone(self) -> Latency {
        Latency::of(self.alone.waits)
    }
}

/// One caller's commits.
#[derive(Default)]
pub(crate) struct Alone {
    waits: Vec<Duration>,
    /// Two of them, one after the other.
    pairs: Vec<Duration>,
}

impl Alone {
    pub(crate) fn measure(&mut self, stored: &Stored, options: &Options) -> Result<(), Failure> {
        let directory = options.directory()?;
        let waits = commits::single(stored, directory.path(), options)?;
        self.pairs
            .extend(waits.windows(2).map(|two| two[0] + two[1]));
        self.waits.extend(waits);
        Ok(())
    }

    pub(crate) fn pairs(self) -> Latency {
        Latency::of(self.pairs)
    }
}

/// For orientation: what our store and an HTTP server without any do.
pub(crate) struct Around {
    pub(crate) through_store: f64,
    /// Exchanges per second with a server that does nothing.
    pub(crate) echo: f64,
}

impl Around {
    pub(crate) async fn measure(
        stored: &Stored,
        exchange: &Exchange,
        options: &Options,
    ) -> Result<Self, Failure> {
        let (mut through_store, mut echo) = (Vec::new(), Vec::new());
        for _ in 0..options.windows {
            let directory = options.directory()?;
            let rate = commits::through_store(stored, directory.path(), options).await?;
            through_store.push(rate);
            echo.push(echo::measure(exchange, options).await?);
        }
        Ok(Self {
            through_store: median(through_store),
            echo: median(echo),
        })
    }
}
