//! Notifies a run's `callbackUrl` of open questions.
//!
//! An announcement is an effect of its run and not a delivery of a subscription, because its
//! lifetime is that of one question: the engine creates it in the commit that opens the question
//! and removes it in the commit that closes it. The outbox already stores exactly that, with an
//! identity, through crashes. A subscription does not fit: it has an order of deliveries, a health
//! that lets one bad target delay everything behind it, a secret and a log, and it must be
//! registered and deleted. Both share the webhook sender with its guarded client, and the jitter of
//! pauses.
//!
//! | Failures | Until the next attempt |
//! |---|---|
//! | 1, 2, 3, 4, 5 | 1 s, 4 s, 30 s, 2 min, 10 min |
//! | 6 to 23 | 1 h |
//! | 24 | never: the run's log records it, and the run keeps waiting |
//!
//! Invariants:
//! - What is sent is read from the run when it is sent. No entry, event, log line or error holds a link.
//! - A failure is recorded before the next attempt, and only while the entry is there: a question that
//!   was closed meanwhile is not brought back.
//! - Every attempt checks what whoever started the run may do now. Without a good key that may read the
//!   run nothing is sent, and no further attempt is made; without one that may answer, the link only shows.
//! - It waits in the lane of its tenant and target like other deliveries, so that one target that hangs
//!   leaves the others theirs (`slots.rs`).

use super::health::MAX_ATTEMPTS;
use super::sender::Announcement;
use crate::jitter::with_jitter;
use crate::leases::LeasedEffect;
use crate::runtime::Runtime;
use tandem_engine::run::Run;
use tandem_record::{
    Command, EffectId, EffectKind, EffectOutcome, ErrorInfo, InterruptId, Object, RunId,
};
use tandem_store::{Fault, RunRow};

/// Name of an undelivered announcement in the run's log.
const UNDELIVERED: &str = "callback_undelivered";
const STARTER_MAY_NOT_READ: &str =
    "whoever started the run has no good key with the scope runs:read";

fn pause_ms(failures: u32, id: &str) -> u64 {
    let base = match failures {
        0 => 0,
        1 => 1_000,
        2 => 4_000,
        3 => 30_000,
        4 => 120_000,
        5 => 600_000,
        _ => 3_600_000,
    };
    with_jitter(base, &format!("{id}:{failures}"))
}

/// Result of a notification.
pub enum NotifyOutcome {
    Done(EffectOutcome),
    /// There is no callback, or no open question.
    NothingToSend,
    /// Whoever started the run may not read it.
    Denied,
}

impl Runtime {
    /// Records the result of an attempt.
    pub(crate) async fn record_announcement(
        &self,
        work: &LeasedEffect,
        (interrupt, tries): (&InterruptId, u32),
        outcome: &NotifyOutcome,
    ) -> Result<(), Fault> {
        let outcome = match outcome {
            NotifyOutcome::Done(outcome) => outcome,
            NotifyOutcome::NothingToSend => return self.remove_outbox_entry(work).await,
            NotifyOutcome::Denied => {
                self.give_up_announcement(work, interrupt, STARTER_MAY_NOT_READ)
                    .await?;
                self.inner.metrics.callback_announcement("dead");
                return Ok(());
            }
        };
        let failures = tries.saturating_add(1);
        let counted = match outcome {
            EffectOutcome::Failed { .. } if failures < MAX_ATTEMPTS => {
                let again = EffectKind::NotifyCallback {
                    interrupt: interrupt.clone(),
                    tries: failures,
                };
                let pause = pause_ms(failures, work.effect.id.as_str());
                let at = self.clock().now().plus_ms(pause);
                self.reschedule_effect::<Run>(work, again, at).await?;
                "failed"
            }
            EffectOutcome::Failed { error } => {
                let why = format!("{failures} attempts, the last: {}", error.message);
                self.give_up_announcement(work, interrupt, &why).await?;
                "dead"
            }
            EffectOutcome::Done { .. } | EffectOutcome::Pack(_) => {
                self.remove_outbox_entry(work).await?;
                "delivered"
            }
        };
        self.inner.metrics.callback_announcement(counted);
        Ok(())
    }

    /// Records in the run's log that a question is not announced any more.
    async fn give_up_announcement(
        &self,
        work: &LeasedEffect,
        interrupt: &InterruptId,
        why: &str,
    ) -> Result<(), Fault> {
        let effect = &work.effect;
        let stream = &work.stream;
        tracing::warn!(%stream, %interrupt, why, "a question is announced no more");
        let command = Command::FinishEffect {
            effect: effect.id.clone(),
            outcome: EffectOutcome::Failed {
                error: ErrorInfo::new(UNDELIVERED, why),
            },
        };
        self.submit_effect_result(work, &self.inner.runs, stream, command)
            .await
    }

    /// One attempt. A fault means that nothing was sent.
    pub(crate) async fn send_announcement(
        &self,
        run_id: &RunId,
        effect: &EffectId,
        interrupt: &InterruptId,
    ) -> Result<NotifyOutcome, Fault> {
        let stored = self.store().run_of_any_tenant(run_id).await?;
        let (Some(stored), Some(webhook_sender)) = (stored, self.webhook_sender()) else {
            return Ok(NotifyOutcome::NothingToSend);
        };
        let row = stored.row.clone();
        let Some(run) = self.folded(stored).await? else {
            return Ok(NotifyOutcome::NothingToSend);
        };
        let mut open = run.open_questions().into_iter();
        let question = open.find(|open| open.interrupt.id == *interrupt);
        let request = run.request();
        let (Some(question), Some(url)) = (question, &request.callback_url) else {
            return Ok(NotifyOutcome::NothingToSend);
        };
        let now = self.clock().now();
        let access = webhook_sender.starter_access(&request.owner, now).await?;
        if !access.may_read {
            return Ok(NotifyOutcome::Denied);
        }
        let root = self.root_of(&row).await?;
        let announcement = Announcement {
            id: effect,
            url,
            run: run_id,
            workflow: &row.workflow_id,
            parent_and_root: row.parent.as_ref().zip(root.as_ref()),
            question: &question,
            may_answer: request.callback_may_answer && access.may_answer,
            issued_to: request.owner.principal.as_ref(),
            trace: request.trace.as_ref(),
            sent_at: now,
        };
        let sent = webhook_sender.announce(&announcement).await;
        Ok(NotifyOutcome::Done(match sent {
            Ok(_) => EffectOutcome::Done {
                outputs: Object::new(),
            },
            Err(why) => EffectOutcome::Failed {
                error: ErrorInfo::new(UNDELIVERED, why),
            },
        }))
    }

    /// The root of the run tree, which is the run that the client started.
    async fn root_of(&self, row: &RunRow) -> Result<Option<RunId>, Fault> {
        let mut root = row.parent.clone();
        for _ in 0..self.limits().max_depth {
            let Some(above) = &root else { break };
            let stored = self.store().run_of_any_tenant(above).await?;
            match stored.and_then(|stored| stored.row.parent) {
                Some(further) => root = Some(further),
                None => break,
            }
        }
        Ok(root)
    }
}
