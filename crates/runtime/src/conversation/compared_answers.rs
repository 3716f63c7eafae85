//! What an agent would have said where a person spoke in its place.
//!
//! Each text of a person during a takeover answers messages of the user. The log up to the first of them is folded
//! again, as if nobody had taken over, and goes on in memory with the user's messages, in order: what the agent would have
//! said to the first is what it remembers at the second. Nothing of it is stored, sent or counted. The agent's model and
//! functions are called; tools answer with what they answered in this session, and fail where they were not asked the same.

mod detached_session;
mod exchanges;

use super::recorded_tools::RecordedTools;
use super::session_machine::SessionMachine;
use super::settings::SessionSettings;
use crate::runtime::Runtime;
use detached_session::DetachedSession;
use exchanges::{Exchange, Exchanges};
use std::collections::VecDeque;
use std::time::Duration;
use tandem_record::conversation::{InboundMessage, LedgerMessage};
use tandem_record::{EscalationId, SessionId, StreamId};
use tandem_store::{Fault, PageLimit};
use tokio::time::Instant;

/// The last ones of a session are compared.
pub const MAX_COMPARED: usize = 20;
/// How long one answer may take, and all of them together.
const ANSWER_TIME: Duration = Duration::from_secs(60);
const TOTAL_TIME: Duration = Duration::from_secs(240);
const PAGE: PageLimit = PageLimit {
    events: 1024,
    bytes: 1024 * 1024,
};

/// What a person said, beside what the agent would have said.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedAnswer {
    pub escalation: EscalationId,
    /// Messages of the user that are answered.
    pub messages: Vec<InboundMessage>,
    /// Texts of the person, in order.
    pub human: Vec<LedgerMessage>,
    pub agent: AgentAnswer,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentAnswer {
    pub texts: Vec<String>,
    /// What it would have done besides, in order: flows it would have started, tools it would have called.
    pub actions: Vec<String>,
    /// Why there is no whole answer.
    pub error: Option<String>,
}

impl Runtime {
    /// `None` for a session without events.
    pub async fn compare_answers(
        &self,
        session: &SessionId,
    ) -> Result<Option<Vec<ComparedAnswer>>, Fault> {
        let Some(conversations) = self.conversations() else {
            return Ok(None);
        };
        let settings = &conversations.sessions.settings;
        let (mut exchanges, mut tools) = (Exchanges::default(), RecordedTools::default());
        let mut after = None;
        loop {
            let page = self.session_events(session, after, PAGE).await?;
            let Some(last) = page.events.last() else {
                break;
            };
            after = Some(last.seq);
            for event in &page.events {
                exchanges.evolve(event);
                tools.evolve(event);
            }
        }
        tools.read_flows(self).await?;
        let until = Instant::now() + TOTAL_TIME;
        let mut compared = Vec::new();
        for takeover in by_takeover(exchanges.finish()) {
            let mut agent = self
                .agent_before(settings, session, &takeover, &tools)
                .await?;
            for exchange in takeover {
                let answer = match &mut agent {
                    Ok(agent) => self.answer_of_agent(agent, &exchange, until).await?,
                    Err(why) => AgentAnswer::failed(why),
                };
                compared.extend(exchange.escalation.map(|escalation| ComparedAnswer {
                    escalation,
                    messages: exchange.messages,
                    human: exchange.human,
                    agent: answer,
                }));
            }
        }
        Ok(Some(compared))
    }

    /// The session as it was before the user's first message during a takeover. `Err` says why there is none.
    async fn agent_before<'a>(
        &'a self,
        settings: &'a SessionSettings,
        session: &SessionId,
        takeover: &[Exchange],
        tools: &'a RecordedTools,
    ) -> Result<Result<DetachedSession<'a>, &'static str>, Fault> {
        let stream = StreamId::of_session(session);
        let fresh = SessionMachine::unstarted(&stream);
        let before = takeover.first().and_then(|exchange| exchange.before);
        let folded = self.fold_stream(&stream, fresh, |_| None, before).await?;
        let Some(folded) = folded.machine.shared_session().filter(|_| before.is_some()) else {
            return Ok(Err("the session had not begun"));
        };
        let Some(agent) = settings.agents.agent(&folded.start().agent_id) else {
            return Ok(Err("the agent is not loaded"));
        };
        let of = (&stream, &*folded);
        Ok(Ok(DetachedSession::new(self, settings, agent, tools, of)))
    }

    async fn answer_of_agent(
        &self,
        agent: &mut DetachedSession<'_>,
        exchange: &Exchange,
        until: Instant,
    ) -> Result<AgentAnswer, Fault> {
        let Some(message) = exchange.message() else {
            return Ok(AgentAnswer::failed("the user wrote nothing"));
        };
        let until = until.min(Instant::now() + ANSWER_TIME);
        let answered = tokio::time::timeout_at(until, agent.answer(message)).await;
        let mut answer = agent.take_answer();
        match answered {
            Ok(answered) => answered?,
            Err(_) => answer.error = Some("no answer in time".to_owned()),
        }
        let texts = answer.texts.iter_mut().chain(&mut answer.actions);
        let texts = texts.chain(&mut answer.error);
        texts.for_each(|text| self.redact_in_place(text));
        Ok(answer)
    }
}

/// Those of one takeover after those of the one before it.
fn by_takeover(exchanges: VecDeque<Exchange>) -> Vec<Vec<Exchange>> {
    let mut takeovers: Vec<Vec<Exchange>> = Vec::new();
    for exchange in exchanges {
        match takeovers.last_mut() {
            Some(last) if last[0].escalation == exchange.escalation => last.push(exchange),
            _ => takeovers.push(vec![exchange]),
        }
    }
    takeovers
}

impl AgentAnswer {
    fn failed(why: &str) -> Self {
        Self {
            error: Some(why.to_owned()),
            ..Self::default()
        }
    }
}
