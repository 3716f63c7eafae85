//! Users of agents: separate for each tenant and agent, listed in order of their ids.

use super::sample::{conversation_changes, later, must};
use crate::{ChatUserFilter, ChatUserRow, ConversationChange, ListingPage, SCANNED_ROWS, Store};
use std::sync::Arc;
use tandem_record::ChatUserId;

use ConversationChange::PutUser;

fn user(tenant: &str, agent: &str, id: &str, tags: &[&str], active: u64) -> ChatUserRow {
    ChatUserRow {
        user_id: ChatUserId::new(id),
        tenant: tenant.into(),
        agent: agent.into(),
        external_user_id: format!("+49 {id}"),
        created_at: later(1),
        last_active_at: later(active),
        tags: tags.iter().map(ToString::to_string).collect(),
        body: format!(r#"{{"displayName":"{id}"}}"#),
    }
}

/// The ids of all pages with this limit.
async fn ids(store: &Arc<dyn Store>, filter: &ChatUserFilter, limit: usize) -> Vec<String> {
    let (tenant, agent) = ("t1".into(), "desk".into());
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let page = ListingPage { after, limit };
        let found = store.list_chat_users(&tenant, &agent, filter, &page).await;
        let found = found.unwrap();
        assert!(found.rows.len() <= limit);
        ids.extend(found.rows.iter().map(|row| row.user_id.to_string()));
        match found.next {
            None => return ids,
            next => after = next,
        }
    }
}

pub async fn user_is_bound_to_its_tenant(store: Arc<dyn Store>) {
    must(
        &store,
        conversation_changes([PutUser(user("t1", "desk", "u1", &["vip"], 5))]),
    )
    .await;
    let id = ChatUserId::new("u1");
    let found = store.chat_user(&"t1".into(), &id).await.unwrap();
    assert_eq!(
        found,
        Some(user("t1", "desk", "u1", &["vip"], 5)),
        "every field"
    );
    assert_eq!(store.chat_user(&"t2".into(), &id).await.unwrap(), None);
}

pub async fn users_are_listed_by_id_and_filtered(store: Arc<dyn Store>) {
    let rows = [
        user("t1", "desk", "u3", &["vip", "de"], 30),
        user("t1", "desk", "u1", &["vip"], 10),
        user("t1", "desk", "u2", &[], 20),
        user("t1", "other", "u4", &["vip"], 40),
        user("t2", "desk", "u5", &["vip"], 50),
    ];
    must(&store, conversation_changes(rows.map(PutUser))).await;
    let all = ChatUserFilter::default();
    for limit in [1, 2, 10] {
        assert_eq!(
            ids(&store, &all, limit).await,
            ["u1", "u2", "u3"],
            "{limit}"
        );
    }
    let vip = ChatUserFilter {
        tag: Some("vip".into()),
        ..all.clone()
    };
    assert_eq!(ids(&store, &vip, 1).await, ["u1", "u3"]);
    let recent = ChatUserFilter {
        active_since: Some(later(20)),
        ..all.clone()
    };
    assert_eq!(ids(&store, &recent, 10).await, ["u2", "u3"], "inclusive");
    let both = ChatUserFilter {
        tag: Some("vip".into()),
        ..recent
    };
    assert_eq!(ids(&store, &both, 10).await, ["u3"]);
    let unknown = ChatUserFilter {
        tag: Some("none".into()),
        ..all
    };
    assert!(ids(&store, &unknown, 10).await.is_empty());
}

pub async fn changed_user_retains_identity_and_moves_between_tags(store: Arc<dyn Store>) {
    must(
        &store,
        conversation_changes([PutUser(user("t1", "desk", "u1", &["vip", "old"], 50))]),
    )
    .await;
    let mut changed = user("t2", "other", "u1", &["new", "new"], 20);
    changed.external_user_id = "somebody else".into();
    changed.created_at = later(9);
    changed.body = "{}".into();
    must(&store, conversation_changes([PutUser(changed)])).await;
    let mut expected = user("t1", "desk", "u1", &["new", "new"], 50);
    expected.body = "{}".into();
    let id = ChatUserId::new("u1");
    let stored = store.chat_user(&"t1".into(), &id).await.unwrap();
    assert_eq!(stored, Some(expected), "an older activity changes nothing");
    for (tag, listed) in [("vip", 0), ("old", 0), ("new", 1)] {
        let filter = ChatUserFilter {
            tag: Some(tag.into()),
            ..ChatUserFilter::default()
        };
        assert_eq!(ids(&store, &filter, 10).await.len(), listed, "{tag}");
    }
}

pub async fn touch_moves_activity_forward_only(store: Arc<dyn Store>) {
    let touch = |user: &str, at| ConversationChange::TouchUser {
        user: user.into(),
        at: later(at),
    };
    must(
        &store,
        conversation_changes([PutUser(user("t1", "desk", "u1", &["vip"], 5))]),
    )
    .await;
    for (at, expected) in [(9, 9), (7, 9), (12, 12)] {
        must(&store, conversation_changes([touch("u1", at)])).await;
        let stored = store.chat_user(&"t1".into(), &"u1".into()).await.unwrap();
        assert_eq!(stored, Some(user("t1", "desk", "u1", &["vip"], expected)));
    }
    must(&store, conversation_changes([touch("nobody", 9)])).await;
    let stored = store.chat_user(&"t1".into(), &"nobody".into()).await;
    assert_eq!(stored.unwrap(), None, "a touch creates nobody");
}

/// A page ends before it has read them all; following it finds every match.
pub async fn rare_users_are_found_among_many(store: Arc<dyn Store>) {
    let many = (0..2 * SCANNED_ROWS + 10).map(|number| {
        let active = if number % SCANNED_ROWS == 7 { 90 } else { 10 };
        PutUser(user("t1", "desk", &format!("u{number:05}"), &[], active))
    });
    must(&store, conversation_changes(many)).await;
    let recent = ChatUserFilter {
        active_since: Some(later(50)),
        ..ChatUserFilter::default()
    };
    let expected = ["u00007", "u01007", "u02007"];
    assert_eq!(ids(&store, &recent, 5).await, expected);
    assert_eq!(ids(&store, &recent, 1).await, expected);
}
