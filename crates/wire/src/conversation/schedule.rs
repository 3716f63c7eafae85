//! Schedules, their occurrences and recipients, and the events of schedules.

use super::event::{AgentLogPosition, Payload, shown_actor};
use crate::fields::{Fields, WriteFields};
use serde_json::{Value, json};
use tandem_record::conversation::{
    RecipientRecord, ScheduleDefinition, ScheduleEvent, ScheduleEventBody as Body, ScheduleRecord,
    ScheduleRunRecord, ScheduleTarget, ScheduleTrigger, ScheduledOutcome, WorkflowTarget,
};
use tandem_record::{Masking, Recorded, ScheduleRunId, SessionId, Timestamp};

pub fn schedule(record: &ScheduleRecord) -> Value {
    let mut out = Fields::default();
    out.set("id", &record.id);
    out.opt("agentId", record.agent_id.as_ref());
    write_definition(&record.definition, &mut out);
    out.set("nextRunAt", record.next_run_at.map(Timestamp::rfc3339));
    out.opt("lastRunAt", record.last_run_at.map(Timestamp::rfc3339));
    out.set("status", record.status);
    out.set("version", record.version);
    out.set("createdBy", &record.created_by);
    out.set("createdAt", record.created_at.rfc3339());
    json!(out.0)
}

fn write_definition(definition: &ScheduleDefinition, out: &mut Fields) {
    out.opt("flowId", definition.flow_id.as_ref());
    out.set("targetKind", definition.target.kind());
    match &definition.target {
        ScheduleTarget::User(user) => {
            out.set("targetUserExternalId", &user.user_external_id);
            out.opt("targetSessionId", user.session_id.as_ref());
        }
        ScheduleTarget::Segment(campaign) => {
            out.opt("campaignId", campaign.campaign_id.as_ref());
            out.set("segmentSelector", &campaign.segment);
        }
        ScheduleTarget::Workflow(workflow) => write_workflow(workflow, out),
    }
    out.set("triggerType", definition.trigger.name());
    match &definition.trigger {
        ScheduleTrigger::Cron { expr } => out.set("cronExpr", expr),
        ScheduleTrigger::Once { run_at } => out.set("runAt", run_at.rfc3339()),
    }
    out.set("timezone", &definition.timezone);
    let is_of_workflow = definition.target.workflow().is_some();
    if !is_of_workflow {
        out.set("allowSessionBootstrap", definition.allow_session_bootstrap);
    }
    let missed = &definition.on_missed;
    out.set("onMissedPolicy", missed.policy);
    out.opt("maxRuns", missed.max_runs);
    out.opt("maxAgeSeconds", missed.max_age_seconds);
    if !is_of_workflow {
        out.set("onActiveFlow", definition.on_active_flow);
    }
    out.opt("metadata", definition.metadata.as_ref());
    out.opt("input", definition.input.as_ref());
}

fn write_workflow(workflow: &WorkflowTarget, out: &mut Fields) {
    out.set("workflowId", &workflow.workflow_id);
    out.set("triggerId", &workflow.trigger_id);
}

/// One occurrence. `outcome` is null while it is under way.
pub fn schedule_run(run: &ScheduleRunRecord) -> Value {
    let mut out = Fields::default();
    out.set("id", &run.id);
    out.set("scheduleId", &run.schedule_id);
    out.set("scheduledFor", run.scheduled_for.rfc3339());
    out.set("startedAt", run.started_at.rfc3339());
    out.opt("finishedAt", run.finished_at.map(Timestamp::rfc3339));
    out.set("outcome", run.outcome);
    out.opt("reason", run.reason.as_ref());
    out.set("attempt", run.attempt);
    out.opt("sessionId", run.session_id.as_ref());
    out.opt("requestId", request_id(run.session_id.as_ref(), run.turn));
    out.opt("flowId", run.flow_id.as_ref());
    out.set("targetKind", run.target.kind());
    if let Some(workflow) = run.target.workflow() {
        write_workflow(workflow, &mut out);
    }
    out.opt("runId", run.workflow_run_id.as_ref());
    out.opt("campaignId", run.target.campaign_id());
    out.opt("expandedRecipients", run.expanded_recipients);
    out.opt("partial", run.partial.then_some(true));
    out.set("counts", run.counts);
    json!(out.0)
}

/// One recipient of a campaign. `outcome` is null while their turn has not ended.
pub fn schedule_recipient(run: &ScheduleRunId, ordinal: u32, recipient: &RecipientRecord) -> Value {
    let mut out = Fields::default();
    out.set("id", format!("{run}-{ordinal}"));
    out.set("scheduleRunId", run);
    out.set("userExternalId", &recipient.user_external_id);
    let session = recipient.session_id.as_ref();
    out.opt("sessionId", session);
    out.opt("requestId", request_id(session, recipient.turn));
    out.set("outcome", recipient.outcome);
    out.opt("reason", recipient.reason.as_ref());
    json!(out.0)
}

fn request_id(session: Option<&SessionId>, turn: Option<u64>) -> Option<String> {
    Some(session?.request_id(turn?))
}

/// One event of a schedule in the form of all events. `run` is the occurrence it is about. `None` for events that only
/// keep the machine going.
pub fn schedule_event(
    recorded: &Recorded<ScheduleEvent>,
    schedule: &ScheduleRecord,
    run: Option<&ScheduleRunRecord>,
    AgentLogPosition(position): AgentLogPosition,
) -> Option<Value> {
    let body = &recorded.event.body;
    let definition = match body {
        Body::Created { definition, .. }
        | Body::Updated {
            definition: Some(definition),
            ..
        } => definition,
        _ => &schedule.definition,
    };
    let target = run.map_or(&definition.target, |run| &run.target);
    let flow = run.map_or(definition.flow_id.as_ref(), |run| run.flow_id.as_ref());
    let name = name(body, target)?;
    let (session, turn) = place(body);
    let request = request_id(session, turn);
    let mut out = Fields::default();
    out.set("eventId", format!("evt-{}-{}", schedule.id, recorded.seq));
    out.set("type", name);
    out.set("at", recorded.at.rfc3339());
    out.set("sequence", recorded.seq);
    out.set("position", position);
    out.set("agentId", &schedule.agent_id);
    out.set("sessionId", session);
    out.set("userId", Value::Null);
    out.set("requestId", &request);
    out.set(
        "turnId",
        session
            .zip(turn)
            .map(|(session, turn)| session.turn_id(turn)),
    );
    out.set("flowId", flow);
    out.set("flowRunId", Value::Null);
    out.set("causationId", Value::Null);
    let actor = recorded.event.actor.as_ref();
    out.set("channel", actor.map_or("schedule", |actor| &actor.channel));
    out.set("actor", actor.map(shown_actor));
    let mut payload = Payload::new(Masking::Passthrough);
    payload.set("scheduleId", &schedule.id);
    payload.set("flowId", flow);
    payload.set("targetKind", target.kind());
    payload.opt(
        "userExternalId",
        target.user().map(|user| &user.user_external_id),
    );
    payload.opt("sessionId", session);
    payload.opt("campaignId", target.campaign_id());
    payload.opt("requestId", request);
    payload.set("source", "scheduled");
    payload.opt("scheduleRunId", body.run_id());
    if let Some(run) = run {
        payload.set("scheduledFor", run.scheduled_for.rfc3339());
    }
    write_own(body, target, &mut payload);
    out.set("payload", payload.into_fields());
    Some(json!(out.0))
}

fn name(body: &Body, target: &ScheduleTarget) -> Option<&'static str> {
    let of_run = |outcome: &ScheduledOutcome, done, failed| match outcome {
        ScheduledOutcome::Success => done,
        ScheduledOutcome::Failed => failed,
        ScheduledOutcome::CanceledHitl => "schedule:run_canceled_hitl",
        ScheduledOutcome::Skipped => "schedule:skipped",
    };
    Some(match body {
        Body::Created { .. } => "schedule:created",
        Body::Updated { .. } => "schedule:updated",
        Body::Canceled { .. } => "schedule:canceled",
        Body::Triggered { .. } => "schedule:triggered",
        Body::Skipped { .. } => "schedule:skipped",
        Body::RunStarted { .. } => "schedule:run_started",
        Body::ClaimTakenOver { .. } => "schedule:run_taken_over",
        Body::CampaignResolved { .. } => "schedule:campaign_resolved",
        Body::TurnStarted { .. } => match target.campaign() {
            Some(_) => "schedule:recipient_run_started",
            None => "schedule:turn_started",
        },
        Body::RecipientFinished { outcome, .. } => of_run(
            outcome,
            "schedule:recipient_run_completed",
            "schedule:recipient_run_failed",
        ),
        Body::RunFinished { outcome, .. } => {
            of_run(outcome, "schedule:run_completed", "schedule:run_failed")
        }
        Body::ClaimRenewed { .. }
        | Body::RecipientsListed { .. }
        | Body::ThrottleReleased { .. } => return None,
    })
}

/// The turn an event is about.
fn place(body: &Body) -> (Option<&SessionId>, Option<u64>) {
    match body {
        Body::TurnStarted {
            session_id, turn, ..
        }
        | Body::RecipientFinished {
            session_id, turn, ..
        }
        | Body::RunFinished {
            session_id, turn, ..
        } => (session_id.as_ref(), *turn),
        _ => (None, None),
    }
}

fn write_own(body: &Body, target: &ScheduleTarget, out: &mut Payload) {
    match body {
        Body::Created {
            created_by,
            next_run_at,
            ..
        } => {
            out.set("createdBy", created_by);
            out.set("nextRunAt", next_run_at.map(Timestamp::rfc3339));
        }
        Body::Updated {
            status,
            next_run_at,
            ..
        } => {
            out.set("status", status);
            out.set("nextRunAt", next_run_at.map(Timestamp::rfc3339));
        }
        Body::Canceled { reason } => out.set("reason", reason),
        Body::Triggered { next_run_at, .. } => {
            out.set("attempt", 1);
            out.set("nextRunAt", next_run_at.map(Timestamp::rfc3339));
        }
        Body::Skipped {
            reason,
            scheduled_for,
            until,
            count,
            ..
        } => {
            out.set("scheduledFor", scheduled_for.rfc3339());
            out.opt("until", until.map(Timestamp::rfc3339));
            out.set("count", count);
            out.set("outcome", ScheduledOutcome::Skipped);
            out.set("reason", reason);
        }
        Body::RunStarted { .. } => out.set("attempt", 1),
        Body::ClaimTakenOver { attempt, .. } => out.set("attempt", attempt),
        Body::CampaignResolved {
            attempt,
            recipients,
            ..
        } => {
            out.set("attempt", attempt);
            out.set("recipients", recipients);
        }
        Body::TurnStarted {
            attempt,
            user_external_id,
            ..
        } => {
            out.set("attempt", attempt);
            let recipient = target.campaign().map(|_| user_external_id);
            out.opt("recipientUserExternalId", recipient);
        }
        Body::RecipientFinished {
            attempt,
            user_external_id,
            outcome,
            reason,
            ..
        } => {
            out.set("attempt", attempt);
            out.set("recipientUserExternalId", user_external_id);
            out.set("outcome", outcome);
            out.opt("reason", reason.as_ref());
        }
        Body::RunFinished {
            attempt,
            outcome,
            reason,
            partial,
            counts,
            ..
        } => {
            out.set("attempt", attempt);
            out.set("outcome", outcome);
            out.opt("reason", reason.as_ref());
            out.opt("partial", partial.then_some(true));
            out.set("counts", counts);
        }
        Body::ClaimRenewed { .. }
        | Body::RecipientsListed { .. }
        | Body::ThrottleReleased { .. } => {}
    }
}
