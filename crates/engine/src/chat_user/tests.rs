//! Users: who is known under an address, and which session is active.

use super::{AgentUser, user_id};
use crate::machine::Machine as _;
use serde_json::json;
use std::collections::BTreeSet;
use tandem_record::conversation::{
    ChatUser, ChatUserCommand, ChatUserReply, FirstContact, ProfileChange,
};
use tandem_record::{AgentId, Owner, Partition, SessionId, TenantId, Timestamp, WorkspaceId};

fn contact(name: &str) -> Box<FirstContact> {
    let (tenant, agent) = (TenantId::new("t"), AgentId::new("demo"));
    Box::new(FirstContact {
        user: ChatUser {
            id: user_id(&tenant.clone().into(), &agent, "u1"),
            external_user_id: "u1".to_owned(),
            display_name: name.to_owned(),
            name_is_chosen: false,
            tags: Vec::new(),
            preferences: json!({}),
            consent: None,
        },
        agent_id: agent,
        owner: Owner {
            tenant,
            workspace: None,
            principal: None,
        },
        transport: "loopback".to_owned(),
        address: "u1".to_owned(),
    })
}

fn submit(user: &mut AgentUser, command: ChatUserCommand) -> ChatUserReply {
    let Ok(decision) = user.decide(&command, &Timestamp(5));
    *user = decision.after;
    decision.reply
}

fn open(user: &mut AgentUser, name: &str, session: &str) -> ChatUserReply {
    let session = SessionId::new(session);
    let contact = contact(name);
    submit(user, ChatUserCommand::OpenSession { contact, session })
}

fn user() -> AgentUser {
    AgentUser::new(contact("Ada").user.id)
}

/// Z-13 (half: a session is reused while it is active; the next one begins after its end)
#[test]
fn user_has_one_active_session() {
    let mut user = user();
    assert_eq!(open(&mut user, "Ada", "s1"), ChatUserReply::Done);
    let active = ChatUserReply::HasSession(SessionId::new("s1"));
    assert_eq!(open(&mut user, "Ada", "s2"), active);
    let session = SessionId::new("other");
    submit(&mut user, ChatUserCommand::CloseSession { session });
    assert!(user.active_session().is_some(), "another session ended");
    let session = SessionId::new("s1");
    submit(&mut user, ChatUserCommand::CloseSession { session });
    assert_eq!(open(&mut user, "Ada", "s2"), ChatUserReply::Done);
    assert_eq!(user.active_session(), Some(&SessionId::new("s2")));
}

/// Z-248 (half: a chosen name stays, whatever later sender profiles say)
#[test]
fn chosen_name_is_not_replaced_by_a_sender_profile() {
    let mut user = user();
    open(&mut user, "Ada", "s1");
    let close = |session: &str| ChatUserCommand::CloseSession {
        session: SessionId::new(session),
    };
    submit(&mut user, close("s1"));
    open(&mut user, "Ada L.", "s2");
    assert_eq!(
        user.profile().map(|p| p.display_name.as_str()),
        Some("Ada L.")
    );
    let change = ProfileChange {
        display_name: Some("Countess".to_owned()),
        name_is_chosen: true,
        preferences: Some(json!({"a": 1, "b": null})),
        ..ProfileChange::default()
    };
    submit(&mut user, ChatUserCommand::ChangeProfile(Box::new(change)));
    submit(&mut user, close("s2"));
    open(&mut user, "Ada L.", "s3");
    let profile = user.profile().expect("a known user");
    assert_eq!(profile.display_name, "Countess");
    assert_eq!(profile.preferences, json!({"a": 1}));
}

#[test]
fn unknown_user_has_no_profile_to_change() {
    let mut user = user();
    let change = ChatUserCommand::ChangeProfile(Box::default());
    assert_eq!(submit(&mut user, change), ChatUserReply::Unknown);
    assert_eq!(user.head(), None);
}

#[test]
fn same_address_is_another_user_for_another_agent_workspace_or_tenant() {
    let id = |tenant: &str, workspace: Option<&str>, agent: &str| {
        let of = Partition {
            tenant: TenantId::new(tenant),
            workspace: workspace.map(WorkspaceId::new),
        };
        user_id(&of, &AgentId::new(agent), "u")
    };
    assert_eq!(id("t", None, "a"), id("t", None, "a"));
    assert_eq!(id("t", Some("w"), "a"), id("t", Some("w"), "a"));
    let different = BTreeSet::from([
        id("t", None, "a"),
        id("t", None, "b"),
        id("u", None, "a"),
        id("t", Some("w"), "a"),
        id("t", Some("v"), "a"),
        id("u", Some("w"), "a"),
    ]);
    assert_eq!(different.len(), 6);
}
