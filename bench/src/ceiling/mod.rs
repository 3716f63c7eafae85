//! What this machine could do at best with the same data.

pub(crate) mod commits;
pub(crate) mod echo;

use crate::client::Failure;
use crate::load::{Latency, median};
use crate::options::Options;
use crate::scenario::runs::Exchange;
use commits::Stored;

pub(crate) struct Ceilings {
    /// Commits per second of many callers, by a bare loop.
    pub(crate) grouped: f64,
    pub(crate) through_store: f64,
    /// One caller's commits.
    pub(crate) single: Latency,
    /// Two of them, one after the other.
    pub(crate) pair: Latency,
    /// Exchanges per second with a server that does nothing.
    pub(crate) echo: f64,
}

impl Ceilings {
    /// In turns, so that a disturbance from outside does not hit only one of them.
    pub(crate) async fn measure(
        stored: &Stored,
        exchange: &Exchange,
        options: &Options,
    ) -> Result<Self, Failure> {
        let (mut grouped, mut through_store, mut echo) = (Vec::new(), Vec::new(), Vec::new());
        let (mut waits, mut pairs) = (Vec::new(), Vec::new());
        for _ in 0..options.windows {
            let directory = options.directory()?;
            let path = directory.path();
            grouped.push(commits::grouped(stored, path, options).await?);
            let alone = commits::single(stored, path, options)?;
            pairs.extend(alone.windows(2).map(|two| two[0] + two[1]));
            waits.extend(alone);
            through_store.push(commits::through_store(stored, path, options).await?);
            echo.push(echo::measure(exchange, options).await?);
        }
        Ok(Self {
            grouped: median(grouped),
            through_store: median(through_store),
            single: Latency::of(waits),
            pair: Latency::of(pairs),
            echo: median(echo),
        })
    }
}
