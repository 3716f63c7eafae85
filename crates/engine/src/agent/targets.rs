//! Which registered destination is used at a time, and what hours have an effect on.

use super::hitl::{HitlSpec, TakeoverAdapter};
use super::hours::OpeningHours;
use super::names::escaped;
use crate::flow::effect::EscalationMode;
use crate::object_reader::FieldProblems;
use tandem_record::Timestamp;

impl HitlSpec {
    /// The target that is used in the place of a named one: itself while it is open, else the first open one of its
    /// fallbacks. When none is open it is the named one. A target without hours of its own has those of the agent,
    /// but as a fallback it is always open.
    pub fn target_at<'a>(&'a self, named: &'a str, now: Timestamp) -> &'a str {
        let of_agent = self.hours.as_ref();
        let mut key = named;
        // Chains end: a cycle is refused when the agent is loaded.
        while let Some(target) = self.targets.get(key) {
            let inherited = of_agent.filter(|_| key == named);
            let hours = target.hours.as_ref().or(inherited);
            if hours.is_none_or(|hours| hours.is_open(now)) {
                return key;
            }
            match &target.fallback_target {
                Some(next) => key = next,
                None => break,
            }
        }
        named
    }

    /// The hours that an escalation keeps. A takeover has those of the target that user messages go to.
    pub(crate) fn escalation_hours(&self, mode: EscalationMode) -> Option<&OpeningHours> {
        let own = match mode {
            EscalationMode::LiveTakeover => self.takeover_hours(),
            EscalationMode::AsyncResolution => None,
        };
        own.or(self.hours.as_ref())
    }

    fn takeover_hours(&self) -> Option<&OpeningHours> {
        match &self.takeover.adapter {
            Some(TakeoverAdapter::Target(key)) => self.targets.get(key)?.hours.as_ref(),
            Some(TakeoverAdapter::Api) | None => None,
        }
    }
}

/// Refuses fallbacks that lead back to themselves, and settings that nothing can make effective.
pub(super) fn check(hitl: &HitlSpec, problems: &FieldProblems) {
    for (key, target) in &hitl.targets {
        let at = format!("/hitl/targets/{}/fallbackTarget", escaped(key));
        let fallback = target.fallback_target.as_ref();
        // An unknown one is reported where it is read.
        if fallback.is_none_or(|fallback| !hitl.targets.contains_key(fallback)) {
            continue;
        }
        if leads_back(hitl, key) {
            problems.report(at, "leads back to this target");
        } else if target.hours.is_none() && hitl.hours.is_none() {
            let message = "has no effect: neither the target nor the agent has hours";
            problems.report(at, message);
        }
    }
    check_takeover(hitl, problems);
    if hitl.hours.is_some() || hitl.takeover_hours().is_some() {
        return;
    }
    let settings = &hitl.escalation;
    let without_effect = [
        ("outsideHoursText", settings.outside_hours_text.is_some()),
        ("countOpenHoursOnly", settings.count_open_hours_only),
    ];
    for (name, is_set) in without_effect {
        if is_set {
            let at = format!("/hitl/escalationDefaults/{name}");
            problems.report(at, "has no effect: the agent has no hours");
        }
    }
}

/// Without admins nobody takes a conversation over.
fn check_takeover(hitl: &HitlSpec, problems: &FieldProblems) {
    let settings = &hitl.takeover;
    let without_effect = [
        ("allowedCommands", !settings.allowed_commands.is_empty()),
        ("maxSeconds", settings.max_ms.is_some()),
        ("repromptOnHandback", settings.reprompt_on_handback),
        ("onExternalReply", settings.on_external_reply),
        ("idleHandbackSeconds", settings.idle_handback_ms.is_some()),
    ];
    for (name, is_set) in without_effect {
        if is_set && settings.adapter.is_none() {
            let at = format!("/hitl/takeover/{name}");
            problems.report(at, "has no effect: the agent has no adminAuth");
        }
    }
}

fn leads_back(hitl: &HitlSpec, key: &str) -> bool {
    let fallback = |key: &str| hitl.targets.get(key)?.fallback_target.as_deref();
    let chain = std::iter::successors(fallback(key), |next| fallback(next));
    chain.take(hitl.targets.len()).any(|next| next == key)
}
