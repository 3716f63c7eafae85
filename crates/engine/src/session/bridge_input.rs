//! What admins write for a bridge: whether they may, what the flow's filter makes of it, and where it goes.
//!
//! The filter fails closed: what it does not decide about is not forwarded, and the flow goes on waiting.

use super::admin_auth::{self, AdminSignals, ChatSignal};
use super::admin_gate::failure_reason;
use super::bridge::{KeptInput, PROXY_WAIT};
use super::bridge_texts::{DENIED, FULL, NOT_DELIVERED};
use super::decide::SessionRefusal;
use super::draft::Draft;
use super::program::Resume;
use super::turn::Next;
use crate::agent::AdminAuthSpec;
use crate::flow::FlowEffect;
use serde_json::{Value, json};
use tandem_record::ProxyId;
use tandem_record::conversation::{
    AdminActor, AuthorizationDecision, CodeOutcome, FlowRecord, HookStage, ProxyBridge, ProxyInput,
    ProxyInputSource, ResumedBy, SessionEventBody as Body, SessionReply, TurnCause, WorkPurpose,
};

const ACTION: &str = "hitl.proxy.input";

/// What becomes of an input.
struct InputDecision {
    forward: bool,
    text: String,
    ends: bool,
    reason: Option<String>,
}

impl Draft<'_> {
    /// Input waits for its turn.
    pub(super) fn admit_proxy_input(
        &mut self,
        proxy: &ProxyId,
        input: &ProxyInput,
    ) -> Result<SessionReply, SessionRefusal> {
        let open = self.session.bridge.as_ref();
        let ends = self.session.ending_of_bridge(proxy).is_some();
        let open = open.filter(|open| open.bridge.id == *proxy && !ends);
        let open = open.ok_or(SessionRefusal::ProxyStopped)?;
        let is_kept = !open.bridge.flags.forward_admin_messages && self.waits_at(proxy).is_none();
        if is_kept && !open.has_room_for(input.text.len()) {
            return Err(SessionRefusal::ProxyFull);
        }
        self.emit(Body::TurnQueued {
            cause: TurnCause::ProxyInput {
                proxy: proxy.clone(),
                input: Box::new(input.clone()),
            },
        });
        let turn = self.session.last_turn;
        Ok(SessionReply::Accepted { turn })
    }

    /// The turn of an input.
    pub(super) fn take_proxy_input(&mut self, proxy: &ProxyId, input: &ProxyInput) -> Next {
        if self.session.bridge_named(proxy).is_none() {
            return self.lose_input(proxy, input);
        }
        match &input.source {
            ProxyInputSource::Actor(actor) => self.receive_input(input, actor),
            ProxyInputSource::Desk { transport, address } => {
                let chat = ChatSignal { transport, address };
                self.authorize_input(input, chat)
            }
        }
    }

    /// The bridge ended before the input's turn came: whoever wrote it is told, and the log says so.
    fn lose_input(&mut self, proxy: &ProxyId, input: &ProxyInput) -> Next {
        let reason = format!(
            "the bridge {proxy} ended before the input {} was used",
            input.id
        );
        self.report_failure("proxy", &reason);
        if let ProxyInputSource::Desk { transport, address } = &input.source {
            self.tell_address(proxy, (transport, address), super::bridge_texts::GONE);
        }
        Next::DONE
    }

    fn authorize_input(&mut self, input: &ProxyInput, chat: ChatSignal<'_>) -> Next {
        let Some(auth) = &self.cx.agent.admin_auth else {
            return self.deny_input(None, "no_auth_config");
        };
        if *auth == AdminAuthSpec::Code {
            return self.request_actor(WorkPurpose::ProxyActor);
        }
        let signals = AdminSignals {
            chat: Some(chat),
            ..AdminSignals::default()
        };
        let Some(actor) = admin_auth::resolve_actor(auth, &signals) else {
            return self.deny_input(None, "no_actor");
        };
        match admin_auth::can(auth, ACTION, &actor) {
            true => self.grant_input(input, &actor.recorded()),
            false => self.deny_input(Some(actor.recorded()), "forbidden"),
        }
    }

    pub(super) fn use_proxy_actor(&mut self, done: &CodeOutcome) -> Next {
        if let Some(error) = &done.error {
            return self.deny_input(None, failure_reason(error));
        }
        let Some(actor) = self.read_actor(done) else {
            return self.deny_input(None, "no_actor");
        };
        let purpose = WorkPurpose::ProxyRight {
            actor: actor.clone(),
        };
        self.request_right(purpose, ACTION, &actor)
    }

    pub(super) fn use_proxy_right(&mut self, actor: &AdminActor, done: &CodeOutcome) -> Next {
        let TurnCause::ProxyInput { input, .. } = self.turn().cause.clone() else {
            return Next::DONE;
        };
        let denial = match (&done.error, &done.value) {
            (Some(error), _) => failure_reason(error),
            (None, Some(answer)) if admin_auth::allows(answer) => {
                return self.grant_input(&input, actor);
            }
            (None, Some(Value::Bool(_))) => "forbidden",
            // Not a yes and not a no.
            (None, _) => "error",
        };
        self.deny_input(Some(actor.clone()), denial)
    }

    fn grant_input(&mut self, input: &ProxyInput, actor: &AdminActor) -> Next {
        // The rules may have taken their time, and the flow may have ended.
        let Some(bridge) = self.session.bridge().cloned() else {
            let TurnCause::ProxyInput { proxy, input } = self.turn().cause.clone() else {
                return Next::DONE;
            };
            return self.lose_input(&proxy, &input);
        };
        if !self.admits(&bridge, actor) {
            return self.deny_input(Some(actor.clone()), "forbidden");
        }
        self.note_input_right(Some(actor.clone()), None);
        self.receive_input(input, actor)
    }

    /// Whether the target lets this actor write.
    fn admits(&self, bridge: &ProxyBridge, actor: &AdminActor) -> bool {
        let target = self.cx.agent.hitl.targets.get(&bridge.target);
        let allowed = target.and_then(|target| target.allowed_actors.as_ref());
        allowed.is_none_or(|allowed| allowed.contains(&actor.id))
    }

    fn deny_input(&mut self, actor: Option<AdminActor>, reason: &str) -> Next {
        self.note_input_right(actor, Some(reason));
        self.actor = None;
        self.tell_desk(DENIED);
        Next::DONE
    }

    fn note_input_right(&mut self, actor: Option<AdminActor>, denial: Option<&str>) {
        let (transport, address) = self.caller();
        let signals = AdminSignals {
            chat: Some(ChatSignal {
                transport: &transport,
                address: &address,
            }),
            ..AdminSignals::default()
        };
        self.actor.clone_from(&actor);
        let decision = AuthorizationDecision {
            granted: denial.is_none(),
            action: ACTION.to_owned(),
            signal: signals.digest().filter(|_| actor.is_none()),
            actor,
            escalation_id: None,
            proxy_id: self.session.bridge().map(|bridge| bridge.id.clone()),
            reason: denial.map(str::to_owned),
            adapter: format!("chat:{transport}"),
        };
        self.emit(Body::AuthorizationDecided(Box::new(decision)));
    }

    /// Somebody with the right wrote: the flow takes it, it is relayed, or it is kept.
    fn receive_input(&mut self, input: &ProxyInput, actor: &AdminActor) -> Next {
        let Some(open) = &self.session.bridge else {
            return Next::DONE;
        };
        let bridge = open.bridge.clone();
        let waits = self.waits_at(&bridge.id).is_some();
        let kept = !waits && !bridge.flags.forward_admin_messages;
        if kept && !open.has_room_for(input.text.len()) {
            self.report_failure("proxy", "too much input waits for the flow");
            self.tell_desk(FULL);
            return Next::DONE;
        }
        self.actor = Some(actor.clone());
        self.emit(Body::ProxyInputReceived {
            proxy_id: bridge.id.clone(),
            target: bridge.target.clone(),
            input: Box::new(input.clone()),
            kept,
        });
        if waits {
            return self.decide_input(input, actor).unwrap_or(Next::DONE);
        }
        if !kept && !input.text.trim().is_empty() {
            self.forward_to_user(&bridge, input, actor, &input.text);
        }
        self.actor = None;
        Next::DONE
    }

    /// The flow's wait at this bridge.
    fn waits_at(&self, proxy: &ProxyId) -> Option<&tandem_record::InterruptId> {
        let (interrupt, of) = self.session.proxy_wait()?;
        Some(interrupt).filter(|_| of == proxy)
    }

    /// The flow came to wait: it takes the oldest input that its filter accepts.
    pub(super) fn use_kept_input(&mut self) -> Option<Next> {
        loop {
            let open = self.session.bridge.as_ref()?;
            let KeptInput { input, actor } = open.inputs.front()?.clone();
            let proxy_id = open.bridge.id.clone();
            self.actor = Some(actor.clone());
            self.emit(Body::ProxyInputTaken {
                proxy_id,
                input_id: input.id.clone(),
            });
            let next = self.decide_input(&input, &actor);
            if next.is_some() {
                return next;
            }
        }
    }

    /// Decides about an input that the flow waits for and goes on with the flow; `None` when the filter did not
    /// accept it and the flow goes on waiting.
    fn decide_input(&mut self, input: &ProxyInput, actor: &AdminActor) -> Option<Next> {
        if let Some(next) = self.leave_diverged() {
            return Some(next);
        }
        let bridge = self.session.bridge()?.clone();
        let interrupt = self.waits_at(&bridge.id)?.clone();
        let decision = match self.filter(input, &bridge) {
            Filtered::Decided(decision) => decision,
            Filtered::NeedsProgram => return Some(Next::Wait),
            Filtered::Refused(why) => {
                self.report_failure(HookStage::ProcessBeforeForward.as_str(), &why);
                self.actor = None;
                self.tell_desk(NOT_DELIVERED);
                return None;
            }
        };
        let forwarded = decision.forward && !decision.text.trim().is_empty();
        if forwarded {
            self.forward_to_user(&bridge, input, actor, &decision.text);
        }
        if decision.ends {
            self.stop_bridge(decision.reason.as_deref().unwrap_or("hook"));
        }
        let mut payload = json!({
            "outcome": "admin_input",
            "proxyId": bridge.id,
            "target": bridge.target,
            "inputId": input.id,
            "text": input.text,
            "forwarded": forwarded,
            "ended": decision.ends,
            "actor": {"id": actor.id, "role": actor.role, "channel": actor.channel},
            "at": self.now.rfc3339(),
        });
        if forwarded {
            payload["forwardedText"] = json!(decision.text);
        }
        if let Some(reason) = &decision.reason {
            payload["reason"] = json!(reason);
        }
        let by = ResumedBy::AdminInput;
        self.leave_pause(&interrupt, PROXY_WAIT, by, "admin_input", None);
        Some(self.resume_flow(Resume::Value(Some(payload))))
    }

    /// Asks the flow's filter, if it has one. Its decision is in the journal with what follows from it.
    fn filter(&mut self, input: &ProxyInput, bridge: &ProxyBridge) -> Filtered {
        let plain = InputDecision {
            forward: bridge.flags.forward_admin_messages,
            text: input.text.clone(),
            ends: false,
            reason: None,
        };
        let flow = self.session.flow.as_ref();
        let effect = flow.and_then(|flow| FlowEffect::parse(flow.current.as_ref()?).ok());
        let has_filter =
            matches!(effect, Some(FlowEffect::ProxyWait(wait)) if wait.process_before_forward);
        let Some((run, step)) = self.active_step().filter(|_| has_filter) else {
            return Filtered::Decided(plain);
        };
        let mut shown = json!({
            "proxyId": bridge.id,
            "target": bridge.target,
            "text": input.text,
        });
        if let Some(raw) = &input.raw {
            shown["raw"] = raw.clone();
        }
        let keys = self.session.all_keys();
        let timeout_ms = self.cx.agent.timeouts.hook_ms;
        let mut programs = self.cx.programs.borrow_mut();
        let answer = programs.filter_input(&run, &shown, &keys, timeout_ms, self.now);
        drop(programs);
        let Some(answer) = answer else {
            self.needs_program = Some(run);
            return Filtered::NeedsProgram;
        };
        match answer.and_then(|answer| Ok((plain.changed_by(&answer)?, answer))) {
            Err(why) => Filtered::Refused(why),
            Ok((decision, answer)) => {
                self.emit(Body::HookDecided {
                    stage: HookStage::ProcessBeforeForward,
                    decision: answer.clone(),
                });
                self.record(
                    &run,
                    FlowRecord::Hook {
                        step,
                        input: shown,
                        decision: answer,
                    },
                );
                Filtered::Decided(decision)
            }
        }
    }
}

enum Filtered {
    Decided(InputDecision),
    /// Nothing is forwarded, for this reason.
    Refused(String),
    /// The code of the flow is not loaded.
    NeedsProgram,
}

impl InputDecision {
    /// What a filter answered. Anything but the fields of a decision is refused: a misspelt one must not let a text
    /// through.
    fn changed_by(mut self, answer: &Value) -> Result<Self, String> {
        let Value::Object(fields) = answer else {
            return Err("the filter gave no object with a decision".to_owned());
        };
        for (name, value) in fields {
            match (name.as_str(), value) {
                (_, Value::Null) => {}
                ("forwardToUser", Value::Bool(forward)) => self.forward = *forward,
                ("text", Value::String(text)) => self.text.clone_from(text),
                ("endProxy", Value::Bool(ends)) => self.ends = *ends,
                ("reason", Value::String(reason)) => self.reason = Some(reason.clone()),
                ("forwardToUser" | "text" | "endProxy" | "reason", _) => {
                    return Err(format!("{name} of the filter's decision has another type"));
                }
                _ => return Err(format!("{name} is no field of a filter's decision")),
            }
        }
        Ok(self)
    }
}
