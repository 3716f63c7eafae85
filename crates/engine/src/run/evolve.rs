//! Folds events into the state. Never fails, never appends, never reads a clock.

use crate::definition::ChannelTrigger;
use crate::graph::channel;
use crate::node::Kind;
use crate::run::state::{
    Artifact, Cancelling, Draining, NodeState, Phase, PublishedDecision, Run, State, Suspension,
};
use std::sync::Arc;
use tandem_record::{
    ClosedInterrupt, Event, Interrupt, NodeId, NodeStatus, RecordedEvent, RunId, RunStatus, Size,
    Timestamp,
};

impl Run {
    /// Applies the next event of the log and returns its size.
    pub fn evolve(&mut self, recorded: &RecordedEvent) -> Size {
        debug_assert_eq!(
            recorded.seq,
            self.next_seq(),
            "events fold in order, without gaps"
        );
        self.state.head = Some(recorded.seq);
        self.state.last_at = self.state.last_at.max(recorded.at);
        self.apply(recorded);
        if let Some(node) = recorded.event.node()
            && let Some(ix) = self.def.index(node)
        {
            self.state.nodes[ix].last = Some(recorded.seq);
        }
        self.add_event_size(&recorded.event)
    }

    fn apply(&mut self, recorded: &RecordedEvent) {
        let at = recorded.at;
        match &recorded.event {
            Event::RunStarted {
                request,
                engine_version,
                variables,
                ..
            } => {
                let state = &mut self.state;
                state.phase = Phase::Running;
                state.created_at = at;
                state.untrusted = request.untrusted_inputs.iter().cloned().collect();
                state.request = Some(request.clone());
                state.engine_version = *engine_version;
                state.variables = variables.clone();
            }
            Event::RunPauseRequested { reason } => {
                self.state.draining = Some(Draining {
                    reason: reason.clone(),
                });
            }
            Event::RunPaused { interrupted, .. } => {
                self.state.phase = Phase::Paused;
                self.state.draining = None;
                self.state.paused_at = Some(at);
                for node in interrupted {
                    self.with_node(node, NodeState::mark_cut_off);
                }
            }
            Event::RunResumed { .. } => {
                self.state.phase = Phase::Running;
                if let Some(paused_at) = self.state.paused_at.take() {
                    self.extend_limits_after_pause(paused_at, at);
                }
            }
            Event::RunCancelRequested {
                reason,
                by,
                by_parent,
            } => {
                self.state.phase = Phase::Cancelling;
                self.state.draining = None;
                self.state.paused_at = None;
                self.state.cancelling = Some(Cancelling {
                    reason: reason.clone(),
                    by: by.clone(),
                    by_parent: by_parent.clone(),
                });
            }
            Event::RunCompleted { outputs, .. } => {
                self.state.outputs = Some(outputs.clone());
                self.end(Phase::Completed, at);
            }
            Event::RunFailed {
                error, failed_node, ..
            } => {
                self.state.error = Some(error.clone());
                self.state.failed_node.clone_from(failed_node);
                self.end(Phase::Failed, at);
            }
            Event::RunCancelled { .. } => self.end(Phase::Cancelled, at),
            event => self.apply_to_nodes(event, recorded),
        }
    }

    fn end(&mut self, phase: Phase, at: Timestamp) {
        self.state.phase = phase;
        self.state.ended_at = Some(at);
        self.state.draining = None;
        self.state.paused_at = None;
        self.state.armed.clear();
    }

    fn apply_to_nodes(&mut self, event: &Event, recorded: &RecordedEvent) {
        let at = recorded.at;
        match event {
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
                if let Some(trigger) = trigger {
                    self.state.armed.remove(trigger);
                    *self.state.fired.entry(trigger.clone()).or_default() += 1;
                }
                for reset in resets {
                    self.with_node(reset, NodeState::reset);
                }
                self.state.executions += 1;
                if let Some(ix) = self.def.index(node) {
                    let agent = &self.def.doc_node(ix).agent;
                    let supervises = matches!(self.def.nodes[ix].kind, Kind::Supervisor(_));
                    if supervises {
                        self.state.agents.reasoning = None;
                    }
                    if supervises && self.state.agents.orchestrator.is_none() {
                        self.state.agents.orchestrator.clone_from(agent);
                    }
                    if agent.is_some() && !supervises {
                        self.state.agent.clone_from(agent);
                    }
                    if supervises {
                        self.begin_iteration(ix, *attempt, recorded.seq);
                    }
                }
                self.with_node(node, |n| {
                    n.reset();
                    n.status = NodeStatus::Running;
                    n.attempt = *attempt;
                    n.execution = execution + 1;
                    n.started_at = Some(at);
                    n.work.clone_from(work);
                    n.deadline = *deadline;
                });
            }
            Event::NodeCompleted {
                node,
                outputs,
                cost,
                child,
                untrusted,
                returned,
                ..
            } => {
                self.set_newest_child_status(node, *child);
                self.return_descendants(*returned);
                self.settle(node, NodeStatus::Completed, at);
                self.with_node(node, |n| {
                    n.outputs = Some(Arc::new(outputs.clone()));
                    n.untrusted = *untrusted;
                });
                for (name, value) in cost.iter().flatten() {
                    self.add_cost(name, value);
                }
            }
            Event::NodeFailed {
                node,
                error,
                child,
                returned,
                ..
            } => {
                self.set_newest_child_status(node, *child);
                self.return_descendants(*returned);
                self.with_triggers_of(node, |state, trigger| {
                    // The node was refused before it started: the trigger has been used.
                    if state.nodes[trigger.node].status == NodeStatus::Pending {
                        state.armed.remove(&trigger.id);
                    }
                });
                self.settle(node, NodeStatus::Failed, at);
                self.with_node(node, |n| n.error = Some(error.clone()));
            }
            Event::NodeRetried {
                node,
                attempt,
                delay_ms,
                last_error,
            } => self.with_node(node, |n| {
                n.attempt = *attempt;
                n.retry_at = Some(at.plus_ms(*delay_ms));
                n.error = Some(last_error.clone());
                n.drop_work();
                // A retried verification keeps the time limit of its node.
                let lasting = n.verifying.is_some();
                n.deadline = n.deadline.filter(|due| lasting && *due > at);
            }),
            Event::NodeSkipped { node, reason } => {
                self.settle(node, NodeStatus::Skipped, at);
                self.with_node(node, |n| n.skipped = Some(reason.clone()));
            }
            Event::NodeCancelled {
                node,
                child,
                returned,
                ..
            } => {
                self.set_newest_child_status(node, *child);
                self.return_descendants(*returned);
                self.close_open_question(node, at);
                self.settle(node, NodeStatus::Cancelled, at);
            }
            Event::NodeDispatched {
                node,
                child,
                workflow_id,
                granted,
            } => {
                let named = (child.clone(), workflow_id.clone());
                self.record_child(node.clone(), named, *granted, recorded.seq);
            }
            Event::InterruptRequested { node, interrupt } => self.with_node(node, |n| {
                n.suspended = Some(Suspension::new((**interrupt).clone(), recorded.seq));
            }),
            Event::NodeSuspended {
                node,
                interrupt,
                kind,
                key,
                status,
                mirrors,
                data,
                child,
                ..
            } => {
                match child {
                    Some(child) => self.set_child_status(child, *status),
                    None => self.set_newest_child_status(node, Some(*status)),
                }
                let mirrored = mirrors.as_ref().map(|mirrors| {
                    let interrupt = Interrupt {
                        id: interrupt.clone(),
                        kind: kind.clone(),
                        key: key.clone(),
                        data: data.clone().unwrap_or_default(),
                        resume_schema: None,
                        timeout_ms: None,
                        requested_at: at,
                        due: None,
                        priority: None,
                    };
                    Suspension {
                        status: *status,
                        mirrors: Some(mirrors.clone()),
                        child: child.clone(),
                        ..Suspension::new(interrupt, recorded.seq)
                    }
                });
                self.with_node(node, |n| {
                    let waits_already = n.status == NodeStatus::Suspended;
                    n.status = NodeStatus::Suspended;
                    match mirrored {
                        // Another child of the node waits already; its wait stays first.
                        Some(further) if waits_already => {
                            n.also_waiting.push(further);
                            return;
                        }
                        Some(first) => n.suspended = Some(first),
                        None => {}
                    }
                    if let Some(open) = &mut n.suspended {
                        open.status = *status;
                    }
                });
            }
            Event::ApprovalReceived {
                node,
                decision,
                redo,
            } => {
                if let (Some(redo), Some(refine)) = (redo, &decision.refine) {
                    self.state.feedback.insert(redo.clone(), refine.clone());
                }
                self.count_vote(node, decision, at);
            }
            Event::InterruptResolved { node, resolution } => {
                self.consume_early_event(resolution);
                let outcome = resolution.outcome.clone();
                let (asked_at, due) = self.question_times(node).unzip();
                let overdue = resolution.reason.as_deref() == Some("timeout");
                self.state.closed.push(ClosedInterrupt {
                    interrupt: resolution.interrupt.clone(),
                    node: node.clone(),
                    outcome: outcome.unwrap_or_else(|| "resolved".to_owned()),
                    by: resolution.by.clone(),
                    // The deadline decided, however late its timer fired.
                    at: due.flatten().filter(|_| overdue).unwrap_or(at),
                    asked_at,
                    overdue,
                });
            }
            Event::NodeResumed {
                node, interrupt, ..
            } => self.resume(node, interrupt.as_ref()),
            Event::VariableChanged {
                name,
                next,
                untrusted,
                ..
            } => {
                self.mark(name, *untrusted);
                match next {
                    Some(value) => self.state.variables.insert(name.clone(), value.clone()),
                    None => self.state.variables.remove(name),
                };
            }
            Event::ChannelWritten {
                channel,
                value,
                reducer,
                ttl_ms,
                max_size,
                mirrored,
                untrusted,
                ..
            } => {
                let (current, slot) = self.take_channel(channel);
                slot.value = channel::fold(current, value, reducer, *ttl_ms, *max_size, at);
                slot.mirrored |= *mirrored;
                self.mark(channel, *untrusted);
            }
            Event::ArtifactCreated {
                artifact_id,
                artifact_type,
                node,
                content,
            } => self.state.artifacts.push(Artifact {
                id: artifact_id.clone(),
                kind: artifact_type.clone(),
                node: node.clone(),
                created_at: at,
                content: content.clone(),
            }),
            Event::OrchestratorDecided {
                node,
                agent_id,
                decision,
                iteration,
                ..
            } => {
                let agents = &mut self.state.agents;
                let named = || serde_json::json!({"agentId": agent_id});
                agents.orchestrator.get_or_insert_with(named);
                agents.decisions += 1;
                agents.verdict = None;
                agents.decided = Some(PublishedDecision {
                    seq: recorded.seq,
                    node: node.clone(),
                    agent_id: agent_id.clone(),
                    decision: decision.clone(),
                    iteration: *iteration,
                });
            }
            Event::Agent(agent_event) => self.apply_agent_event(agent_event),
            Event::VerificationRequested(request) => self.apply_verification_request(request),
            Event::ModelRetried(retry) => {
                self.with_node(&retry.node, |n| n.work = Some(retry.work.clone()));
            }
            Event::ModelAnswered(answered) => self.count_tokens(answered),
            Event::OutputChunk(chunk) => self.with_node(&chunk.node, |n| n.apply_output_chunk(at)),
            Event::FanOut { node, .. } => self.begin_dispatching(node),
            Event::Handoff(handoff) => self.hand_off(handoff, recorded.seq),
            Event::TriggerArmed { trigger, due } => {
                self.state.armed.insert(trigger.clone(), *due);
            }
            Event::LoopbackLimitReached { node, limit, .. } => {
                self.with_triggers_of(node, |state, trigger| {
                    if let Some(fired) = state.fired.get_mut(&trigger.id)
                        && *fired >= *limit
                    {
                        *fired += 1;
                        state.armed.remove(&trigger.id);
                    }
                });
            }
            Event::InterruptEscalated { .. }
            | Event::InterruptReminded { .. }
            | Event::DecisionDenied { .. }
            | Event::ConversationOpened { .. }
            | Event::ConversationExchanged { .. }
            | Event::ConversationClosed { .. }
            | Event::ExternalEventReceived { .. } => self.apply_to_questions(event, recorded),
            Event::CapBreached { .. }
            | Event::ConfidenceEscalated { .. }
            | Event::FanIn { .. }
            | Event::ApprovalRequested { .. }
            | Event::ClarificationRequested { .. }
            | Event::ClarificationResolved { .. }
            | Event::ApprovalQuestioned { .. }
            | Event::ModelCapabilityInsufficient { .. }
            | Event::MemoryWritten { .. }
            | Event::MemoryDeleted { .. }
            | Event::MemoryCompacted { .. }
            | Event::ReplayDiverged { .. }
            | Event::ReplayDivergedAtRefusal(_)
            | Event::Envelope(_)
            | Event::LogAppended { .. } => {}
            Event::RunStarted { .. }
            | Event::RunPauseRequested { .. }
            | Event::RunPaused { .. }
            | Event::RunResumed { .. }
            | Event::RunCancelRequested { .. }
            | Event::RunCompleted { .. }
            | Event::RunFailed { .. }
            | Event::RunCancelled { .. } => unreachable!("handled by apply"),
        }
    }

    pub(super) fn with_node(&mut self, node: &NodeId, change: impl FnOnce(&mut NodeState)) {
        // A log names a node its definition lacks only if it was tampered with; folding continues.
        if let Some(ix) = self.def.index(node) {
            change(&mut self.state.nodes[ix]);
        }
    }

    pub(super) fn set_child_status(&mut self, child: &RunId, status: RunStatus) {
        let head = self.state.head;
        let children = self.state.children.iter_mut().rev();
        if let Some(known) = children.into_iter().find(|c| c.run_id == *child) {
            known.status = status;
            if status.is_terminal() {
                known.ended = head;
            }
        }
    }

    /// Sets the status of the newest child of the node that started it.
    pub(super) fn set_newest_child_status(&mut self, node: &NodeId, status: Option<RunStatus>) {
        let head = self.state.head;
        let children = self.state.children.iter_mut().rev();
        if let Some(status) = status
            && let Some(child) = children.into_iter().find(|c| c.node == *node)
        {
            child.status = status;
            if status.is_terminal() {
                child.ended = head;
            }
        }
    }

    fn with_triggers_of(&mut self, node: &NodeId, change: impl Fn(&mut State, &ChannelTrigger)) {
        let ix = self.def.index(node);
        let def = Arc::clone(&self.def);
        for trigger in def.triggers.iter().filter(|t| Some(t.node) == ix) {
            change(&mut self.state, trigger);
        }
    }

    fn settle(&mut self, node: &NodeId, status: NodeStatus, at: Timestamp) {
        self.with_node(node, |n| {
            n.status = status;
            n.ended_at = Some(at);
            n.work = None;
            n.deadline = None;
            n.retry_at = None;
            n.suspended = None;
            n.also_waiting.clear();
            n.dispatching = None;
            n.verifying = None;
            n.cut_off = false;
            n.error = None;
        });
    }

    pub(super) fn add_cost(&mut self, name: &str, value: &serde_json::Value) {
        let sum = match (self.state.cost.get(name), value) {
            (Some(old), new) if old.is_number() && new.is_number() => {
                channel::fold(Some(old.clone()), new, "counter", None, None, Timestamp(0))
            }
            _ => value.clone(),
        };
        self.state.cost.insert(name.to_owned(), sum);
    }
}
