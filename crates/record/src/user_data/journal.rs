//! The user data in the journal of a flow run.

use super::parts::{optional_text, optional_value};
use super::{UserData, UserDataRefs};
use crate::conversation::{FlowFailure, FlowPause, FlowRecord, FlowRunStart};

pub(super) fn of_record<'a>(record: &'a mut FlowRecord, to: &mut UserDataRefs<'a>) {
    match record {
        FlowRecord::Started(start) => {
            let FlowRunStart {
                run_id: _,
                parent: _,
                forked_from: _,
                agent_id: _,
                flow_id: _,
                session_id: _,
                owner: _,
                version: _,
                input,
                origin: _,
                seed: _,
                context,
            } = &mut **start;
            optional_value(input, to);
            to.push(UserData::Object(context));
        }
        FlowRecord::Segment {
            turn: _,
            trigger: _,
            context,
        } => to.push(UserData::Object(context)),
        FlowRecord::Effect {
            step: _,
            fingerprint: _,
            effect,
        } => to.push(UserData::Value(effect)),
        FlowRecord::Result {
            step: _,
            value,
            error,
        } => {
            optional_value(value, to);
            optional_value(error, to);
        }
        FlowRecord::Host {
            index: _,
            name,
            fingerprint: _,
            value,
            error,
        } => {
            to.push(UserData::Text(name));
            optional_value(value, to);
            optional_value(error, to);
        }
        FlowRecord::Hook {
            step: _,
            input,
            decision,
        } => to.extend([input, decision].map(UserData::Value)),
        FlowRecord::Paused { pause, question } => {
            of_pause(pause, to);
            to.push(UserData::Value(question));
        }
        FlowRecord::Resumed {
            interrupt_id: _,
            by: _,
            outcome,
            answered_by,
        } => {
            to.push(UserData::Text(outcome));
            optional_text(answered_by, to);
        }
        FlowRecord::Ended {
            reason,
            cancelled: _,
        } => optional_text(reason, to),
        FlowRecord::Failed { failure } => {
            let FlowFailure {
                code,
                message,
                details,
            } = failure;
            to.extend([UserData::Text(code), UserData::Text(message)]);
            optional_value(details, to);
        }
        FlowRecord::Diverged {
            step: _,
            expected,
            actual,
        } => to.extend([expected, actual].map(UserData::Value)),
    }
}

fn of_pause<'a>(pause: &'a mut FlowPause, to: &mut UserDataRefs<'a>) {
    match pause {
        FlowPause::Ask {
            interrupt_id: _,
            key,
            asked_at: _,
            reminded: _,
        } => to.push(UserData::Text(key)),
        FlowPause::Confirm {
            interrupt_id: _,
            attempts: _,
            deadline: _,
            asked: _,
            asked_at: _,
            reminded: _,
        }
        | FlowPause::Wait {
            interrupt_id: _,
            wait_for: _,
            escalation_id: _,
            deadline: _,
            left_ms: _,
            since: _,
            attempts: _,
        }
        | FlowPause::Workflow {
            interrupt_id: _,
            run_id: _,
            deadline: _,
            since: _,
        }
        | FlowPause::ProxyWait {
            interrupt_id: _,
            proxy_id: _,
            target: _,
            deadline: _,
            since: _,
        } => {}
    }
}
