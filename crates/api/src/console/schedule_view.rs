//! View models of schedules and their occurrences.

use super::desk_offer::desk_offer;
use super::shown_bytes::line;
use crate::api::ApiState;
use crate::problem::Problem;
use tandem_access::{Identity, Scope};
use tandem_app::conversation::Recipient;
use tandem_console::{
    LocalMoment, RecipientListRow, ScheduleListRow, SchedulePageView, ScheduleRunListRow,
    ScheduleTriggerView, ScheduledStartView,
};
use tandem_record::conversation::{
    MissedPolicy, OutcomeCounts, ScheduleDefinition, ScheduleOrigin, SchedulePlane, ScheduleRecord,
    ScheduleRunRecord, ScheduleTarget, ScheduleTrigger, ScheduledActiveFlow, ScheduledOutcome,
};
use tandem_record::{FlowId, RunId, SessionId, Timestamp};

/// Occurrences to come on the page of a schedule.
const NEXT: usize = 5;

/// A schedule as the list shows it.
pub(super) async fn row(
    api: &ApiState,
    record: &ScheduleRecord,
) -> Result<ScheduleListRow, Problem> {
    let last_run = api.app.last_schedule_run(record).await?;
    Ok(ScheduleListRow {
        last_run: last_run.map(|last| run(api, &record.definition, &last)),
        ..row_without_run(api, record)
    })
}

fn row_without_run(api: &ApiState, record: &ScheduleRecord) -> ScheduleListRow {
    let definition = &record.definition;
    let shown = |at| moment(api, definition, at);
    ScheduleListRow {
        id: record.id.to_string(),
        agent_id: record.agent_id.as_ref().map(ToString::to_string),
        starts: starts(definition.flow_id.as_ref(), &definition.target),
        status: record.status.as_str().to_owned(),
        trigger: match &definition.trigger {
            ScheduleTrigger::Cron { expr } => ScheduleTriggerView::Cron(line(expr)),
            ScheduleTrigger::Once { run_at } => ScheduleTriggerView::Once(shown(*run_at)),
        },
        timezone: definition.timezone.clone(),
        target: target(&definition.target),
        campaign: definition.target.campaign_id().map(|id| line(id)),
        next: record.next_run_at.map(shown),
        last_run: None,
    }
}

/// The page of a schedule without its runs.
pub(super) fn page(
    api: &ApiState,
    reader: &Identity,
    record: &ScheduleRecord,
    csrf: String,
) -> SchedulePageView {
    let definition = &record.definition;
    let next = api.app.next_occurrences(record, NEXT).into_iter();
    let offer = |scope| desk_offer(api.app.schedule_right(reader, record, scope));
    let user = definition.target.user();
    let session = user.and_then(|user| user.session_id.as_ref());
    SchedulePageView {
        schedule: row_without_run(api, record),
        session_id: session.map(SessionId::to_string),
        version: record.version,
        created_by: created_by(&record.created_by),
        created_at: record.created_at.rfc3339(),
        on_missed: match definition.on_missed.policy {
            MissedPolicy::Skip => "are skipped".to_owned(),
            MissedPolicy::CatchUp => match definition.on_missed.max_runs() {
                1 => "the newest is made up for".to_owned(),
                newest => format!("the newest {newest} are made up for"),
            },
        },
        on_active_flow: match definition.on_active_flow {
            ScheduledActiveFlow::Skip => "is skipped".to_owned(),
            ScheduledActiveFlow::Preempt => "ends that flow".to_owned(),
        },
        starts_sessions: definition.allow_session_bootstrap,
        next: next.map(|at| moment(api, definition, at)).collect(),
        offer_pause: offer(Scope::RunsCreate),
        offer_cancel: offer(Scope::RunsCancel),
        csrf,
        ..SchedulePageView::default()
    }
}

pub(super) fn run(
    api: &ApiState,
    definition: &ScheduleDefinition,
    run: &ScheduleRunRecord,
) -> ScheduleRunListRow {
    ScheduleRunListRow {
        id: run.id.to_string(),
        scheduled_for: moment(api, definition, run.scheduled_for),
        started_at: run.started_at.rfc3339(),
        finished_at: run.finished_at.map(Timestamp::rfc3339),
        outcome: run.outcome.map(|outcome| outcome.as_str().to_owned()),
        partial: run.partial,
        reason: run.reason.as_deref().map(line),
        attempt: run.attempt,
        session_id: run.session_id.as_ref().map(SessionId::to_string),
        workflow_run_id: run.workflow_run_id.as_ref().map(RunId::to_string),
        recipients: run.expanded_recipients,
        counts: counts(&run.counts),
        is_campaign: run.target.campaign().is_some(),
    }
}

pub(super) fn recipient(found: &Recipient) -> RecipientListRow {
    let record = &found.record;
    RecipientListRow {
        user: line(&record.user_external_id),
        outcome: record.outcome.map(|outcome| outcome.as_str().to_owned()),
        reason: record.reason.as_deref().map(line),
        session_id: record.session_id.as_ref().map(SessionId::to_string),
    }
}

/// What a schedule starts.
pub(super) fn starts(flow: Option<&FlowId>, target: &ScheduleTarget) -> ScheduledStartView {
    match target.workflow() {
        Some(workflow) => ScheduledStartView::Workflow(line(workflow.workflow_id.as_str())),
        None => ScheduledStartView::Flow(flow.map(FlowId::to_string).unwrap_or_default()),
    }
}

/// Whom a schedule is for, or the trigger that it is of, in words.
pub(super) fn target(target: &ScheduleTarget) -> String {
    match target {
        ScheduleTarget::User(user) => line(&format!("user {}", user.user_external_id)),
        ScheduleTarget::Segment(campaign) => {
            line(&format!("segment {}", campaign.segment.segment_id()))
        }
        ScheduleTarget::Workflow(workflow) => line(&workflow.trigger_id),
    }
}

fn moment(api: &ApiState, definition: &ScheduleDefinition, at: Timestamp) -> LocalMoment {
    LocalMoment {
        at: at.rfc3339(),
        local: api.app.schedule_clock(definition, at),
    }
}

fn created_by(origin: &ScheduleOrigin) -> String {
    let who = |id: &Option<String>| line(id.as_deref().unwrap_or_default());
    match origin.plane {
        SchedulePlane::Control => format!("admin {}", who(&origin.actor_id)),
        SchedulePlane::Tool => format!("user {}", who(&origin.user_id)),
        SchedulePlane::Config => "the file of the agent".to_owned(),
        SchedulePlane::Workflow => match &origin.actor_id {
            None => "the document of the operator".to_owned(),
            who_registered => format!("the document of {}", who(who_registered)),
        },
    }
}

/// Only outcomes that somebody has.
fn counts(counts: &OutcomeCounts) -> Vec<(&'static str, u32)> {
    let all = [
        (ScheduledOutcome::Success, counts.success),
        (ScheduledOutcome::Skipped, counts.skipped),
        (ScheduledOutcome::Failed, counts.failed),
        (ScheduledOutcome::CanceledHitl, counts.canceled_hitl),
    ];
    let some = all.into_iter().filter(|(_, count)| *count > 0);
    some.map(|(outcome, count)| (outcome.as_str(), count))
        .collect()
}
