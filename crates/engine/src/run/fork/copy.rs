//! The source's events as the fork's own: its request in place of the source's, and its own names
//! for the questions that were asked.

use super::Source;
use crate::ids::interrupt_id;
use std::collections::HashMap;
use tandem_record::{Event, InterruptId, Recorded, RunId};

pub(super) fn renamed(fork: &RunId, source: &Source<'_>) -> Vec<Recorded> {
    let mut names = Names::default();
    let log = source.log.iter().cloned();
    log.map(|mut recorded| {
        if let Event::RunStarted { request, .. } = &mut recorded.event {
            **request = source.request.clone();
            // What made the source begin did not make the fork begin.
            recorded.cause = None;
        }
        names.rename(fork, &mut recorded.event);
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
