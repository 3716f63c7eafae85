//! The effects of workflow runs: who performs each, and the command its result becomes.

use crate::conversation::NoticeOutcome;
use crate::leases::LeasedEffect;
use crate::runtime::Runtime;
use crate::webhooks::NotifyOutcome;
use tandem_record::conversation::{ParentNode, SessionCommand};
use tandem_record::{Command, EffectKind, EffectOutcome, NodeId, RunId, Seq, StreamId};
use tandem_store::Fault;

/// What performing an effect of a run gave.
pub enum RunOutcome {
    /// Of a call to the outside.
    Call(EffectOutcome),
    Callback(NotifyOutcome),
    Notice(NoticeOutcome),
    /// The effect is its own result, for a run of this host.
    Internal,
}

/// The run of a stream that the run machine drives.
pub(crate) fn run_of(stream: &StreamId) -> RunId {
    stream.run().expect("streams of runs are named after them")
}

/// The node of a run that an effect about its flow belongs to.
fn parent_node(
    work: &LeasedEffect,
    node: &NodeId,
    flow_run: &RunId,
    dispatched: Seq,
) -> ParentNode {
    ParentNode {
        run_id: run_of(&work.stream),
        node_id: node.clone(),
        flow_run_id: Some(flow_run.clone()),
        dispatched_at: dispatched,
    }
}

impl Runtime {
    pub(crate) async fn perform_run_effect(
        &self,
        work: &LeasedEffect,
    ) -> Result<RunOutcome, Fault> {
        let effect = &work.effect;
        let run = run_of(&work.stream);
        match &effect.kind {
            EffectKind::Http { .. }
            | EffectKind::Model { .. }
            | EffectKind::Tool { .. }
            | EffectKind::Pack { .. }
            | EffectKind::SecretEcho { .. } => {
                let programmed = self.programmed_outcome(&effect.id, &effect.kind);
                if let Some(outcome) = programmed.await? {
                    return Ok(RunOutcome::Call(outcome));
                }
                let trace = self.trace_of(&run).await?;
                let performer = &self.inner.config.performer;
                let outcome = performer.perform(&run, effect, trace.as_ref()).await;
                Ok(RunOutcome::Call(outcome))
            }
            EffectKind::NotifyCallback { interrupt, .. } => {
                let sent = self.send_announcement(&run, &effect.id, interrupt).await?;
                Ok(RunOutcome::Callback(sent))
            }
            EffectKind::NotifyPeople { .. } => {
                Ok(RunOutcome::Notice(self.tell_people(work).await?))
            }
            EffectKind::NotifyParent { .. }
            | EffectKind::NotifySession { .. }
            | EffectKind::AskSession { .. }
            | EffectKind::CloseSessionQuestion { .. }
            | EffectKind::CancelChild { .. }
            | EffectKind::StartFlow { .. }
            | EffectKind::CancelFlow { .. }
            | EffectKind::Continue => Ok(RunOutcome::Internal),
        }
    }

    pub(crate) async fn record_run_outcome(
        &self,
        work: &LeasedEffect,
        outcome: &RunOutcome,
    ) -> Result<(), Fault> {
        let (to, command) = match (&work.effect.kind, outcome) {
            (EffectKind::NotifyCallback { interrupt, tries }, RunOutcome::Callback(outcome)) => {
                return self
                    .record_announcement(work, (interrupt, *tries), outcome)
                    .await;
            }
            (_, RunOutcome::Notice(outcome)) => return self.record_notice(work, outcome).await,
            (
                EffectKind::NotifyParent {
                    parent,
                    node,
                    outcome,
                },
                _,
            ) => {
                let command = Command::ReportChildOutcome {
                    node: node.clone(),
                    outcome: outcome.clone(),
                };
                (StreamId::of_run(parent), command)
            }
            (EffectKind::NotifySession { to, result }, _) => {
                return self.report_workflow(work, to, result).await;
            }
            (EffectKind::AskSession { to, question }, _) => {
                return self.ask_session(work, to, question).await;
            }
            (EffectKind::CloseSessionQuestion { to, closed }, _) => {
                let command = SessionCommand::WorkflowQuestionClosed(closed.clone());
                return self.submit_for_workflow(work, to, command).await;
            }
            (
                EffectKind::StartFlow {
                    node,
                    flow_run,
                    dispatched,
                    call,
                },
                _,
            ) => {
                let parent = parent_node(work, node, flow_run, *dispatched);
                return Box::pin(self.start_flow_of_node(work, parent, call)).await;
            }
            (
                EffectKind::CancelFlow {
                    node,
                    flow_run,
                    dispatched,
                    call,
                },
                _,
            ) => {
                let parent = parent_node(work, node, flow_run, *dispatched);
                return Box::pin(self.cancel_flow_of_node(work, parent, flow_run, call)).await;
            }
            (EffectKind::CancelChild { child }, _) => {
                let command = Command::Cancel {
                    reason: None,
                    by: None,
                    by_parent: Some(run_of(&work.stream)),
                };
                (StreamId::of_run(child), command)
            }
            (_, RunOutcome::Call(outcome)) => {
                let command = Command::FinishEffect {
                    effect: work.effect.id.clone(),
                    outcome: outcome.clone(),
                };
                (work.stream.clone(), command)
            }
            (_, RunOutcome::Callback(_) | RunOutcome::Internal) => {
                (work.stream.clone(), Command::Continue)
            }
        };
        self.submit_effect_result(work, &self.inner.runs, &to, command)
            .await
    }
}
