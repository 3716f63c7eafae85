//! Groups and delegations: separate for each tenant, replaced by name, changed only by their
//! commit.

use super::sample::{NOW, later, must};
use crate::{Commit, CommitGuard, DelegationRecord, GroupRecord, LeaseId, PeopleChange, Store};
use std::sync::Arc;
use tandem_record::{Principal, TenantId};

fn group(tenant: &str, name: &str, members: &[&str]) -> GroupRecord {
    GroupRecord {
        tenant: TenantId::new(tenant),
        name: name.into(),
        members: members.iter().map(ToString::to_string).collect(),
        changed_at: NOW,
    }
}

fn delegation(tenant: &str, id: &str, ends: u64) -> DelegationRecord {
    DelegationRecord {
        id: id.into(),
        tenant: TenantId::new(tenant),
        from: Principal::new("ana"),
        to: Principal::new("ben"),
        starts_at: later(5),
        ends_at: later(ends),
        created_at: NOW,
    }
}

fn commit(changes: impl IntoIterator<Item = PeopleChange>) -> Commit {
    Commit {
        people: changes.into_iter().collect(),
        ..Commit::default()
    }
}

pub async fn groups_are_replaced_by_name(store: Arc<dyn Store>) {
    let put = PeopleChange::PutGroup;
    let first = [
        put(group("t1", "leads", &["ana"])),
        put(group("t1", "desk", &["role:clerk", "group:leads"])),
        put(group("t2", "desk", &["zoe"])),
    ];
    must(&store, commit(first)).await;
    must(&store, commit([put(group("t1", "leads", &["eva"]))])).await;
    let found = store.groups(&"t1".into()).await.unwrap();
    let expected = [
        group("t1", "desk", &["role:clerk", "group:leads"]),
        group("t1", "leads", &["eva"]),
    ];
    assert_eq!(found, expected, "by name, every field, the newest members");
    let gone = PeopleChange::DropGroup {
        tenant: "t1".into(),
        name: "desk".into(),
    };
    must(&store, commit([gone.clone(), gone])).await;
    let names =
        |groups: Vec<GroupRecord>| -> Vec<String> { groups.into_iter().map(|g| g.name).collect() };
    assert_eq!(names(store.groups(&"t1".into()).await.unwrap()), ["leads"]);
    assert_eq!(names(store.groups(&"t2".into()).await.unwrap()), ["desk"]);
}

pub async fn ended_delegations_are_not_listed(store: Arc<dyn Store>) {
    let put = PeopleChange::PutDelegation;
    let changes = [
        put(delegation("t1", "d2", 20)),
        put(delegation("t1", "d1", 10)),
        put(delegation("t2", "d1", 30)),
    ];
    must(&store, commit(changes)).await;
    let found = store.delegations(&"t1".into(), NOW).await.unwrap();
    let expected = [delegation("t1", "d1", 10), delegation("t1", "d2", 20)];
    assert_eq!(found, expected, "by id, every field, begun or not");
    let found = store.delegations(&"t1".into(), later(10)).await.unwrap();
    assert_eq!(found, [delegation("t1", "d2", 20)], "not valid at its end");
    let gone = PeopleChange::DropDelegation {
        tenant: "t1".into(),
        id: "d2".into(),
    };
    must(&store, commit([gone])).await;
    let left = store.delegations(&"t1".into(), later(10)).await.unwrap();
    assert_eq!(left, []);
    let other = store.delegations(&"t2".into(), NOW).await.unwrap();
    assert_eq!(other.len(), 1, "the other tenant's stays");
}

pub async fn rejected_commit_changes_no_group_or_delegation(store: Arc<dyn Store>) {
    let mut refused = commit([PeopleChange::PutGroup(group("t1", "desk", &["ana"]))]);
    refused.guards.push(CommitGuard::HoldsLease {
        effect: "absent".into(),
        lease: LeaseId::new("me", 1),
    });
    assert!(store.commit(refused).await.is_err());
    assert_eq!(store.groups(&"t1".into()).await.unwrap(), []);
}
