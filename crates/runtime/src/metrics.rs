//! Prometheus metrics of the runtime. Never labelled by run: the number of series must not grow
//! with the number of runs.

use crate::conversation::ConversationMetrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tandem_engine::run::Decision;
use tandem_record::Event;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct RunStatusLabel {
    pub status: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct KindLabel {
    pub kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct OutcomeLabel {
    pub outcome: &'static str,
}

#[derive(Clone)]
pub struct Metrics {
    pub runs_created: Counter,
    pub runs_ended: Family<RunStatusLabel, Counter>,
    pub runs_active: Gauge,
    pub run_seconds: Histogram,
    pub nodes_completed: Counter,
    pub node_attempts: Counter,
    pub caps_exceeded: Family<KindLabel, Counter>,
    pub conflicts: Counter,
    pub leases_lost: Counter,
    pub panics: Counter,
    pub events: Counter,
    pub commit_seconds: Histogram,
    pub effects: Family<KindLabel, Counter>,
    pub effect_seconds: Histogram,
    pub work_put_off: Family<KindLabel, Counter>,
    pub work_parked: Family<KindLabel, Counter>,
    pub timer_late_seconds: Histogram,
    pub webhook_deliveries: Family<OutcomeLabel, Counter>,
    pub callback_announcements: Family<OutcomeLabel, Counter>,
    pub node_seconds: Histogram,
    pub effects_requested: Counter,
    pub questions_asked: Counter,
    pub question_seconds: Histogram,
    pub run_backlog_seconds: Histogram,
    pub conversations: ConversationMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        let runs = [
            0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0,
        ];
        let fast = [
            0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0,
        ];
        let calls = [
            0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0,
        ];
        let nodes = [
            0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0,
        ];
        let people = [
            60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0, 259_200.0, 604_800.0,
        ];
        let backlog = [0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 60.0, 300.0, 1800.0];
        Self {
            runs_created: Counter::default(),
            runs_ended: Family::default(),
            runs_active: Gauge::default(),
            run_seconds: Histogram::new(runs),
            nodes_completed: Counter::default(),
            node_attempts: Counter::default(),
            caps_exceeded: Family::default(),
            conflicts: Counter::default(),
            leases_lost: Counter::default(),
            panics: Counter::default(),
            events: Counter::default(),
            commit_seconds: Histogram::new(fast),
            effects: Family::default(),
            effect_seconds: Histogram::new(calls),
            work_put_off: Family::default(),
            work_parked: Family::default(),
            timer_late_seconds: Histogram::new(fast),
            webhook_deliveries: Family::default(),
            callback_announcements: Family::default(),
            node_seconds: Histogram::new(nodes),
            effects_requested: Counter::default(),
            questions_asked: Counter::default(),
            question_seconds: Histogram::new(people),
            run_backlog_seconds: Histogram::new(backlog),
            conversations: ConversationMetrics::default(),
        }
    }
}

impl Metrics {
    /// Registers all metrics under the protocol's names.
    pub fn register(&self, registry: &mut Registry) {
        let r = registry;
        r.register(
            "openwop_run_created",
            "Runs created",
            self.runs_created.clone(),
        );
        r.register(
            "openwop_run_completed",
            "Runs ended, by status",
            self.runs_ended.clone(),
        );
        r.register(
            "openwop_run_active",
            "Runs begun and not ended, since start",
            self.runs_active.clone(),
        );
        r.register_with_unit(
            "openwop_run_duration",
            "From start to end",
            Unit::Seconds,
            self.run_seconds.clone(),
        );
        r.register(
            "openwop_node_completed",
            "Nodes completed",
            self.nodes_completed.clone(),
        );
        r.register(
            "openwop_node_attempts",
            "Attempts to run a node",
            self.node_attempts.clone(),
        );
        r.register(
            "openwop_cap_exceeded",
            "Limits breached, by kind",
            self.caps_exceeded.clone(),
        );
        r.register(
            "openwop_run_claim_conflicts",
            "Decisions made again after a conflict",
            self.conflicts.clone(),
        );
        r.register(
            "tandem_leases_lost",
            "Leases on effects that were lost while this process worked on them",
            self.leases_lost.clone(),
        );
        r.register("tandem_panics", "Tasks that panicked", self.panics.clone());
        r.register("tandem_events", "Events appended", self.events.clone());
        r.register_with_unit(
            "tandem_commit",
            "Time to make a decision durable",
            Unit::Seconds,
            self.commit_seconds.clone(),
        );
        r.register(
            "openwop_activity_invocations",
            "Effects performed, by kind",
            self.effects.clone(),
        );
        r.register_with_unit(
            "openwop_activity_duration",
            "Time of an effect",
            Unit::Seconds,
            self.effect_seconds.clone(),
        );
        r.register(
            "tandem_work_put_off",
            "Timers and effects that failed and are tried again later, by kind",
            self.work_put_off.clone(),
        );
        r.register(
            "tandem_work_parked",
            "Timers and effects that kept failing and were parked, by kind",
            self.work_parked.clone(),
        );
        r.register_with_unit(
            "tandem_timer_late",
            "How late timers fire",
            Unit::Seconds,
            self.timer_late_seconds.clone(),
        );
        r.register(
            "tandem_webhook_deliveries",
            "Attempts to deliver to webhooks, by outcome: delivered, failed, dead",
            self.webhook_deliveries.clone(),
        );
        r.register(
            "tandem_callback_announcements",
            "Attempts to tell the callbacks of runs of questions, by outcome: delivered, failed, dead",
            self.callback_announcements.clone(),
        );
        r.register_with_unit(
            "openwop_node_duration",
            "From the start of a node to its completion",
            Unit::Seconds,
            self.node_seconds.clone(),
        );
        r.register(
            "openwop_queue_enqueued",
            "Effects that were to be performed",
            self.effects_requested.clone(),
        );
        r.register(
            "openwop_interrupt_requested",
            "Questions asked",
            self.questions_asked.clone(),
        );
        r.register_with_unit(
            "openwop_interrupt_duration",
            "From a question to its answer",
            Unit::Seconds,
            self.question_seconds.clone(),
        );
        r.register_with_unit(
            "openwop_run_backlog",
            "From the creation of a run to the start of its first node",
            Unit::Seconds,
            self.run_backlog_seconds.clone(),
        );
        self.conversations.register(r);
    }

    pub(crate) fn webhook_delivery(&self, outcome: &'static str) {
        let label = OutcomeLabel { outcome };
        self.webhook_deliveries.get_or_create(&label).inc();
    }

    pub(crate) fn callback_announcement(&self, outcome: &'static str) {
        let label = OutcomeLabel { outcome };
        self.callback_announcements.get_or_create(&label).inc();
    }

    pub(crate) fn work_put_off(&self, kind: &'static str, parked: bool) {
        let counted = match parked {
            true => &self.work_parked,
            false => &self.work_put_off,
        };
        counted.get_or_create(&KindLabel { kind }).inc();
    }

    pub(crate) fn effect_done(&self, kind: &'static str, seconds: f64) {
        self.effects.get_or_create(&KindLabel { kind }).inc();
        self.effect_seconds.observe(seconds);
    }

    #[expect(clippy::cast_precision_loss, reason = "an approximate delay is enough")]
    pub(crate) fn timer_fired(&self, late_ms: u64) {
        self.timer_late_seconds.observe(late_ms as f64 / 1000.0);
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "an approximate duration is enough"
    )]
    pub(crate) fn observe(&self, decision: &Decision, created: bool) {
        self.events.inc_by(decision.events.len() as u64);
        if created {
            self.runs_created.inc();
            self.runs_active.inc();
        }
        self.effects_requested.inc_by(decision.effects.len() as u64);
        if let Some(waited_ms) = decision.after.first_node_delay_ms(&decision.events) {
            self.run_backlog_seconds.observe(waited_ms as f64 / 1000.0);
        }
        for recorded in &decision.events {
            match &recorded.event {
                Event::NodeStarted { .. } => {
                    self.node_attempts.inc();
                }
                Event::NodeCompleted { duration_ms, .. } => {
                    self.nodes_completed.inc();
                    self.node_seconds.observe(*duration_ms as f64 / 1000.0);
                }
                Event::InterruptRequested { .. } => {
                    self.questions_asked.inc();
                }
                Event::InterruptResolved { resolution, .. } => {
                    let closed = decision.after.closed_question(&resolution.interrupt);
                    if let Some(asked) = closed.and_then(|closed| closed.asked_at) {
                        let open_ms = recorded.at.ms_since(asked);
                        self.question_seconds.observe(open_ms as f64 / 1000.0);
                    }
                }
                Event::CapBreached { kind, .. } => {
                    let kind = kind.as_str();
                    self.caps_exceeded.get_or_create(&KindLabel { kind }).inc();
                }
                Event::RunCompleted { duration_ms, .. }
                | Event::RunFailed { duration_ms, .. }
                | Event::RunCancelled { duration_ms, .. } => {
                    let status = decision.after.status().as_str();
                    self.runs_ended
                        .get_or_create(&RunStatusLabel { status })
                        .inc();
                    self.runs_active.dec();
                    self.run_seconds.observe(*duration_ms as f64 / 1000.0);
                    log_end(decision, status);
                }
                _ => {}
            }
        }
    }
}

/// Logs one line per ended run, with the fields an operator searches for.
fn log_end(decision: &Decision, status: &str) {
    let run = &decision.after;
    let request = run.request();
    tracing::info!(
        metric_kind = "openwop.run.completed",
        run_id = %run.id(),
        tenant = %request.owner.tenant,
        workflow_id = %run.definition().id(),
        status,
        error_code = run.error().map(|e| e.code.as_str()),
        trace = request.trace.as_ref().map(|t| t.traceparent.as_str()),
        "run ended"
    );
}
