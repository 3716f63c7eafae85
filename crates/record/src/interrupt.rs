//! An interrupt of a run, to a person or to the outside, and its answer.

use crate::{DeciderSnapshot, InterruptId, Principal, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interrupt {
    pub id: InterruptId,
    pub kind: String,
    /// Deterministic name of this interrupt within the run.
    pub key: String,
    pub data: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    pub requested_at: Timestamp,
    /// When the first timeout action runs, if that is not simply `timeout_ms` later: an escalation
    /// or a reminder may come first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// 0 to 9, higher first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// What `data` shows masked, as it is. The run uses it; nobody is shown it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Value>,
}

/// One vote in a decision that needs several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vote {
    /// The name the vote is shown under: a principal, a claimed name, or `link`.
    pub voter: String,
    /// Whose key, or `link`, claimed that name. Absent where the host established the voter.
    #[serde(rename = "claimedBy", default, skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<String>,
    /// Given through a signed link: nobody was authenticated.
    #[serde(
        rename = "viaLink",
        default,
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub via_link: bool,
    /// Who acted in the voter's place. One person has one vote, whether they act for themselves or
    /// for another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegate: Option<String>,
    pub action: String,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
}

impl Vote {
    /// Whether a later vote replaces this one. A claimed name belongs to whoever claims it and never
    /// equals an authenticated voter; all unnamed votes through links of one question are one voter. A link
    /// of one person is that person.
    pub fn has_same_voter(&self, other: &Self) -> bool {
        if self.is_anonymous() != other.is_anonymous() || self.claimed_by != other.claimed_by {
            return false;
        }
        let names = |vote: &Self| [Some(vote.voter.clone()), vote.delegate.clone()];
        let others = names(other);
        names(self)
            .iter()
            .flatten()
            .any(|name| others.contains(&Some(name.clone())))
    }
}

impl Vote {
    /// Through a link that names nobody.
    fn is_anonymous(&self) -> bool {
        let names_holder = self.claimed_by.is_none() && self.voter != LINK_VOTER;
        self.via_link && !names_holder
    }
}

/// An approval as it was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalDecision {
    /// `accept`, `reject`, `refine`, `edit-accept` or `timeout`.
    pub action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
    /// The voter, when several people share one key or link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voter: Option<String>,
    /// The decider's name as the client sent it. A claim: it is only shown.
    #[serde(rename = "said_by", default, skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<String>,
    #[serde(
        rename = "standing",
        default,
        skip_serializing_if = "DeciderSnapshot::is_empty"
    )]
    pub decider: DeciderSnapshot,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub refine: Option<Value>,
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub edited: Option<Value>,
}

/// The name of voters without one, behind a signed link.
pub const LINK_VOTER: &str = "link";

impl ApprovalDecision {
    /// The key's principal, or `link`.
    pub fn submitter(&self) -> &str {
        self.by.as_ref().map_or(LINK_VOTER, Principal::as_str)
    }

    /// The voter's name where the client only claims it. A delegation establishes the voter; so
    /// does the caller's own name.
    pub fn claimed_voter(&self) -> Option<&str> {
        let own = self.by.as_ref().or(self.decider.link_of.as_ref());
        let own = |name: &&str| own.is_some_and(|own| own.as_str() == *name);
        let voter = self.voter.as_deref().filter(|name| !own(name));
        voter.filter(|_| self.decider.acting_for.is_none())
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resolution {
    pub interrupt: InterruptId,
    pub kind: String,
    pub value: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
    #[serde(
        rename = "standing",
        default,
        skip_serializing_if = "DeciderSnapshot::is_empty"
    )]
    pub decider: DeciderSnapshot,
    /// The external event that answered it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
