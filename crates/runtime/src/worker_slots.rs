//! Limits of concurrent work. Each class of work has its own slots, so that no class waits for
//! another. Within a class, tenants share the slots; within a tenant, its targets share them.
//!
//! A slot is held until its work ends and cannot be revoked, and hanging work holds it for long. So
//! some slots are always left for newcomers: a tenant gets another slot only while more are free
//! than it holds, and a target only while more of its tenant's share are free than it holds. One
//! tenant alone gets half of the slots, and one target of it half of that; two tenants get a third
//! each. The operator can set fixed limits in addition.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_record::{EffectKind, TenantId};
use tandem_store::{Lane, WorkClass};

/// Longest distinguished target name.
const MAX_TARGET_CHARS: usize = 128;
/// All calls of packs are one target: they wait for a processor of this host.
const PACKS: &str = "packs";

/// Limits on one class of work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quota {
    pub(crate) total: usize,
    pub(crate) per_tenant: usize,
    /// Limit of one target of one tenant.
    pub(crate) per_target: usize,
    /// Limit of pack calls of one tenant.
    pub(crate) packs: usize,
}

pub(crate) struct WorkerSlots {
    quota: Quota,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    total: usize,
    /// How often a slot was taken or released.
    changes: u64,
    tenants: HashMap<TenantId, Share>,
}

#[derive(Default)]
struct Share {
    total: usize,
    targets: HashMap<String, usize>,
}

impl WorkerSlots {
    pub(crate) fn new(quota: Quota) -> Arc<Self> {
        Arc::new(Self {
            quota,
            held: Mutex::default(),
        })
    }

    pub(crate) fn in_use(&self) -> usize {
        self.held.lock().total
    }

    /// How often a slot was taken or released.
    pub(crate) fn changes(&self) -> u64 {
        self.held.lock().changes
    }

    /// How many slots are free.
    pub(crate) fn free(&self) -> usize {
        self.quota.total - self.in_use()
    }

    pub(crate) fn take(self: &Arc<Self>, lane: &Lane) -> Option<WorkerSlot> {
        let mut held = self.held.lock();
        let free = self.quota.total - held.total;
        let (of_tenant, of_target) = held.tenants.get(&lane.tenant).map_or((0, 0), |share| {
            let of_target = share.targets.get(&lane.target).copied();
            (share.total, of_target.unwrap_or(0))
        });
        let tenant_limit = self.quota.per_tenant;
        let target_limit = match lane.target == PACKS {
            true => self.quota.packs,
            false => self.quota.per_target,
        };
        let left_of_tenant = tenant_limit.saturating_sub(of_tenant);
        // Internal work has no target that could hang.
        let shares_by_target = lane.class != WorkClass::Internal;
        if of_tenant >= free
            || left_of_tenant == 0
            || of_target >= target_limit
            || (shares_by_target && of_target >= left_of_tenant)
        {
            return None;
        }
        held.total += 1;
        held.changes += 1;
        let share = held.tenants.entry(lane.tenant.clone()).or_default();
        share.total += 1;
        match share.targets.get_mut(&lane.target) {
            Some(count) => *count += 1,
            None => drop(share.targets.insert(lane.target.clone(), 1)),
        }
        drop(held);
        Some(WorkerSlot {
            slots: Arc::clone(self),
            lane: lane.clone(),
        })
    }

    fn release(&self, lane: &Lane) {
        let mut held = self.held.lock();
        held.total -= 1;
        held.changes += 1;
        let Some(share) = held.tenants.get_mut(&lane.tenant) else {
            return;
        };
        share.total -= 1;
        if let Some(count) = share.targets.get_mut(&lane.target) {
            *count -= 1;
            if *count == 0 {
                share.targets.remove(&lane.target);
            }
        }
        if share.total == 0 {
            held.tenants.remove(&lane.tenant);
        }
    }
}

/// The right to work on one entry. Released when dropped.
pub(crate) struct WorkerSlot {
    slots: Arc<WorkerSlots>,
    pub(crate) lane: Lane,
}

impl Drop for WorkerSlot {
    fn drop(&mut self) {
        self.slots.release(&self.lane);
    }
}

/// The lane of an effect. `callback` is the callback URL of its run.
pub(crate) fn lane_of(tenant: &TenantId, kind: &EffectKind, callback: Option<&str>) -> Lane {
    let (class, target) = match kind {
        EffectKind::Http { request, .. } => (WorkClass::Call, authority(&request.url)),
        EffectKind::Model { request, .. } => {
            (WorkClass::Call, format!("model:{}", request.provider))
        }
        EffectKind::Tool { request, .. } => (WorkClass::Call, format!("tools:{}", request.server)),
        EffectKind::Pack { .. } => (WorkClass::Call, PACKS.to_owned()),
        EffectKind::SecretEcho { .. } => (WorkClass::Call, "secrets".to_owned()),
        EffectKind::NotifyCallback { .. } => {
            (WorkClass::Delivery, authority(callback.unwrap_or("")))
        }
        EffectKind::NotifyPeople {
            agent, transport, ..
        } => (WorkClass::Delivery, format!("{agent}.{transport}")),
        EffectKind::NotifyParent { .. }
        | EffectKind::NotifySession { .. }
        | EffectKind::AskSession { .. }
        | EffectKind::CloseSessionQuestion { .. }
        | EffectKind::CancelChild { .. }
        | EffectKind::StartFlow { .. }
        | EffectKind::CancelFlow { .. }
        | EffectKind::Continue => (WorkClass::Internal, String::new()),
    };
    Lane {
        class,
        tenant: tenant.clone(),
        target,
    }
}

/// The lane of a tenant's work that concerns only this host.
pub(crate) fn internal_lane(tenant: &TenantId) -> Lane {
    Lane {
        class: WorkClass::Internal,
        tenant: tenant.clone(),
        target: String::new(),
    }
}

/// The lane of deliveries to a URL.
pub(crate) fn delivery_lane(tenant: &TenantId, url: &str) -> Lane {
    Lane {
        class: WorkClass::Delivery,
        tenant: tenant.clone(),
        target: authority(url),
    }
}

/// Host and port of a URL, without the user and the default port.
fn authority(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let usual = match scheme.to_ascii_lowercase().as_str() {
        "http" => ":80",
        "https" => ":443",
        _ => "",
    };
    let host = host.strip_suffix(usual).unwrap_or(host);
    let lower = host.to_ascii_lowercase();
    lower.chars().take(MAX_TARGET_CHARS).collect()
}

#[cfg(test)]
mod tests;
