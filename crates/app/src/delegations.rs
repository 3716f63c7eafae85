//! Delegations: a person lets another person decide for them for some time. A caller with the scope
//! to answer may delegate its own authority; delegating for others needs the scope for groups.

use crate::app::App;
use crate::detached_request::run_to_completion;
use crate::error::{AppError, ResourceKind, TenantResource};
use crate::idempotency::{Completion, Idempotency};
use crate::rfc3339::parse_time;
use tandem_access::{Identity, Scope};
use tandem_record::{Principal, Timestamp};
use tandem_runtime::DelegationRecord;

const MAX_DELEGATIONS: usize = 1024;
const MAX_NAME_CHARS: usize = 256;
/// A year and a day.
const MAX_MS: u64 = 366 * 24 * 3600 * 1000;

/// A delegation that a caller asks for.
pub struct Delegate {
    /// Principal who may act.
    pub to: String,
    /// Principal acted for; the caller when left out.
    pub from: Option<String>,
    /// RFC 3339; now, when left out.
    pub starts_at: Option<String>,
    /// RFC 3339.
    pub ends_at: String,
}

impl Delegate {
    fn into_record(self, caller: &Identity, now: Timestamp) -> Result<DelegationRecord, AppError> {
        let from = self.from.unwrap_or_else(|| caller.principal.to_string());
        for (place, name) in [("/to", &self.to), ("/from", &from)] {
            if !(1..=MAX_NAME_CHARS).contains(&name.chars().count()) {
                return Err(AppError::invalid(place, "must name a principal"));
            }
        }
        if self.to == from {
            return Err(AppError::invalid("/to", "is the one who delegates"));
        }
        let starts_at = match &self.starts_at {
            Some(text) => parse_time("/startsAt", text)?,
            None => now,
        };
        let ends_at = parse_time("/endsAt", &self.ends_at)?;
        if ends_at <= now || ends_at <= starts_at {
            let message = "must lie after now and after the start";
            return Err(AppError::invalid("/endsAt", message));
        }
        if ends_at.ms_since(starts_at.max(now)) > MAX_MS {
            return Err(AppError::invalid("/endsAt", "is more than a year away"));
        }
        Ok(DelegationRecord {
            id: format!("dlg-{}", uuid::Uuid::new_v4().simple()),
            tenant: caller.tenant.clone(),
            from: Principal::from(from),
            to: Principal::from(self.to),
            starts_at,
            ends_at,
            created_at: now,
        })
    }
}

impl App {
    /// Delegations that have not ended: the caller's, or all with the scope for groups.
    pub async fn list_delegations(
        &self,
        caller: &Identity,
    ) -> Result<Vec<DelegationRecord>, AppError> {
        caller.require_scope(Scope::ApprovalsRespond)?;
        let mut delegations = self.runtime().delegations(&caller.tenant).await?;
        delegations.retain(|delegation| may_see(caller, delegation));
        Ok(delegations)
    }

    pub async fn create_delegation(
        &self,
        caller: &Identity,
        requested: Delegate,
        idempotency: Idempotency<DelegationRecord>,
    ) -> Result<Completion<DelegationRecord>, AppError> {
        caller.require_scope(Scope::ApprovalsRespond)?;
        let from = requested.from.as_deref().unwrap_or_default();
        let named = [("/to", requested.to.as_str()), ("/from", from)];
        self.check_no_secrets(named.map(|(place, name)| (place.to_owned(), name)))?;
        let delegation = requested.into_record(caller, self.now())?;
        if delegation.from != caller.principal {
            caller.require_scope(Scope::Groups)?;
            self.check_tenant_wide(caller, TenantResource::People)?;
        }
        let existing = self.runtime().delegations(&caller.tenant).await?;
        if existing.len() >= MAX_DELEGATIONS {
            let message = format!("would be one of more than {MAX_DELEGATIONS} delegations");
            return Err(AppError::invalid("", message));
        }
        let (runtime, created) = (self.runtime_for(caller), delegation.clone());
        run_to_completion(async move { runtime.put_delegation(created).await }).await?;
        self.complete(idempotency, delegation).await
    }

    pub async fn end_delegation(
        &self,
        caller: &Identity,
        id: String,
        idempotency: Idempotency<()>,
    ) -> Result<Completion<()>, AppError> {
        let visible = self.list_delegations(caller).await?;
        if !visible.iter().any(|delegation| delegation.id == id) {
            return Err(AppError::NotFound(ResourceKind::Delegation));
        }
        let (runtime, tenant) = (self.runtime_for(caller), caller.tenant.clone());
        run_to_completion(async move { runtime.drop_delegation(&tenant, &id).await }).await?;
        self.complete(idempotency, ()).await
    }
}

fn may_see(caller: &Identity, delegation: &DelegationRecord) -> bool {
    let own = [&delegation.from, &delegation.to].contains(&&caller.principal);
    own || (caller.require_scope(Scope::Groups).is_ok() && caller.workspace.is_none())
}
