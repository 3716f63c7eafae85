//! Metrics of conversations (Z-232). Never labelled by session, user or agent: the number of series must not grow
//! with them.

use super::session_machine::SessionMachine;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::collections::HashMap;
use std::sync::Arc;
use tandem_engine::machine::Decision;
use tandem_engine::schedule::Schedule;
use tandem_record::conversation::{
    InboundRefusal, ProviderCircuit, ResponseSource, ScheduleEventBody, SessionEventBody as Body,
    TurnOutcome,
};
use tandem_record::{InterruptId, Timestamp};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct TurnLabels {
    pub source: &'static str,
    pub outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ModelCallLabels {
    pub purpose: &'static str,
    pub outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct NameLabel {
    pub name: &'static str,
}

#[derive(Clone)]
pub struct ConversationMetrics {
    pub turns: Family<TurnLabels, Counter>,
    pub model_calls: Family<ModelCallLabels, Counter>,
    pub model_seconds: Histogram,
    pub tool_calls: Family<NameLabel, Counter>,
    pub tool_seconds: Histogram,
    pub questions: Family<NameLabel, Counter>,
    pub answers: Family<NameLabel, Counter>,
    pub open_questions: Family<NameLabel, Gauge>,
    pub oldest_question_seconds: Family<NameLabel, Gauge>,
    open: Arc<Mutex<OpenQuestions>>,
    pub sends: Family<NameLabel, Counter>,
    pub send_seconds: Histogram,
    pub refused: Family<NameLabel, Counter>,
    pub denials: Counter,
    pub divergences: Counter,
    pub nondeterminism: Counter,
    pub circuits: Family<NameLabel, Counter>,
    pub schedule_runs: Family<NameLabel, Counter>,
    pub schedule_late_seconds: Histogram,
}

/// When each open interrupt was opened. One from before the start of the process is not known here, nor is its end.
#[derive(Default)]
struct OpenQuestions {
    since: HashMap<InterruptId, (&'static str, Timestamp)>,
}

impl OpenQuestions {
    /// Those beyond a bound are younger than what is kept, so the oldest stay known.
    fn add(&mut self, id: &InterruptId, kind: &'static str, at: Timestamp) {
        const MOST: usize = 100_000;
        if self.since.len() < MOST {
            self.since.insert(id.clone(), (kind, at));
        }
    }
}

impl Default for ConversationMetrics {
    fn default() -> Self {
        let calls = [
            0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0,
        ];
        Self {
            turns: Family::default(),
            model_calls: Family::default(),
            model_seconds: Histogram::new(calls),
            tool_calls: Family::default(),
            tool_seconds: Histogram::new(calls),
            questions: Family::default(),
            answers: Family::default(),
            open_questions: Family::default(),
            oldest_question_seconds: Family::default(),
            open: Arc::default(),
            sends: Family::default(),
            send_seconds: Histogram::new(calls),
            refused: Family::default(),
            denials: Counter::default(),
            divergences: Counter::default(),
            nondeterminism: Counter::default(),
            circuits: Family::default(),
            schedule_runs: Family::default(),
            schedule_late_seconds: Histogram::new(calls),
        }
    }
}

impl ConversationMetrics {
    pub fn register(&self, r: &mut Registry) {
        r.register(
            "tandem_turns",
            "Turns of conversations, by what answered and how they ended",
            self.turns.clone(),
        );
        r.register(
            "tandem_chat_model_calls",
            "Calls of agents' models, by purpose and outcome",
            self.model_calls.clone(),
        );
        r.register_with_unit(
            "tandem_chat_model",
            "Time of a call of an agent's model, retries included",
            Unit::Seconds,
            self.model_seconds.clone(),
        );
        r.register(
            "tandem_chat_tool_calls",
            "Calls of agents' tools, by outcome",
            self.tool_calls.clone(),
        );
        r.register_with_unit(
            "tandem_chat_tool",
            "Time of a call of an agent's tool, retries included",
            Unit::Seconds,
            self.tool_seconds.clone(),
        );
        r.register(
            "tandem_chat_questions",
            "Interrupts of conversations that were opened, by kind",
            self.questions.clone(),
        );
        r.register(
            "tandem_chat_answers",
            "Interrupts of conversations that ended, by outcome",
            self.answers.clone(),
        );
        r.register(
            "tandem_chat_questions_open",
            "Interrupts of conversations opened and not ended, since start, by kind",
            self.open_questions.clone(),
        );
        r.register_with_unit(
            "tandem_chat_questions_oldest",
            "Age of the interrupt of conversations that is open for longest, since start, by kind",
            Unit::Seconds,
            self.oldest_question_seconds.clone(),
        );
        r.register(
            "tandem_chat_sends",
            "Texts handed to transports, by outcome: sent, failed, suppressed, canceled",
            self.sends.clone(),
        );
        r.register_with_unit(
            "tandem_chat_send_age",
            "From the commit of a text to its delivery",
            Unit::Seconds,
            self.send_seconds.clone(),
        );
        r.register(
            "tandem_inbound_dropped",
            "Messages that were not processed, by reason: duplicate, ratelimited, overload",
            self.refused.clone(),
        );
        r.register(
            "tandem_admin_denials",
            "Actions that the rules of agents denied",
            self.denials.clone(),
        );
        r.register(
            "tandem_flow_divergences",
            "Flow runs whose code no longer fitted their journal",
            self.divergences.clone(),
        );
        r.register(
            "tandem_flow_nondeterminism",
            "Flow runs that strict mode found to be nondeterministic",
            self.nondeterminism.clone(),
        );
        r.register(
            "tandem_model_circuit_changes",
            "Changes of circuits of model providers, by the new state",
            self.circuits.clone(),
        );
        r.register(
            "tandem_schedule_runs",
            "Occurrences of schedules, by outcome",
            self.schedule_runs.clone(),
        );
        r.register_with_unit(
            "tandem_schedule_late",
            "From the time of an occurrence to its claim",
            Unit::Seconds,
            self.schedule_late_seconds.clone(),
        );
    }

    pub(crate) fn model_called(&self, purpose: &'static str, succeeded: bool, seconds: f64) {
        let outcome = outcome(succeeded);
        let labels = ModelCallLabels { purpose, outcome };
        self.model_calls.get_or_create(&labels).inc();
        self.model_seconds.observe(seconds);
    }

    pub(crate) fn tool_called(&self, succeeded: bool, seconds: f64) {
        count(&self.tool_calls, outcome(succeeded));
        self.tool_seconds.observe(seconds);
    }

    pub(crate) fn circuit_changed(&self, to: ProviderCircuit) {
        count(&self.circuits, to.as_str());
    }

    /// A message was not accepted.
    pub fn inbound_refused(&self, refusal: InboundRefusal) {
        let name = match refusal {
            InboundRefusal::RateLimited => "ratelimited",
            InboundRefusal::Overloaded => "overload",
        };
        count(&self.refused, name);
    }

    pub(crate) fn duplicate_dropped(&self) {
        count(&self.refused, "duplicate");
    }

    /// Looks which interrupts are open now, and how old they are.
    pub(crate) fn note_open_questions(&self, now: Timestamp) {
        let open = self.open.lock();
        for name in KINDS {
            let of_kind = open.since.values().filter(|(kind, _)| *kind == name);
            let ages = of_kind.map(|(_, since)| now.ms_since(*since) / 1_000);
            let (number, oldest) = ages.fold((0, 0), |(n, oldest), age| (n + 1, age.max(oldest)));
            let label = NameLabel { name };
            self.open_questions.get_or_create(&label).set(number);
            let oldest = i64::try_from(oldest).unwrap_or(i64::MAX);
            self.oldest_question_seconds
                .get_or_create(&label)
                .set(oldest);
        }
    }

    /// An action was decided about outside of a session.
    pub fn denied(&self) {
        self.denials.inc();
    }

    #[expect(clippy::cast_precision_loss, reason = "an approximate time is enough")]
    pub(crate) fn observe_schedule(&self, decision: &Decision<Schedule>) {
        for recorded in &decision.events {
            match &recorded.event.body {
                ScheduleEventBody::Triggered { scheduled_for, .. } => {
                    let late_ms = recorded.at.ms_since(*scheduled_for);
                    self.schedule_late_seconds.observe(late_ms as f64 / 1000.0);
                }
                ScheduleEventBody::RunFinished { outcome, .. } => {
                    count(&self.schedule_runs, outcome.as_str());
                }
                ScheduleEventBody::Skipped { .. } => count(&self.schedule_runs, "missed"),
                _ => {}
            }
        }
    }

    pub(crate) fn observe(&self, decision: &Decision<SessionMachine>) {
        for recorded in &decision.events {
            match &recorded.event.body {
                Body::TurnEnded(outcome) => {
                    let source = source_of(decision, recorded.event.turn);
                    let outcome = outcome_name(outcome);
                    let labels = TurnLabels { source, outcome };
                    self.turns.get_or_create(&labels).inc();
                }
                Body::InterruptPaused {
                    interrupt_id, kind, ..
                } => {
                    let name = kind_name(kind);
                    count(&self.questions, name);
                    self.open.lock().add(interrupt_id, name, recorded.at);
                }
                Body::InterruptResumed {
                    interrupt_id, by, ..
                } => {
                    count(&self.answers, by.as_str());
                    self.open.lock().since.remove(interrupt_id);
                }
                Body::ResponseSent { .. } => count(&self.sends, "sent"),
                Body::SendFailed { .. } => count(&self.sends, "failed"),
                Body::ResponseSuppressed { .. } => count(&self.sends, "suppressed"),
                Body::ResponseCanceled { .. } => count(&self.sends, "canceled"),
                Body::AuthorizationDecided(decision) if !decision.granted => {
                    self.denials.inc();
                }
                Body::FlowDiverged { .. } => {
                    self.divergences.inc();
                }
                Body::FlowNondeterministic { .. } => {
                    self.nondeterminism.inc();
                }
                _ => {}
            }
        }
    }
}

/// What answered in a turn, as the response events of the decision tell; the last one counts.
fn source_of(decision: &Decision<SessionMachine>, turn: Option<u64>) -> &'static str {
    let of_turn = decision.events.iter().rev();
    let mut of_turn = of_turn.filter(|event| event.event.turn == turn);
    let told = of_turn.find_map(|event| event.event.response.as_deref().map(|meta| meta.source));
    match told {
        Some(ResponseSource::Classic) => "classic",
        Some(ResponseSource::Flow) => "flow",
        Some(ResponseSource::ShortCircuit) => "short_circuit",
        Some(ResponseSource::Scheduled) => "scheduled",
        None => "none",
    }
}

fn count(family: &Family<NameLabel, Counter>, name: &'static str) {
    family.get_or_create(&NameLabel { name }).inc();
}

fn outcome(succeeded: bool) -> &'static str {
    match succeeded {
        true => "ok",
        false => "failed",
    }
}

fn outcome_name(outcome: &TurnOutcome) -> &'static str {
    match outcome {
        TurnOutcome::Processed => "processed",
        TurnOutcome::EndedByPolicy { .. } => "ended_by_policy",
        TurnOutcome::Failed { .. } => "failed",
        TurnOutcome::Interrupted => "interrupted",
        TurnOutcome::Canceled { .. } => "canceled",
    }
}

const KINDS: [&str; 3] = ["confirm", "proxy_wait", "wait"];

fn kind_name(kind: &str) -> &'static str {
    match kind {
        "confirm" => "confirm",
        "proxy_wait" => "proxy_wait",
        _ => "wait",
    }
}
