//! The mailbox as a machine of the runtime, with a transport that fails on request.

use super::mailbox::{MailCommand, MailContext, MailReply, MailState, Mailbox, Send};
use std::sync::Arc;
use std::sync::Mutex;
use tandem_engine::machine::{Decision, Machine as _};
use tandem_record::{Actor, Effect, OrderKey, QuestionBody, StepId, StreamId, TenantId, TimerName};
use tandem_runtime::{
    AuditAction, DrivenMachine, Fault, FoldedStream, InterruptRow, LeasedEffect, MachineDriver,
    ProjectedRows, Projection, Runtime, SubmitError, encode_event,
};
use tandem_store::{Commit, Lane, NewEvent, WorkClass};

/// Attempts until a message counts as failed.
pub(crate) const MAX_TRIES: u32 = 3;
/// Pause between two attempts.
pub(crate) const RETRY_MS: u64 = 1_000;

/// What was sent, by every process of a test.
#[derive(Default)]
pub(crate) struct Transport {
    /// Box and number of every attempt.
    pub(crate) attempts: Mutex<Vec<(String, u32)>>,
    /// How many of the next attempts fail.
    pub(crate) failing: Mutex<u32>,
}

impl Transport {
    pub(crate) fn numbers(&self) -> Vec<u32> {
        let attempts = self.attempts.lock().expect("no panic");
        attempts.iter().map(|(_, number)| *number).collect()
    }

    pub(crate) fn fail_next(&self, attempts: u32) {
        *self.failing.lock().expect("no panic") = attempts;
    }

    fn send(&self, to: &StreamId, number: u32) -> bool {
        let mut attempts = self.attempts.lock().expect("no panic");
        attempts.push((to.to_string(), number));
        let mut failing = self.failing.lock().expect("no panic");
        let fails = *failing > 0;
        *failing = failing.saturating_sub(1);
        !fails
    }
}

impl DrivenMachine for Mailbox {
    const STREAM_PREFIX: &'static str = "box:";
    const SNAPSHOT_FORMAT: u32 = 1;

    type Settings = Arc<Transport>;
    type Outcome = bool;

    fn limits<'a>(_: &'a Runtime, _: &'a Arc<Transport>) -> &'a () {
        &()
    }

    async fn load(
        runtime: &Runtime,
        _: &MachineDriver<Self>,
        stream: &StreamId,
    ) -> Result<Option<FoldedStream<Self>>, Fault> {
        let fresh = Self::new(stream);
        let name = fresh.name.clone();
        let restore = |state: MailState| Some(Self { name, state });
        let folded = runtime.fold_stream(stream, fresh, restore, None).await?;
        Ok(folded.machine.head().is_some().then_some(folded))
    }

    async fn tenant_of(
        runtime: &Runtime,
        driver: &MachineDriver<Self>,
        stream: &StreamId,
    ) -> Result<Option<TenantId>, Fault> {
        let folded = Self::load(runtime, driver, stream).await?;
        Ok(folded.map(|folded| folded.machine.state.tenant))
    }

    fn unstarted(stream: &StreamId) -> Option<Self> {
        Some(Self::new(stream))
    }

    async fn decide_with_lookups(
        runtime: &Runtime,
        _: &MachineDriver<Self>,
        current: &Self,
        command: &MailCommand,
    ) -> Result<Decision<Self>, SubmitError> {
        let context = MailContext {
            now: runtime.clock().now(),
        };
        let Ok(decision) = current.decide(command, &context);
        Ok(decision)
    }

    fn abandon(&self, _: &Runtime, _: &Fault) -> Option<Decision<Self>> {
        None
    }

    fn redact_reply(_: &Runtime, reply: MailReply) -> MailReply {
        reply
    }

    fn audit_action(_: &MailCommand, _: &Actor) -> Option<AuditAction> {
        None
    }

    fn timer_name((): &()) -> TimerName {
        TimerName::new("reminder")
    }

    fn timer_key(name: &TimerName) -> Option<()> {
        (name.as_str() == "reminder").then_some(())
    }

    fn timer_command((): ()) -> MailCommand {
        MailCommand::Remind
    }

    fn effect_name(_: &Send) -> &'static str {
        "mail"
    }

    fn lane(&self, _: &Send) -> Lane {
        Lane {
            class: WorkClass::Delivery,
            tenant: self.state.tenant.clone(),
            target: "mail".to_owned(),
        }
    }

    fn order_key(&self, _: &Send) -> Option<OrderKey> {
        Some(OrderKey::new(format!("mail:{}", self.name)))
    }

    fn checks_dispatch(_: &Self::EffectKind) -> bool {
        true
    }

    fn refuse_dispatch(&self, effect: &Effect<Send>) -> Option<MailCommand> {
        let number = effect.kind.number;
        self.state.muted.then_some(MailCommand::Suppress { number })
    }

    async fn perform(
        _: &Runtime,
        driver: &MachineDriver<Self>,
        work: &LeasedEffect<Send>,
    ) -> Result<bool, Fault> {
        let sent = driver.settings.send(&work.stream, work.effect.kind.number);
        Ok(sent)
    }

    async fn record_outcome(
        runtime: &Runtime,
        driver: &Arc<MachineDriver<Self>>,
        work: &LeasedEffect<Send>,
        sent: &bool,
    ) -> Result<(), Fault> {
        let Send { number, tries } = work.effect.kind;
        if !*sent && tries + 1 < MAX_TRIES {
            let again = Send {
                number,
                tries: tries + 1,
            };
            let at = runtime.clock().now().plus_ms(RETRY_MS);
            return runtime.reschedule_effect::<Self>(work, again, at).await;
        }
        let command = MailCommand::Finish {
            number,
            sent: *sent,
        };
        runtime
            .submit_effect_result(work, driver, &work.stream, command)
            .await
    }

    fn encode_events(
        _: &Runtime,
        _: Option<&Self>,
        decision: &mut Decision<Self>,
    ) -> Vec<NewEvent> {
        decision.events.iter().map(encode_event).collect()
    }

    fn project(
        _: &Projection<'_>,
        before: Option<&Self>,
        decision: &Decision<Self>,
        commit: &mut Commit,
    ) -> ProjectedRows {
        let after = &decision.after;
        let asked = before.and_then(|before| before.state.question.clone());
        let has_question_changes = asked != after.state.question;
        let open = after.state.question.as_ref();
        if has_question_changes && let Some((interrupt, at)) = open.or(asked.as_ref()) {
            commit.interrupts.push(InterruptRow {
                interrupt: interrupt.clone(),
                stream: after.stream(),
                step: StepId::new("desk"),
                tenant: after.state.tenant.clone(),
                workspace: None,
                kind: "clarification".to_owned(),
                created_at: *at,
                deadline: None,
                priority: 0,
                groups: Vec::new(),
                closed: open.is_none().then(|| "answered".to_owned()),
                body: QuestionBody::default().to_json(),
            });
        }
        ProjectedRows {
            has_question_changes,
            ..ProjectedRows::default()
        }
    }

    fn announce(_: &Runtime, _: &Decision<Self>, _: bool) {}
}
