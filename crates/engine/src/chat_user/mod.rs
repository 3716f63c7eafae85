//! One user of one agent as a machine: the profile, and which session is active.
//!
//! Its stream is `user:<userId>`. The id follows from tenant, workspace, agent and the address the transport
//! gives, so that a message finds its user without an index.
//!
//! Invariants:
//! - A user has at most one active session.
//! - A name that the user or an operator gave is not replaced by the name of a sender profile.

use crate::machine::{Decision, Machine};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::convert::Infallible;
use tandem_record::conversation::{
    ChatUser, ChatUserCommand, ChatUserEvent, ChatUserReply, FirstContact, ProfileChange,
};
use tandem_record::{
    AgentId, ChatUserId, Partition, Recorded, Seq, SessionId, StreamId, TenantId, Timestamp,
};

#[cfg(test)]
mod tests;

/// The id of the user with this address. A workspace has its own users.
pub fn user_id(of: &Partition, agent: &AgentId, external_user_id: &str) -> ChatUserId {
    let tenant = &of.tenant;
    let text = match &of.workspace {
        None => format!("tandem:user:v1\0{tenant}\0{agent}\0{external_user_id}"),
        Some(workspace) => {
            format!("tandem:user:v2\0{tenant}\0{workspace}\0{agent}\0{external_user_id}")
        }
    };
    let digest = Sha256::digest(text.as_bytes());
    let hex: String = digest[..10].iter().map(|b| format!("{b:02x}")).collect();
    ChatUserId::from(format!("usr-{hex}"))
}

/// A user, or nobody before the first event.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentUser {
    id: ChatUserId,
    known: KnownUser,
}

/// What a snapshot stores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownUser {
    head: Option<Seq>,
    contact: Option<Box<FirstContact>>,
    created_at: Timestamp,
    session: Option<SessionId>,
    nobody: TenantId,
}

impl AgentUser {
    pub fn new(id: ChatUserId) -> Self {
        Self {
            id,
            known: KnownUser {
                head: None,
                contact: None,
                created_at: Timestamp(0),
                session: None,
                nobody: TenantId::new(""),
            },
        }
    }

    pub fn restored(id: ChatUserId, known: KnownUser) -> Self {
        Self { id, known }
    }

    /// How the user became known, with the profile as it is now.
    pub fn contact(&self) -> Option<&FirstContact> {
        self.known.contact.as_deref()
    }

    pub fn profile(&self) -> Option<&ChatUser> {
        self.contact().map(|contact| &contact.user)
    }

    pub fn created_at(&self) -> Timestamp {
        self.known.created_at
    }

    pub fn active_session(&self) -> Option<&SessionId> {
        self.known.session.as_ref()
    }

    fn events(&self, command: &ChatUserCommand) -> (Vec<ChatUserEvent>, ChatUserReply) {
        match command {
            ChatUserCommand::OpenSession { contact, session } => {
                if let Some(active) = &self.known.session {
                    return (Vec::new(), ChatUserReply::HasSession(active.clone()));
                }
                let mut events = Vec::new();
                match self.profile() {
                    None => events.push(ChatUserEvent::Met(contact.clone())),
                    Some(profile) => {
                        let renamed = !profile.name_is_chosen
                            && profile.display_name != contact.user.display_name
                            && contact.user.display_name != contact.user.external_user_id;
                        if renamed {
                            events.push(ChatUserEvent::ProfileChanged(Box::new(ProfileChange {
                                display_name: Some(contact.user.display_name.clone()),
                                ..ProfileChange::default()
                            })));
                        }
                    }
                }
                events.push(ChatUserEvent::SessionOpened {
                    session_id: session.clone(),
                });
                (events, ChatUserReply::Done)
            }
            ChatUserCommand::CloseSession { session } => {
                let is_active = self.known.session.as_ref() == Some(session);
                let closed = is_active.then(|| ChatUserEvent::SessionClosed {
                    session_id: session.clone(),
                });
                (closed.into_iter().collect(), ChatUserReply::Done)
            }
            ChatUserCommand::ChangeProfile(change) => match self.known.contact {
                None => (Vec::new(), ChatUserReply::Unknown),
                Some(_) => {
                    let changed = ChatUserEvent::ProfileChanged(change.clone());
                    (vec![changed], ChatUserReply::Done)
                }
            },
        }
    }
}

impl Machine for AgentUser {
    type Event = ChatUserEvent;
    type Command = ChatUserCommand;
    type Reply = ChatUserReply;
    type TimerKey = ();
    type EffectKind = ();
    type Undecided = Infallible;
    /// The time.
    type Context<'a> = Timestamp;
    type Limits = ();
    type Snapshot = KnownUser;

    fn stream(&self) -> StreamId {
        StreamId::of_chat_user(&self.id)
    }

    fn tenant(&self) -> &TenantId {
        let contact = self.contact();
        contact.map_or(&self.known.nobody, |contact| &contact.owner.tenant)
    }

    fn head(&self) -> Option<Seq> {
        self.known.head
    }

    fn is_ended(&self) -> bool {
        false
    }

    fn memory_bytes(&self) -> usize {
        1024
    }

    fn evolve(&mut self, recorded: &Recorded<ChatUserEvent>) {
        let known = &mut self.known;
        known.head = Some(recorded.seq);
        match &recorded.event {
            ChatUserEvent::Met(contact) => {
                known.created_at = recorded.at;
                known.contact = Some(contact.clone());
            }
            ChatUserEvent::ProfileChanged(change) => {
                if let Some(contact) = &mut known.contact {
                    change.apply_to(&mut contact.user);
                }
            }
            ChatUserEvent::SessionOpened { session_id } => known.session = Some(session_id.clone()),
            ChatUserEvent::SessionClosed { session_id } => {
                known.session.take_if(|active| active == session_id);
            }
        }
    }

    fn decide(
        &self,
        command: &ChatUserCommand,
        now: &Timestamp,
    ) -> Result<Decision<Self>, Infallible> {
        let (drafted, reply) = self.events(command);
        let mut after = self.clone();
        let mut events = Vec::new();
        for event in drafted {
            let recorded = Recorded {
                seq: after.head().map_or(Seq(0), Seq::next),
                at: *now,
                cause: None,
                event,
            };
            after.evolve(&recorded);
            events.push(recorded);
        }
        Ok(Decision {
            events,
            timers: Vec::new(),
            effects: Vec::new(),
            dropped: Vec::new(),
            children: Vec::new(),
            reply,
            after,
        })
    }

    fn required_timers(&self, (): &()) -> BTreeMap<(), Timestamp> {
        BTreeMap::new()
    }

    fn snapshot(&self) -> &KnownUser {
        &self.known
    }
}
