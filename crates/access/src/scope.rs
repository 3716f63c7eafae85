//! Scopes of a key. Scopes are independent: none implies another.
//!
//! Only scopes that some route requires are listed. The first group has the protocol's names. The
//! `tandem:` group belongs to this host; the protocol forbids a host to reuse its names for other
//! meanings.

use std::fmt;

macro_rules! scopes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Scope {
            $($(#[$doc])* $variant),+
        }

        impl Scope {
            const ALL: &[Self] = &[$(Self::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }
    };
}

scopes! {
    ManifestRead = "manifest:read",
    RunsCreate = "runs:create",
    RunsRead = "runs:read",
    RunsCancel = "runs:cancel",
    ArtifactsRead = "artifacts:read",
    WebhooksManage = "webhooks:manage",
    ApprovalsRespond = "approvals:respond",
    /// Live takeovers and bridges of conversations.
    ConversationsTakeover = "conversations:takeover",
    AuditRead = "audit:read",
    /// Writes to the workflow registry.
    Workflows = "tandem:workflows",
    /// Minting, listing and revoking keys.
    Keys = "tandem:keys",
    /// Groups of approvers, and delegations of others.
    Groups = "tandem:groups",
    /// The test routes, where they are enabled.
    Test = "tandem:test",
}

impl Scope {
    pub fn all() -> &'static [Self] {
        Self::ALL
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|s| s.as_str() == text)
    }

    /// Whether the scope does something for a key that is bound to an agent: such a key reaches conversations only.
    pub fn concerns_conversations(self) -> bool {
        matches!(
            self,
            Self::RunsCreate
                | Self::RunsRead
                | Self::RunsCancel
                | Self::ApprovalsRespond
                | Self::ConversationsTakeover
                | Self::AuditRead
        )
    }

    fn bit(self) -> u32 {
        1 << self as u32
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of scopes, small enough to be copied with every request.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ScopeSet(u32);

impl ScopeSet {
    /// Unknown names are ignored: an unknown name grants nothing.
    pub fn from_stored(names: &[String]) -> Self {
        names.iter().filter_map(|name| Scope::parse(name)).collect()
    }

    pub fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Whether every scope of `other` is in this set. A caller must not create a key with more
    /// scopes than its own.
    pub fn covers(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::all()
            .iter()
            .copied()
            .filter(move |scope| self.contains(*scope))
    }

    pub fn to_stored(self) -> Vec<String> {
        self.iter().map(|scope| scope.as_str().to_owned()).collect()
    }
}

impl FromIterator<Scope> for ScopeSet {
    fn from_iter<T: IntoIterator<Item = Scope>>(scopes: T) -> Self {
        Self(scopes.into_iter().fold(0, |set, scope| set | scope.bit()))
    }
}

impl fmt::Debug for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.iter().map(Scope::as_str))
            .finish()
    }
}
