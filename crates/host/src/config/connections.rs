//! Limits on connections and streams, and timeouts of peers.

use crate::failure::Failure;
use crate::serve::ConnectionLimits;
use serde::Deserialize;
use std::time::Duration;
use tandem_app::ShareLimits;

/// More connections need more memory than an operator expects; the limit can be raised.
const MAX: usize = 16_384;
/// Maximum streams of one key, unless the total is smaller.
const STREAMS_PER_KEY: usize = 1_024;
/// Far above normal use; it stops runaway clients.
const REQUESTS_PER_SECOND: usize = 20_000;
const MAX_RATE: u32 = 10_000_000;
const HEADER_SECONDS: u64 = 10;
const BODY_SECONDS: u64 = 30;
const IDLE_SECONDS: u64 = 120;
const WRITE_SECONDS: u64 = 60;
/// A timeout longer than a day is no limit.
const MAX_SECONDS: u64 = 24 * 3600;

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConnectionsLayer {
    pub(crate) max: Option<usize>,
    pub(crate) max_per_address: Option<usize>,
    pub(crate) max_per_tenant: Option<usize>,
    pub(crate) max_per_key: Option<usize>,
    pub(crate) header_timeout_seconds: Option<u64>,
    pub(crate) body_timeout_seconds: Option<u64>,
    pub(crate) idle_timeout_seconds: Option<u64>,
    pub(crate) write_timeout_seconds: Option<u64>,
    pub(crate) max_streams: Option<usize>,
    pub(crate) max_streams_per_tenant: Option<usize>,
    pub(crate) max_streams_per_key: Option<usize>,
    pub(crate) requests_per_second_per_key: Option<usize>,
}

/// The limits of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Connections {
    pub(crate) limits: ConnectionLimits,
    pub(crate) body_timeout: Duration,
    /// Event streams and polls at once.
    pub(crate) streams: ShareLimits,
    /// Sustained requests of one key.
    pub(crate) requests_per_second: u32,
}

impl ConnectionsLayer {
    pub(super) fn over(self, below: Self) -> Self {
        Self {
            max: self.max.or(below.max),
            max_per_address: self.max_per_address.or(below.max_per_address),
            max_per_tenant: self.max_per_tenant.or(below.max_per_tenant),
            max_per_key: self.max_per_key.or(below.max_per_key),
            header_timeout_seconds: self.header_timeout_seconds.or(below.header_timeout_seconds),
            body_timeout_seconds: self.body_timeout_seconds.or(below.body_timeout_seconds),
            idle_timeout_seconds: self.idle_timeout_seconds.or(below.idle_timeout_seconds),
            write_timeout_seconds: self.write_timeout_seconds.or(below.write_timeout_seconds),
            max_streams: self.max_streams.or(below.max_streams),
            max_streams_per_tenant: self.max_streams_per_tenant.or(below.max_streams_per_tenant),
            max_streams_per_key: self.max_streams_per_key.or(below.max_streams_per_key),
            requests_per_second_per_key: self
                .requests_per_second_per_key
                .or(below.requests_per_second_per_key),
        }
    }

    /// Validates the settings. Defaults fit the file descriptors available for connections.
    pub(crate) fn within(&self, available: Option<usize>) -> Result<Connections, Failure> {
        let available = available.unwrap_or(usize::MAX);
        let max = at_least_one("max", self.max)?.unwrap_or(MAX.min(available));
        if max > available {
            return Err(Failure::new(
                format!(
                    "{max} connections cannot be served: the limit of file descriptors leaves room \
                     for {available}"
                ),
                "Raise the limit (`ulimit -Hn`, LimitNOFILE in systemd), or lower \
                 TANDEM_MAX_CONNECTIONS (in tandem.toml: connections.max).",
            ));
        }
        let half = max.div_ceil(2);
        // A tenant never has more than half, and a key never more than half of its tenant's.
        let max_per_tenant = at_least_one("max_per_tenant", self.max_per_tenant)?.unwrap_or(half);
        let max_per_key = at_least_one("max_per_key", self.max_per_key)?;
        Ok(Connections {
            limits: ConnectionLimits {
                max,
                max_per_address: at_least_one("max_per_address", self.max_per_address)?
                    .unwrap_or(half),
                max_per_tenant,
                max_per_key: max_per_key.unwrap_or(max_per_tenant.div_ceil(2)),
                header_timeout: seconds(
                    "header_timeout_seconds",
                    self.header_timeout_seconds,
                    HEADER_SECONDS,
                )?,
                idle_timeout: seconds(
                    "idle_timeout_seconds",
                    self.idle_timeout_seconds,
                    IDLE_SECONDS,
                )?,
                write_timeout: seconds(
                    "write_timeout_seconds",
                    self.write_timeout_seconds,
                    WRITE_SECONDS,
                )?,
            },
            body_timeout: seconds(
                "body_timeout_seconds",
                self.body_timeout_seconds,
                BODY_SECONDS,
            )?,
            streams: self.streams(max)?,
            requests_per_second: self.requests_per_second()?,
        })
    }

    fn requests_per_second(&self) -> Result<u32, Failure> {
        const NAME: &str = "requests_per_second_per_key";
        let given = at_least_one(NAME, self.requests_per_second_per_key)?;
        let rate = given.unwrap_or(REQUESTS_PER_SECOND);
        let fits = u32::try_from(rate).ok().filter(|rate| *rate <= MAX_RATE);
        fits.ok_or_else(|| wrong(NAME, rate, "Give a number from 1 to 10000000."))
    }

    fn streams(&self, max_connections: usize) -> Result<ShareLimits, Failure> {
        let total = at_least_one("max_streams", self.max_streams)?;
        // Some connections stay available for short requests.
        let total = total.unwrap_or(max_connections - max_connections / 4);
        let per_tenant = at_least_one("max_streams_per_tenant", self.max_streams_per_tenant)?;
        let max_per_tenant = per_tenant.unwrap_or(total.div_ceil(2));
        let per_key = at_least_one("max_streams_per_key", self.max_streams_per_key)?;
        Ok(ShareLimits {
            total,
            max_per_tenant,
            max_per_key: per_key.unwrap_or(STREAMS_PER_KEY.min(max_per_tenant.div_ceil(2))),
        })
    }
}

fn at_least_one(name: &str, given: Option<usize>) -> Result<Option<usize>, Failure> {
    match given {
        Some(0) => Err(wrong(
            name,
            0,
            "Give a number of at least 1, or leave it out.",
        )),
        given => Ok(given),
    }
}

fn seconds(name: &str, given: Option<u64>, default: u64) -> Result<Duration, Failure> {
    match given.unwrap_or(default) {
        seconds @ 1..=MAX_SECONDS => Ok(Duration::from_secs(seconds)),
        seconds => Err(wrong(
            name,
            seconds,
            "Give a number of seconds from 1 to 86400, or leave it out.",
        )),
    }
}

fn wrong(name: &str, value: impl std::fmt::Display, next: &str) -> Failure {
    Failure::new(format!("connections.{name} cannot be {value}"), next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_fit_the_descriptors_there_are() {
        let layer = ConnectionsLayer::default();
        let few = layer.within(Some(512)).unwrap();
        assert_eq!((few.limits.max, few.limits.max_per_address), (512, 256));
        assert_eq!(
            (few.limits.max_per_tenant, few.limits.max_per_key),
            (256, 128)
        );
        let streams = |total, max_per_tenant, max_per_key| ShareLimits {
            total,
            max_per_tenant,
            max_per_key,
        };
        assert_eq!(few.streams, streams(384, 192, 96));
        let many = layer.within(Some(1 << 20)).unwrap();
        assert_eq!(
            (many.limits.max, many.limits.max_per_tenant),
            (16_384, 8_192)
        );
        assert_eq!(many.streams, streams(12_288, 6_144, 1_024));
    }

    #[test]
    fn more_connections_than_descriptors_are_rejected_at_start() {
        let layer = ConnectionsLayer {
            max: Some(1_000),
            ..ConnectionsLayer::default()
        };
        let refused = layer.within(Some(512)).unwrap_err().to_string();
        assert!(refused.contains("room for 512"), "{refused}");
        assert_eq!(layer.within(Some(2_000)).unwrap().limits.max, 1_000);
    }

    #[test]
    fn invalid_values_are_rejected_at_start() {
        let no_connection = ConnectionsLayer {
            max: Some(0),
            ..ConnectionsLayer::default()
        };
        let no_time = ConnectionsLayer {
            header_timeout_seconds: Some(0),
            ..ConnectionsLayer::default()
        };
        let no_request = ConnectionsLayer {
            requests_per_second_per_key: Some(0),
            ..ConnectionsLayer::default()
        };
        for (layer, named) in [
            (no_connection, "max"),
            (no_time, "header_timeout_seconds"),
            (no_request, "requests_per_second_per_key"),
        ] {
            let refused = layer.within(None).unwrap_err().to_string();
            assert!(refused.contains(named), "{refused}");
        }
    }

    #[test]
    fn layers_are_merged_field_by_field() {
        let above = ConnectionsLayer {
            max: Some(5),
            ..ConnectionsLayer::default()
        };
        let below = ConnectionsLayer {
            max: Some(7),
            max_streams: Some(3),
            ..ConnectionsLayer::default()
        };
        let merged = above.over(below);
        assert_eq!((merged.max, merged.max_streams), (Some(5), Some(3)));
    }
}
