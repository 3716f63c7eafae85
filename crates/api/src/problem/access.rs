//! Refusals about the caller's key: what it may not access, create or revoke.

use super::Problem;
use axum::http::StatusCode;
use tandem_access::{CONFORMANCE_ROLE, KeyChangeDenied, Scope};
use tandem_app::{ForbiddenReason, TenantResource};
use tandem_record::TenantId;
use tandem_wire::v1::time::rfc3339;

impl Problem {
    /// The record is in the caller's own tenant, but belongs to the other kind of key (test or
    /// live).
    fn other_key_kind(
        test_key: bool,
        key_tenant: &TenantId,
        acts_in: &TenantId,
        run_in: &TenantId,
    ) -> Self {
        let (kind, needed) = match test_key {
            true => ("test", "live"),
            false => ("live", "test"),
        };
        let hint = format!(
            "Test keys act in {key_tenant}~test, apart from live data. Use a {needed} key for this run."
        );
        Self::new(
            StatusCode::FORBIDDEN,
            "run_forbidden",
            format!("The run was made with a {needed} key, and this is a {kind} key."),
        )
        .with("actsIn", acts_in.as_str())
        .with("runIn", run_in.as_str())
        .with("hint", hint)
    }

    /// A link ends with the keys of the principal it was issued to.
    fn link_revoked() -> Self {
        Self::forbidden(
            "This link is no longer valid: the principal it was issued to has no valid key for it.",
        )
        .with("hint", "Read the run with a key for a link of your own.")
    }

    /// Deliveries carry what happens in runs.
    fn webhook_needs_read_scope(scope: Scope) -> Self {
        let hint = "A webhook receives the events of runs, so registering one, reading its deliveries and \
                    rotating its secret take the scope runs:read besides webhooks:manage.";
        Self::scope_missing(scope).with("hint", hint)
    }
}

impl From<ForbiddenReason> for Problem {
    fn from(reason: ForbiddenReason) -> Self {
        match reason {
            ForbiddenReason::Scope(scope) => Self::scope_missing(scope),
            ForbiddenReason::WebhookReader(scope) => Self::webhook_needs_read_scope(scope),
            ForbiddenReason::OtherWorkspace => Self::run_forbidden(),
            ForbiddenReason::OtherKeyKind {
                test_key,
                key_tenant,
                acts_in,
                run_in,
            } => Self::other_key_kind(test_key, &key_tenant, &acts_in, &run_in),
            ForbiddenReason::OtherTenant => Self::forbidden("The key belongs to another tenant."),
            ForbiddenReason::NotMember => Self::tenant_membership_required(),
            ForbiddenReason::BoundToOtherWorkspace => {
                Self::forbidden("The key is bound to another workspace.")
            }
            ForbiddenReason::BoundToWorkspace(resource) => Self::forbidden(match resource {
                TenantResource::People => {
                    "Groups and others' delegations hold for the whole tenant."
                }
                TenantResource::ParkedWork => {
                    "Parked work is shown to keys that are bound to no workspace."
                }
                TenantResource::Storage => {
                    "Storage use is shown to keys that are bound to no workspace."
                }
                TenantResource::AuditLog => {
                    "The audit log is shown to keys that are bound to no workspace."
                }
            }),
            ForbiddenReason::BoundToAgent => Self::forbidden(
                "The key is good for the conversations of one agent only, and this is none of them.",
            ),
            ForbiddenReason::WorkflowOfTenant => {
                Self::forbidden("The workflow belongs to the whole tenant, not to this workspace.")
            }
            ForbiddenReason::EngineVersion => Self::engine_version_forbidden(),
            ForbiddenReason::MockProvider { requested } => {
                Self::mock_provider_forbidden(requested.as_deref())
            }
            ForbiddenReason::LinkOnlyShows => {
                Self::forbidden("This link may look, but not decide.")
            }
            ForbiddenReason::LinkRevoked => Self::link_revoked(),
            ForbiddenReason::KeyChange(denied) => denied.into(),
        }
    }
}

impl From<KeyChangeDenied> for Problem {
    fn from(denied: KeyChangeDenied) -> Self {
        match denied {
            KeyChangeDenied::Scope(scope) => Self::scope_missing(scope),
            KeyChangeDenied::Workspace => Self::forbidden(
                "This key is bound to a workspace, and that key is not bound to it.",
            ),
            KeyChangeDenied::Agent => {
                Self::forbidden("This key is good for one agent only, and that key is not.")
            }
            KeyChangeDenied::LiveKey => {
                Self::forbidden("A test key can only make, rotate and revoke test keys.")
            }
            KeyChangeDenied::Role(role) => {
                let hint = if role == CONFORMANCE_ROLE {
                    "Only a key with this role can grant it; the operator grants it first."
                } else {
                    "It takes a key that holds the role, or one with the scope tandem:groups that is \
                     bound to no workspace."
                };
                Self::forbidden(format!("You may not grant the role {role:?}."))
                    .with("role", role)
                    .with("hint", hint)
            }
            KeyChangeDenied::Principal => {
                let hint =
                    "It takes the scope tandem:groups and a key that is bound to no workspace.";
                Self::forbidden("Your key may not make keys for other principals.")
                    .with("hint", hint)
            }
            KeyChangeDenied::ProtectedPrincipal => Self::forbidden(
                "This is the principal of the tenant's first key. Only a key of that principal can \
                 make another one for it.",
            ),
            KeyChangeDenied::Outlives(end) => {
                let end = rfc3339(end);
                Self::forbidden(format!(
                    "A key cannot outlive the one that makes it, which ends at {end}."
                ))
                .with("latest", end)
            }
            KeyChangeDenied::Protected => {
                let hint = "Rotate it, then revoke it with the new key; or change TANDEM_API_KEY first, \
                            if it is set there.";
                Self::forbidden(
                    "This is the tenant's first key. Only another key of the same principal, with \
                     every scope of it, can revoke it.",
                )
                .with("hint", hint)
            }
        }
    }
}
