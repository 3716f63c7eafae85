//! What the operator may set about agents: the floor under which a decision is put to a person, and
//! what that question is called. The protocol's own floor cannot be lowered from anywhere.

use tandem_record::{EscalationKind, RunStatus};

/// The protocol's floor. An operator may raise it, nobody may lower it.
const SPEC_FLOOR: f64 = 0.5;

#[derive(Debug, Clone, PartialEq)]
pub struct AgentPolicy {
    floor: f64,
    /// The operator chose the floor, so it is advertised.
    stated: bool,
    escalation: Escalation,
    /// The kind of question is advertised.
    announced: bool,
    /// The rung of the execution model above which nothing is advertised.
    model_cap: Option<u32>,
}

/// Rungs of the execution model an operator may stop at. What the lower ones ask for is always done,
/// so saying less would not be true.
const MODEL_CAPS: std::ops::RangeInclusive<u32> = 3..=6;

/// What a decision below the floor becomes.
#[derive(Debug, Clone, PartialEq)]
pub struct Escalation {
    pub kind: String,
    pub meaning: EscalationKind,
    pub status: RunStatus,
}

impl Default for AgentPolicy {
    fn default() -> Self {
        Self {
            floor: SPEC_FLOOR,
            stated: false,
            escalation: Escalation::approval("approval"),
            announced: true,
            model_cap: None,
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
    /// The operator's settings, or what is wrong with them.
    pub fn new(floor: Option<f64>, kind: Option<&str>) -> Result<Self, String> {
        let mut policy = Self::default();
        if let Some(floor) = floor {
            if !(SPEC_FLOOR..=1.0).contains(&floor) {
                return Err(format!(
                    "the confidence floor must be from {SPEC_FLOOR} to 1, not {floor}"
                ));
            }
            policy.floor = floor;
            policy.stated = true;
        }
        match kind {
            None | Some("approval") => {}
            Some("none") => policy.announced = false,
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

    /// Advertises the execution model up to this rung only, for clients that know no more.
    pub fn capped(self, rung: Option<u64>) -> Result<Self, String> {
        let Some(rung) = rung else {
            return Ok(self);
        };
        let cap = u32::try_from(rung).ok().filter(|n| MODEL_CAPS.contains(n));
        match cap {
            Some(_) => Ok(Self {
                model_cap: cap,
                ..self
            }),
            None => Err(format!(
                "the execution model can be advertised up to {} to {}, not {rung}",
                MODEL_CAPS.start(),
                MODEL_CAPS.end()
            )),
        }
    }

    pub fn model_cap(&self) -> Option<u32> {
        self.model_cap
    }

    pub fn floor(&self) -> f64 {
        self.floor
    }

    /// The floor, if it is to be advertised.
    pub fn advertised_floor(&self) -> Option<f64> {
        self.stated.then_some(self.floor)
    }

    pub fn escalation(&self) -> &Escalation {
        &self.escalation
    }

    /// The kind of question, if it is to be advertised.
    pub fn advertised_kind(&self) -> Option<&str> {
        self.announced.then_some(self.escalation.kind.as_str())
    }

    /// A kind of our own, which needs a published explanation.
    pub fn vendor_kind(&self) -> Option<&Escalation> {
        Some(&self.escalation).filter(|e| is_vendor_kind(&e.kind))
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
    fn the_floor_is_only_raised() {
        // R-0039-6, R-0039-7, R-0039-8
        assert_eq!(AgentPolicy::default().floor(), 0.5);
        assert_eq!(AgentPolicy::default().advertised_floor(), None);
        let raised = AgentPolicy::new(Some(0.7), None).unwrap();
        assert_eq!(raised.advertised_floor(), Some(0.7));
        for bad in [0.3, 0.49, 1.1, f64::NAN] {
            assert!(AgentPolicy::new(Some(bad), None).is_err(), "{bad}");
        }
    }

    #[test]
    fn kinds_are_the_two_known_ones_or_a_well_formed_own() {
        // R-0044-1, R-0044-2
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
