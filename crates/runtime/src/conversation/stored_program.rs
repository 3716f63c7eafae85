//! Journals of flow runs as they are stored, and programs that are run again from them.

use super::agent_host::{FlowProgram, RebuildError};
use super::programs::{DecisionPrograms, DivergedProgram};
use super::settings::SessionSettings;
use crate::codec;
use crate::fold_stream::FOLD_PAGE;
use crate::runtime::Runtime;
use std::sync::Arc;
use tandem_engine::session::ProgramStep;
use tandem_record::conversation::FlowRecord;
use tandem_record::{DefinitionHash, Event, Recorded, RunId, Seq, StreamId};
use tandem_store::{Fault, PageLimit};

/// A program that was run again from its journal, with the hash of its code.
pub(super) type StoredProgram = (String, Result<Box<dyn FlowProgram>, RebuildError>);

/// Runs the stored code of a run again from a journal.
pub(super) async fn stored_program(
    runtime: &Runtime,
    settings: &SessionSettings,
    run: &RunId,
    journal: Vec<Recorded<FlowRecord>>,
) -> Result<StoredProgram, Fault> {
    let of = journal.iter().find_map(|record| match &record.event {
        FlowRecord::Started(start) => Some((start.owner.tenant.clone(), start.agent_id.clone())),
        _ => None,
    });
    let (tenant, agent) = of.unzip();
    let version = journal.iter().find_map(|record| match &record.event {
        FlowRecord::Started(start) => Some(start.version.clone()),
        _ => None,
    });
    let Some(version) = version else {
        let message = format!("the journal of {run} has no beginning");
        return Err(Fault::permanent("corrupt", message));
    };
    let source = runtime
        .store()
        .definition(&DefinitionHash::from(version.as_str()))
        .await?;
    let agents = Arc::clone(&settings.agents);
    let work = &runtime.inner.decision_work;
    let permit = work.acquire_for(tenant.as_ref(), agent.as_ref()).await;
    let rebuilt = permit
        .run(move || agents.rebuild_program(source.as_deref(), &journal))
        .await;
    Ok((version, rebuilt))
}

/// Loads the program of a run from its stored code and journal.
pub(super) async fn rebuild(
    runtime: &Runtime,
    settings: &SessionSettings,
    run: &RunId,
    programs: &mut DecisionPrograms,
) -> Result<(), Fault> {
    let journal = runtime.flow_journal(run).await?;
    rebuild_from(runtime, settings, run, journal, programs).await
}

/// The same from a journal that is not the stored one.
pub(super) async fn rebuild_from(
    runtime: &Runtime,
    settings: &SessionSettings,
    run: &RunId,
    journal: Vec<Recorded<FlowRecord>>,
    programs: &mut DecisionPrograms,
) -> Result<(), Fault> {
    let (_, rebuilt) = stored_program(runtime, settings, run, journal).await?;
    let program = match rebuilt {
        Ok(program) => program,
        Err(RebuildError::Diverged {
            step,
            expected,
            actual,
        }) => Box::new(DivergedProgram(ProgramStep::Diverged {
            step,
            expected,
            actual,
        })),
        Err(RebuildError::Failed(failure)) => {
            Box::new(DivergedProgram(ProgramStep::Failed(failure)))
        }
    };
    programs.load(run.clone(), program);
    Ok(())
}

impl Runtime {
    /// The journal of a flow run, from its beginning.
    pub async fn flow_journal(&self, run: &RunId) -> Result<Vec<Recorded<FlowRecord>>, Fault> {
        let (mut journal, mut after) = (Vec::new(), None);
        loop {
            let page = self.flow_journal_page(run, after, FOLD_PAGE).await?;
            if page.last.is_none() {
                return Ok(journal);
            }
            after = page.last;
            journal.extend(page.records);
        }
    }

    /// Records of the journal of a flow run after an event of the run.
    pub async fn flow_journal_page(
        &self,
        run: &RunId,
        after: Option<Seq>,
        limit: PageLimit,
    ) -> Result<JournalPage, Fault> {
        let stream = StreamId::of_run(run);
        let page = self.store().event_page(&stream, after, limit).await?;
        let mut records = Vec::new();
        for stored in &page.events {
            let recorded: Recorded<Event> = codec::decode(stored)?;
            if let Event::Flow(record) = recorded.event {
                records.push(Recorded {
                    seq: recorded.seq,
                    at: recorded.at,
                    cause: recorded.cause,
                    event: *record,
                });
            }
        }
        let last = page.events.last().map(|last| last.seq);
        Ok(JournalPage { records, last })
    }
}

/// A page of the journal of a flow run.
pub struct JournalPage {
    pub records: Vec<Recorded<FlowRecord>>,
    /// The last event that was read; `None` at the end.
    pub last: Option<Seq>,
}
