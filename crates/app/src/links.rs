//! Signed links to questions: the token is the credential. Reading never decides; deciding works once.
//!
//! Order of checks, so that a stranger learns nothing: signature, question known, decided or dead,
//! expired, the keys of whom the link was issued to, intent, then whatever the engine has against the
//! answer.

use crate::app::App;
use crate::error::{AppError, ForbiddenReason, ResourceKind};
use std::borrow::Cow;
use tandem_access::{Identity, LinkClaims, LinkIntent, Scope};
use tandem_record::{InterruptView, Partition, RunId, SessionId, TenantId, Timestamp};
use tandem_runtime::InterruptRow;

/// The interrupt of a link whose signature is valid.
pub struct LinkedInterrupt {
    pub claims: LinkClaims,
    pub row: InterruptRow,
}

impl LinkedInterrupt {
    /// Whose data the link is about. Idempotency keys of a link belong there.
    pub fn partition(&self) -> Partition {
        Partition {
            tenant: self.row.tenant.clone(),
            workspace: self.row.workspace.clone(),
        }
    }
}

/// A link that may decide now. The answer itself is not checked yet.
pub struct DecidingLink(pub(crate) LinkedInterrupt);

/// A link that was made for a reader of a run.
pub struct IssuedLink {
    pub token: String,
    pub expires_at: Timestamp,
}

impl App {
    /// The claims of a token and its interrupt. The link may be used up or expired.
    pub async fn find_linked_interrupt(&self, token: &str) -> Result<LinkedInterrupt, AppError> {
        let unknown = || AppError::NotFound(ResourceKind::Interrupt);
        let claims = self.inner.links.verify(token).ok_or_else(unknown)?;
        let tenant = self.tenant_of_link(&claims).await?.ok_or_else(unknown)?;
        let question = &claims.interrupt_id;
        let row = self.runtime().question(&tenant, question).await?;
        let row = row.ok_or_else(unknown)?;
        Ok(LinkedInterrupt { claims, row })
    }

    /// Whose question it is: that of a run, or of a session.
    async fn tenant_of_link(&self, claims: &LinkClaims) -> Result<Option<TenantId>, AppError> {
        if let Some(run) = self.runtime().find_any_run(&claims.run_id).await? {
            return Ok(Some(run.row.tenant));
        }
        let session = SessionId::from(claims.run_id.as_str());
        let session = self.runtime().read_session(&session).await?;
        Ok(session.map(|session| session.start().owner.tenant.clone()))
    }

    /// The open question of a link.
    pub async fn inspect_link(&self, token: &str) -> Result<LinkedInterrupt, AppError> {
        let linked = self.find_linked_interrupt(token).await?;
        self.check_link_open(&linked)?;
        self.check_link_holder(&linked, LinkIntent::Inspect).await?;
        Ok(linked)
    }

    /// Checks that a link may decide. Entry points call this before they parse the answer, so that the
    /// holder of a used link learns nothing else.
    pub async fn admit_link_decision(
        &self,
        linked: LinkedInterrupt,
    ) -> Result<DecidingLink, AppError> {
        self.check_link_open(&linked)?;
        if linked.claims.intent != LinkIntent::Resolve {
            return Err(ForbiddenReason::LinkOnlyShows.into());
        }
        self.check_link_holder(&linked, LinkIntent::Resolve).await?;
        Ok(DecidingLink(linked))
    }

    /// A link is invalid once its interrupt is closed, for whatever reason.
    fn check_link_open(&self, linked: &LinkedInterrupt) -> Result<(), AppError> {
        if let Some(outcome) = &linked.row.closed {
            let question = linked.row.question()?;
            return Err(AppError::AlreadyResolved {
                outcome: outcome.clone(),
                by: question.decided_by.map(Cow::into_owned),
                at: question.decided_at.unwrap_or_default(),
            });
        }
        if self.now() >= linked.claims.expires_at {
            return Err(AppError::LinkExpired);
        }
        Ok(())
    }

    /// A link does no more than whom it was issued to may still do.
    async fn check_link_holder(
        &self,
        linked: &LinkedInterrupt,
        intent: LinkIntent,
    ) -> Result<(), AppError> {
        // Links of notices name nobody and only show; those of earlier releases end within half an hour.
        let Some(principal) = &linked.claims.issued_to else {
            return Ok(());
        };
        let of = linked.partition();
        let scope = intent.required_scope();
        let keyring = &self.inner.keyring;
        let holds = keyring.holds_scope(principal, scope, &of, self.now());
        match holds.await? {
            true => Ok(()),
            false => Err(ForbiddenReason::LinkRevoked.into()),
        }
    }

    /// A link to the question a run waits for. A reader who may not answer gets one that only shows.
    pub fn issue_link(&self, caller: &Identity, run: &RunId, open: &InterruptView) -> IssuedLink {
        let intent = LinkIntent::of(caller.require_scope(Scope::ApprovalsRespond).is_ok());
        let principal = Some(&caller.principal);
        let claims = LinkClaims::for_interrupt(run, open, intent, principal, self.now());
        IssuedLink {
            token: self.inner.links.sign(&claims),
            expires_at: claims.expires_at,
        }
    }
}
