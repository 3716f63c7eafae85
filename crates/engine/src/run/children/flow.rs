//! Flows of conversations that nodes start, wait for and cancel.
//!
//! The node waits at an interrupt that only the host ends. A fork starts no flow and cancels none: it uses what its
//! source recorded.

use crate::flow_run::workflow_id_of;
use crate::ids::flow_run_id;
use crate::node::{ChatFlow, Kind};
use crate::run::draft::DecisionDraft;
use crate::run::questions::{Closing, Question, close};
use crate::run::scheduling::{Done, NodeOutcome};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_record::conversation::{FlowCall, FlowReport};
use tandem_record::{
    EffectKind, ErrorInfo, Event, NodeId, NodeStatus, Object, RecordedEvent, Reply, RunId,
    RunStatus, Seq, Work,
};

/// The event that ends the wait of a node for its flow.
const EVENT_TYPE: &str = "tandem.flow_finished";
const TIMED_OUT: &str = "timed_out";

impl DecisionDraft<'_> {
    pub(in crate::run) fn prepare_flow(
        &mut self,
        ix: usize,
        config: &ChatFlow,
        inputs: &Object,
        execution: u32,
        attempt: u32,
    ) -> Result<Option<Work>, ErrorInfo> {
        let node = self.run.def.nodes[ix].id.clone();
        if let Some(forked) = &self.run.request().forked_from {
            let recorded = forked.flow_results.get(&result_key(&node, execution));
            return recorded.map(|_| None).ok_or_else(not_recorded);
        }
        let call = config.call(inputs)?;
        self.admit_descendant()?;
        Ok(Some(Work::Flow {
            flow_run: flow_run_id(self.now, self.run.id(), &node, execution, attempt),
            call: Box::new(call),
        }))
    }

    /// What the flow of this node gave in the run that this one was forked from.
    pub(in crate::run) fn recorded_flow(&self, ix: usize) -> NodeOutcome {
        // The started event has counted this execution.
        let execution = self.run.node(ix).execution.saturating_sub(1);
        match self.inherited_result(ix, execution) {
            Some(outputs) => NodeOutcome::Complete(outputs),
            None => NodeOutcome::Fail(not_recorded()),
        }
    }

    fn inherited_result(&self, ix: usize, execution: u32) -> Option<Object> {
        let forked = self.run.request().forked_from.as_ref()?;
        let key = result_key(&self.run.def.nodes[ix].id, execution);
        forked.flow_results.get(&key).cloned()
    }

    /// Names the flow run, opens the interrupt of its end, and has it started.
    pub(in crate::run) fn wait_for_flow(
        &mut self,
        ix: usize,
        flow_run: RunId,
        call: Box<FlowCall>,
        started: Seq,
    ) {
        let def = Arc::clone(&self.run.def);
        let Kind::ChatFlow(config) = &def.nodes[ix].kind else {
            unreachable!("only a flow node waits for a flow");
        };
        let node = def.nodes[ix].id.clone();
        let dispatched = self.emit(
            Event::NodeDispatched {
                node: node.clone(),
                child: flow_run.clone(),
                workflow_id: workflow_id_of(&call.agent_id, &call.flow_id),
            },
            Some(started),
        );
        let question = Question {
            kind: "external-event".to_owned(),
            data: json!({
                "eventType": EVENT_TYPE,
                "correlation": {"flowRunId": flow_run},
                "agentId": call.agent_id,
                "flowId": call.flow_id,
            }),
            resume_schema: None,
            timeout_ms: config.timeout_ms,
            status: None,
            low_confidence: None,
            hidden: None,
        };
        self.ask(ix, question, dispatched);
        let id = format!("start:{flow_run}");
        let kind = EffectKind::StartFlow {
            node,
            flow_run,
            dispatched,
            call,
        };
        self.add_one_shot_effect(id, kind);
    }

    /// Cancels the flows among these children.
    pub(super) fn cancel_flows(&mut self, children: &[RunId]) {
        let of = |child: &RunId| {
            let mut known = self.run.children().iter().rev();
            let node = &known.find(|c| c.run_id == *child)?.node;
            self.run.def.index(node)
        };
        let flows = children.iter().filter(|child| child.is_flow_run());
        let nodes: Vec<usize> = flows.filter_map(of).collect();
        nodes.into_iter().for_each(|ix| self.cancel_flow(ix));
    }

    /// Cancels the flow that a node waits for.
    pub(super) fn cancel_flow(&mut self, ix: usize) {
        let Some(Work::Flow { flow_run, call }) = self.run.node(ix).work.clone() else {
            return;
        };
        let live = self.run.live_children().find(|c| c.run_id == flow_run);
        let Some(dispatched) = live.map(|child| child.named) else {
            return;
        };
        let id = format!("cancel:{flow_run}");
        let kind = EffectKind::CancelFlow {
            node: self.run.def.nodes[ix].id.clone(),
            flow_run,
            dispatched,
            call,
        };
        self.add_one_shot_effect(id, kind);
    }

    /// The flow took too long: the node goes on without it.
    pub(in crate::run) fn time_out_flow(&mut self, ix: usize) {
        self.cancel_flow(ix);
        let Some(Work::Flow { flow_run, .. }) = self.run.node(ix).work.clone() else {
            unreachable!("only a flow node waits for a flow");
        };
        let outputs = outputs(
            &flow_run,
            TIMED_OUT,
            Some("timeout"),
            None,
            &BTreeMap::new(),
        );
        let closing = Closing {
            reason: Some("timeout"),
            ..Closing::of("timeout", Value::Object(outputs.clone()))
        };
        let resumed = close(self, ix, closing);
        let done = Done {
            child: Some(RunStatus::Cancelled),
            ..Done::with(outputs)
        };
        self.complete_node(ix, done, resumed);
    }

    /// A fork begins at a node whose flow belongs to its source.
    pub(in crate::run) fn settle_inherited_flow(&mut self, ix: usize) {
        let state = self.run.node(ix);
        let execution = state.execution.saturating_sub(1);
        let (is_waiting, last) = (state.status == NodeStatus::Suspended, state.last);
        let recorded = self.inherited_result(ix, execution);
        let value = recorded.clone().map_or(Value::Null, Value::Object);
        let cause = match is_waiting {
            true => close(self, ix, Closing::of("resolved", value)),
            false => last.unwrap_or(Seq(0)),
        };
        match recorded {
            Some(outputs) => self.complete_node(ix, Done::with(outputs), cause),
            None => self.fail_node(ix, not_recorded(), Some(cause), None),
        }
    }
}

/// A flow has ended, or could not begin. A report that nobody waits for changes nothing.
pub(in crate::run) fn reported(draft: &mut DecisionDraft<'_>, report: FlowReport) -> Reply {
    let Some(ix) = draft.run.def.index(&report.parent.node_id) else {
        return Reply::Unchanged;
    };
    let node = &report.parent.node_id;
    let flow_run = report.parent.flow_run_id.as_ref();
    if !flow_run.is_some_and(|flow| draft.run.awaits_flow(node, flow)) {
        return Reply::Unchanged;
    }
    match &report.flow_run_id {
        Some(flow_run) => {
            let outputs = outputs(
                flow_run,
                &report.status,
                report.reason.as_deref(),
                report.result,
                &report.answers,
            );
            let closing = Closing::of("resolved", Value::Object(outputs.clone()));
            let resumed = close(draft, ix, closing);
            let done = Done {
                child: Some(child_status(&report.status)),
                ..Done::with(outputs)
            };
            draft.complete_node(ix, done, resumed);
        }
        None => {
            let code = report.reason.as_deref().unwrap_or("flow_not_started");
            let message = match &report.message {
                Some(message) => format!("the flow did not begin: {message}"),
                None => "the flow did not begin".to_owned(),
            };
            let error = ErrorInfo::new(code, message);
            let shown = json!({"status": report.status, "reason": code});
            let resumed = close(draft, ix, Closing::of("resolved", shown));
            draft.fail_node(ix, error, Some(resumed), Some(RunStatus::Cancelled));
        }
    }
    draft.advance();
    Reply::Accepted
}

fn outputs(
    flow_run: &RunId,
    status: &str,
    reason: Option<&str>,
    result: Option<Value>,
    answers: &BTreeMap<String, String>,
) -> Object {
    let fields = [
        ("flowRunId", json!(flow_run)),
        ("status", json!(status)),
        ("reason", json!(reason)),
        ("result", result.unwrap_or(Value::Null)),
        ("answers", json!(answers)),
    ];
    let fields = fields.into_iter();
    fields
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn child_status(status: &str) -> RunStatus {
    match status {
        "completed" => RunStatus::Completed,
        "failed" => RunStatus::Failed,
        _ => RunStatus::Cancelled,
    }
}

fn result_key(node: &NodeId, execution: u32) -> String {
    format!("{node}:{execution}")
}

fn not_recorded() -> ErrorInfo {
    ErrorInfo::new(
        "flow_not_recorded",
        "a fork starts no flow, and its source recorded no end of this one",
    )
}

/// What flows gave to the nodes of a run, for its forks.
pub(in crate::run) fn flow_results(
    is_flow_node: impl Fn(&NodeId) -> bool,
    log: &[RecordedEvent],
) -> BTreeMap<String, Object> {
    let (mut executions, mut results) = (BTreeMap::new(), BTreeMap::new());
    for recorded in log {
        match &recorded.event {
            Event::NodeStarted {
                node, execution, ..
            } if is_flow_node(node) => {
                executions.insert(node, *execution);
            }
            Event::NodeCompleted { node, outputs, .. } => {
                if let Some(execution) = executions.get(node) {
                    results.insert(result_key(node, *execution), outputs.clone());
                }
            }
            _ => {}
        }
    }
    results
}
