//! Loading a person from the store: groups and active delegations.

use super::{NOW, identity, tenant};
use crate::{Decider, Groups, Identity, Keyring, NewKey, Scope, may_decide};
use std::sync::Arc;
use tandem_record::{Actor, DecisionAuthorization, DecisionPolicy, Denial, Principal, Timestamp};
use tandem_store::memory::MemoryStore;
use tandem_store::{Commit, DelegationRecord, GroupRecord, Log, PeopleChange};

fn ms(ms: i64) -> Timestamp {
    Timestamp(NOW.0 + ms)
}

async fn stored(changes: Vec<PeopleChange>) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    let commit = Commit {
        people: changes,
        ..Commit::default()
    };
    store.commit(commit).await.unwrap();
    store
}

fn group(name: &str, member: &str) -> PeopleChange {
    PeopleChange::PutGroup(GroupRecord {
        tenant: tenant(),
        name: name.into(),
        members: vec![member.into()],
        changed_at: NOW,
    })
}

fn caller(name: &str) -> Identity {
    Identity {
        principal: Principal::new(name),
        ..identity("key_live_1")
    }
}

async fn decide(
    store: &MemoryStore,
    who: &str,
    policy: &DecisionPolicy,
    now: i64,
) -> DecisionAuthorization {
    let decider = Decider::look_up(store, &Groups::default(), &caller(who), None, ms(now))
        .await
        .unwrap();
    may_decide(policy, &decider, None)
}

#[tokio::test]
async fn delegations_hold_from_their_start_until_their_end() {
    let delegation = PeopleChange::PutDelegation(DelegationRecord {
        id: "d1".into(),
        tenant: tenant(),
        from: Principal::new("ana"),
        to: Principal::new("ben"),
        starts_at: ms(10),
        ends_at: ms(20),
        created_at: NOW,
    });
    let store = stored(vec![group("desk", "role:clerk"), delegation]).await;
    let keys = Keyring::new(store.clone());
    let ana = NewKey {
        principal: Some(Principal::new("ana")),
        roles: vec!["clerk".into()],
        expires_at: Some(ms(18)),
        ..NewKey::new("ana", tenant(), [Scope::ApprovalsRespond])
    };
    keys.mint(ana, &Actor::host(), NOW).await.unwrap();
    let policy = DecisionPolicy {
        groups: vec!["desk".into()],
        ..DecisionPolicy::default()
    };
    for (now, may) in [(9, false), (10, true), (17, true), (18, false), (20, false)] {
        let verdict = decide(&store, "ben", &policy, now).await;
        let granted =
            matches!(&verdict, DecisionAuthorization::Granted(s) if s.acting_for.is_some());
        assert_eq!(granted, may, "at {now}: {verdict:?}");
    }
    let verdict = decide(&store, "eve", &policy, 15).await;
    assert_eq!(verdict, DecisionAuthorization::Denied(Denial::NotEligible));
}

#[tokio::test]
async fn tenant_group_overrides_the_configured_group() {
    let store = stored(vec![group("desk", "ana")]).await;
    let named = [
        ("desk".to_owned(), vec!["ben".to_owned()]),
        ("leads".to_owned(), vec!["ben".to_owned()]),
    ];
    let shared = Groups::from_names(named.iter().map(|(name, members)| (name, members)));
    let look_up = async |who: &str, group: &str| {
        let decider = Decider::look_up(&*store, &shared, &caller(who), None, NOW)
            .await
            .unwrap();
        decider.groups.contains(group, &decider.person)
    };
    assert!(look_up("ana", "desk").await && !look_up("ben", "desk").await);
    assert!(look_up("ben", "leads").await);
}
