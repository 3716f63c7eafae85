//! The rows that follow from a decision about a schedule: its listing, its occurrences, the recipients of campaigns,
//! and the log of its agent.

use tandem_engine::machine::{Decision, Machine as _};
use tandem_engine::schedule::{ActiveRun, Schedule, occurrence_id};
use tandem_record::conversation::{
    OutcomeCounts, RecipientRecord, ScheduleEvent, ScheduleEventBody as Body, ScheduleRecord,
    ScheduleRunRecord, ScheduledOutcome,
};
use tandem_record::{Recorded, ScheduleRunId};
use tandem_store::{Commit, ConversationChange, ScheduleRecipientRow, ScheduleRow, ScheduleRunRow};

pub(super) fn project(
    before: Option<&Schedule>,
    decision: &Decision<Schedule>,
    commit: &mut Commit,
) {
    let Some(record) = decision.after.record() else {
        return;
    };
    let rows = &mut commit.conversations;
    if before.and_then(Schedule::record) != Some(record) {
        rows.push(ConversationChange::PutSchedule(schedule_row(record)));
    }
    let mut state = match before {
        Some(before) => before.clone(),
        None => Schedule::unstarted(record.id.clone()),
    };
    for event in &decision.events {
        // A run that ends is known before its last event only.
        let run = event.event.body.run_id().cloned();
        let ended = match (&event.event.body, &run) {
            (Body::RunFinished { .. }, Some(id)) => state.run(id).cloned(),
            _ => None,
        };
        state.evolve(event);
        if let (Some(run), Some(id)) = (ended, &run) {
            let row = finished_run(record, id, &run, event);
            rows.push(ConversationChange::PutScheduleRun(row));
        }
        rows.extend(recipients(event, &state));
        let skipped = skipped_run(record, event).map(ConversationChange::PutScheduleRun);
        rows.extend(skipped);
    }
    let known = decision.after.known();
    let runs = known.into_iter().flat_map(|known| known.runs());
    for (id, run) in runs {
        let shown = |run: &ActiveRun| (run.attempt, run.recipients, run.counts);
        let known = before.and_then(|before| before.run(id));
        if known.map(shown) != Some(shown(run)) {
            let row = run_row(&run_record(record, id, run));
            rows.push(ConversationChange::PutScheduleRun(row));
        }
    }
    if let Some(agent) = &record.agent_id
        && !decision.events.is_empty()
    {
        rows.push(ConversationChange::LogEvents {
            tenant: record.owner.tenant.clone(),
            agent: agent.clone(),
            stream: decision.after.stream(),
        });
    }
}

fn schedule_row(record: &ScheduleRecord) -> ScheduleRow {
    let target = &record.definition.target;
    ScheduleRow {
        schedule_id: record.id.clone(),
        tenant: record.owner.tenant.clone(),
        workspace: record.owner.workspace.clone(),
        agent: record.agent_id.clone(),
        flow: record.definition.flow_id.clone(),
        workflow: target.workflow().map(|target| target.workflow_id.clone()),
        status: record.status,
        target_kind: target.kind().to_owned(),
        user_external_id: target.user().map(|user| user.user_external_id.clone()),
        campaign: target.campaign_id().cloned(),
        body: serde_json::to_string(record).expect("a record is plain data"),
    }
}

fn run_record(record: &ScheduleRecord, id: &ScheduleRunId, run: &ActiveRun) -> ScheduleRunRecord {
    ScheduleRunRecord {
        id: id.clone(),
        schedule_id: record.id.clone(),
        agent_id: record.agent_id.clone(),
        owner: record.owner.clone(),
        flow_id: run.definition.flow_id.clone(),
        target: run.definition.target.clone(),
        scheduled_for: run.scheduled_for,
        started_at: run.started_at,
        attempt: run.attempt,
        finished_at: None,
        outcome: None,
        reason: None,
        partial: false,
        session_id: None,
        turn: None,
        workflow_run_id: None,
        expanded_recipients: run.recipients.filter(|_| run.is_campaign()),
        counts: run.counts,
    }
}

fn finished_run(
    schedule: &ScheduleRecord,
    id: &ScheduleRunId,
    run: &ActiveRun,
    event: &Recorded<ScheduleEvent>,
) -> ScheduleRunRow {
    let mut record = run_record(schedule, id, run);
    if let Body::RunFinished {
        outcome,
        reason,
        partial,
        counts,
        session_id,
        turn,
        workflow_run_id,
        ..
    } = &event.event.body
    {
        record.finished_at = Some(event.at);
        record.outcome = Some(*outcome);
        record.reason.clone_from(reason);
        record.partial = *partial;
        record.counts = *counts;
        record.session_id.clone_from(session_id);
        record.turn = *turn;
        record.workflow_run_id.clone_from(workflow_run_id);
    }
    run_row(&record)
}

/// Occurrences of a workflow's schedule that take place no more: it has no log of an agent that says so. Several that
/// are reported together are one row, that of the last.
fn skipped_run(
    schedule: &ScheduleRecord,
    event: &Recorded<ScheduleEvent>,
) -> Option<ScheduleRunRow> {
    let target = &schedule.definition.target;
    let Body::Skipped {
        reason,
        scheduled_for,
        until,
        count,
        ..
    } = &event.event.body
    else {
        return None;
    };
    target.workflow()?;
    let scheduled_for = until.unwrap_or(*scheduled_for);
    Some(run_row(&ScheduleRunRecord {
        id: occurrence_id(&schedule.id, scheduled_for),
        schedule_id: schedule.id.clone(),
        agent_id: None,
        owner: schedule.owner.clone(),
        flow_id: None,
        target: target.clone(),
        scheduled_for,
        started_at: event.at,
        attempt: 1,
        finished_at: Some(event.at),
        outcome: Some(ScheduledOutcome::Skipped),
        reason: Some(reason.clone()),
        partial: false,
        session_id: None,
        turn: None,
        workflow_run_id: None,
        expanded_recipients: None,
        counts: OutcomeCounts {
            skipped: *count,
            ..OutcomeCounts::default()
        },
    }))
}

fn run_row(record: &ScheduleRunRecord) -> ScheduleRunRow {
    ScheduleRunRow {
        run_id: record.id.clone(),
        schedule_id: record.schedule_id.clone(),
        tenant: record.owner.tenant.clone(),
        scheduled_for: record.scheduled_for,
        body: serde_json::to_string(record).expect("a record is plain data"),
    }
}

/// Recipients of a campaign that an event lists or changes.
fn recipients(event: &Recorded<ScheduleEvent>, state: &Schedule) -> Vec<ConversationChange> {
    let is_campaign = |run| state.run(run).is_some_and(ActiveRun::is_campaign);
    let row = |run: &ScheduleRunId, ordinal: u32, recipient: &RecipientRecord| {
        ConversationChange::PutScheduleRecipient(ScheduleRecipientRow {
            run_id: run.clone(),
            ordinal,
            body: serde_json::to_string(recipient).expect("a record is plain data"),
        })
    };
    let unstarted = |user: &String| RecipientRecord {
        user_external_id: user.clone(),
        session_id: None,
        turn: None,
        outcome: None,
        reason: None,
    };
    match &event.event.body {
        Body::RecipientsListed {
            run_id,
            first,
            users,
        } => {
            let listed = (*first..).zip(users);
            listed
                .map(|(ordinal, user)| row(run_id, ordinal, &unstarted(user)))
                .collect()
        }
        Body::TurnStarted {
            run_id,
            ordinal,
            user_external_id,
            session_id,
            turn,
            ..
        } if is_campaign(run_id) => {
            let started = RecipientRecord {
                session_id: session_id.clone(),
                turn: *turn,
                ..unstarted(user_external_id)
            };
            vec![row(run_id, *ordinal, &started)]
        }
        Body::RecipientFinished {
            run_id,
            ordinal,
            user_external_id,
            session_id,
            turn,
            outcome,
            reason,
            ..
        } => {
            let finished = RecipientRecord {
                user_external_id: user_external_id.clone(),
                session_id: session_id.clone(),
                turn: *turn,
                outcome: Some(*outcome),
                reason: reason.clone(),
            };
            vec![row(run_id, *ordinal, &finished)]
        }
        _ => Vec::new(),
    }
}
