//! The own fields of events about texts on their way to the user.

use super::event::Payload;
use tandem_record::conversation::{Candidate, SessionEventBody as Body};

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
        } => {
            out.set("messageId", effect_id);
            out.opt("providerMessageId", provider_message_id.as_ref());
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

fn candidate_fields(candidate: &Candidate, out: &mut Payload) {
    out.set("index", candidate.index);
    out.set("origin", candidate.origin);
    let modality = Some(candidate.modality).filter(|modality| !modality.is_text());
    out.opt("modality", modality);
    out.text("text", &candidate.text);
    out.opt_text("structured", candidate.structured.as_ref());
}
