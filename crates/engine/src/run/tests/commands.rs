//! Short names for the commands that a run in the harness receives.

use super::harness::{RunHarness, object};
use crate::run::Refusal;
use serde_json::Value;
use tandem_record::{
    ChildOutcome, Command, DrainPolicy, EffectId, EffectOutcome, ErrorInfo, NodeId, Reply, RunId,
    RunStatus, TimerKey, Work,
};

impl RunHarness {
    pub(super) fn cancel(&mut self) -> Reply {
        self.when(Command::Cancel {
            reason: None,
            by: None,
            by_parent: None,
        })
    }

    pub(super) fn pause(&mut self, policy: DrainPolicy) -> Result<Reply, Refusal> {
        self.try_when(Command::Pause {
            reason: None,
            policy,
        })
    }

    pub(super) fn resume(&mut self) -> Result<Reply, Refusal> {
        self.try_when(Command::Resume { reason: None })
    }

    /// A node's call returned.
    pub(super) fn done(&mut self, node: &str, outputs: Value) -> Reply {
        let effect = self.effect_of(node);
        let outputs = object(outputs);
        self.finish(effect, EffectOutcome::Done { outputs })
    }

    pub(super) fn failed(&mut self, node: &str, error: ErrorInfo) -> Reply {
        let effect = self.effect_of(node);
        self.finish(effect, EffectOutcome::Failed { error })
    }

    pub(super) fn finish(&mut self, effect: EffectId, outcome: EffectOutcome) -> Reply {
        self.when(Command::FinishEffect { effect, outcome })
    }

    /// Id of the call a node is waiting for.
    pub(super) fn effect_of(&self, node: &str) -> EffectId {
        match &self.node(node).work {
            Some(
                Work::Http { effect, .. }
                | Work::Model { effect, .. }
                | Work::Tool { effect, .. }
                | Work::Pack { effect, .. }
                | Work::SecretEcho { effect, .. },
            ) => effect.clone(),
            other => panic!("{node} waits for no effect but {other:?}"),
        }
    }

    pub(super) fn child_of(&self, node: &str) -> RunId {
        let mut awaited = self.run().awaited_children(self.index(node));
        match awaited.next() {
            Some((child, _)) => child.clone(),
            None => panic!("{node} waits for no child"),
        }
    }

    pub(super) fn child_ended(&mut self, node: &str, status: RunStatus, variables: Value) -> Reply {
        let child = self.child_of(node);
        let failed = status == RunStatus::Failed;
        self.child_reports(
            node,
            ChildOutcome::Ended {
                child,
                status,
                variables: object(variables),
                untrusted: Vec::new(),
                error: failed.then(|| ErrorInfo::new("boom", "it broke")),
            },
        )
    }

    pub(super) fn child_reports(&mut self, node: &str, outcome: ChildOutcome) -> Reply {
        self.when(Command::ReportChildOutcome {
            node: NodeId::new(node),
            outcome,
        })
    }

    pub(super) fn fire(&mut self, key: TimerKey) -> Reply {
        self.when(Command::FireTimer(key))
    }
}
