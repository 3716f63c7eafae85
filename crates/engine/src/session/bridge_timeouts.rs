//! What follows when nobody writes in time: the time of a bridge, and that of a flow's wait for input.
//!
//! A wait that ends with the time of its bridge is a wait that timed out: the user is told, and a fallback is opened.

use super::bridge::PROXY_WAIT;
use super::draft::Draft;
use super::program::Resume;
use super::turn::Next;
use crate::flow::FlowEffect;
use crate::flow::effect::{ProxyTimeoutBehavior, ProxyWaitEffect};
use serde_json::json;
use tandem_record::conversation::{
    CandidateOrigin, EscalationMode, FlowPause, ProxyTimeoutScope, ResumedBy,
    SessionEventBody as Body, SessionTimer,
};
use tandem_record::{EscalationId, ProxyId};

const TIMEOUT: &str = "timeout";

impl Draft<'_> {
    fn awaited_input(&self) -> Option<ProxyWaitEffect> {
        self.session.proxy_wait()?;
        let effect = self.session.flow.as_ref()?.current.as_ref()?;
        match FlowEffect::parse(effect).ok()? {
            FlowEffect::ProxyWait(wait) => Some(wait),
            _ => None,
        }
    }

    /// The time of the bridge is over: it is stopped at once, and a flow that waits gets a turn. During a takeover, and
    /// after input that was accepted before, it is stopped in its turn.
    pub(super) fn time_out_bridge(&mut self, id: &ProxyId) {
        if !self.is_due(&SessionTimer::Proxy { id: id.clone() }) {
            return;
        }
        if self.session.takeover.is_some() || self.session.has_input_for(id) {
            self.queue_ending_of_bridge(id, TIMEOUT, true);
            return;
        }
        self.note_bridge_timeout(id);
        self.stop_bridge(TIMEOUT);
        self.queue_bridge_end(TIMEOUT, true);
    }

    pub(super) fn note_bridge_timeout(&mut self, id: &ProxyId) {
        self.emit(Body::ProxyTimedOut {
            proxy_id: id.clone(),
            scope: ProxyTimeoutScope::Bridge,
            behavior: self.awaited_input().map(|wait| wait.timeout_behavior),
        });
    }

    /// The turn of a wait whose time is over.
    pub(super) fn time_out_proxy_wait(&mut self, proxy: &ProxyId) -> Next {
        self.emit(Body::ProxyTimedOut {
            proxy_id: proxy.clone(),
            scope: ProxyTimeoutScope::Wait,
            behavior: self.awaited_input().map(|wait| wait.timeout_behavior),
        });
        self.tell_timeout()
    }

    /// First of all the user is told.
    pub(super) fn tell_timeout(&mut self) -> Next {
        let wait = self.awaited_input();
        let text = wait.and_then(|wait| wait.timeout_message_to_user);
        match self.respond(
            &text.unwrap_or_default(),
            CandidateOrigin::TimeoutText,
            None,
        ) {
            Next::Finish(_) => self.go_on_after_timeout_text(),
            next => next,
        }
    }

    /// Then the bridge is stopped, somebody else is asked, and the flow goes on, as its author chose.
    pub(super) fn go_on_after_timeout_text(&mut self) -> Next {
        let Some((wait, (interrupt, proxy))) = self.awaited_input().zip(self.session.proxy_wait())
        else {
            return Next::DONE;
        };
        let (interrupt, proxy) = (interrupt.clone(), proxy.clone());
        let behavior = wait.timeout_behavior;
        let mut payload = json!({
            "outcome": "timed_out",
            "timedOut": true,
            "proxyId": proxy,
            "behavior": behavior,
            "at": self.now.rfc3339(),
        });
        match behavior {
            ProxyTimeoutBehavior::Continue => {}
            ProxyTimeoutBehavior::EndProxy => drop(self.stop_bridge(TIMEOUT)),
            ProxyTimeoutBehavior::FallbackEscalation => {
                self.stop_bridge(TIMEOUT);
                if let Some(id) = self.escalate_timeout(&proxy) {
                    payload["escalationId"] = json!(id);
                }
            }
        }
        self.leave_pause(
            &interrupt,
            PROXY_WAIT,
            ResumedBy::Timeout,
            "timed_out",
            None,
        );
        self.resume_flow(Resume::Value(Some(payload)))
    }

    /// Opens the escalation that stands in for the desk. The run has one open at a time; where it has one already, it
    /// is that. `None` when nobody could decide it.
    fn escalate_timeout(&mut self, proxy: &ProxyId) -> Option<EscalationId> {
        let (run, step) = self.active_step()?;
        if let Some(open) = self.session.open_escalation_of(&run) {
            return Some(open.id.clone());
        }
        self.cx.agent.admin_auth.as_ref()?;
        let flow = self.session.flow.as_ref()?;
        let Some(FlowPause::ProxyWait { target, .. }) = flow.pause.clone() else {
            return None;
        };
        let flow = flow.flow.clone();
        let mut escalation =
            self.implicit_escalation("proxy_timeout", EscalationMode::AsyncResolution);
        let timeout_ms = self.cx.agent.hitl.escalation.timeout_ms;
        escalation.id = EscalationId::from(format!("esc-{run}-{step}"));
        escalation.metadata = Some(json!({ "proxyId": proxy, "target": target }));
        escalation.flow_id = Some(flow);
        escalation.flow_run_id = Some(run);
        escalation.deadline = Some(self.escalation_deadline(escalation.mode, timeout_ms));
        let id = escalation.id.clone();
        self.emit(Body::EscalationCreated(Box::new(escalation)));
        Some(id)
    }
}
