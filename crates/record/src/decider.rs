//! Who may decide an interrupt, and what was true of the person who did. The rules are data; only
//! the host's access control evaluates them, before the run receives the answer.

use crate::Principal;
use serde::{Deserialize, Serialize};

/// The conditions on the decider of an interrupt. If all lists are empty, any caller who may answer
/// may decide.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionPolicy {
    /// Principals by name.
    pub approvers: Vec<String>,
    pub groups: Vec<String>,
    pub roles: Vec<String>,
    /// A signed link is not enough.
    pub auth_required: bool,
    /// Those who started the run must not decide, nor anyone on their behalf.
    pub no_self_approval: bool,
    /// Who started the run: its owner, and who forked it or a run it comes from.
    pub initiators: Vec<Principal>,
}

impl DecisionPolicy {
    pub fn names_deciders(&self) -> bool {
        !(self.approvers.is_empty() && self.groups.is_empty() && self.roles.is_empty())
    }

    /// Whether the decider's identity matters. If so, a link and a name in the answer's body are
    /// not accepted.
    pub fn requires_identity(&self) -> bool {
        self.names_deciders() || self.auth_required || self.no_self_approval
    }
}

/// Facts about the decider at the time of the decision. Recorded with the decision, so that a
/// replay needs no lookup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeciderSnapshot {
    /// The person for whom they acted, by delegation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acting_for: Option<Principal>,
    /// The groups of the policy that made them eligible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// All roles of the person whose authority was used: the decider's own, or those of the person
    /// they acted for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// The person to whom the signed link was issued that was used: the vote is theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_of: Option<Principal>,
}

impl DeciderSnapshot {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Why a person may not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Denial {
    /// Not among the approvers, groups or roles of the policy.
    NotEligible,
    /// They started the run themselves, or act for the person who did.
    SelfApproval,
    /// They claim to act for a person who did not delegate to them.
    NotDelegated,
    /// A link carries no identity, and this interrupt requires one.
    LinkTooWeak,
    /// Their key or link is that of one person, and they name another one as the voter.
    OtherVoter,
}

impl Denial {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotEligible => "not-eligible",
            Self::SelfApproval => "self-approval",
            Self::NotDelegated => "not-delegated",
            Self::LinkTooWeak => "link-too-weak",
            Self::OtherVoter => "other-voter",
        }
    }
}

/// The result of access control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecisionAuthorization {
    Granted(DeciderSnapshot),
    Denied(Denial),
}
