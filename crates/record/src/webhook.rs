//! A webhook subscription to the events of a tenant's runs, and the health of its target.

use crate::{Principal, TenantId, Timestamp, WebhookId, WorkspaceId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A subscription. Contains no secret: secrets are derived from the host's own key, the id and the
/// generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    pub id: WebhookId,
    pub tenant: TenantId,
    /// Only runs of this workspace; every run of the tenant when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceId>,
    pub url: String,
    /// Public names of events; at least one.
    pub events: Vec<String>,
    /// Only runs that have one of these tags; any run when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Principal>,
    /// The number of the newest secret; grows with every rotation.
    #[serde(default)]
    pub generation: u32,
    /// Until when the secret before the newest still signs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap_until: Option<Timestamp>,
    /// Secrets before that one that may still sign.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_overlaps: Vec<SecretOverlap>,
}

/// An old secret that still signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretOverlap {
    pub generation: u32,
    pub until: Timestamp,
}

/// Limit of secrets that sign one delivery: the newest and the old ones whose overlap has not ended.
pub const MAX_SIGNING_SECRETS: usize = 3;

/// A rotation would leave more than [`MAX_SIGNING_SECRETS`] secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManySecrets {
    /// When the first of the overlaps ends.
    pub next_rotation_at: Timestamp,
}

impl Webhook {
    /// Old secrets whose overlap has not ended, oldest first.
    fn overlaps(&self, now: Timestamp) -> impl Iterator<Item = SecretOverlap> {
        let previous = self.overlap_until.map(|until| SecretOverlap {
            generation: self.generation.saturating_sub(1),
            until,
        });
        let all = self.earlier_overlaps.iter().copied().chain(previous);
        all.filter(move |overlap| overlap.until > now)
    }

    /// The generations that sign at this time, oldest first. The last is the newest.
    pub fn signing_generations(&self, now: Timestamp) -> Vec<u32> {
        let old = self.overlaps(now).map(|overlap| overlap.generation);
        old.chain([self.generation]).collect()
    }

    /// When the newest secret begins to sign alone; `None` if it does.
    pub fn newest_signs_from(&self, now: Timestamp) -> Option<Timestamp> {
        self.overlaps(now).map(|overlap| overlap.until).max()
    }

    /// The same webhook with one more secret. With `overlap_until` every secret keeps the overlap
    /// it was given, and the newest gets this one. Without it all old secrets end now.
    pub fn rotated(
        &self,
        overlap_until: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Self, TooManySecrets> {
        let earlier_overlaps: Vec<_> = match overlap_until {
            Some(_) => self.overlaps(now).collect(),
            None => Vec::new(),
        };
        // The previous secret and the newest one come on top.
        if earlier_overlaps.len() + 2 > MAX_SIGNING_SECRETS {
            let ends = earlier_overlaps.iter().map(|overlap| overlap.until);
            let next_rotation_at = ends.min().unwrap_or(now);
            return Err(TooManySecrets { next_rotation_at });
        }
        Ok(Self {
            generation: self.generation + 1,
            overlap_until,
            earlier_overlaps,
            ..self.clone()
        })
    }
}

/// The results of the last attempts. Drives the circuit breaker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookHealth {
    #[serde(default)]
    pub consecutive_failures: u32,
    /// Nothing is attempted before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_until: Option<Timestamp>,
    /// Failures by day since the epoch, for as many days as count.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failures_by_day: BTreeMap<i64, u32>,
    /// Disabled: it failed too often, and receives nothing until it is registered again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn webhook() -> Webhook {
        Webhook {
            id: WebhookId::new("wh-1"),
            tenant: "t".into(),
            workspace: None,
            url: "https://example.com/".to_owned(),
            events: vec!["run.completed".to_owned()],
            tags: Vec::new(),
            created_at: Timestamp(0),
            created_by: None,
            generation: 0,
            overlap_until: None,
            earlier_overlaps: Vec::new(),
        }
    }

    fn rotated(webhook: &Webhook, until: i64, now: i64) -> Webhook {
        let rotated = webhook.rotated(Some(Timestamp(until)), Timestamp(now));
        rotated.expect("few secrets sign")
    }

    #[test]
    fn second_rotation_leaves_the_overlap_of_the_first() {
        let twice = rotated(&rotated(&webhook(), 100, 0), 150, 50);
        for (now, signing) in [
            (50, vec![0, 1, 2]),
            (99, vec![0, 1, 2]),
            (100, vec![1, 2]),
            (150, vec![2]),
        ] {
            assert_eq!(twice.signing_generations(Timestamp(now)), signing, "{now}");
        }
        assert_eq!(twice.newest_signs_from(Timestamp(50)), Some(Timestamp(150)));
        assert_eq!(twice.newest_signs_from(Timestamp(150)), None);
        // A short overlap does not end a longer one.
        let short = rotated(&rotated(&webhook(), 100, 0), 60, 50);
        assert_eq!(short.signing_generations(Timestamp(70)), [0, 2]);
        assert_eq!(short.newest_signs_from(Timestamp(50)), Some(Timestamp(100)));
    }

    #[test]
    fn few_secrets_sign_at_a_time_and_a_leaked_one_ends_at_once() {
        let twice = rotated(&rotated(&webhook(), 100, 0), 150, 50);
        let refused = twice.rotated(Some(Timestamp(200)), Timestamp(60));
        let next_rotation_at = Timestamp(100);
        assert_eq!(refused, Err(TooManySecrets { next_rotation_at }));
        let third = rotated(&twice, 200, 100);
        assert_eq!(third.signing_generations(Timestamp(100)), [1, 2, 3]);
        let leaked = twice.rotated(None, Timestamp(60)).expect("none overlaps");
        assert_eq!(leaked.signing_generations(Timestamp(60)), [3]);
    }

    #[test]
    fn webhook_of_an_earlier_version_is_read() {
        let mut stored = serde_json::to_value(webhook()).expect("it is plain data");
        stored["generation"] = 4.into();
        stored["overlap_until"] = 100.into();
        let read: Webhook = serde_json::from_value(stored).expect("it is read");
        assert_eq!(read.signing_generations(Timestamp(99)), [3, 4]);
        assert_eq!(read.signing_generations(Timestamp(100)), [4]);
    }
}
