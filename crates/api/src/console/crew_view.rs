//! A supervisor's turns, gathered from the log as it is read.

use std::collections::VecDeque;
use tandem_console::{CheckView, CrewView, HandoffView, TurnView};
use tandem_record::{Cause, Event, HandoffStep, Judged, Recorded, Said, Seq};
use tandem_wire::v1::time::rfc3339;

/// Turns a page shows; a loop may have thousands.
const SHOWN_TURNS: usize = 40;

/// The newest turns so far.
pub(super) struct Crew {
    floor: f64,
    turns: VecDeque<(Seq, TurnView)>,
    omitted: u64,
}

impl Crew {
    pub(super) fn new(floor: f64) -> Self {
        Self {
            floor,
            turns: VecDeque::new(),
            omitted: 0,
        }
    }

    pub(super) fn of(floor: f64, events: &[Recorded]) -> CrewView {
        let mut crew = Self::new(floor);
        events.iter().for_each(|recorded| crew.take(recorded));
        crew.view()
    }

    pub(super) fn take(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::OrchestratorDecided {
                agent_id,
                decision,
                iteration,
                ..
            } => {
                let text = |key: &str| decision[key].as_str().map(str::to_owned);
                let turn = TurnView {
                    iteration: *iteration,
                    agent: agent_id.clone(),
                    kind: text("kind").unwrap_or_default(),
                    reason: text("reason").or_else(|| text("prompt")),
                    confidence: decision["confidence"].as_f64(),
                    ..TurnView::default()
                };
                if self.turns.len() == SHOWN_TURNS {
                    self.turns.pop_front();
                    self.omitted += 1;
                }
                self.turns.push_back((recorded.seq, turn));
            }
            Event::ConfidenceEscalated { .. } => {
                if let Some((_, turn)) = self.turns.back_mut() {
                    turn.escalated = true;
                }
            }
            Event::Handoff(handoff) => {
                let began = matches!(handoff.step, HandoffStep::Began);
                let place = handoff.index as usize;
                let Some((_, turn)) = self.turn_of(recorded.cause.as_ref(), began) else {
                    return;
                };
                if turn.handoffs.len() <= place {
                    turn.handoffs.resize(place + 1, HandoffView::default());
                }
                let shown = &mut turn.handoffs[place];
                shown.worker = handoff.worker.to_string();
                let phase = handoff.step.phase().to_owned();
                shown.steps.push((phase, rfc3339(recorded.at)));
                if let Some(child) = handoff.step.child() {
                    shown.child = Some(child.to_string());
                }
                if let HandoffStep::Failed { error } | HandoffStep::ChildFailed { error, .. } =
                    &handoff.step
                {
                    shown.error = Some(format!("{}: {}", error.code, error.message));
                }
            }
            Event::VerificationAsked(asked) => {
                if let Some((_, turn)) = self.turns.back_mut() {
                    // Asked again, it is still one question.
                    turn.checks.retain(|check| check.verdict.is_some());
                    turn.checks.push(check(&asked.agent_id, &asked.judged));
                }
            }
            Event::Agent(fact) => {
                if let (
                    Said::Verified {
                        judged,
                        verdict,
                        criteria,
                        confidence,
                        ..
                    },
                    Some((_, turn)),
                ) = (&fact.said, self.turns.back_mut())
                {
                    turn.checks.retain(|check| check.verdict.is_some());
                    turn.checks.push(CheckView {
                        verdict: Some(verdict.as_str().to_owned()),
                        criteria: criteria.clone(),
                        confidence: *confidence,
                        ..check(&fact.agent_id, judged)
                    });
                }
            }
            _ => {}
        }
    }

    /// A first step names its decision as its cause; the others follow in the newest turn.
    fn turn_of(&mut self, cause: Option<&Cause>, began: bool) -> Option<&mut (Seq, TurnView)> {
        match cause {
            Some(Cause::Event(seq)) if began => self.turns.iter_mut().find(|(at, _)| at == seq),
            _ => self.turns.back_mut(),
        }
    }

    pub(super) fn view(&self) -> CrewView {
        CrewView {
            floor: self.floor,
            turns: self.turns.iter().map(|(_, turn)| turn.clone()).collect(),
            omitted: self.omitted,
        }
    }
}

fn check(critic: &str, judged: &Judged) -> CheckView {
    CheckView {
        critic: critic.to_owned(),
        child: match judged {
            Judged::Decision { .. } => None,
            Judged::Output { child, .. } => Some(child.to_string()),
        },
        ..CheckView::default()
    }
}
