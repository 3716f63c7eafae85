//! Who may decide a question, and with what standing somebody did. The rules are data; the one
//! place that weighs them is the host's access control, before the run sees the answer.

use crate::Principal;
use serde::{Deserialize, Serialize};

/// What a question demands of whoever decides it. Empty lists name nobody: then any caller that
/// may answer at all may decide.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionPolicy {
    /// Principals by name.
    pub approvers: Vec<String>,
    pub groups: Vec<String>,
    pub roles: Vec<String>,
    /// A signed link is not enough.
    pub auth_required: bool,
    /// Whoever started the run must not decide, nor anybody in their name.
    pub no_self_approval: bool,
    pub initiator: Option<Principal>,
}

impl DecisionPolicy {
    pub fn names_deciders(&self) -> bool {
        !(self.approvers.is_empty() && self.groups.is_empty() && self.roles.is_empty())
    }

    /// Whether it matters who decides. A link and a name in the answer's body then count for
    /// nothing.
    pub fn requires_identity(&self) -> bool {
        self.names_deciders() || self.auth_required || self.no_self_approval
    }
}

/// What was true of the one who decided when they did. Recorded with the decision, so that nobody
/// has to ask again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeciderSnapshot {
    /// In whose place they acted, by delegation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acting_for: Option<Principal>,
    /// The groups of the question that made them eligible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Every role of the one whose authority it was: their own, or that of the one they acted for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
}

impl DeciderSnapshot {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Why somebody may not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Denial {
    /// Not among the approvers, groups or roles the question names.
    NotEligible,
    /// They started the run themselves, or act for the one who did.
    SelfApproval,
    /// They claim to act for somebody who did not let them.
    NotDelegated,
    /// A link carries no name, and this question wants one.
    LinkTooWeak,
}

impl Denial {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotEligible => "not-eligible",
            Self::SelfApproval => "self-approval",
            Self::NotDelegated => "not-delegated",
            Self::LinkTooWeak => "link-too-weak",
        }
    }
}

/// The answer of access control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecisionAuthorization {
    Granted(DeciderSnapshot),
    Denied(Denial),
}
