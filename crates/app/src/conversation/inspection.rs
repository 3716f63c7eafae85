//! What operators inspect of a session, page by page: messages, texts on their way, journals of flow runs. A page
//! reads a bounded part of the log, wherever it starts.

use super::sessions::JournalEntry;
use crate::app::App;
use crate::error::{AppError, ResourceKind};
use crate::follow::PAGE;
use std::collections::BTreeSet;
use tandem_access::{Identity, Scope};
use tandem_record::conversation::{
    IntentStatus, LedgerMessage, OutboxIntent, SessionEvent, SessionEventBody as Body,
    SessionLedger, SessionStart,
};
use tandem_record::{EffectId, Recorded, Seq, SessionId, Timestamp};
use tandem_runtime::conversation::{ComparedAnswer, SessionComparison};

/// Items of one page.
pub const MAX_INSPECTED: usize = 1_000;
/// Events that are read for one page.
const MAX_READ: usize = 20_000;

/// Where a page starts: after this event of the session, and after this record of a run's journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InspectionCursor {
    pub event: Option<Seq>,
    /// For journals: the last record read of the run that begins after `event`.
    pub record: Option<Seq>,
}

impl InspectionCursor {
    pub fn to_text(&self) -> String {
        let number = |seq: Option<Seq>| seq.map_or_else(String::new, |seq| seq.0.to_string());
        format!("{}:{}", number(self.event), number(self.record))
    }

    pub fn parse(text: &str) -> Option<Self> {
        let (event, record) = text.split_once(':')?;
        let number = |text: &str| match text {
            "" => Some(None),
            digits => digits.parse().ok().map(|number| Some(Seq(number))),
        };
        Some(Self {
            event: number(event)?,
            record: number(record)?,
        })
    }
}

/// One page of a listing of a session.
pub struct InspectionPage<T> {
    pub items: Vec<T>,
    /// Where the next page starts, if there is more.
    pub next: Option<InspectionCursor>,
}

/// A ledger that is folded from somewhere within the log of a session.
pub(super) fn begun(start: &SessionStart, at: Timestamp) -> SessionLedger {
    let mut ledger = SessionLedger::default();
    ledger.evolve(&Recorded {
        seq: Seq(0),
        at,
        cause: None,
        event: SessionEvent {
            turn: None,
            flow: None,
            actor: None,
            response: None,
            body: Body::SessionStarted(Box::new(start.clone())),
        },
    });
    ledger
}

impl App {
    /// What was said in a session, in order.
    pub async fn read_session_messages(
        &self,
        caller: &Identity,
        session: &SessionId,
        from: InspectionCursor,
        limit: usize,
    ) -> Result<InspectionPage<LedgerMessage>, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        let found = self.find_session(caller, session).await?;
        let ledger = begun(found.start(), found.started_at());
        let (ledger, next) = self
            .read_ledger(session, ledger, from, |ledger| {
                ledger.messages.len() >= limit
            })
            .await?;
        Ok(InspectionPage {
            items: ledger.messages,
            next,
        })
    }

    /// Texts on their way, delivered, cancelled or given up, in order.
    pub async fn read_session_outbox(
        &self,
        caller: &Identity,
        session: &SessionId,
        from: InspectionCursor,
        limit: usize,
    ) -> Result<InspectionPage<OutboxIntent>, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        let found = self.find_session(caller, session).await?;
        let ledger = begun(found.start(), found.started_at());
        let (mut ledger, next) = self
            .read_ledger(session, ledger, from, |ledger| ledger.outbox.len() >= limit)
            .await?;
        let pending: BTreeSet<EffectId> = found.unsent().cloned().collect();
        if let Some(next) = &next {
            self.read_deliveries(session, &mut ledger, next.event, &pending)
                .await?;
        }
        Ok(InspectionPage {
            items: ledger.outbox,
            next,
        })
    }

    /// Folds the log until the page is full.
    pub(super) async fn read_ledger(
        &self,
        session: &SessionId,
        mut ledger: SessionLedger,
        from: InspectionCursor,
        is_full: impl Fn(&SessionLedger) -> bool,
    ) -> Result<(SessionLedger, Option<InspectionCursor>), AppError> {
        let (mut after, mut read) = (from.event, 0);
        loop {
            let page = self.runtime().session_events(session, after, PAGE).await?;
            if page.events.is_empty() {
                return Ok((ledger, None));
            }
            for event in &page.events {
                ledger.evolve(event);
                after = Some(event.seq);
                read += 1;
                let has_more = page.head > after;
                if has_more && (is_full(&ledger) || read >= MAX_READ) {
                    let next = InspectionCursor {
                        event: after,
                        record: None,
                    };
                    return Ok((ledger, Some(next)));
                }
            }
        }
    }

    /// What became of the texts of a page: it follows them in the log, unless they still wait.
    async fn read_deliveries(
        &self,
        session: &SessionId,
        ledger: &mut SessionLedger,
        mut after: Option<Seq>,
        pending: &BTreeSet<EffectId>,
    ) -> Result<(), AppError> {
        let shown = ledger.outbox.len();
        loop {
            let is_open = |intent: &OutboxIntent| {
                intent.status == IntentStatus::Pending && !pending.contains(&intent.key)
            };
            if !ledger.outbox.iter().take(shown).any(is_open) {
                break;
            }
            let page = self.runtime().session_events(session, after, PAGE).await?;
            let Some(last) = page.events.last() else {
                break;
            };
            after = Some(last.seq);
            page.events.iter().for_each(|event| ledger.evolve(event));
        }
        ledger.outbox.truncate(shown);
        Ok(())
    }

    /// How what is stored of a session compares with its log.
    pub async fn compare_session(
        &self,
        caller: &Identity,
        session: &SessionId,
    ) -> Result<SessionComparison, AppError> {
        caller.require_scope(Scope::AuditRead)?;
        self.find_session(caller, session).await?;
        let compared = self.runtime().compare_session(&caller.tenant, session);
        let compared = compared.await?;
        compared.ok_or(AppError::NotFound(ResourceKind::Session))
    }

    /// What people said during takeovers, beside what the agent would have said. Calls the agent's model.
    pub async fn compare_answers(
        &self,
        caller: &Identity,
        session: &SessionId,
    ) -> Result<Vec<ComparedAnswer>, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        caller.require_scope(Scope::RunsCreate)?;
        self.find_session(caller, session).await?;
        let compared = self.runtime().compare_answers(session).await?;
        compared.ok_or(AppError::NotFound(ResourceKind::Session))
    }

    /// The journals of the session's flow runs, in the order of their starts.
    pub async fn read_session_journal(
        &self,
        caller: &Identity,
        session: &SessionId,
        from: InspectionCursor,
        limit: usize,
    ) -> Result<InspectionPage<JournalEntry>, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        self.find_session(caller, session).await?;
        let runtime = self.runtime();
        let (mut after, mut record, mut read) = (from.event, from.record, 0);
        let mut items = Vec::new();
        loop {
            let page = runtime.session_events(session, after, PAGE).await?;
            if page.events.is_empty() {
                return Ok(InspectionPage { items, next: None });
            }
            for event in &page.events {
                read += 1;
                if let (Body::FlowStarted { .. }, Some(flow)) =
                    (&event.event.body, &event.event.flow)
                {
                    let run = &flow.flow_run_id;
                    loop {
                        let records = runtime.flow_journal_page(run, record, PAGE).await?;
                        let Some(last) = records.last else { break };
                        for found in records.records {
                            record = Some(found.seq);
                            items.push(JournalEntry {
                                run: run.clone(),
                                record: found,
                            });
                            if items.len() >= limit {
                                let next = InspectionCursor {
                                    event: after,
                                    record,
                                };
                                let next = Some(next);
                                return Ok(InspectionPage { items, next });
                            }
                        }
                        record = Some(last);
                    }
                    record = None;
                }
                after = Some(event.seq);
                if read >= MAX_READ && page.head > after {
                    let next = Some(InspectionCursor {
                        event: after,
                        record: None,
                    });
                    return Ok(InspectionPage { items, next });
                }
            }
        }
    }
}
