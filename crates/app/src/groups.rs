//! Approver groups of the caller's tenant. A member is a principal, `role:<role>` or
//! `group:<group>`. Membership is resolved when somebody decides, so a change takes effect at once.

use crate::admission::items;
use crate::app::App;
use crate::detached_request::run_to_completion;
use crate::error::{AppError, ResourceKind, TenantResource};
use crate::idempotency::{Completion, Idempotency};
use tandem_access::{Identity, Member, Scope};
use tandem_runtime::GroupRecord;

const MAX_GROUPS: usize = 256;
const MAX_MEMBERS: usize = 512;
const MAX_NAME_CHARS: usize = 128;
const MAX_MEMBER_CHARS: usize = 256;

/// A group as it is now.
pub struct SavedGroup {
    pub group: GroupRecord,
    /// There was none of this name.
    pub is_new: bool,
}

impl App {
    pub async fn list_groups(&self, caller: &Identity) -> Result<Vec<GroupRecord>, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        Ok(self.runtime().groups(&caller.tenant).await?)
    }

    pub async fn read_group(&self, caller: &Identity, name: &str) -> Result<GroupRecord, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        self.find_group(caller, name).await
    }

    pub async fn put_group(
        &self,
        caller: &Identity,
        name: String,
        members: Vec<String>,
        idempotency: Idempotency<SavedGroup>,
    ) -> Result<Completion<SavedGroup>, AppError> {
        caller.require_scope(Scope::Groups)?;
        self.check_tenant_wide(caller, TenantResource::People)?;
        check(&name, &members)?;
        let named = [("name".to_owned(), name.as_str())];
        self.check_no_secrets(named.into_iter().chain(items("/members", &members)))?;
        let before = self.runtime().groups(&caller.tenant).await?;
        let is_new = !before.iter().any(|group| group.name == name);
        if is_new && before.len() >= MAX_GROUPS {
            let message = format!("would be one of more than {MAX_GROUPS} groups");
            return Err(AppError::invalid("name", message));
        }
        let group = GroupRecord {
            tenant: caller.tenant.clone(),
            name,
            members,
            changed_at: self.now(),
        };
        let (runtime, changed) = (self.runtime_for(caller), group.clone());
        run_to_completion(async move { runtime.put_group(changed).await }).await?;
        self.complete(idempotency, SavedGroup { group, is_new })
            .await
    }

    pub async fn delete_group(
        &self,
        caller: &Identity,
        name: String,
        idempotency: Idempotency<()>,
    ) -> Result<Completion<()>, AppError> {
        caller.require_scope(Scope::Groups)?;
        self.check_tenant_wide(caller, TenantResource::People)?;
        self.find_group(caller, &name).await?;
        let (runtime, tenant) = (self.runtime_for(caller), caller.tenant.clone());
        run_to_completion(async move { runtime.drop_group(&tenant, &name).await }).await?;
        self.complete(idempotency, ()).await
    }

    async fn find_group(&self, caller: &Identity, name: &str) -> Result<GroupRecord, AppError> {
        let groups = self.runtime().groups(&caller.tenant).await?;
        let found = groups.into_iter().find(|group| group.name == name);
        found.ok_or(AppError::NotFound(ResourceKind::Group))
    }
}

fn check(name: &str, members: &[String]) -> Result<(), AppError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !(1..=MAX_NAME_CHARS).contains(&name.len()) || !name.chars().all(plain) {
        let message = "must be 1 to 128 letters, digits, dots, dashes or underscores";
        return Err(AppError::invalid("name", message));
    }
    if members.len() > MAX_MEMBERS {
        let message = format!("must hold at most {MAX_MEMBERS}");
        return Err(AppError::invalid("/members", message));
    }
    for (i, text) in members.iter().enumerate() {
        let place = format!("/members/{i}");
        if text.chars().count() > MAX_MEMBER_CHARS {
            return Err(AppError::invalid(place, "is too long for a name"));
        }
        match Member::parse(text) {
            None => return Err(AppError::invalid(place, "names nobody")),
            Some(Member::Group(inner)) if inner == name => {
                return Err(AppError::invalid(place, "is the group itself"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}
