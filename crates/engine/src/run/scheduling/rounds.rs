//! Loops: when a round is over, whether another follows, and its inputs.

use super::start::{NodeEntry, NodeOutcome};
use crate::definition::Loop;
use crate::expression::truthy;
use crate::graph::binding::RunScope;
use crate::node::{Kind, LoopConfig};
use crate::run::draft::DecisionDraft;
use serde_json::{Value, json};
use tandem_record::{ErrorInfo, NodeStatus, Object, Seq};

/// One entry of a loop head.
pub(in crate::run) struct Round {
    iteration: u64,
    /// Whether the body runs (again).
    pub(in crate::run) runs_body: bool,
    item: Option<Value>,
    item_variable: Option<String>,
}

impl DecisionDraft<'_> {
    /// A loop head runs again when its whole body has settled, including the last rounds of inner
    /// loops.
    pub(in crate::run) fn next_round(&self) -> Option<(usize, NodeEntry)> {
        let nodes = self.run.def.nodes.iter().enumerate();
        nodes.into_iter().find_map(|(ix, node)| {
            let repeats = node.repeats.as_ref()?;
            if !matches!(node.kind, Kind::Loop(_)) {
                return self.next_supervised_round(ix, repeats);
            }
            let over = |n: &usize| {
                let state = self.run.node(*n);
                let inner = matches!(self.run.def.nodes[*n].kind, Kind::Loop(_));
                state.status.is_settled() && !(inner && state.between_rounds())
            };
            let round_over = self.run.node(ix).between_rounds() && repeats.body.iter().all(over);
            round_over.then(|| {
                let resets = repeats.body.clone();
                let entry = NodeEntry {
                    resets,
                    ..NodeEntry::default()
                };
                (ix, entry)
            })
        })
    }

    /// A supervisor's loop has no condition of its own: it runs again whenever the back edge was
    /// taken and all nodes of the loop have settled.
    fn next_supervised_round(&self, ix: usize, repeats: &Loop) -> Option<(usize, NodeEntry)> {
        let status = |n: &usize| self.run.node(*n).status;
        let back = repeats
            .tails
            .iter()
            .any(|n| status(n) == NodeStatus::Completed);
        let over = status(&ix) == NodeStatus::Completed
            && back
            && repeats.body.iter().all(|n| status(n).is_settled());
        over.then(|| {
            let entry = NodeEntry {
                resets: repeats.body.clone(),
                ..NodeEntry::default()
            };
            (ix, entry)
        })
    }

    /// What a loop head will do, computed before it starts.
    pub(in crate::run) fn round(
        &self,
        ix: usize,
        config: &LoopConfig,
        inputs: &Object,
    ) -> Result<Round, ErrorInfo> {
        let before = self.run.node(ix);
        let last = before.outputs.as_ref().filter(|_| before.between_rounds());
        let last = last
            .and_then(|o| o.get("iteration"))
            .and_then(Value::as_u64);
        let round = last.map_or(0, |n| n + 1);
        let items = inputs.get("items").and_then(Value::as_array);
        let runs_body = match (&config.condition, items, config.times) {
            (Some(condition), _, _) => {
                truthy(&condition.evaluate(&RunScope::new(&self.run), self.cx.work))
            }
            (None, Some(items), _) => round < items.len() as u64,
            (None, None, Some(times)) => round < times,
            (None, None, None) => round < config.max_iterations,
        };
        let bounded = config.condition.is_some() || items.is_some() || config.times.is_some();
        if runs_body && bounded && round >= config.max_iterations {
            return Err(ErrorInfo::new(
                "loop_limit_exceeded",
                format!(
                    "the loop ran {} times and is not done",
                    config.max_iterations
                ),
            ));
        }
        let item = items.and_then(|i| i.get(usize::try_from(round).unwrap_or(usize::MAX)));
        Ok(Round {
            iteration: round,
            runs_body,
            item: item.filter(|_| runs_body).cloned(),
            item_variable: config.item_variable.clone(),
        })
    }

    pub(in crate::run) fn begin_round(
        &mut self,
        ix: usize,
        round: Result<Round, ErrorInfo>,
        cause: Seq,
    ) -> NodeOutcome {
        let round = match round {
            Ok(round) => round,
            Err(error) => return NodeOutcome::Fail(error),
        };
        let mut outputs = Object::from_iter([
            ("iteration".to_owned(), json!(round.iteration)),
            ("done".to_owned(), json!(!round.runs_body)),
        ]);
        if let Some(item) = round.item {
            if let Some(name) = &round.item_variable {
                let node = self.run.def.nodes[ix].id.clone();
                self.set_variable(name, Some(item.clone()), &node, cause);
            }
            outputs.insert("item".to_owned(), item);
        }
        NodeOutcome::Complete(outputs)
    }
}
