//! Who performs an action, as established at that time.

use crate::Principal;
use std::fmt;
use std::sync::Arc;

/// Free of secrets: it is written into the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    pub auth_method: AuthMethod,
    /// Who acts; `None` for a signed link.
    pub principal: Option<Principal>,
    /// Their roles at that time; later changes do not affect it.
    pub roles: Arc<[String]>,
    /// The person on whose behalf they act, by delegation.
    pub acting_for: Option<Principal>,
}

/// How an actor authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthMethod {
    /// The host itself: its timers, its configuration.
    Host,
    /// An API key, by its public id.
    Key(Arc<str>),
    /// A signed link: whoever holds it.
    Link,
}

impl Actor {
    pub fn host() -> Self {
        Self::anonymous(AuthMethod::Host)
    }

    pub fn link() -> Self {
        Self::anonymous(AuthMethod::Link)
    }

    fn anonymous(auth_method: AuthMethod) -> Self {
        Self {
            auth_method,
            principal: None,
            roles: Arc::default(),
            acting_for: None,
        }
    }
}

impl fmt::Display for AuthMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Key(id) => write!(f, "key:{id}"),
            Self::Link => f.write_str("link"),
        }
    }
}
