//! Starts a node: its inputs, the work its kind does at once, and what it has to wait for.

use super::finish::Done;
use super::rounds::Round;
use crate::node::Kind;
use crate::run::draft::DecisionDraft;
use crate::run::questions::Question;
use std::sync::Arc;
use tandem_record::{ErrorInfo, Event, Object, Seq, Work};

/// The result of executing a node.
pub(crate) enum NodeOutcome {
    Complete(Object),
    /// Completed, with cost attributes besides its outputs.
    CompleteWithCost(Object),
    Fail(ErrorInfo),
    Wait(Work),
    /// Opens an interrupt.
    Ask(Box<Question>),
    /// What follows is recorded already.
    AlreadyRecorded,
}

/// Why and how a node is entered.
#[derive(Default)]
pub(in crate::run) struct NodeEntry {
    /// Nodes of a loop body or trigger lineage that run again.
    pub(in crate::run) resets: Vec<usize>,
    pub(in crate::run) trigger: Option<String>,
    /// A retry of the same execution.
    pub(in crate::run) retry: bool,
}

impl DecisionDraft<'_> {
    /// Starts a node and executes it as far as possible without effects.
    pub(in crate::run) fn start_node(&mut self, ix: usize, entry: NodeEntry) {
        let def = Arc::clone(&self.run.def);
        let node = &def.nodes[ix];
        if let Err(error) = self.admit(ix) {
            // Refused before it starts: the node never gets a started event.
            self.fail_node(ix, error, None, None);
            return;
        }
        let inputs = self.run.port_values(ix, self.cx.limits, self.cx.work);
        let before = self.run.node(ix);
        let again = entry.retry || before.cut_off;
        let execution = if again {
            before.execution - 1
        } else {
            before.execution
        };
        let attempt = if again { before.attempt } else { 0 };
        let cause = self.entry_cause(ix);
        let agent_before = self.run.active_agent();
        let settings = &def.doc_node(ix).settings;
        let timeout = settings
            .timeout_ms
            .or(settings.timeout)
            .filter(|ms| *ms > 0);

        // Evaluated before the started event resets the body: a condition may read the last round.
        let round = match (&node.kind, &inputs) {
            (Kind::Loop(config), Ok(inputs)) => Some(self.round(ix, config, inputs)),
            _ => None,
        };
        let resets = match &round {
            // The results of the last round stay readable.
            Some(
                Ok(Round {
                    runs_body: false, ..
                })
                | Err(_),
            ) => Vec::new(),
            _ => entry.resets,
        };
        let prepared = match inputs {
            Ok(inputs) => self
                .prepare(ix, &inputs, execution, attempt)
                .map(|work| (inputs, work)),
            Err(error) => Err(error),
        };
        let work = match &prepared {
            Ok((_, work)) => work.clone(),
            Err(_) => None,
        };
        if self.needs.is_some() {
            return;
        }
        self.scheduling.starts += 1;
        let started = self.emit(
            Event::NodeStarted {
                node: node.id.clone(),
                type_id: node.type_id.clone(),
                attempt,
                execution,
                deadline: timeout
                    .filter(|_| work.is_some() || matches!(node.kind, Kind::Dispatch(_)))
                    .map(|ms| self.now.plus_ms(ms)),
                work: work.clone(),
                resets: resets.iter().map(|r| def.nodes[*r].id.clone()).collect(),
                trigger: entry.trigger,
            },
            cause,
        );
        self.emit_boundary_handoff(ix, agent_before, started);
        let step = match prepared {
            Err(error) => NodeOutcome::Fail(error),
            Ok((_, Some(work))) => NodeOutcome::Wait(work),
            Ok((_, None)) if let Some(round) = round => self.begin_round(ix, round, started),
            Ok((inputs, None)) => self.perform(ix, inputs, started),
        };
        self.apply_outcome(ix, step, started);
    }

    /// Applies the outcome of a node.
    pub(in crate::run) fn apply_outcome(&mut self, ix: usize, step: NodeOutcome, started: Seq) {
        match step {
            NodeOutcome::Complete(outputs) => self.complete_node(ix, Done::with(outputs), started),
            NodeOutcome::CompleteWithCost(cost) => {
                let done = Done {
                    cost: Some(cost),
                    ..Done::default()
                };
                self.complete_node(ix, done, started);
            }
            NodeOutcome::Fail(error) => self.fail_or_retry(ix, error, started),
            NodeOutcome::Wait(Work::Child {
                child, workflow_id, ..
            }) => self.dispatch_child(ix, child, workflow_id, started),
            NodeOutcome::Wait(Work::Flow { flow_run, call }) => {
                self.wait_for_flow(ix, flow_run, call, started);
            }
            NodeOutcome::Wait(Work::Tool { .. }) => self.emit_tool_called(ix, started),
            NodeOutcome::Wait(Work::Model { mock: Some(_), .. }) => self.run_mock_call(ix),
            NodeOutcome::Wait(_) | NodeOutcome::AlreadyRecorded => {}
            NodeOutcome::Ask(question) => {
                // A decision given in place of another one is newer than any event of the node.
                let last = self.run.node(ix).last;
                let cause = last.map_or(started, |last| last.max(started));
                self.ask(ix, *question, cause);
            }
        }
    }
}
