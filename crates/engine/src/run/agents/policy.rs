//! The operator's settings for agents: whether they are supported, the highest version of the
//! execution model, the confidence floor below which a decision is put to a person, and the
//! interrupt kind of that question. No setting lowers the protocol's own floor.

use crate::definition::{Definition, Problem};
use crate::node::Kind;
use tandem_record::{EscalationKind, NodeId, RunStatus};

/// The protocol's floor. An operator may raise it but not lower it.
const SPEC_FLOOR: f64 = 0.5;

#[derive(Debug, Clone, PartialEq)]
pub struct AgentPolicy {
    confidence_floor: f64,
    /// The operator set the floor, so it is advertised.
    floor_is_configured: bool,
    escalation: Escalation,
    /// The interrupt kind is advertised.
    advertises_kind: bool,
    /// The highest version of the execution model that is advertised and used.
    model_cap: Option<u32>,
    /// This host supports agents.
    supported: bool,
    /// The id under which other hosts know this one.
    host_id: Option<String>,
}

/// Versions of the execution model that an operator may set as the cap.
const MODEL_CAPS: std::ops::RangeInclusive<u32> = 1..=6;
/// The versions that add confidence escalation, causation across hosts, and verifiers.
const ESCALATES_SINCE: u32 = 2;
const CROSSES_HOSTS_SINCE: u32 = 3;
const VERIFIES_SINCE: u32 = 6;

/// The interrupt that a decision below the floor opens.
#[derive(Debug, Clone, PartialEq)]
pub struct Escalation {
    pub kind: String,
    pub meaning: EscalationKind,
    pub status: RunStatus,
}

impl Default for AgentPolicy {
    fn default() -> Self {
        Self {
            confidence_floor: SPEC_FLOOR,
            floor_is_configured: false,
            escalation: Escalation::approval("approval"),
            advertises_kind: true,
            model_cap: None,
            supported: true,
            host_id: None,
        }
    }
}

impl Escalation {
    fn approval(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            meaning: EscalationKind::Escalate,
            status: RunStatus::WaitingApproval,
        }
    }
}

impl AgentPolicy {
    /// Builds the policy from the operator's settings, or says what is wrong with them.
    pub fn new(floor: Option<f64>, kind: Option<&str>) -> Result<Self, String> {
        let mut policy = Self::default();
        if let Some(floor) = floor {
            if !(SPEC_FLOOR..=1.0).contains(&floor) {
                return Err(format!(
                    "the confidence floor must be from {SPEC_FLOOR} to 1, not {floor}"
                ));
            }
            policy.confidence_floor = floor;
            policy.floor_is_configured = true;
        }
        match kind {
            None | Some("approval") => {}
            Some("none") => policy.advertises_kind = false,
            Some("clarification") => {
                policy.escalation = Escalation {
                    kind: "clarification".to_owned(),
                    meaning: EscalationKind::Clarify,
                    status: RunStatus::WaitingClarification,
                };
            }
            Some(vendor) if is_vendor_kind(vendor) => {
                policy.escalation = Escalation::approval(vendor);
            }
            Some(other) => {
                return Err(format!(
                    "{other:?} is not a kind of question: use approval, clarification, none, or a \
                     name of your own like x-host-<host>-<kind> in lower case"
                ));
            }
        }
        Ok(policy)
    }

    /// Limits what is advertised and done to this version of the execution model.
    pub fn with_model_cap(self, version: Option<u64>) -> Result<Self, String> {
        let Some(version) = version else {
            return Ok(self);
        };
        let cap = u32::try_from(version)
            .ok()
            .filter(|n| MODEL_CAPS.contains(n));
        match cap {
            Some(_) => Ok(Self {
                model_cap: cap,
                ..self
            }),
            None => Err(format!(
                "the version of the execution model must be from {} to {}, not {version}",
                MODEL_CAPS.start(),
                MODEL_CAPS.end()
            )),
        }
    }

    /// Without agents, supervisors and their workers are refused, and no agent events are emitted.
    pub fn with_agents_supported(self, supported: bool) -> Self {
        Self { supported, ..self }
    }

    /// The id under which other hosts know this one, to distinguish their events from ours.
    pub fn with_host_id(self, host_id: &str) -> Self {
        Self {
            host_id: Some(host_id.to_owned()),
            ..self
        }
    }

    pub fn is_supported(&self) -> bool {
        self.supported
    }

    pub fn model_cap(&self) -> Option<u32> {
        self.model_cap
    }

    fn supports_version(&self, version: u32) -> bool {
        self.supported && self.model_cap.is_none_or(|cap| cap >= version)
    }

    /// Whether decisions below the floor are put to a person.
    pub fn escalates(&self) -> bool {
        self.supports_version(ESCALATES_SINCE)
    }

    /// Whether runs record causes on other hosts.
    pub fn crosses_hosts(&self) -> bool {
        self.supports_version(CROSSES_HOSTS_SINCE)
    }

    pub(crate) fn is_this_host(&self, host_id: &str) -> bool {
        self.host_id.as_deref() == Some(host_id)
    }

    /// The version a run uses that requested this version.
    pub(crate) fn capped_version(&self, requested: Option<u32>) -> Option<u32> {
        match (self.model_cap, requested) {
            (Some(cap), Some(requested)) => Some(cap.min(requested)),
            (cap, requested) => cap.or(requested),
        }
    }

    /// The agent capability that a node needs and this host does not provide.
    pub(crate) fn missing_capability(&self, kind: &Kind) -> Option<&'static str> {
        match kind {
            Kind::Supervisor(_) if !self.supported => Some("agents.orchestrator"),
            Kind::Dispatch(_) if !self.supported => Some("agents.dispatch"),
            Kind::Supervisor(config)
                if config.verifier.is_some() && !self.supports_version(VERIFIES_SINCE) =>
            {
                Some("multiAgent.executionModel.verifier")
            }
            _ => None,
        }
    }

    /// The first node that needs an agent capability this host does not provide.
    pub fn first_missing_capability<'d>(
        &self,
        def: &'d Definition,
    ) -> Option<(&'d NodeId, &'d str, &'static str)> {
        def.nodes.iter().find_map(|node| {
            let capability = self.missing_capability(&node.kind)?;
            Some((&node.id, node.type_id.as_str(), capability))
        })
    }

    /// The same as a problem of the document, for its registration.
    pub fn registration_problem(&self, def: &Definition) -> Option<Problem> {
        let (node, type_id, capability) = self.first_missing_capability(def)?;
        let ix = def.index(node)?;
        let path = format!("/nodes/{}/typeId", def.nodes[ix].doc);
        let message = format!("{type_id:?} needs {capability}, which this host does not serve");
        Some(Problem {
            type_id: Some(type_id.to_owned()),
            node: Some(node.clone()),
            capability: Some(capability),
            ..Problem::new(path, message)
        })
    }

    pub fn confidence_floor(&self) -> f64 {
        self.confidence_floor
    }

    /// The floor, if it is advertised.
    pub fn advertised_floor(&self) -> Option<f64> {
        (self.floor_is_configured && self.escalates()).then_some(self.confidence_floor)
    }

    pub fn escalation(&self) -> &Escalation {
        &self.escalation
    }

    /// The interrupt kind, if it is advertised.
    pub fn advertised_kind(&self) -> Option<&str> {
        let advertised = self.advertises_kind && self.escalates();
        advertised.then_some(self.escalation.kind.as_str())
    }

    /// The escalation, if its kind is a vendor kind, which needs a published explanation.
    pub fn vendor_kind(&self) -> Option<&Escalation> {
        Some(&self.escalation).filter(|e| self.escalates() && is_vendor_kind(&e.kind))
    }
}

/// `x-host-<host>-<kind>`, each part beginning with a letter.
fn is_vendor_kind(kind: &str) -> bool {
    let Some(rest) = kind.strip_prefix("x-host-") else {
        return false;
    };
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let begins = |part: &str| part.starts_with(|c: char| c.is_ascii_lowercase());
    // Some dash splits the rest into two parts that both begin with a letter.
    let splits = rest.match_indices('-');
    let splits = splits.map(|(at, _)| rest.split_at(at));
    rest.chars().all(plain)
        && begins(rest)
        && splits.into_iter().any(|(_, kind)| begins(&kind[1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_floor_can_only_be_raised() {
        // R-0039-6 (half: the floor is 0.5 then), R-0039-7
        // R-0039-8 (half: no setting of the operator lowers it)
        assert_eq!(AgentPolicy::default().confidence_floor(), 0.5);
        assert_eq!(AgentPolicy::default().advertised_floor(), None);
        let raised = AgentPolicy::new(Some(0.7), None).unwrap();
        assert_eq!(raised.advertised_floor(), Some(0.7));
        for ends in [0.5, 1.0] {
            assert!(AgentPolicy::new(Some(ends), None).is_ok(), "{ends}");
        }
        for bad in [0.3, 0.49, 1.1, f64::NAN] {
            assert!(AgentPolicy::new(Some(bad), None).is_err(), "{bad}");
        }
    }

    #[test]
    fn escalation_kind_is_standard_or_a_valid_vendor_kind() {
        // R-0044-2
        let advertised = |kind| {
            AgentPolicy::new(None, Some(kind)).map(|p| p.advertised_kind().map(str::to_owned))
        };
        assert_eq!(advertised("approval"), Ok(Some("approval".to_owned())));
        assert_eq!(advertised("none"), Ok(None));
        for good in [
            "clarification",
            "x-host-tandem-low-confidence",
            "x-host-a-b",
        ] {
            assert_eq!(advertised(good), Ok(Some(good.to_owned())));
        }
        for bad in [
            "low-confidence",
            "x-host-A-b",
            "x-host-tandem",
            "Approval",
            "x-host-a-1",
            "",
        ] {
            assert!(advertised(bad).is_err(), "{bad}");
        }
    }
}
