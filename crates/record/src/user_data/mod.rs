//! Which parts of a stored record are free text and data, and which are ids and names that connect
//! the parts of a run. The redactor changes only the text and data.
//!
//! The match over events is exhaustive and the structs in `parts.rs` name every field, so that a
//! new field does not compile until it is classified.

mod journal;
mod parts;

use crate::{
    Cause, ChildOutcome, Event, Interrupt, ModelRetry, Object, OutputChunk, RecordedEvent,
    RefusalDivergence, VerificationRequest, Vote,
};
use journal::of_record;
use parts::{
    of_agent, of_answered, of_decision, of_entry, of_envelope, of_error, of_handoff, of_piece,
    of_request, of_resolution, of_work, optional_text, optional_value, texts,
};
use serde_json::Value;

/// One place that contains text or data of a user, an author or a called service.
#[derive(Debug, PartialEq)]
pub enum UserData<'a> {
    Text(&'a mut String),
    Value(&'a mut Value),
    Object(&'a mut Object),
}

/// References in the order of the record.
pub type UserDataRefs<'a> = Vec<UserData<'a>>;

impl RecordedEvent {
    pub fn user_data(&mut self) -> UserDataRefs<'_> {
        let mut places = UserDataRefs::new();
        match &mut self.cause {
            // Either an id of ours or an id that a caller claimed.
            Some(Cause::External(event)) => places.push(UserData::Text(event)),
            Some(Cause::Foreign { event, host }) => {
                places.extend([UserData::Text(event), UserData::Text(host)]);
            }
            Some(Cause::Event(_)) | None => {}
        }
        self.event.add_user_data(&mut places);
        places
    }
}

impl Event {
    pub fn user_data(&mut self) -> UserDataRefs<'_> {
        let mut places = UserDataRefs::new();
        self.add_user_data(&mut places);
        places
    }

    fn add_user_data<'a>(&'a mut self, to: &mut UserDataRefs<'a>) {
        match self {
            Self::RunStarted {
                request, variables, ..
            } => {
                of_request(request, to);
                to.push(UserData::Object(variables));
            }
            Self::RunPauseRequested { reason }
            | Self::RunPaused { reason, .. }
            | Self::RunResumed { reason }
            | Self::RunCancelRequested { reason, .. }
            | Self::RunCancelled { reason, .. } => optional_text(reason, to),
            Self::RunCompleted { outputs, .. } => to.push(UserData::Object(outputs)),
            Self::RunFailed { error, .. }
            | Self::NodeFailed { error, .. }
            | Self::NodeRetried {
                last_error: error, ..
            } => of_error(error, to),
            Self::NodeStarted { work, .. } => work.iter_mut().for_each(|work| of_work(work, to)),
            Self::NodeCompleted { outputs, cost, .. } => {
                to.push(UserData::Object(outputs));
                to.extend(cost.as_mut().map(UserData::Object));
            }
            Self::NodeSkipped { reason, .. } | Self::NodeCancelled { reason, .. } => {
                to.push(UserData::Text(reason));
            }
            Self::InterruptRequested { interrupt, .. } => {
                let Interrupt {
                    id: _,
                    kind: _,
                    key: _,
                    data,
                    resume_schema,
                    timeout_ms: _,
                    requested_at: _,
                    due: _,
                    priority: _,
                    hidden,
                } = &mut **interrupt;
                to.push(UserData::Value(data));
                optional_value(hidden, to);
                optional_value(resume_schema, to);
            }
            Self::ApprovalRequested {
                title,
                actions,
                approvers,
                ..
            } => {
                to.push(UserData::Text(title));
                texts(actions, to);
                texts(approvers, to);
            }
            Self::ClarificationRequested { questions, .. } => to.push(UserData::Value(questions)),
            Self::ApprovalReceived { decision, .. } => of_decision(decision, to),
            Self::ClarificationResolved { answers, .. } => to.push(UserData::Object(answers)),
            Self::ApprovalQuestioned { question, .. } => to.push(UserData::Text(question)),
            Self::InterruptEscalated {
                approvers,
                groups,
                roles,
                ..
            } => {
                texts(approvers, to);
                texts(groups, to);
                texts(roles, to);
            }
            Self::ConversationOpened {
                turn,
                agent,
                participants,
                schema,
                ..
            } => {
                to.push(UserData::Value(turn));
                optional_text(agent, to);
                optional_value(participants, to);
                optional_value(schema, to);
            }
            Self::ConversationExchanged { turn, .. } => to.push(UserData::Value(turn)),
            Self::ConversationClosed { turn, outcome, .. } => {
                to.push(UserData::Value(turn));
                optional_value(outcome, to);
            }
            Self::ExternalEventReceived {
                event_id,
                event_type,
                payload,
                by: _,
            } => to.extend([
                UserData::Text(event_id),
                UserData::Text(event_type),
                UserData::Object(payload),
            ]),
            Self::NodeSuspended {
                reason,
                data,
                low_confidence,
                ..
            } => {
                optional_text(reason, to);
                optional_value(data, to);
                to.extend(
                    low_confidence
                        .as_mut()
                        .map(|d| UserData::Text(&mut d.agent_id)),
                );
            }
            Self::InterruptResolved { resolution, .. } => of_resolution(resolution, to),
            Self::NodeResumed { value, .. } => optional_value(value, to),
            Self::VariableChanged { previous, next, .. } => {
                optional_value(previous, to);
                optional_value(next, to);
            }
            Self::ChannelWritten { value, .. } => to.push(UserData::Value(value)),
            Self::ArtifactCreated { content, .. } => to.push(UserData::Value(content)),
            Self::ModelCapabilityInsufficient {
                provider,
                model,
                missing,
                ..
            } => {
                to.extend([UserData::Text(provider), UserData::Text(model)]);
                texts(missing, to);
            }
            Self::MemoryWritten { entry, .. } => of_entry(entry, to),
            Self::MemoryDeleted {
                memory_ref,
                forgotten,
                ..
            } => to.extend([UserData::Text(memory_ref), UserData::Text(forgotten)]),
            Self::MemoryCompacted { output, .. } => of_entry(output, to),
            Self::ReplayDivergedAtRefusal(divergence) => {
                let RefusalDivergence {
                    node: _,
                    source: _,
                    sequence: _,
                    source_refused: _,
                    reason,
                } = &mut **divergence;
                optional_text(reason, to);
            }
            Self::OutputChunk(chunk) => {
                let OutputChunk {
                    node: _,
                    piece,
                    model,
                    end: _,
                } = &mut **chunk;
                of_piece(piece, to);
                to.push(UserData::Text(model));
            }
            Self::ModelAnswered(answered) => of_answered(answered, to),
            Self::ModelRetried(retry) => {
                let ModelRetry {
                    node: _,
                    attempt: _,
                    reason: _,
                    error,
                    work,
                } = &mut **retry;
                optional_text(error, to);
                of_work(work, to);
            }
            Self::Envelope(envelope) => of_envelope(envelope, to),
            Self::Agent(agent_event) => of_agent(agent_event, to),
            Self::OrchestratorDecided {
                agent_id, decision, ..
            } => to.extend([UserData::Text(agent_id), UserData::Value(decision)]),
            Self::ConfidenceEscalated { decision, .. } => to.push(UserData::Value(decision)),
            Self::Handoff(handoff) => of_handoff(handoff, to),
            Self::VerificationRequested(request) => {
                let VerificationRequest {
                    node: _,
                    supervisor: _,
                    agent_id,
                    verification_subject: _,
                    work,
                } = &mut **request;
                to.push(UserData::Text(agent_id));
                of_work(work, to);
            }
            Self::LogAppended {
                level,
                message,
                fields,
                ..
            } => {
                to.extend([UserData::Text(level), UserData::Text(message)]);
                to.extend(fields.as_mut().map(UserData::Object));
            }
            Self::Flow(record) => of_record(record, to),
            Self::NodeDispatched { .. }
            | Self::InterruptReminded { .. }
            | Self::DecisionDenied { .. }
            | Self::CapBreached { .. }
            | Self::LoopbackLimitReached { .. }
            | Self::ReplayDiverged { .. }
            | Self::TriggerArmed { .. }
            | Self::FanOut { .. }
            | Self::FanIn { .. } => {}
        }
    }
}

impl ChildOutcome {
    pub fn user_data(&mut self) -> UserDataRefs<'_> {
        let mut to = UserDataRefs::new();
        match self {
            Self::Waiting { data, .. } => optional_value(data, &mut to),
            Self::Resumed { child: _ } => {}
            Self::Ended {
                child: _,
                status: _,
                variables,
                untrusted,
                error,
            } => {
                to.push(UserData::Object(variables));
                texts(untrusted, &mut to);
                error.iter_mut().for_each(|error| of_error(error, &mut to));
            }
        }
        to
    }
}

impl Vote {
    pub fn user_data(&mut self) -> UserDataRefs<'_> {
        let Self {
            voter,
            claimed_by,
            via_link: _,
            delegate,
            action: _,
            at: _,
            feedback,
        } = self;
        let mut to = vec![UserData::Text(voter)];
        optional_text(claimed_by, &mut to);
        optional_text(delegate, &mut to);
        optional_text(feedback, &mut to);
        to
    }
}
