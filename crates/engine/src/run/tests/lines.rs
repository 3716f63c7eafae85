//! Events and effects as one line each: the name, the node, and the important details.

use serde_json::Value;
use tandem_record::{
    AgentEventKind, ChunkPiece, EnvelopeEventKind, ErrorInfo, Event, HandoffStep, Object,
    RecordedEvent, VerificationSubject,
};

mod effects;

use effects::waits;
pub(super) use effects::{effect, new_child, timer};

pub(super) fn event(recorded: &RecordedEvent) -> String {
    let line = Line(String::new());
    let at = recorded.at;
    match &recorded.event {
        Event::RunStarted { variables, .. } => line.push("run.started").object(variables),
        Event::RunPauseRequested { .. } => line.push("run.pause-requested"),
        Event::RunPaused { interrupted, .. } => line
            .push("run.paused")
            .push_all(interrupted.iter().map(|node| format!("cut-off={node}"))),
        Event::RunResumed { .. } => line.push("run.resumed"),
        Event::RunCancelRequested { .. } => line.push("run.cancel-requested"),
        Event::RunCompleted { outputs, .. } => line.push("run.completed").object(outputs),
        Event::RunFailed {
            error, failed_node, ..
        } => line.push("run.failed").error(error).push_all(failed_node),
        Event::RunCancelled {
            reason, by_parent, ..
        } => line
            .push("run.cancelled")
            .push_all(reason)
            .push_all(by_parent.iter().map(|parent| format!("by {parent}"))),
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
            line.push("node.started")
                .push(node)
                .number("attempt", *attempt)
                .number("execution", *execution)
                .push_all(work.as_ref().map(|work| waits(work, at)))
                .push_all(deadline.map(|d| format!("deadline=+{}", d.ms_since(at))))
                .push_all((!resets.is_empty()).then(|| format!("resets={}", resets.join(","))))
                .push_all(trigger.iter().map(|t| format!("trigger={t}")))
        }
        Event::NodeCompleted {
            node,
            outputs,
            cost,
            ..
        } => line
            .push("node.completed")
            .push(node)
            .object(outputs)
            .push_all(cost.iter().map(|c| format!("cost={}", text(c)))),
        Event::NodeFailed {
            node,
            error,
            attempts,
            ..
        } => line
            .push("node.failed")
            .push(node)
            .error(error)
            .push_all((*attempts > 1).then(|| format!("attempts={attempts}"))),
        Event::NodeRetried {
            node,
            attempt,
            delay_ms,
            last_error,
        } => line
            .push("node.retried")
            .push(node)
            .error(last_error)
            .number("attempt", *attempt)
            .push(format!("delay={delay_ms}")),
        Event::NodeSkipped { node, reason } => line.push("node.skipped").push(node).push(reason),
        Event::NodeCancelled { node, reason, .. } => {
            line.push("node.cancelled").push(node).push(reason)
        }
        Event::NodeDispatched {
            node, workflow_id, ..
        } => line.push("node.dispatched").push(node).push(workflow_id),
        Event::InterruptRequested { node, .. } => line.push("interrupt.requested").push(node),
        Event::ApprovalRequested { node, .. } => line.push("approval.requested").push(node),
        Event::ClarificationRequested { node, .. } => {
            line.push("clarification.requested").push(node)
        }
        Event::ApprovalReceived { node, decision, .. } => line
            .push("approval.received")
            .push(node)
            .push(&decision.action)
            .push_all(&decision.voter),
        Event::ClarificationResolved { node, answers, .. } => line
            .push("clarification.resolved")
            .push(node)
            .object(answers),
        Event::ApprovalQuestioned { node, question, .. } => {
            line.push("approval.questioned").push(node).push(question)
        }
        Event::InterruptEscalated {
            node,
            level,
            groups,
            deadline,
            ..
        } => line
            .push("interrupt.escalated")
            .push(node)
            .push(format!("level={level}"))
            .push_all(groups)
            .push(format!("due=+{}", deadline.ms_since(at))),
        Event::InterruptReminded {
            node, count, next, ..
        } => line
            .push("interrupt.reminded")
            .push(node)
            .push(format!("count={count}"))
            .push_all(next.map(|next| format!("due=+{}", next.ms_since(at)))),
        Event::DecisionDenied { node, by, why, .. } => line
            .push("decision.denied")
            .push(node)
            .push_all(by)
            .push(why.as_str()),
        Event::ConversationOpened { node, turn, .. } => line
            .push("conversation.opened")
            .push(node)
            .push(&turn["content"]),
        Event::ConversationExchanged { node, turn, .. } => line
            .push("conversation.exchanged")
            .push(node)
            .push(&turn["turnIndex"])
            .push(&turn["content"]),
        Event::ConversationClosed {
            node,
            turn,
            outcome,
            ..
        } => line
            .push("conversation.closed")
            .push(node)
            .push(&turn["turnIndex"])
            .push_all(outcome),
        Event::ExternalEventReceived {
            event_id,
            event_type,
            ..
        } => line.push("event.received").push(event_id).push(event_type),
        Event::NodeSuspended { node, status, .. } => {
            line.push("node.suspended").push(node).push(status.as_str())
        }
        Event::InterruptResolved { node, .. } => line.push("interrupt.resolved").push(node),
        Event::NodeResumed { node, .. } => line.push("node.resumed").push(node),
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
            line.push("variable.changed").push(format!(
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
            .push("channel.written")
            .push(channel)
            .push(reducer)
            .push(value),
        Event::CapBreached {
            kind,
            limit,
            observed,
            node,
        } => line
            .push("cap.breached")
            .push(kind.as_str())
            .push(format!("{observed}>{limit}"))
            .push_all(node),
        Event::ArtifactCreated {
            artifact_id,
            artifact_type,
            ..
        } => line
            .push("artifact.created")
            .push(artifact_id)
            .push(artifact_type),
        Event::ModelCapabilityInsufficient { node, .. } => {
            line.push("model.capability.insufficient").push(node)
        }
        Event::ModelAnswered(answered) => line
            .push("model.answered")
            .push(&answered.node)
            .push(format!("round={}", answered.round)),
        Event::OutputChunk(chunk) => line
            .push("output.chunk")
            .push(&chunk.node)
            .push(match &chunk.piece {
                ChunkPiece::Text(text) => format!("{text:?}"),
                ChunkPiece::ToolCall { id, .. } => format!("call={id}"),
            })
            .push_all(chunk.end.map(|end| {
                let usage = end.usage;
                let (prompt, completion) = (usage.prompt_tokens, usage.completion_tokens);
                format!("{} {prompt}+{completion}", end.finish.as_str())
            })),
        Event::ModelRetried(retry) => line
            .push("envelope.retry.attempted")
            .push(&retry.node)
            .push(format!("attempt={}", retry.attempt))
            .push(retry.reason.as_str()),
        Event::Envelope(envelope_event) => {
            envelope(line, &envelope_event.kind).push(&envelope_event.node)
        }
        Event::ReplayDivergedAtRefusal(divergence) => line
            .push("replay.diverged-at-refusal")
            .push(&divergence.node)
            .push(format!("{:?}", divergence.kinds())),
        Event::LoopbackLimitReached {
            node, iterations, ..
        } => line
            .push("loopback-limit")
            .push(node)
            .push(format!("iterations={iterations}")),
        Event::MemoryWritten { node, entry } => line
            .push("memory.written")
            .push(node)
            .push(format!("{}={}", entry.key, entry.value)),
        Event::MemoryDeleted {
            node, forgotten, ..
        } => line.push("memory.forgotten").push(node).push(forgotten),
        Event::MemoryCompacted {
            node,
            output,
            sources,
        } => line.push("memory.compacted").push(node).push(format!(
            "{}={}",
            sources.join("+"),
            output.value
        )),
        Event::ReplayDiverged { sequence, kind, .. } => line
            .push("replay.diverged")
            .push(format!("{sequence} {kind}")),
        Event::TriggerArmed { trigger, due } => line
            .push("trigger.armed")
            .push(trigger)
            .push(format!("due=+{}", due.ms_since(at))),
        Event::Agent(agent_event) => agent(line, &agent_event.agent_id, &agent_event.kind),
        Event::OrchestratorDecided {
            node,
            decision,
            iteration,
            ..
        } => line
            .push("decided")
            .push(node)
            .push(format!("#{iteration}"))
            .push(decision["kind"].as_str().unwrap_or("?")),
        Event::ConfidenceEscalated {
            confidence,
            floor,
            worker,
            ..
        } => line
            .push("escalated")
            .push(format!("{confidence}<{floor}"))
            .push_all(worker),
        Event::Handoff(handoff) => {
            let line = line.push(handoff.step.phase()).push(&handoff.worker);
            match &handoff.step {
                HandoffStep::Harvested { keys, .. } => line.push_all(keys),
                HandoffStep::Failed { error } | HandoffStep::ChildFailed { error, .. } => {
                    line.error(error)
                }
                _ => line,
            }
        }
        Event::VerificationRequested(request) => line
            .push("critic.asked")
            .push(&request.node)
            .push(&request.agent_id)
            .push(waits(&request.work, at)),
        Event::FanOut { children, join, .. } => line.push("fan-out").push(children).push(join),
        Event::FanIn {
            outcome,
            completed,
            failed,
            cancelled,
            ..
        } => line
            .push("fan-in")
            .push(outcome.as_str())
            .push(format!("{completed}/{failed}/{cancelled}")),
        Event::LogAppended { message, .. } => line.push("log").push(message),
        Event::Flow(_) => line.push("flow record"),
    }
    .0
}

fn agent(line: Line, agent: &str, kind: &AgentEventKind) -> Line {
    let line = line.push(agent);
    match kind {
        AgentEventKind::Reasoned { reasoning, .. } => line.push("reasoned").push(reasoning),
        AgentEventKind::ReasoningDelta { delta, sequence } => {
            line.push(format!("delta[{sequence}]")).push(delta)
        }
        AgentEventKind::ToolCalled { tool, .. } => line.push("called").push(tool),
        AgentEventKind::ToolReturned { tool, error, .. } => {
            let line = line.push("returned").push(tool);
            line.push_all(error.as_ref().map(|e| &e.code))
        }
        AgentEventKind::HandedOff { to, .. } => line.push("hands off to").push(to),
        AgentEventKind::Decided { confidence, .. } => line.push("decided").push_all(confidence),
        AgentEventKind::Verified {
            verification_subject,
            verdict,
            criteria,
            ..
        } => line
            .push("verified")
            .push(match verification_subject {
                VerificationSubject::Decision { decided } => format!("event {decided}"),
                VerificationSubject::Output { index, .. } => format!("worker {index}"),
            })
            .push(verdict.as_str())
            .push_all(criteria),
    }
}

fn envelope(line: Line, step: &EnvelopeEventKind) -> Line {
    match step {
        EnvelopeEventKind::Refused(_) => line.push("envelope.refusal"),
        EnvelopeEventKind::Truncated { .. } => line.push("envelope.truncated"),
        EnvelopeEventKind::Recovered { path, .. } => {
            line.push("envelope.recovered").push(path.as_str())
        }
        EnvelopeEventKind::Exhausted {
            attempts, reason, ..
        } => line
            .push("envelope.exhausted")
            .push(attempts)
            .push(reason.as_str()),
    }
}

fn text(object: &Object) -> String {
    Value::Object(object.clone()).to_string()
}

struct Line(String);

impl Line {
    fn push(mut self, word: impl ToString) -> Self {
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        self.0.push_str(&word.to_string());
        self
    }

    fn push_all(self, words: impl IntoIterator<Item: ToString>) -> Self {
        words.into_iter().fold(self, Self::push)
    }

    /// Left out when it is zero, the usual case.
    fn number(self, name: &str, n: u32) -> Self {
        self.push_all((n > 0).then(|| format!("{name}={n}")))
    }

    fn object(self, object: &Object) -> Self {
        self.push_all((!object.is_empty()).then(|| text(object)))
    }

    fn error(self, error: &ErrorInfo) -> Self {
        self.push(&error.code)
    }
}
