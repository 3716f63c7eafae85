//! The source's events as the fork's own: its request in place of the source's, and its own names
//! for the questions that were asked and the calls of models that were made.

use super::Source;
use crate::ids::interrupt_id;
use crate::model::rekey_work;
use crate::run::model::call_id;
use std::collections::HashMap;
use tandem_record::{Event, InterruptId, NodeId, Recorded, RunId, TenantId, Work};

pub(super) fn renamed(fork: &RunId, source: &Source<'_>) -> Vec<Recorded> {
    let mut names = Names::default();
    let mut calls = Calls {
        tenant: &source.request.owner.tenant,
        fork,
        known: HashMap::new(),
    };
    let log = source.log.iter().cloned();
    log.map(|mut recorded| {
        if let Event::RunStarted { request, .. } = &mut recorded.event {
            **request = source.request.clone();
            // What made the source begin did not make the fork begin.
            recorded.cause = None;
        }
        names.rename(fork, &mut recorded.event);
        calls.rename(&mut recorded.event);
        recorded
    })
    .collect()
}

/// The fork's ids by the source's. A question of a child is not the run's and keeps its id.
#[derive(Default)]
struct Names(HashMap<InterruptId, InterruptId>);

impl Names {
    fn rename(&mut self, fork: &RunId, event: &mut Event) {
        match event {
            Event::InterruptRequested { node, interrupt } => {
                let round = interrupt.key.rsplit(':').next();
                let round = round.and_then(|text| text.parse().ok()).unwrap_or(0);
                let mut id = interrupt_id(fork, node, round);
                if self.0.values().any(|taken| *taken == id) {
                    id = interrupt_id(fork, node, u32::MAX - round);
                }
                self.0.insert(interrupt.id.clone(), id.clone());
                interrupt.id = id;
            }
            Event::ApprovalRequested { interrupt, .. }
            | Event::ClarificationRequested { interrupt, .. }
            | Event::ApprovalQuestioned { interrupt, .. }
            | Event::InterruptEscalated { interrupt, .. }
            | Event::InterruptReminded { interrupt, .. }
            | Event::DecisionDenied { interrupt, .. }
            | Event::NodeSuspended { interrupt, .. } => self.apply(interrupt),
            Event::InterruptResolved { resolution, .. } => self.apply(&mut resolution.interrupt),
            Event::NodeResumed {
                interrupt: Some(interrupt),
                ..
            } => self.apply(interrupt),
            _ => {}
        }
    }

    fn apply(&self, id: &mut InterruptId) {
        if let Some(own) = self.0.get(id) {
            *id = own.clone();
        }
    }
}

/// Calls of models under the fork's identity. A prompt may name the run, so each key is that of the
/// request as the fork would make it.
struct Calls<'a> {
    tenant: &'a TenantId,
    fork: &'a RunId,
    /// By node: the execution, and the key of the call under way.
    known: HashMap<NodeId, (u32, String)>,
}

impl Calls<'_> {
    fn rename(&mut self, event: &mut Event) {
        match event {
            Event::NodeStarted {
                node,
                execution,
                work: Some(work),
                ..
            } => self.rename_work(node, *execution, work),
            Event::ModelAskedAgain(retry) => {
                let known = self.known.get(&retry.node);
                let execution = known.map_or(0, |(execution, _)| *execution);
                self.rename_work(&retry.node, execution, &mut retry.work);
            }
            Event::ModelAnswered(told) => {
                if let Some((_, key)) = self.known.get(&told.node) {
                    told.key.clone_from(key);
                }
            }
            _ => {}
        }
    }

    fn rename_work(&mut self, node: &NodeId, execution: u32, work: &mut Work) {
        rekey_work(work);
        if let Work::Model {
            effect, key, round, ..
        } = work
        {
            *effect = call_id(self.tenant, self.fork, node, execution, *round);
            self.known.insert(node.clone(), (execution, key.clone()));
        }
    }
}
