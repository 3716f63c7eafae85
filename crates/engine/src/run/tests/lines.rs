//! Events and effects as one line each: the name, the node, and what matters about it.

use crate::run::Birth;
use serde_json::Value;
use tandem_record::{
    ChildOutcome, ChunkPiece, Effect, EffectKind, EnvelopeStep, ErrorInfo, Event, HandoffStep,
    Judged, Object, Recorded, Said, TimerKey, Timestamp, ToolAsk, Work,
};

pub(super) fn event(recorded: &Recorded) -> String {
    let line = Line(String::new());
    let at = recorded.at;
    match &recorded.event {
        Event::RunStarted { variables, .. } => line.word("run.started").object(variables),
        Event::RunPauseRequested { .. } => line.word("run.pause-requested"),
        Event::RunPaused { interrupted, .. } => line
            .word("run.paused")
            .words(interrupted.iter().map(|node| format!("cut-off={node}"))),
        Event::RunResumed { .. } => line.word("run.resumed"),
        Event::RunCancelRequested { .. } => line.word("run.cancel-requested"),
        Event::RunCompleted { outputs, .. } => line.word("run.completed").object(outputs),
        Event::RunFailed {
            error, failed_node, ..
        } => line.word("run.failed").error(error).words(failed_node),
        Event::RunCancelled {
            reason, by_parent, ..
        } => line
            .word("run.cancelled")
            .words(reason)
            .words(by_parent.iter().map(|parent| format!("by {parent}"))),
        Event::NodeStarted {
            node,
            attempt,
            execution,
            work,
            deadline,
            resets,
            trigger,
            ..
        } => {
            let resets: Vec<&str> = resets.iter().map(|n| n.as_str()).collect();
            line.word("node.started")
                .word(node)
                .number("attempt", *attempt)
                .number("execution", *execution)
                .words(work.as_ref().map(|work| waits(work, at)))
                .words(deadline.map(|d| format!("deadline=+{}", d.ms_since(at))))
                .words((!resets.is_empty()).then(|| format!("resets={}", resets.join(","))))
                .words(trigger.iter().map(|t| format!("trigger={t}")))
        }
        Event::NodeCompleted {
            node,
            outputs,
            cost,
            ..
        } => line
            .word("node.completed")
            .word(node)
            .object(outputs)
            .words(cost.iter().map(|c| format!("cost={}", text(c)))),
        Event::NodeFailed {
            node,
            error,
            attempts,
            ..
        } => line
            .word("node.failed")
            .word(node)
            .error(error)
            .words((*attempts > 1).then(|| format!("attempts={attempts}"))),
        Event::NodeRetried {
            node,
            attempt,
            delay_ms,
            last_error,
        } => line
            .word("node.retried")
            .word(node)
            .error(last_error)
            .number("attempt", *attempt)
            .word(format!("delay={delay_ms}")),
        Event::NodeSkipped { node, reason } => line.word("node.skipped").word(node).word(reason),
        Event::NodeCancelled { node, reason, .. } => {
            line.word("node.cancelled").word(node).word(reason)
        }
        Event::NodeDispatched {
            node, workflow_id, ..
        } => line.word("node.dispatched").word(node).word(workflow_id),
        Event::InterruptRequested { node, .. } => line.word("interrupt.requested").word(node),
        Event::ApprovalRequested { node, .. } => line.word("approval.requested").word(node),
        Event::ClarificationRequested { node, .. } => {
            line.word("clarification.requested").word(node)
        }
        Event::ApprovalReceived { node, decision, .. } => line
            .word("approval.received")
            .word(node)
            .word(&decision.action)
            .words(&decision.voter),
        Event::ClarificationResolved { node, answers, .. } => line
            .word("clarification.resolved")
            .word(node)
            .object(answers),
        Event::ApprovalQuestioned { node, question, .. } => {
            line.word("approval.questioned").word(node).word(question)
        }
        Event::InterruptEscalated {
            node,
            level,
            groups,
            deadline,
            ..
        } => line
            .word("interrupt.escalated")
            .word(node)
            .word(format!("level={level}"))
            .words(groups)
            .word(format!("due=+{}", deadline.ms_since(at))),
        Event::InterruptReminded {
            node, count, next, ..
        } => line
            .word("interrupt.reminded")
            .word(node)
            .word(format!("count={count}"))
            .words(next.map(|next| format!("due=+{}", next.ms_since(at)))),
        Event::DecisionDenied { node, by, why, .. } => line
            .word("decision.denied")
            .word(node)
            .words(by)
            .word(why.as_str()),
        Event::ConversationOpened { node, turn, .. } => line
            .word("conversation.opened")
            .word(node)
            .word(&turn["content"]),
        Event::ConversationExchanged { node, turn, .. } => line
            .word("conversation.exchanged")
            .word(node)
            .word(&turn["turnIndex"])
            .word(&turn["content"]),
        Event::ConversationClosed {
            node,
            turn,
            outcome,
            ..
        } => line
            .word("conversation.closed")
            .word(node)
            .word(&turn["turnIndex"])
            .words(outcome),
        Event::ExternalEventReceived {
            event_id,
            event_type,
            ..
        } => line.word("event.received").word(event_id).word(event_type),
        Event::NodeSuspended { node, status, .. } => {
            line.word("node.suspended").word(node).word(status.as_str())
        }
        Event::InterruptResolved { node, .. } => line.word("interrupt.resolved").word(node),
        Event::NodeResumed { node, .. } => line.word("node.resumed").word(node),
        Event::VariableChanged {
            name,
            previous,
            next,
            ..
        } => {
            let side = |value: &Option<Value>| {
                let value = value.as_ref();
                value.map_or_else(|| "unset".to_owned(), Value::to_string)
            };
            line.word("variable.changed").word(format!(
                "{name}: {} -> {}",
                side(previous),
                side(next)
            ))
        }
        Event::ChannelWritten {
            channel,
            value,
            reducer,
            ..
        } => line
            .word("channel.written")
            .word(channel)
            .word(reducer)
            .word(value),
        Event::CapBreached {
            kind,
            limit,
            observed,
            node,
        } => line
            .word("cap.breached")
            .word(kind.as_str())
            .word(format!("{observed}>{limit}"))
            .words(node),
        Event::ArtifactCreated {
            artifact_id,
            artifact_type,
            ..
        } => line
            .word("artifact.created")
            .word(artifact_id)
            .word(artifact_type),
        Event::ModelCapabilityInsufficient { node, .. } => {
            line.word("model.capability.insufficient").word(node)
        }
        Event::ModelAnswered(told) => line
            .word("model.answered")
            .word(&told.node)
            .word(format!("round={}", told.round)),
        Event::OutputChunk(told) => line
            .word("output.chunk")
            .word(&told.node)
            .word(match &told.piece {
                ChunkPiece::Text(text) => format!("{text:?}"),
                ChunkPiece::ToolCall { id, .. } => format!("call={id}"),
            })
            .words(told.end.map(|end| {
                let usage = end.usage;
                let (prompt, completion) = (usage.prompt_tokens, usage.completion_tokens);
                format!("{} {prompt}+{completion}", end.finish.as_str())
            })),
        Event::ModelAskedAgain(retry) => line
            .word("envelope.retry.attempted")
            .word(&retry.node)
            .word(format!("attempt={}", retry.attempt))
            .word(retry.reason.as_str()),
        Event::Envelope(fact) => envelope(line, &fact.what).word(&fact.node),
        Event::ReplayDivergedAtRefusal(told) => line
            .word("replay.diverged-at-refusal")
            .word(&told.node)
            .word(format!("{:?}", told.kinds())),
        Event::LoopbackLimitReached {
            node, iterations, ..
        } => line
            .word("loopback-limit")
            .word(node)
            .word(format!("iterations={iterations}")),
        Event::MemoryWritten { node, entry } => line
            .word("memory.written")
            .word(node)
            .word(format!("{}={}", entry.key, entry.value)),
        Event::MemoryForgotten {
            node, forgotten, ..
        } => line.word("memory.forgotten").word(node).word(forgotten),
        Event::MemoryCompacted {
            node,
            output,
            sources,
        } => line.word("memory.compacted").word(node).word(format!(
            "{}={}",
            sources.join("+"),
            output.value
        )),
        Event::ReplayDiverged { sequence, kind, .. } => line
            .word("replay.diverged")
            .word(format!("{sequence} {kind}")),
        Event::TriggerArmed { trigger, due } => line
            .word("trigger.armed")
            .word(trigger)
            .word(format!("due=+{}", due.ms_since(at))),
        Event::Agent(fact) => agent(line, &fact.agent_id, &fact.said),
        Event::OrchestratorDecided {
            node,
            decision,
            iteration,
            ..
        } => line
            .word("decided")
            .word(node)
            .word(format!("#{iteration}"))
            .word(decision["kind"].as_str().unwrap_or("?")),
        Event::ConfidenceEscalated {
            confidence,
            floor,
            worker,
            ..
        } => line
            .word("escalated")
            .word(format!("{confidence}<{floor}"))
            .words(worker),
        Event::Handoff(handoff) => {
            let line = line.word(handoff.step.phase()).word(&handoff.worker);
            match &handoff.step {
                HandoffStep::Harvested { keys, .. } => line.words(keys),
                HandoffStep::Failed { error } | HandoffStep::ChildFailed { error, .. } => {
                    line.error(error)
                }
                _ => line,
            }
        }
        Event::VerificationAsked(asked) => line
            .word("critic.asked")
            .word(&asked.node)
            .word(&asked.agent_id)
            .word(waits(&asked.work, at)),
        Event::FanOut { children, join, .. } => line.word("fan-out").word(children).word(join),
        Event::FanIn {
            outcome,
            completed,
            failed,
            cancelled,
            ..
        } => line
            .word("fan-in")
            .word(outcome.as_str())
            .word(format!("{completed}/{failed}/{cancelled}")),
        Event::LogAppended { message, .. } => line.word("log").word(message),
    }
    .0
}

fn agent(line: Line, agent: &str, said: &Said) -> Line {
    let line = line.word(agent);
    match said {
        Said::Reasoned { reasoning, .. } => line.word("reasoned").word(reasoning),
        Said::ReasoningDelta { delta, sequence } => {
            line.word(format!("delta[{sequence}]")).word(delta)
        }
        Said::ToolCalled { tool, .. } => line.word("called").word(tool),
        Said::ToolReturned { tool, error, .. } => {
            let line = line.word("returned").word(tool);
            line.words(error.as_ref().map(|e| &e.code))
        }
        Said::HandedOff { to, .. } => line.word("hands off to").word(to),
        Said::Decided { confidence, .. } => line.word("decided").words(confidence),
        Said::Verified {
            judged,
            verdict,
            criteria,
            ..
        } => line
            .word("verified")
            .word(match judged {
                Judged::Decision { decided } => format!("event {decided}"),
                Judged::Output { index, .. } => format!("worker {index}"),
            })
            .word(verdict.as_str())
            .words(criteria),
    }
}

fn envelope(line: Line, step: &EnvelopeStep) -> Line {
    match step {
        EnvelopeStep::Refused(_) => line.word("envelope.refusal"),
        EnvelopeStep::Truncated { .. } => line.word("envelope.truncated"),
        EnvelopeStep::Recovered { path, .. } => line.word("envelope.recovered").word(path.as_str()),
        EnvelopeStep::Exhausted {
            attempts, reason, ..
        } => line
            .word("envelope.exhausted")
            .word(attempts)
            .word(reason.as_str()),
    }
}

/// A new effect, marked so that it is not taken for an event.
pub(super) fn effect(effect: &Effect) -> String {
    match &effect.kind {
        EffectKind::Http {
            node,
            attempt,
            request,
        } => format!(
            "> http {node} {} {} attempt={attempt}",
            request.method, request.url
        ),
        EffectKind::Model {
            node,
            attempt,
            request,
            ..
        } => format!(
            "> model {node} {}/{} messages={} budget={:?} attempt={attempt}",
            request.provider,
            request.model,
            request.messages.len(),
            request.max_output_tokens
        ),
        EffectKind::Tool {
            node,
            attempt,
            request,
        } => {
            let asked = match &request.ask {
                ToolAsk::Call { tool, arguments } => format!("{tool} {}", text(arguments)),
                ToolAsk::List { cursor } => format!("list {cursor:?}"),
                ToolAsk::Read { uri } => format!("read {uri}"),
            };
            format!("> tool {node} {}/{asked} attempt={attempt}", request.server)
        }
        EffectKind::Pack {
            node,
            attempt,
            call,
        } => format!(
            "> pack {node} {} {} attempt={attempt}",
            call.type_id,
            text(&call.inputs)
        ),
        EffectKind::SecretEcho {
            node, secret_id, ..
        } => format!("> secret {node} {secret_id}"),
        EffectKind::NotifyParent { node, outcome, .. } => match outcome {
            ChildOutcome::Ended {
                status, variables, ..
            } => format!(
                "> tell parent {node} {} {}",
                status.as_str(),
                text(variables)
            ),
            ChildOutcome::Waiting { .. } => format!("> tell parent {node} waiting"),
            ChildOutcome::Resumed { .. } => format!("> tell parent {node} resumed"),
        },
        EffectKind::CancelChild { .. } => "> cancel child".to_owned(),
        EffectKind::Announce { .. } => "> announce".to_owned(),
        EffectKind::Continue => "> continue".to_owned(),
    }
}

/// A child that comes into being.
pub(super) fn birth(birth: &Birth) -> String {
    format!(
        "> start {} {} erased={:?}{}",
        birth.definition.id(),
        text(&birth.request.inputs),
        birth.request.erased_defaults,
        if birth.given_up { " given up" } else { "" }
    )
}

pub(super) fn timer(key: &TimerKey) -> String {
    match key {
        TimerKey::RunDeadline => "run-deadline".to_owned(),
        TimerKey::NodeWake { node, attempt } => format!("wake {node} {attempt}"),
        TimerKey::NodeDeadline { node, attempt } => format!("deadline {node} {attempt}"),
        TimerKey::InterruptDeadline { node } => format!("interrupt {node}"),
        TimerKey::Trigger { id } => format!("trigger {id}"),
    }
}

fn waits(work: &Work, at: Timestamp) -> String {
    match work {
        Work::Sleep { until, .. } => format!("sleep={}", until.ms_since(at)),
        Work::Http { .. } => "http".to_owned(),
        Work::Model { mock: Some(_), .. } => "mock".to_owned(),
        Work::Model { .. } => "model".to_owned(),
        Work::Tool { .. } => "tool".to_owned(),
        Work::SecretEcho { .. } => "secret".to_owned(),
        Work::Pack { pack, .. } => pack.clone(),
        Work::Child { .. } => "child".to_owned(),
    }
}

fn text(object: &Object) -> String {
    Value::Object(object.clone()).to_string()
}

struct Line(String);

impl Line {
    fn word(mut self, word: impl ToString) -> Self {
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        self.0.push_str(&word.to_string());
        self
    }

    fn words(self, words: impl IntoIterator<Item: ToString>) -> Self {
        words.into_iter().fold(self, Self::word)
    }

    /// Left out when it is zero, the ordinary case.
    fn number(self, name: &str, n: u32) -> Self {
        self.words((n > 0).then(|| format!("{name}={n}")))
    }

    fn object(self, object: &Object) -> Self {
        self.words((!object.is_empty()).then(|| text(object)))
    }

    fn error(self, error: &ErrorInfo) -> Self {
        self.word(&error.code)
    }
}
