//! Tells people outside of questions of workflow runs, by transports of agents.
//!
//! What a notice says is read from the question when it is sent, so nothing is said about a question that is closed
//! by then. Attempts and pauses are those of texts of conversations. A notice that nobody took is told in the run's log,
//! and the run keeps waiting.

use super::agent_host::SendError;
use super::network::QuestionNotice;
use super::notice_content;
use super::send_retry::{may_try_again, pause_before_retry};
use crate::leases::LeasedEffect;
use crate::run_effects::run_of;
use crate::runtime::Runtime;
use tandem_engine::run::Run;
use tandem_record::{Command, EffectKind, EffectOutcome, ErrorInfo};
use tandem_store::Fault;

/// Name of an undelivered notice in the run's log.
const UNDELIVERED: &str = "notice_undelivered";

/// How an attempt ended.
pub enum NoticeOutcome {
    /// The network took it, or there is nothing to tell.
    Done,
    Failed(SendError),
}

impl Runtime {
    /// One attempt. A fault means that nothing was sent.
    pub(crate) async fn tell_people(&self, work: &LeasedEffect) -> Result<NoticeOutcome, Fault> {
        let EffectKind::NotifyPeople {
            interrupt,
            agent,
            transport,
            to,
            ..
        } = &work.effect.kind
        else {
            return Ok(NoticeOutcome::Done);
        };
        let stored = self
            .store()
            .run_of_any_tenant(&run_of(&work.stream))
            .await?;
        let Some(tenant) = stored.map(|stored| stored.row.tenant) else {
            return Ok(NoticeOutcome::Done);
        };
        let now = self.clock().now();
        let content = match self.question(&tenant, interrupt).await? {
            Some(row) => notice_content::of_run(&row, now)?,
            None => None,
        };
        let Some(content) = content else {
            return Ok(NoticeOutcome::Done);
        };
        let Some(conversations) = self.conversations() else {
            let message = "this host has no agents any more";
            return Ok(NoticeOutcome::Failed(SendError::permanent(message)));
        };
        let notice = QuestionNotice {
            transport,
            to,
            question: &content,
            link: None,
            key: &work.effect.id,
            may_be_repeated: work.past.leases > 0,
        };
        let told = conversations.agents().notify(agent, &notice, now).await;
        Ok(match told {
            Ok(()) => NoticeOutcome::Done,
            Err(error) => NoticeOutcome::Failed(error),
        })
    }

    /// Records the result of an attempt.
    pub(crate) async fn record_notice(
        &self,
        work: &LeasedEffect,
        outcome: &NoticeOutcome,
    ) -> Result<(), Fault> {
        let (error, attempts) = match (outcome, &work.effect.kind) {
            (NoticeOutcome::Failed(error), EffectKind::NotifyPeople { attempts, .. }) => {
                (error, *attempts)
            }
            _ => return self.remove_outbox_entry(work).await,
        };
        if may_try_again(error, attempts) {
            let (pause, failed) = pause_before_retry(error, &work.effect.id, attempts);
            let mut again = work.effect.kind.clone();
            if let EffectKind::NotifyPeople { attempts, .. } = &mut again {
                *attempts = failed;
            }
            let at = self.clock().now().plus_ms(pause);
            return self.reschedule_effect::<Run>(work, again, at).await;
        }
        let mut message = error.message.clone();
        self.redact_in_place(&mut message);
        tracing::warn!(effect = %work.effect.id, message, "nobody was told of a question");
        let command = Command::FinishEffect {
            effect: work.effect.id.clone(),
            outcome: EffectOutcome::Failed {
                error: ErrorInfo::new(UNDELIVERED, message),
            },
        };
        self.submit_effect_result(work, &self.inner.runs, &work.stream, command)
            .await
    }
}
