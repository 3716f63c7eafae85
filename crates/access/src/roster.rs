//! Roles, groups and delegators of a person. Looked up when a decision is made, never earlier.

use crate::Identity;
use std::collections::{BTreeMap, BTreeSet};
use tandem_record::{Principal, TenantId, Timestamp};
use tandem_store::{Fault, Keys, ReadPeople};

/// Maximum depth of groups within groups.
const MAX_NESTING: usize = 8;

/// One entry of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Member {
    Principal(String),
    /// Everybody who holds the role.
    Role(String),
    /// Everybody in the group.
    Group(String),
}

impl Member {
    /// `ana`, `role:clerk` or `group:leads`; `None` when the text names nobody.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, name) = match text.split_once(':') {
            Some(("role", name)) => (Self::Role as fn(String) -> Self, name),
            Some(("group", name)) => (Self::Group as fn(String) -> Self, name),
            _ => (Self::Principal as fn(String) -> Self, text),
        };
        (!name.is_empty()).then(|| kind(name.to_owned()))
    }
}

/// Groups by name. A tenant's own group overrides the configured group of the same name.
#[derive(Clone, Debug, Default)]
pub struct Groups(BTreeMap<String, Vec<Member>>);

impl Groups {
    pub fn from_names<'a>(groups: impl IntoIterator<Item = (&'a String, &'a Vec<String>)>) -> Self {
        let read = |(name, members): (&String, &Vec<String>)| {
            let members = members.iter().filter_map(|text| Member::parse(text));
            (name.clone(), members.collect())
        };
        Self(groups.into_iter().map(read).collect())
    }

    /// Whether a person is a member of a group, directly, by a role or through other groups.
    pub fn contains(&self, group: &str, person: &Person) -> bool {
        let mut visited = BTreeSet::from([group]);
        let mut level = vec![group];
        for _ in 0..=MAX_NESTING {
            let mut next = Vec::new();
            for member in level.iter().filter_map(|name| self.0.get(*name)).flatten() {
                match member {
                    Member::Principal(name) if person.principal.as_str() == name => return true,
                    Member::Role(role) if person.roles.contains(role) => return true,
                    Member::Group(inner) if visited.insert(inner) => next.push(inner.as_str()),
                    Member::Principal(_) | Member::Role(_) | Member::Group(_) => {}
                }
            }
            level = next;
        }
        false
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    pub principal: Principal,
    pub roles: Vec<String>,
}

/// A person who is about to decide, with everything a decision policy can check.
#[derive(Clone, Debug)]
pub struct Decider {
    pub person: Person,
    pub groups: Groups,
    /// People with a delegation to this person that is active now.
    pub delegators: Vec<Person>,
    /// The delegator named in the request.
    pub acting_for: Option<Principal>,
}

impl Decider {
    /// Loads a person's roles, groups and delegations.
    pub async fn look_up<S: ReadPeople + Keys + ?Sized>(
        store: &S,
        shared: &Groups,
        caller: &Identity,
        acting_for: Option<Principal>,
        now: Timestamp,
    ) -> Result<Self, Fault> {
        let mut groups = shared.clone();
        let own = store.groups(&caller.tenant).await?;
        let own = Groups::from_names(own.iter().map(|group| (&group.name, &group.members)));
        groups.0.extend(own.0);
        let delegations = store.delegations(&caller.tenant, now).await?;
        let from: BTreeSet<Principal> = delegations
            .into_iter()
            .filter(|d| d.to == caller.principal && d.starts_at <= now && now < d.ends_at)
            .map(|d| d.from)
            .collect();
        Ok(Self {
            person: Person {
                principal: caller.principal.clone(),
                roles: caller.roles.to_vec(),
            },
            groups,
            delegators: with_roles(store, &caller.tenant, from, now).await?,
            acting_for,
        })
    }
}

/// A principal's roles are those of its live keys.
async fn with_roles<S: Keys + ?Sized>(
    store: &S,
    tenant: &TenantId,
    principals: BTreeSet<Principal>,
    now: Timestamp,
) -> Result<Vec<Person>, Fault> {
    if principals.is_empty() {
        return Ok(Vec::new());
    }
    let mut people: Vec<Person> = principals
        .into_iter()
        .map(|principal| Person {
            principal,
            roles: Vec::new(),
        })
        .collect();
    for key in store.list_keys(Some(tenant)).await? {
        let live = key.revoked_at.is_none() && key.expires_at.is_none_or(|at| now < at);
        let found = people.iter_mut().find(|p| p.principal == key.principal);
        if let Some(person) = found.filter(|_| live) {
            let new = key.roles.into_iter();
            let new: Vec<String> = new.filter(|r| !person.roles.contains(r)).collect();
            person.roles.extend(new);
        }
    }
    Ok(people)
}
