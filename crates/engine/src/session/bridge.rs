//! The bridge of a session to a desk: how it starts and how it ends.
//!
//! A session has at most one, and it belongs to the active flow run: whatever ends the run stops it. A flow names a
//! target of the agent's file by its key, never an address.

use super::command_line::CommandLine;
use super::draft::Draft;
use super::drive_flow::Performed;
use super::flow_effects::refuse;
use super::program::Resume;
use super::state::ChatSession;
use super::turn::Next;
use crate::flow::FlowError;
use crate::flow::effect::{ProxyStartEffect, ProxyWaitEffect};
use crate::ids::hex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use tandem_record::conversation::{
    AdminActor, BridgeEnding, FlowPause, ProxyBridge, ProxyInput, ProxyStatus, ResumedBy,
    SessionEventBody as Body, SessionReply, SessionTimer, TurnCause,
};
use tandem_record::{InterruptId, ProxyId, RunId, Timestamp};

/// The kind of a flow's wait for input.
pub(super) const PROXY_WAIT: &str = "proxy_wait";
pub(super) const FLOW_ENDED: &str = "flow_ended";
const BY_ADMIN: &str = "stopped_by_admin";
const USAGE: &str = "Usage: /proxy stop [#id]";

/// Input that is kept until the flow waits for it, and its bytes.
const MAX_INPUTS: usize = 100;
const MAX_INPUT_BYTES: usize = 1024 * 1024;

/// A bridge that relays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenBridge {
    pub(super) bridge: ProxyBridge,
    /// Input that waits until the flow waits for it, the oldest first.
    pub(super) inputs: VecDeque<KeptInput>,
}

/// Input of somebody with the right.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptInput {
    pub(super) input: ProxyInput,
    pub(super) actor: AdminActor,
}

impl OpenBridge {
    /// Whether one more input of so many bytes can be kept.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        self.inputs.len() < MAX_INPUTS && self.kept_bytes() + bytes <= MAX_INPUT_BYTES
    }

    pub(super) fn kept_bytes(&self) -> usize {
        self.inputs.iter().map(|kept| kept.input.text.len()).sum()
    }
}

impl ChatSession {
    /// The bridge that relays between the user and a desk.
    pub fn bridge(&self) -> Option<&ProxyBridge> {
        self.bridge.as_ref().map(|open| &open.bridge)
    }

    /// The same, if it is this one.
    pub(super) fn bridge_named(&self, id: &ProxyId) -> Option<&ProxyBridge> {
        self.bridge().filter(|bridge| bridge.id == *id)
    }

    /// What a person has to do, in the words of hooks and responses.
    pub(super) fn hitl_state(&self) -> Option<&'static str> {
        self.hitl_mode().map(|mode| match mode {
            "proxy" => "proxy_active",
            mode => mode,
        })
    }

    pub(super) fn bridge_deadline(&self) -> Option<(SessionTimer, Timestamp)> {
        let bridge = self.bridge()?;
        let id = bridge.id.clone();
        let ends_already = self.ending_of_bridge(&id).is_some();
        let timer = (SessionTimer::Proxy { id }, bridge.deadline?);
        (!ends_already).then_some(timer)
    }

    /// The turn that waits to end a bridge.
    pub(super) fn ending_of_bridge(&self, id: &ProxyId) -> Option<u64> {
        let mut waiting = self.queued_turns();
        let ending = waiting.find(|waiting| {
            matches!(&waiting.cause, TurnCause::ProxyEnding(ending) if ending.proxy == *id)
        });
        ending.map(|ending| ending.number)
    }

    /// Whether input for a bridge was accepted that its turn has not come to.
    pub(super) fn has_input_for(&self, id: &ProxyId) -> bool {
        self.has_turn(|cause| matches!(cause, TurnCause::ProxyInput { proxy, .. } if proxy == id))
    }

    /// The same of input that a takeover holds back.
    fn holds_input_for(&self, id: &ProxyId) -> bool {
        let mut held = self.held.iter();
        held.any(|held| matches!(&held.cause, TurnCause::ProxyInput { proxy, .. } if proxy == id))
    }

    /// The flow's wait for input, with the bridge it is about.
    pub(super) fn proxy_wait(&self) -> Option<(&InterruptId, &ProxyId)> {
        match self.flow.as_ref()?.pause.as_ref()? {
            FlowPause::ProxyWait {
                interrupt_id,
                proxy_id,
                ..
            } => Some((interrupt_id, proxy_id)),
            _ => None,
        }
    }
}

impl Draft<'_> {
    pub(super) fn perform_proxy_start(
        &mut self,
        run: &RunId,
        step: u32,
        start: &ProxyStartEffect,
    ) -> Performed {
        let hitl = &self.cx.agent.hitl;
        let key = hitl.target_at(&start.target, self.now).to_owned();
        let Some(target) = hitl.targets.get(&key).cloned() else {
            let message = format!("the agent has no target {:?}", start.target);
            return refuse("unknown_target", &message);
        };
        let session = &self.session.start;
        if target.transport == session.transport && target.address == session.address {
            return refuse(
                "target_is_user",
                "the target is the address of the user of this session",
            );
        }
        let active = self.session.bridge().map(|bridge| bridge.id.clone());
        if let Some(id) = active.as_ref().filter(|_| !start.replace) {
            let error = FlowError::effect("proxy_active", "a bridge of this session is active");
            let error = error.with("proxyId", json!(id));
            return Performed::Resume(Resume::Throw(error));
        }
        self.stop_bridge("replaced");
        let Some(flow) = &self.session.flow else {
            return Performed::Leave(Next::DONE);
        };
        let bridge = ProxyBridge {
            id: proxy_id(run, step),
            target: key,
            transport: target.transport,
            address: target.address,
            label: target.label,
            mode: start.mode,
            flags: start.flags(),
            flow_id: flow.flow.clone(),
            flow_run_id: run.clone(),
            started_at: self.now,
            deadline: start.timeout_ms.map(|ms| self.now.plus_ms(ms)),
            status: ProxyStatus::Active,
            stopped_at: None,
            stop_reason: None,
        };
        let mut result = json!({
            "proxyId": bridge.id,
            "target": bridge.target,
            "mode": bridge.mode,
            "startedAt": bridge.started_at.rfc3339(),
        });
        if let Some(replaced) = &active {
            result["replaced"] = json!(replaced);
        }
        self.emit(Body::ProxyStarted {
            bridge: Box::new(bridge),
            replaces: active,
        });
        Performed::Resume(Resume::Value(Some(result)))
    }

    pub(super) fn perform_proxy_wait(
        &mut self,
        interrupt_id: InterruptId,
        wait: &ProxyWaitEffect,
    ) -> Performed {
        let Some(bridge) = self.session.bridge() else {
            return refuse("no_proxy", "no bridge of this session is active");
        };
        let (proxy_id, target) = (bridge.id.clone(), bridge.target.clone());
        let deadline = wait.timeout_ms.map(|ms| self.now.plus_ms(ms));
        self.pause_flow(FlowPause::ProxyWait {
            interrupt_id: interrupt_id.clone(),
            proxy_id,
            target,
            deadline,
            since: self.now,
        });
        self.emit(Body::InterruptPaused {
            interrupt_id,
            kind: PROXY_WAIT.to_owned(),
            wait_for: None,
            deadline,
        });
        Performed::Leave(self.use_kept_input().unwrap_or(Next::DONE))
    }

    pub(super) fn perform_proxy_stop(&mut self, reason: Option<&str>) -> Performed {
        let stopped = self.stop_bridge(reason.unwrap_or("stopped"));
        let mut result = json!({ "stopped": stopped.is_some() });
        if let Some(id) = stopped {
            result["proxyId"] = json!(id);
        }
        Performed::Resume(Resume::Value(Some(result)))
    }

    /// Stops the active bridge, if there is one. Whoever waits for it is not told by this.
    pub(super) fn stop_bridge(&mut self, reason: &str) -> Option<ProxyId> {
        let proxy_id = self.session.bridge()?.id.clone();
        self.emit(Body::ProxyStopped {
            proxy_id: proxy_id.clone(),
            reason: reason.to_owned(),
        });
        Some(proxy_id)
    }

    /// A flow that waits at a bridge which is no more gets a turn, unless its wait is over anyway. Gives the turn.
    pub(super) fn queue_bridge_end(&mut self, reason: &str, timed_out: bool) -> Option<u64> {
        let (interrupt, proxy) = self.session.proxy_wait()?;
        let (interrupt, proxy) = (interrupt.clone(), proxy.clone());
        let is_over = self.session.has_turn(|cause| match cause {
            TurnCause::Deadline { interrupt: of } => *of == interrupt,
            TurnCause::ProxyClosed { interrupt: of, .. } => *of == interrupt,
            _ => false,
        });
        if is_over || self.session.bridge_named(&proxy).is_some() {
            return None;
        }
        self.emit(Body::TurnQueued {
            cause: TurnCause::ProxyClosed {
                interrupt,
                proxy,
                reason: reason.to_owned(),
                timed_out,
            },
        });
        Some(self.session.last_turn)
    }

    /// An admin stops a bridge. Doing it again is harmless. Input that was accepted before is used first.
    pub(super) fn stop_bridge_from_outside(
        &mut self,
        proxy: &ProxyId,
        reason: Option<&str>,
    ) -> SessionReply {
        if let Some(turn) = self.session.ending_of_bridge(proxy) {
            let (was_active, turn) = (false, Some(turn));
            return SessionReply::ProxyStopped { was_active, turn };
        }
        let was_active = self.session.bridge_named(proxy).is_some();
        let reason = reason.unwrap_or(BY_ADMIN);
        let turn = match was_active {
            true if self.session.has_input_for(proxy) => {
                Some(self.queue_ending_of_bridge(proxy, reason, false))
            }
            true => {
                self.stop_bridge(reason);
                self.queue_bridge_end(reason, false)
            }
            false => None,
        };
        SessionReply::ProxyStopped { was_active, turn }
    }

    /// The bridge ends after the turns that wait already. Gives the turn.
    pub(super) fn queue_ending_of_bridge(
        &mut self,
        proxy: &ProxyId,
        reason: &str,
        timed_out: bool,
    ) -> u64 {
        let ending = BridgeEnding {
            proxy: proxy.clone(),
            reason: reason.to_owned(),
            timed_out,
            actor: self.actor.clone(),
        };
        self.emit(Body::TurnQueued {
            cause: TurnCause::ProxyEnding(Box::new(ending)),
        });
        self.session.last_turn
    }

    /// The turn that ends a bridge.
    pub(super) fn end_bridge(&mut self, ending: &BridgeEnding) -> Next {
        let proxy = &ending.proxy;
        if self.session.bridge_named(proxy).is_none() {
            return Next::DONE;
        }
        if ending.timed_out {
            self.note_bridge_timeout(proxy);
        }
        self.actor.clone_from(&ending.actor);
        self.stop_bridge(&ending.reason);
        self.actor = None;
        let waits = self.session.proxy_wait();
        let interrupt = waits.and_then(|(open, of)| (of == proxy).then(|| open.clone()));
        match interrupt {
            Some(open) => self.deliver_bridge_end(&open, proxy, &ending.reason, ending.timed_out),
            None => Next::DONE,
        }
    }

    /// `/proxy stop [#id]`, for an admin who may.
    pub(super) fn stop_bridge_by_command(&mut self, line: &CommandLine<'_>) -> Next {
        let mut words = line.args.split_whitespace();
        if words.next() != Some("stop") {
            return self.answer_command(USAGE);
        }
        let named_session = match &self.turn().cause {
            TurnCause::AdminCommand { target, .. } => Some(target.clone()),
            _ => None,
        };
        let bridge = self.session.bridge().cloned();
        let is_meant = |word: &str| {
            let of_bridge = bridge.as_ref().is_some_and(|b| names(word, &b.id));
            of_bridge || named_session.as_deref() == Some(word)
        };
        let text = match &bridge {
            Some(bridge) if words.next().is_none_or(is_meant) => self.stop_in_turn(bridge),
            Some(_) | None => "No such bridge is active.".to_owned(),
        };
        self.answer_command(&text)
    }

    /// Input that comes after the command finds no bridge; input that a takeover holds back came before it.
    fn stop_in_turn(&mut self, bridge: &ProxyBridge) -> String {
        let short = bridge.id.short();
        if self.session.ending_of_bridge(&bridge.id).is_none() {
            if !self.session.holds_input_for(&bridge.id) {
                self.stop_bridge(BY_ADMIN);
                self.queue_bridge_end(BY_ADMIN, false);
                return format!("The bridge #{short} is stopped.");
            }
            self.queue_ending_of_bridge(&bridge.id, BY_ADMIN, false);
        }
        format!("The bridge #{short} is stopped once the input before it is used.")
    }

    /// The turn that tells a flow that its bridge is no more.
    pub(super) fn deliver_bridge_end(
        &mut self,
        interrupt: &InterruptId,
        proxy: &ProxyId,
        reason: &str,
        timed_out: bool,
    ) -> Next {
        let waits = self.session.proxy_wait();
        if waits.is_none_or(|(open, _)| open != interrupt) {
            self.emit(Body::InterruptLate {
                interrupt_id: interrupt.clone(),
            });
            return Next::DONE;
        }
        if let Some(next) = self.leave_diverged() {
            return next;
        }
        if timed_out {
            return self.tell_timeout();
        }
        let by = ResumedBy::Stopped;
        self.leave_pause(interrupt, PROXY_WAIT, by, "stopped", None);
        let payload = json!({"outcome": "stopped", "proxyId": proxy, "reason": reason});
        self.resume_flow(Resume::Value(Some(payload)))
    }

    /// The rules of admins look at what a desk wrote as at any message.
    pub(super) fn desk_message(&self) -> Option<Value> {
        match &self.turn().cause {
            TurnCause::ProxyInput { input, .. } => input.raw.clone(),
            _ => None,
        }
    }
}

/// Whether a word names a bridge: by its id, or by its short number.
fn names(word: &str, id: &ProxyId) -> bool {
    let short = word.strip_prefix('#');
    word == id.as_str() || short.is_some_and(|short| short.eq_ignore_ascii_case(id.short()))
}

/// The same for the same effect, so that a decision that is made again names the same bridge.
fn proxy_id(run: &RunId, step: u32) -> ProxyId {
    let digest = Sha256::digest(format!("tandem:proxy:v1\0{run}\0{step}").as_bytes());
    ProxyId::from(format!("pxy-{}", hex(&digest[..10])))
}
