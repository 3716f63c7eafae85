//! Visitors of web chats: people without a key who talk to an agent that its file opens to the web.
//!
//! Invariants:
//! - An agent without `transports.web` is reported like one that does not exist.
//! - A visitor reads and writes the sessions of one user of one agent, named by the visitor's own token. Nothing
//!   here takes the id of a session.
//! - Message ids are unique within a visitor: nobody claims, or learns of, the message of somebody else.

use super::inbound::{DeliveredMessage, DeliveryStatus, InboundSource, NewInbound};
use super::session_follower::{SessionFollower, SessionUpdate};
use crate::app::App;
use crate::error::{AppError, ResourceKind};
use crate::fair_shares::HeldShare;
use crate::follow::wait_until_stopping;
use serde_json::Value;
use std::sync::Arc;
use tandem_access::{Secret, VisitorId};
use tandem_record::conversation::{SessionEvent, SessionStart};
use tandem_record::{
    AgentId, MediaId, Owner, Partition, Recorded, Seq, SessionId, StreamId, Timestamp,
};
use tandem_runtime::conversation::{AgentSpec, AnswerPiece, MediaContent, WEB_TRANSPORT, user_id};
use tandem_runtime::{Fault, ListingPage, SessionFilter};
use tokio::sync::watch;
use tokio::time::Instant;

/// The longest text of a visitor.
const MAX_TEXT_CHARS: usize = 8_000;
/// The longest id that a client gives a message.
const MAX_MESSAGE_ID_CHARS: usize = 100;
/// How many events before the newest one the history goes back.
const HISTORY_EVENTS: u64 = 2_000;
/// A text is sent soon after it was queued: this many events before a cursor are read again.
const LOOK_BACK_EVENTS: u64 = 256;

/// What an agent's file says about its chat on the web.
#[derive(Debug, Clone)]
pub struct WebChat {
    pub agent: AgentId,
    pub title: String,
    /// Sites that may show the page in a frame.
    pub origins: Vec<String>,
    pub max_connections: usize,
    /// The session keys that visitors are shown; all but reserved ones if absent.
    pub state_keys: Option<Vec<String>>,
    /// Words for yes and no, to be offered as buttons.
    pub confirm_words: (String, String),
    /// Visitors may send recordings.
    pub hears_speech: bool,
    owner: Owner,
}

impl WebChat {
    fn of(agent: &AgentId, spec: &AgentSpec) -> Option<Self> {
        let web = spec.web_chat.clone()?;
        Some(Self {
            agent: agent.clone(),
            title: web.title.unwrap_or_else(|| agent.to_string()),
            origins: web.origins,
            max_connections: web.max_connections,
            state_keys: web.state_keys,
            confirm_words: spec.confirm_words(),
            hears_speech: spec.speech.is_some(),
            owner: Owner {
                tenant: web.tenant,
                workspace: web.workspace,
                principal: None,
            },
        })
    }

    /// Whose conversations these are.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }
}

/// Somebody in the web chat of an agent.
#[derive(Debug, Clone)]
pub struct Visitor {
    agent: AgentId,
    owner: Owner,
    id: VisitorId,
}

impl Visitor {
    pub fn id(&self) -> &VisitorId {
        &self.id
    }

    /// The id under which a message of this visitor is claimed.
    pub fn claimed_id(&self, given: &str) -> String {
        format!("{}:{given}", self.id.as_str())
    }
}

/// A message as a visitor's client sent it.
pub struct VisitorMessage {
    /// The same at every attempt.
    pub message_id: String,
    pub body: String,
    /// A recording or file: `contentType` and `data` in base64.
    pub media: Option<Value>,
}

impl App {
    /// The web chat of an agent.
    pub fn web_chat(&self, agent: &AgentId) -> Result<WebChat, AppError> {
        let spec = self.agent_spec(agent);
        let chat = spec.and_then(|spec| WebChat::of(agent, &spec));
        chat.ok_or(AppError::NotFound(ResourceKind::Agent))
    }

    /// A new visitor, with the token to come back with.
    pub fn new_visitor(&self, chat: &WebChat) -> (Visitor, Secret) {
        let (id, token) = self.inner.links.issue_visitor_token(&chat.agent);
        (visitor(chat, id), token)
    }

    /// The visitor with this token; `None` if this host did not issue it for the agent.
    pub fn known_visitor(&self, chat: &WebChat, token: &str) -> Option<Visitor> {
        let id = self.inner.links.verify_visitor_token(&chat.agent, token);
        id.map(|id| visitor(chat, id))
    }

    /// Delivers a message of a visitor, as the API delivers those of users. Also says what the agent tells
    /// somebody whose message was refused.
    pub async fn deliver_visitor_message(
        &self,
        visitor: &Visitor,
        message: VisitorMessage,
    ) -> Result<(DeliveryStatus, Option<String>), AppError> {
        check(&message)?;
        let source = InboundSource {
            owner: visitor.owner.clone(),
            transport: WEB_TRANSPORT.to_owned(),
            client_id: Some(visitor.id.as_str().to_owned()),
            runtime: self.runtime().clone(),
        };
        let new = NewInbound {
            agent: visitor.agent.clone(),
            message_id: Some(visitor.claimed_id(&message.message_id)),
            from: visitor.id.as_str().to_owned(),
            body: message.body,
            kind: None,
            display_name: None,
            quoted_id: None,
            relayed: false,
            media: message.media,
            sent_at: None,
            waits: false,
        };
        let DeliveredMessage { status, .. } = self.deliver(&source, new).await?;
        let texts = self.agent_spec(&visitor.agent);
        let texts = texts.as_ref().map(|agent| &agent.texts);
        let notice = match status {
            DeliveryStatus::RateLimited => texts.map(|texts| texts.rate_limit.clone()),
            DeliveryStatus::Overloaded => texts.and_then(|texts| texts.overload.clone()),
            _ => None,
        };
        Ok((status, notice))
    }

    /// A recording or file of a session of the visitor.
    pub async fn read_visitor_media(
        &self,
        visitor: &Visitor,
        session: &SessionId,
        media: &MediaId,
    ) -> Result<Option<MediaContent>, Fault> {
        let runtime = self.runtime();
        let found = runtime.read_session(session).await?;
        let is_own = found.is_some_and(|found| {
            let start = found.start();
            start.agent_id == visitor.agent
                && start.transport == WEB_TRANSPORT
                && start.address == visitor.id.as_str()
                && Partition::from(&start.owner) == Partition::from(&visitor.owner)
        });
        match is_own {
            true => runtime.read_media(session, media).await,
            false => Ok(None),
        }
    }

    /// Follows the newest session of a visitor, and each one that begins after it.
    pub fn follow_visitor(
        &self,
        visitor: Visitor,
        cursor: Option<VisitorCursor>,
        stopping: watch::Receiver<bool>,
    ) -> VisitorFollower {
        let user = user_id(
            &Partition::from(&visitor.owner),
            &visitor.agent,
            visitor.id.as_str(),
        );
        let user = StreamId::of_chat_user(&user);
        VisitorFollower {
            bell: self.runtime().bell().listen(&user),
            app: self.clone(),
            connected_at: self.now(),
            user,
            visitor,
            cursor,
            is_stale: true,
            session: None,
            follower: None,
            stopping,
        }
    }

    /// The visitor's newest session, ended or not.
    async fn newest_session_of(&self, visitor: &Visitor) -> Result<Option<SessionId>, Fault> {
        let filter = SessionFilter {
            workspace: visitor.owner.workspace.clone(),
            agent: Some(visitor.agent.clone()),
            user_external_id: Some(visitor.id.as_str().to_owned()),
            active: None,
        };
        let first = ListingPage {
            after: None,
            limit: 1,
        };
        let store = self.runtime().store();
        let tenant = &visitor.owner.tenant;
        let listing = store.list_sessions(tenant, &filter, &first).await?;
        let newest = listing.and_then(|listing| listing.rows.into_iter().next());
        Ok(newest.map(|row| row.session_id))
    }
}

fn visitor(chat: &WebChat, id: VisitorId) -> Visitor {
    Visitor {
        agent: chat.agent.clone(),
        owner: chat.owner.clone(),
        id,
    }
}

fn check(message: &VisitorMessage) -> Result<(), AppError> {
    let id = &message.message_id;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if id.is_empty() || id.len() > MAX_MESSAGE_ID_CHARS || !id.chars().all(is_plain) {
        let text = "must have 1 to 100 letters, digits, '-', '_' and '.'";
        return Err(AppError::invalid("/messageId", text));
    }
    if message.body.trim().is_empty() && message.media.is_none() {
        return Err(AppError::invalid("/body", "must not be empty"));
    }
    if message.body.chars().count() > MAX_TEXT_CHARS {
        let text = format!("must have at most {MAX_TEXT_CHARS} characters");
        return Err(AppError::invalid("/body", text));
    }
    Ok(())
}

/// What a client has seen already.
#[derive(Debug, Clone)]
pub struct VisitorCursor {
    pub session: SessionId,
    pub after: Seq,
}

/// Reads the sessions of a visitor as they grow.
pub struct VisitorFollower {
    app: App,
    visitor: Visitor,
    connected_at: Timestamp,
    /// Rings when a session of the visitor begins or ends.
    bell: watch::Receiver<u64>,
    user: StreamId,
    cursor: Option<VisitorCursor>,
    /// Whether another session may have begun.
    is_stale: bool,
    session: Option<SessionId>,
    /// `None` once the session has ended.
    follower: Option<SessionFollower>,
    stopping: watch::Receiver<bool>,
}

/// What a visitor's client has to know next.
pub enum VisitorUpdate {
    /// All that follows is of this session. Events up to `after` were seen before.
    Session {
        start: Box<SessionStart>,
        after: Option<Seq>,
        /// The history begins after its first events.
        is_shortened: bool,
    },
    /// With their room in memory, when they are many bytes.
    Events(Vec<Recorded<SessionEvent>>, Option<Arc<HeldShare>>),
    Piece(AnswerPiece),
    /// Everything that there is was returned, and nothing arrived before the deadline.
    TimedOut,
    Draining,
}

impl VisitorFollower {
    /// The session that is followed.
    pub fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    /// Waits for what comes next.
    pub async fn next(&mut self, until: Instant) -> Result<VisitorUpdate, Fault> {
        loop {
            if self.is_stale
                && let Some(begun) = self.find_session().await?
            {
                return Ok(begun);
            }
            tokio::select! {
                rung = self.bell.changed() => {
                    self.is_stale = true;
                    if rung.is_err() {
                        self.bell = self.app.runtime().bell().listen(&self.user);
                    }
                }
                update = next_of_session(&mut self.follower, until) => match update? {
                    SessionUpdate::Events(events, room) => {
                        return Ok(VisitorUpdate::Events(events, room));
                    }
                    SessionUpdate::Piece(piece) => return Ok(VisitorUpdate::Piece(piece)),
                    SessionUpdate::Draining => return Ok(VisitorUpdate::Draining),
                    SessionUpdate::Ended => self.follower = None,
                    SessionUpdate::TimedOut => {
                        // Another process may have begun a session.
                        self.is_stale = true;
                        return Ok(VisitorUpdate::TimedOut);
                    }
                },
                () = wait_until_stopping(&mut self.stopping) => return Ok(VisitorUpdate::Draining),
            }
        }
    }

    /// Looks for a session that is newer than the one followed.
    async fn find_session(&mut self) -> Result<Option<VisitorUpdate>, Fault> {
        self.bell.mark_unchanged();
        let newest = self.app.newest_session_of(&self.visitor).await?;
        let newest = newest.filter(|newest| self.session.as_ref() != Some(newest));
        let runtime = self.app.runtime();
        let found = match &newest {
            Some(newest) => runtime.read_session(newest).await?,
            None => None,
        };
        // Nothing waits from here on: whoever gives up this future before it looks again.
        self.is_stale = false;
        let Some((newest, found)) = newest.zip(found) else {
            return Ok(None);
        };
        let seen = self.cursor.take().filter(|seen| seen.session == newest);
        let after = seen.map(|seen| seen.after);
        let oldest = found.head().0.saturating_sub(HISTORY_EVENTS);
        let first = after.map_or(oldest, |after| after.0.saturating_sub(LOOK_BACK_EVENTS));
        let before_first = first.checked_sub(1).map(Seq);
        let stopping = self.stopping.clone();
        let has_begun_since = found.started_at() >= self.connected_at;
        let start = found.start();
        let follower =
            SessionFollower::new(&self.app, start, before_first, has_begun_since, stopping);
        self.follower = Some(follower);
        self.session = Some(newest);
        Ok(Some(VisitorUpdate::Session {
            start: Box::new(found.start().clone()),
            after,
            is_shortened: first > 0,
        }))
    }
}

/// The next update of a session; without one, only the deadline.
async fn next_of_session(
    follower: &mut Option<SessionFollower>,
    until: Instant,
) -> Result<SessionUpdate, Fault> {
    match follower {
        Some(follower) => follower.next(until).await,
        None => {
            tokio::time::sleep_until(until).await;
            Ok(SessionUpdate::TimedOut)
        }
    }
}
