//! Takeovers from the chats of networks: a desk that answers users from its own chat, and people who answer from the
//! agent's own account.

use super::inbound::{DeliveredMessage, DeliveryStatus, InboundSource, NewInbound, message_id};
use super::networks::identity_of;
use super::rights::AdminCall;
use super::submit_error;
use super::takeover::{MESSAGE, TakeoverMessage};
use crate::app::App;
use crate::error::{AppError, ResourceKind};
use std::collections::BTreeMap;
use tandem_record::conversation::{EscalationMode, EscalationRecord, EscalationStatus};
use tandem_record::{AgentId, MessageId, Owner, SessionId};
use tandem_runtime::conversation::{
    AgentSpec, AuthzDenial, ChatSignal, CommandLine, HitlTarget, OwnAccountMessage, SessionRefusal,
    TakeoverAdapter, is_target, shown_view, takeover_short_id,
};
use tandem_runtime::{EscalationFilter, ListingPage, ProxyRow, SessionFilter};

/// Takeovers among which a message of a desk is matched.
const MAX_TAKEOVERS: usize = 100;
const NOT_ALLOWED: &str = "Not delivered: you may not write to this user.";
const TO_WHOM: &str = "Not delivered: say to whom";
const OVER: &str = "Not delivered: the agent has the conversation again.";

/// A takeover that is under way.
struct OpenTakeover {
    record: EscalationRecord,
    session: SessionId,
    user: String,
}

impl App {
    /// Whether a message from the chat where the desk sits begins with the mark of a takeover.
    pub(super) async fn names_takeover(
        &self,
        source: &InboundSource,
        new: &NewInbound,
        agent: &AgentSpec,
    ) -> Result<bool, AppError> {
        let (Some(name), _) = addressed(&new.body) else {
            return Ok(false);
        };
        if desk_of(agent, &source.transport, &new.from).is_none() {
            return Ok(false);
        }
        let open = self.open_takeovers(source, &new.agent).await?;
        let mut marks = open.iter().map(|open| takeover_short_id(&open.record.id));
        Ok(marks.any(|mark| mark == name))
    }

    /// What the desk is told whose message names nobody, where it may be for its bridge or for a takeover (Z-110). `None`
    /// where no takeover is under way there.
    pub(super) async fn takeovers_beside(
        &self,
        source: &InboundSource,
        new: &NewInbound,
        agent: &AgentSpec,
        bridge: &ProxyRow,
    ) -> Result<Option<String>, AppError> {
        if desk_of(agent, &source.transport, &new.from).is_none() {
            return Ok(None);
        }
        let open = self.open_takeovers(source, &new.agent).await?;
        let of_bridge = (
            bridge.proxy_id.short().to_owned(),
            bridge.user_external_id.clone(),
        );
        let marks = [of_bridge].into_iter().chain(marks(&open));
        Ok((!open.is_empty()).then(|| unclear(TO_WHOM, marks)))
    }

    /// A message from the chat where the desk sits is the person's, while there is a takeover it can belong to.
    /// `None` for every other message.
    pub(super) async fn deliver_from_desk(
        &self,
        source: &InboundSource,
        new: &NewInbound,
        agent: &AgentSpec,
    ) -> Result<Option<DeliveredMessage>, AppError> {
        let Some(target) = desk_of(agent, &source.transport, &new.from) else {
            return Ok(None);
        };
        // A desk gives its commands like other admins.
        if CommandLine::parse(&new.body).is_some() {
            return Ok(None);
        }
        let open = self.open_takeovers(source, &new.agent).await?;
        if open.is_empty() {
            return Ok(None);
        }
        let (named, text) = addressed(&new.body);
        let mut matching = open.iter().filter(|takeover| {
            named.is_none_or(|name| name == takeover_short_id(&takeover.record.id))
        });
        let outcome = match (matching.next(), matching.next()) {
            (Some(takeover), None) => {
                self.send_from_desk(source, new, target, takeover, text)
                    .await?
            }
            (None, _) => Some(unclear("There is no such conversation", marks(&open))),
            (Some(_), Some(_)) => Some(unclear(TO_WHOM, marks(&open))),
        };
        if let Some(problem) = outcome {
            let place = (&new.agent, new.from.as_str());
            self.tell_sender(source, place, &problem).await;
        }
        Ok(Some(DeliveredMessage {
            session: None,
            turn_id: None,
            status: DeliveryStatus::Processed,
            outbound: Vec::new(),
        }))
    }

    /// Why the text was not delivered, if it was not.
    async fn send_from_desk(
        &self,
        source: &InboundSource,
        new: &NewInbound,
        target: &HitlTarget,
        takeover: &OpenTakeover,
        text: &str,
    ) -> Result<Option<String>, AppError> {
        let caller = identity_of(&new.agent, &source.transport, &source.owner);
        let call = AdminCall {
            caller: &caller,
            headers: BTreeMap::new(),
            show_session: shown_view,
            chat: Some(ChatSignal {
                transport: &source.transport,
                address: &new.from,
            }),
        };
        let session = &takeover.session;
        let right = match self.takeover_right_in(&call, MESSAGE, session).await {
            Ok(right) => right,
            Err(AppError::AdminDenied(_)) => return Ok(Some(NOT_ALLOWED.to_owned())),
            Err(error) => return Err(error),
        };
        let allowed = target.allowed_actors.as_ref();
        if allowed.is_some_and(|allowed| !allowed.contains(&right.actor.id)) {
            self.record_in_session(session, right.decision).await?;
            return Ok(Some(NOT_ALLOWED.to_owned()));
        }
        let id = message_id(new, new.sent_at.unwrap_or_else(|| self.now()));
        let message = TakeoverMessage {
            // The id is the network's, not the desk's own.
            message_id: format!("{}:{id}", source.transport)
                .chars()
                .take(256)
                .collect(),
            text: text.to_owned(),
        };
        match self
            .submit_takeover_message(&call, session, right, message)
            .await
        {
            Ok(_) => Ok(None),
            Err(AppError::SessionRefused(SessionRefusal::NoTakeover | SessionRefusal::Ended)) => {
                Ok(Some(OVER.to_owned()))
            }
            Err(AppError::AdminDenied(AuthzDenial::Forbidden)) => Ok(Some(NOT_ALLOWED.to_owned())),
            // An empty text, or one that is too long.
            Err(error @ AppError::Invalid(_)) => Ok(Some(format!("Not delivered: {error}."))),
            Err(error) => Err(error),
        }
    }

    /// Takeovers of an agent that the entry point may reach.
    async fn open_takeovers(
        &self,
        source: &InboundSource,
        agent: &AgentId,
    ) -> Result<Vec<OpenTakeover>, AppError> {
        let filter = EscalationFilter {
            workspace: source.owner.workspace.clone(),
            status: Some(EscalationStatus::Open),
            agent: Some(agent.clone()),
            ..EscalationFilter::default()
        };
        let page = ListingPage {
            limit: MAX_TAKEOVERS,
            after: None,
        };
        let store = self.runtime().store();
        let tenant = &source.owner.tenant;
        let found = store.list_escalations(tenant, &filter, &page).await?;
        let rows = found.map(|listing| listing.rows).unwrap_or_default();
        let open = rows.into_iter().filter_map(|row| {
            let record: EscalationRecord = serde_json::from_str(&row.body).ok()?;
            let is_takeover = record.mode == EscalationMode::LiveTakeover;
            is_takeover.then_some(OpenTakeover {
                record,
                session: row.session_id,
                user: row.user_external_id,
            })
        });
        Ok(open.collect())
    }

    /// Records an answer that somebody gave from the agent's own account, in the user's session. Somebody without one
    /// begins it by this. An echo of what this host sent itself is none.
    pub(super) async fn note_external_reply(
        &self,
        agent: &AgentId,
        transport: &str,
        owner: &Owner,
        reply: OwnAccountMessage,
    ) -> Result<(), AppError> {
        let spec = self.ready_agent(agent)?;
        if is_target(&spec, transport, &reply.to) {
            // A desk is no user.
            return Ok(());
        }
        let active = self.newest_session(agent, owner, &reply.to, true).await?;
        let runtime = self.runtime();
        let session = match active {
            Some(active) => active,
            None => {
                let last = self.newest_session(agent, owner, &reply.to, false).await?;
                if let Some(last) = last
                    && let Some(last) = runtime.read_session(&last).await?
                    && last.sent_itself(&reply.message_id, &reply.to, &reply.body, self.now())
                {
                    return Ok(());
                }
                let opened = runtime.open_session(agent, owner, transport, &reply.to);
                let opened = opened.await;
                opened.map_err(|error| submit_error(error, ResourceKind::Agent))?
            }
        };
        let id = MessageId::new(&reply.message_id);
        let recorded = runtime
            .record_external_reply(&session, transport, &id, reply.body, reply.sent_at)
            .await;
        match recorded.map_err(|error| submit_error(error, ResourceKind::Session))? {
            Ok(_) | Err(SessionRefusal::Ended) => Ok(()),
            Err(refusal) => Err(refusal.into()),
        }
    }

    async fn newest_session(
        &self,
        agent: &AgentId,
        owner: &Owner,
        user: &str,
        is_active: bool,
    ) -> Result<Option<SessionId>, AppError> {
        let filter = SessionFilter {
            workspace: owner.workspace.clone(),
            agent: Some(agent.clone()),
            user_external_id: Some(user.to_owned()),
            active: Some(is_active),
        };
        let first = ListingPage {
            after: None,
            limit: 1,
        };
        let store = self.runtime().store();
        let listing = store.list_sessions(&owner.tenant, &filter, &first).await?;
        let newest = listing.and_then(|listing| listing.rows.into_iter().next());
        Ok(newest.map(|row| row.session_id))
    }
}

/// The target of takeovers that has this address, if the agent names one.
fn desk_of<'a>(agent: &'a AgentSpec, transport: &str, address: &str) -> Option<&'a HitlTarget> {
    let Some(TakeoverAdapter::Target(key)) = &agent.hitl.takeover.adapter else {
        return None;
    };
    let targets = &agent.hitl.targets;
    let fallback = |target: &&'a HitlTarget| targets.get(target.fallback_target.as_ref()?);
    let chain = std::iter::successors(targets.get(key), fallback);
    // A chain that leads back is refused when the agent is loaded.
    let mut chain = chain.take(targets.len());
    chain.find(|target| target.transport == transport && target.address == address)
}

/// The takeover that a text names with `#id` before it.
fn addressed(body: &str) -> (Option<&str>, &str) {
    let text = body.trim();
    let Some(rest) = text.strip_prefix('#') else {
        return (None, text);
    };
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (name, text) = rest.split_at(end);
    match name.is_empty() {
        true => (None, body.trim()),
        false => (Some(name), text.trim_start()),
    }
}

/// The mark of each takeover, with the user.
fn marks(open: &[OpenTakeover]) -> impl Iterator<Item = (String, String)> {
    open.iter()
        .map(|open| (takeover_short_id(&open.record.id), open.user.clone()))
}

fn unclear(why: &str, marks: impl Iterator<Item = (String, String)>) -> String {
    let names = marks.take(20).map(|(mark, user)| format!("#{mark} {user}"));
    let names: Vec<String> = names.collect();
    format!("{why}. Begin with one of: {}", names.join(", "))
}
