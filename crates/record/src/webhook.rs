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
    /// Until when receivers check the previous secret first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap_until: Option<Timestamp>,
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
