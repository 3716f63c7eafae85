//! Folds events into the state. Never fails, never appends, never reads a clock.
//!
//! This file says which slices an event concerns. What it does to a slice is in the `fold.rs` of the
//! slice's folder.

mod across_slices;

use super::agents::PublishedDecision;
use super::scheduling::NodeStart;
use super::state::{Run, State};
use super::values::ChannelWritten;
use crate::definition::Definition;
use across_slices::MirroredWait;
use std::sync::Arc;
use tandem_record::{Event, Interrupt, NodeId, RecordedEvent, Size};

impl Run {
    /// Applies the next event of the log and returns its size.
    pub fn evolve(&mut self, recorded: &RecordedEvent) -> Size {
        debug_assert_eq!(
            recorded.seq,
            self.next_seq(),
            "events fold in order, without gaps"
        );
        let def = Arc::clone(&self.def);
        let state = &mut *self.state;
        state.head = Some(recorded.seq);
        state.last_at = state.last_at.max(recorded.at);
        state.apply(&def, recorded);
        if let Some(ix) = recorded.event.node().and_then(|node| def.index(node)) {
            state.scheduling.note_event(ix, recorded.seq);
        }
        self.add_event_size(&recorded.event)
    }
}

impl State {
    fn apply(&mut self, def: &Definition, recorded: &RecordedEvent) {
        let (seq, at) = (recorded.seq, recorded.at);
        // A log names a node its definition lacks only if it was tampered with; folding continues.
        let index = |node: &NodeId| def.index(node);
        match &recorded.event {
            Event::RunStarted {
                request,
                engine_version,
                variables,
                ..
            } => {
                self.lifecycle.start(request, *engine_version, at);
                self.values.start(variables, request);
            }
            Event::RunPauseRequested { reason } => self.lifecycle.drain(reason.as_ref()),
            Event::RunPaused { interrupted, .. } => {
                self.lifecycle.pause(at);
                for ix in interrupted.iter().filter_map(index) {
                    self.scheduling.cut_off(ix, self.agents.verifies(ix));
                }
            }
            Event::RunResumed { .. } => {
                if let Some(paused_ms) = self.lifecycle.resume(at) {
                    self.scheduling.extend_deadlines(paused_ms);
                    self.questions.extend_deadlines(paused_ms);
                }
            }
            Event::RunCancelRequested {
                reason,
                by,
                by_parent,
            } => {
                let lifecycle = &mut self.lifecycle;
                lifecycle.begin_cancel(reason.as_ref(), by.as_ref(), by_parent.as_ref());
            }
            Event::RunCompleted { outputs, .. } => {
                self.lifecycle.complete(outputs, at);
                self.scheduling.disarm_all();
            }
            Event::RunFailed {
                error, failed_node, ..
            } => {
                self.lifecycle.fail(error, failed_node.as_ref(), at);
                self.scheduling.disarm_all();
            }
            Event::RunCancelled { .. } => {
                self.lifecycle.cancel(at);
                self.scheduling.disarm_all();
            }
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
                for ix in resets.iter().filter_map(index) {
                    self.scheduling.reset(ix);
                    self.forget_waits(ix);
                }
                if let Some(ix) = index(node) {
                    let start = NodeStart {
                        attempt: *attempt,
                        execution: *execution,
                        work: work.as_ref(),
                        deadline: *deadline,
                        trigger: trigger.as_ref(),
                        at,
                    };
                    self.scheduling.start(ix, &start);
                    self.forget_waits(ix);
                    self.agents.node_started(def, ix, *attempt, seq);
                }
            }
            Event::NodeCompleted {
                node,
                outputs,
                cost,
                child,
                untrusted,
                ..
            } => {
                self.child_ended(node, *child, seq);
                if let Some(ix) = index(node) {
                    self.scheduling.complete(ix, outputs, *untrusted, at);
                    self.forget_waits(ix);
                }
                self.lifecycle.add_costs(cost.as_ref());
            }
            Event::NodeFailed {
                node,
                error,
                child,
                ..
            } => {
                self.child_ended(node, *child, seq);
                if let Some(ix) = index(node) {
                    self.scheduling.fail(def, ix, error, at);
                    self.forget_waits(ix);
                }
            }
            Event::NodeRetried {
                node,
                attempt,
                delay_ms,
                last_error,
            } => {
                if let Some(ix) = index(node) {
                    let next = (*attempt, at.plus_ms(*delay_ms));
                    let verifies = self.agents.verifies(ix);
                    self.scheduling.retry(ix, next, last_error, verifies, at);
                }
            }
            Event::NodeSkipped { node, reason } => {
                if let Some(ix) = index(node) {
                    self.scheduling.skip(ix, reason, at);
                    self.forget_waits(ix);
                }
            }
            Event::NodeCancelled {
                node,
                child,
                ..
            } => {
                self.child_ended(node, *child, seq);
                if let Some(ix) = index(node) {
                    self.questions.close_cancelled(ix, node, at);
                    self.scheduling.cancel(ix, at);
                    self.forget_waits(ix);
                }
            }
            Event::NodeDispatched {
                node,
                child,
                workflow_id,
            } => {
                let lifecycle = &self.lifecycle;
                let inherited = lifecycle.is_replay() || seq < lifecycle.fork_point();
                let named = (child, workflow_id);
                self.children.record(node, named, (seq, inherited));
            }
            Event::InterruptRequested { node, interrupt } => {
                if let Some(ix) = index(node) {
                    self.questions.open(ix, interrupt, seq);
                }
            }
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
                let mirrored = mirrors.as_ref().map(|owner| MirroredWait {
                    owner,
                    interrupt: Interrupt {
                        id: interrupt.clone(),
                        kind: kind.clone(),
                        key: key.clone(),
                        data: data.clone().unwrap_or_default(),
                        resume_schema: None,
                        timeout_ms: None,
                        requested_at: at,
                        due: None,
                        priority: None,
                        hidden: None,
                    },
                });
                let named = (index(node), node);
                self.suspend_node(named, *status, child.as_ref(), mirrored, seq);
            }
            Event::ApprovalReceived {
                node,
                decision,
                redo,
            } => {
                if let (Some(redo), Some(refine)) = (redo, &decision.refine) {
                    self.questions.request_changes(redo, refine);
                }
                if let Some(ix) = index(node) {
                    self.questions.count_vote(ix, decision, at);
                }
            }
            Event::InterruptResolved { node, resolution } => {
                self.questions.resolve(index(node), node, resolution, at);
            }
            Event::NodeResumed {
                node, interrupt, ..
            } => {
                if let Some(ix) = index(node) {
                    self.resume_node(ix, node, interrupt.as_ref(), seq);
                }
            }
            Event::VariableChanged {
                name,
                next,
                untrusted,
                ..
            } => self.values.set_variable(name, next.as_ref(), *untrusted),
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
                let written = ChannelWritten {
                    channel,
                    value,
                    reducer,
                    ttl_ms: *ttl_ms,
                    max_size: *max_size,
                    mirrored: *mirrored,
                    untrusted: *untrusted,
                    at,
                };
                self.values.write_channel(def, &written);
            }
            Event::ArtifactCreated {
                artifact_id,
                artifact_type,
                node,
                content,
            } => {
                let named = (&**artifact_id, &**artifact_type);
                self.values.add_artifact(named, node, content, at);
            }
            Event::OrchestratorDecided {
                node,
                agent_id,
                decision,
                iteration,
                ..
            } => self.agents.publish(PublishedDecision {
                seq,
                node: node.clone(),
                agent_id: agent_id.clone(),
                decision: decision.clone(),
                iteration: *iteration,
            }),
            Event::Agent(agent_event) => {
                if let Some(ix) = index(&agent_event.node) {
                    self.apply_agent_event(def, ix, agent_event, seq);
                }
            }
            Event::VerificationRequested(request) => {
                if let Some(ix) = index(&request.node) {
                    self.agents.request_verification(ix, request);
                    self.scheduling.wait_for_verifier(ix, &request.work);
                }
            }
            Event::ModelRetried(retry) => {
                if let Some(ix) = index(&retry.node) {
                    self.scheduling.replace_work(ix, &retry.work);
                }
            }
            Event::ModelAnswered(answered) => self.lifecycle.count_tokens(answered),
            Event::OutputChunk(chunk) => {
                if let Some(ix) = index(&chunk.node) {
                    self.scheduling.record_output_chunk(ix, at);
                }
            }
            Event::FanOut { node, .. } => {
                if let Some(ix) = index(node) {
                    self.agents.begin_dispatching(ix);
                }
            }
            Event::Handoff(handoff) => {
                if let Some(ix) = index(&handoff.node)
                    && let Some((child, status)) = self.agents.hand_off(ix, handoff, seq)
                {
                    self.children.set_status(child, status, seq);
                }
            }
            Event::TriggerArmed { trigger, due } => self.scheduling.arm(trigger, *due),
            Event::LoopbackLimitReached { node, limit, .. } => {
                if let Some(ix) = index(node) {
                    self.scheduling.reach_loopback_limit(def, ix, *limit);
                }
            }
            Event::InterruptEscalated {
                node,
                level,
                deadline,
                ..
            } => {
                if let Some(ix) = index(node) {
                    self.questions.escalate(ix, *level, *deadline);
                }
            }
            Event::InterruptReminded {
                node, count, next, ..
            } => {
                if let Some(ix) = index(node) {
                    self.questions.remind(ix, *count, *next);
                }
            }
            Event::DecisionDenied { node, .. } => {
                if let Some(ix) = index(node) {
                    self.questions.count_denial(ix);
                }
            }
            Event::ConversationOpened { node, turn, .. }
            | Event::ConversationExchanged { node, turn, .. }
            | Event::ConversationClosed { node, turn, .. } => {
                if let Some(ix) = index(node) {
                    self.questions.add_turn(ix, turn);
                }
            }
            Event::ExternalEventReceived {
                event_id,
                event_type,
                payload,
                by,
            } => {
                let named = (&**event_id, &**event_type);
                self.questions.store_event(named, payload, by.as_ref(), seq);
            }
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
            | Event::LogAppended { .. }
            // A record of a flow run, which is another machine.
            | Event::Flow(_) => {}
        }
    }
}
