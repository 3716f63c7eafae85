//! Payloads of interrupts, decisions and votes, of changes to open interrupts, and of external
//! events that no node waits for yet. Names that are not in the protocol's catalogue belong to this
//! host; the protocol's name for a denial is reserved for hosts that advertise its role model.

use super::time::rfc3339;
use crate::fields::WriteFields;
use serde_json::Value;
use tandem_record::{DeciderSnapshot, Event, Timestamp};

/// The data of an interrupt in the protocol's closed shapes. Additional host data is only for the
/// inbox of this host.
pub fn public_data(kind: &str, data: &Value) -> Value {
    let known: &[&str] = match kind {
        "low-confidence" => &["agentId", "threshold", "observed", "decision"],
        "clarification" => &["questions", "contextType"],
        _ => return data.clone(),
    };
    let members = data.as_object().into_iter().flatten();
    let members = members.filter(|(name, _)| known.contains(&name.as_str()));
    members
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

pub(super) fn interrupt_payload(event: &Event, at: Timestamp, out: &mut impl WriteFields) {
    match event {
        Event::ApprovalRequested {
            node,
            interrupt,
            artifact_id,
            artifact_type,
            title,
            actions,
            approvers,
            required,
        } => {
            // This event uses the older action names.
            let older = |action: &String| match action.as_str() {
                "edit-accept" => "edit".to_owned(),
                _ => action.clone(),
            };
            out.node(node);
            out.set("interruptId", interrupt);
            out.set("artifactId", artifact_id);
            out.set("artifactType", artifact_type);
            out.set("title", title);
            out.set("actions", actions.iter().map(older).collect::<Vec<_>>());
            out.opt(
                "approversList",
                (!approvers.is_empty()).then_some(approvers),
            );
            out.set("requiredApprovals", required);
        }
        Event::ClarificationRequested {
            node,
            interrupt,
            questions,
        } => {
            out.node(node);
            out.set("interruptId", interrupt);
            out.set("questions", questions);
        }
        Event::ApprovalReceived { node, decision, .. } => {
            out.node(node);
            out.set("action", &decision.action);
            if decision.action != "timeout" {
                let submitter = decision.submitter();
                let claimed = decision.claimed_by.as_deref();
                let claimed = claimed.or_else(|| decision.claimed_voter());
                let claimed = claimed.filter(|name| decision.by.is_none() || *name != submitter);
                out.set("decidedBy", claimed.unwrap_or(submitter));
                out.opt("claimedBy", claimed.map(|_| submitter));
            }
            decider_fields(&decision.decider, out);
            out.set("decidedAt", rfc3339(at));
            out.opt("feedback", decision.feedback.as_ref());
            out.opt("refineFeedback", decision.refine.as_ref());
            out.opt("editedArtifactData", decision.edited.as_ref());
        }
        Event::ClarificationResolved { node, answers, by } => {
            out.node(node);
            out.set("answers", answers);
            out.opt("answeredBy", by.as_ref());
        }
        Event::ApprovalQuestioned {
            node,
            interrupt,
            question,
            by,
        } => {
            out.node(node);
            out.set("interruptId", interrupt);
            out.set("question", question);
            out.opt("askedBy", by.as_ref());
        }
        Event::InterruptEscalated {
            node,
            interrupt,
            level,
            approvers,
            groups,
            roles,
            deadline,
        } => {
            out.node(node);
            out.set("interruptId", interrupt);
            out.set("level", level);
            for (key, names) in [
                ("approversList", approvers),
                ("approverGroupRefs", groups),
                ("approverRoleRefs", roles),
            ] {
                out.opt(key, (!names.is_empty()).then_some(names));
            }
            out.set("deadline", rfc3339(*deadline));
        }
        Event::InterruptReminded {
            node,
            interrupt,
            count,
            next,
        } => {
            out.node(node);
            out.set("interruptId", interrupt);
            out.set("count", count);
            out.opt("nextAt", next.map(rfc3339));
        }
        Event::DecisionDenied {
            node,
            interrupt,
            by,
            why,
        } => {
            out.node(node);
            out.set("interruptId", interrupt);
            out.set("principal", by.as_ref().map_or("link", |by| by.as_str()));
            out.set("reason", why.as_str());
        }
        Event::ConversationOpened {
            conversation,
            turn,
            agent,
            participants,
            schema,
            ..
        } => {
            out.set("conversationId", conversation);
            out.opt("agentId", agent.as_ref());
            out.opt("participants", participants.as_ref());
            out.set("initialTurn", turn);
            out.opt("schema", schema.as_ref());
            out.set("capabilities", ["multi-turn"]);
        }
        Event::ConversationExchanged {
            conversation, turn, ..
        } => {
            out.set("conversationId", conversation);
            out.set("turnIndex", &turn["turnIndex"]);
            out.set("turn", turn);
        }
        Event::ConversationClosed {
            conversation,
            turn,
            outcome,
            ..
        } => {
            out.set("conversationId", conversation);
            out.set("turnIndex", &turn["turnIndex"]);
            out.set("finalTurn", turn);
            out.opt("outcome", outcome.as_ref());
        }
        Event::ExternalEventReceived {
            event_id,
            event_type,
            payload,
            by,
        } => {
            out.set("eventId", event_id);
            out.set("eventType", event_type);
            out.set("payload", payload);
            out.opt("receivedFrom", by.as_ref());
        }
        _ => {}
    }
}

/// The groups, roles and delegation of a decider at the time of the decision.
pub(super) fn decider_fields(decider: &DeciderSnapshot, out: &mut impl WriteFields) {
    out.opt("actingFor", decider.acting_for.as_ref());
    let some = |names: &Vec<String>| (!names.is_empty()).then(|| names.clone());
    out.opt("eligibleThrough", some(&decider.groups));
    out.opt("roles", some(&decider.roles));
}
