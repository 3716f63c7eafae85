//! Authentication and authorization: API keys, scopes, request rates, browser sign-in, and who may
//! decide an interrupt.
//!
//! This crate does not depend on HTTP beyond the value of one `Authorization` header, and not on
//! runs: the code that loads a run checks that it belongs to the caller's tenant. Every time is
//! passed in; this crate reads no clock.
//!
//! Invariants:
//! - A secret is shown once, when it is created. Only its SHA-256 is stored, compared or cached.
//! - No type that holds a secret prints it: `Debug` of [`Secret`] is `Secret(…)`.
//! - Authentication failure ([`Unauthenticated`]), missing permission ([`Denied`]) and store fault
//!   ([`tandem_store::Fault`]) are separate types and never mixed up.
//! - Everything held in memory (cache, buckets, codes, sessions) has a limit.

mod authority;
mod bearer;
mod cache;
mod digest;
mod end_signal;
mod identity;
mod key_draft;
mod key_epoch;
mod keyring;
mod link;
mod login;
mod network_signature;
mod policy;
mod principal_name;
mod principal_scope_cache;
mod rate;
mod revocation;
mod roster;
mod scope;
mod secret;
mod sessions;
mod visitor;
mod webhook;

#[cfg(test)]
mod tests;

pub use authority::{
    KeyChangeDenied, expiry_of_new_key, may_create_key, may_revoke_key, principal_of_new_key,
};
pub use bearer::{MAX_CREDENTIAL_BYTES, bearer};
pub use end_signal::EndSignal;
pub use identity::{BOOTSTRAP_PRINCIPAL, CONFORMANCE_ROLE, Denied, Identity};
pub use key_draft::{KeyDraft, NewKey};
pub use keyring::{AuthenticateError, KeyError, Keyring, Unauthenticated};
pub use link::{LinkClaims, LinkIntent, LinkSigner, fresh_link_secret};
pub use login::LoginCodes;
pub use network_signature::{hmac_hex, is_hmac_of, is_secret};
pub use policy::{may_decide, may_decide_by_link};
pub use principal_name::PrincipalNameError;
pub use rate::{RateKey, RateLimiter, RetryAfter};
pub use revocation::{MadeKeys, Revocation, RevokedKeys};
pub use roster::{Decider, Groups, Member, Person};
pub use scope::{Scope, ScopeSet};
pub use secret::{LIVE_PREFIX, MIN_SECRET_BYTES, Secret, TEST_PREFIX};
pub use sessions::{OpenedSession, Session, Sessions};
pub use visitor::VisitorId;
pub use webhook::{WebhookKeys, fingerprint, is_signed, signature, signed_time};

// Returned by list and mint, so that callers need not depend on the store.
pub use tandem_store::KeyRecord;
