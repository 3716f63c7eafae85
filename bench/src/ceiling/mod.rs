//! The best this machine could do with the same data.
//!
//! The speed of a shared machine varies from minute to minute, so a ceiling is measured alternately
//! with the value it is compared with, and not once.

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
    /// Commits per second of many callers with a minimal loop, per window.
    pub(crate) grouped: Vec<f64>,
    /// The p99 of one of these callers in milliseconds, per window.
    pub(crate) grouped_p99_ms: Vec<f64>,
    /// The p50 of a single caller's commit in milliseconds, per window.
    pub(crate) alone: Vec<f64>,
    waits: Vec<Duration>,
    waits_grouped: Vec<Duration>,
}

impl Commits {
    /// One more window of each.
    pub(crate) async fn measure(
        &mut self,
        stored: &Stored,
        options: &Options,
    ) -> Result<(), Failure> {
        let directory = options.directory()?;
        let grouped = commits::grouped(stored, directory.path(), options).await?;
        self.grouped.push(grouped.per_second());
        self.grouped_p99_ms
            .push(Latency::of(grouped.latencies.clone()).p99_ms);
        self.waits_grouped.extend(grouped.latencies);
        let waits = commits::single(stored, directory.path(), options)?;
        self.alone.push(Latency::of(waits.clone()).p50_ms);
        self.waits.extend(waits);
        Ok(())
    }

    pub(crate) fn latency_alone(&self) -> Latency {
        Latency::of(self.waits.clone())
    }

    /// How long each of many callers waits for the minimal loop.
    pub(crate) fn latency_grouped(&self) -> Latency {
        Latency::of(self.waits_grouped.clone())
    }
}

/// Commits of one caller, timed in pairs.
#[derive(Default)]
pub(crate) struct Pairs(Vec<Duration>);

impl Pairs {
    pub(crate) fn measure(&mut self, stored: &Stored, options: &Options) -> Result<(), Failure> {
        let directory = options.directory()?;
        let waits = commits::single(stored, directory.path(), options)?;
        self.0.extend(waits.windows(2).map(|two| two[0] + two[1]));
        Ok(())
    }

    pub(crate) fn latency(self) -> Latency {
        Latency::of(self.0)
    }
}

/// For orientation: the rates of our store and of an HTTP server without a store.
pub(crate) struct ReferenceRates {
    pub(crate) through_store: f64,
    /// Requests per second to a server that only replies.
    pub(crate) echo: f64,
    /// Latency of each of them.
    pub(crate) echo_latency: Latency,
}

impl ReferenceRates {
    pub(crate) async fn measure(
        stored: &Stored,
        exchange: &Exchange,
        options: &Options,
    ) -> Result<Self, Failure> {
        let (mut through_store, mut echo, mut waits) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..options.windows {
            let directory = options.directory()?;
            let rate = commits::through_store(stored, directory.path(), options).await?;
            through_store.push(rate);
            let loaded = echo::measure(exchange, options).await?;
            echo.push(loaded.per_second());
            waits.extend(loaded.latencies);
        }
        Ok(Self {
            through_store: median(through_store),
            echo: median(echo),
            echo_latency: Latency::of(waits),
        })
    }
}
