//! The own fields of events about texts on their way to the user.

use super::event::Payload;
use crate::fields::{Fields, WriteFields};
use tandem_record::conversation::{Candidate, ResponseMeta, ScheduleRef, SessionEventBody as Body};

pub(super) fn response_payload(body: &Body, out: &mut Payload) {
    match body {
        Body::ResponsePrepared { candidate, source } => {
            out.set("source", source);
            candidate_fields(candidate, out);
        }
        Body::ResponseQueued {
            effect_id,
            to,
            candidate,
            ..
        } => {
            out.set("messageId", effect_id);
            out.set("to", to);
            candidate_fields(candidate, out);
        }
        Body::DraftHeld {
            draft_id,
            candidate,
        } => {
            out.set("interruptId", draft_id);
            candidate_fields(candidate, out);
        }
        Body::DraftDecided { draft_id, outcome } => {
            out.set("interruptId", draft_id);
            out.set("outcome", outcome);
        }
        Body::ResponseCanceled { index, reason } => {
            out.set("index", index);
            out.opt("reason", reason.as_ref());
        }
        Body::ResponseSuppressed { effect_id, reason } => {
            out.opt("messageId", effect_id.as_ref());
            out.set("reason", reason);
        }
        Body::ResponseSent {
            effect_id,
            provider_message_id,
            further_ids,
            speech,
            template,
        } => {
            out.set("messageId", effect_id);
            out.opt("providerMessageId", provider_message_id.as_ref());
            let further = Some(further_ids).filter(|ids| !ids.is_empty());
            out.opt("furtherMessageIds", further);
            out.opt("speech", speech.as_ref());
            out.opt("template", template.as_ref());
        }
        Body::ResponsePersisted { effect_id } => out.set("messageId", effect_id),
        Body::ResponseFailed {
            stage,
            reason,
            fatal,
        } => {
            out.set("stage", stage);
            out.set("reason", reason);
            out.opt("fatal", fatal.then_some(true));
        }
        Body::SendFailed { effect_id, reason } => {
            out.set("messageId", effect_id);
            out.set("reason", reason);
        }
        _ => {}
    }
}

/// Where a response comes from and how it was decided about.
pub(super) fn write_response_meta(meta: &ResponseMeta, out: &mut Payload) {
    let ResponseMeta {
        source,
        before_llm_action,
        before_response_action,
        hitl_state,
        escalation_id,
        proxy_id,
        schedule,
    } = meta;
    let mut policy = Fields::default();
    policy.opt("beforeLLMAction", before_llm_action.as_ref());
    policy.opt("beforeResponseAction", before_response_action.as_ref());
    out.set("source", source);
    out.set("policy", policy.0);
    out.set("hitlState", hitl_state);
    out.opt("escalationId", escalation_id.as_ref());
    out.opt("proxyId", proxy_id.as_ref());
    if let Some(schedule) = schedule {
        write_schedule(schedule, out);
    }
}

/// The schedule that began the turn of a response.
fn write_schedule(schedule: &ScheduleRef, out: &mut Payload) {
    out.set("scheduleId", &schedule.schedule_id);
    out.set("triggerType", &schedule.trigger_type);
    out.set("scheduledFor", schedule.scheduled_for.rfc3339());
    out.set("runAttempt", schedule.run_attempt);
    out.opt("campaignId", schedule.campaign_id.as_ref());
    out.opt("segmentId", schedule.segment_id.as_ref());
    let recipient = schedule.recipient_user_external_id.as_ref();
    out.opt("recipientUserExternalId", recipient);
}

fn candidate_fields(candidate: &Candidate, out: &mut Payload) {
    out.set("index", candidate.index);
    out.set("origin", candidate.origin);
    let modality = Some(candidate.modality).filter(|modality| !modality.is_text());
    out.opt("modality", modality);
    out.text("text", &candidate.text);
    out.opt_text("structured", candidate.structured.as_ref());
}
