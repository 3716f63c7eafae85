//! The audit log: verification, export, and receipts of decisions.

use crate::app::App;
use crate::error::{AppError, ResourceKind, TenantResource};
use serde_json::Value;
use tandem_access::{Identity, Scope};
use tandem_record::{EscalationId, InterruptId};
use tandem_runtime::audit::{AuditVerification, Export};

impl App {
    /// Whether the chain and its checkpoints hold in a range of entries.
    pub async fn verify_audit(
        &self,
        caller: &Identity,
        from: u64,
        to: u64,
    ) -> Result<AuditVerification, AppError> {
        caller.require_scope(Scope::AuditRead)?;
        Ok(self.inner.audit_signer.verify(from, to).await?)
    }

    /// The whole log, sealed up to its end. Entries of other tenants are represented by their hashes.
    pub async fn export_audit(&self, caller: &Identity) -> Result<Export, AppError> {
        caller.require_scope(Scope::AuditRead)?;
        self.check_tenant_wide(caller, TenantResource::AuditLog)?;
        Ok(self.inner.audit_signer.export(&caller.tenant).await?)
    }

    /// The signed proof of a decision; there is none until the question is decided.
    pub async fn read_receipt(
        &self,
        caller: &Identity,
        interrupt: &InterruptId,
    ) -> Result<Value, AppError> {
        let question = match self.read_interrupt(caller, interrupt).await {
            Ok(row) => row.interrupt,
            Err(error @ AppError::NotFound(_)) => {
                let of_escalation = self.question_of_escalation(caller, interrupt).await?;
                of_escalation.ok_or(error)?
            }
            Err(error) => return Err(error),
        };
        let audit_signer = &self.inner.audit_signer;
        let receipt = audit_signer.receipt(&caller.tenant, &question).await?;
        receipt.ok_or(AppError::NotFound(ResourceKind::Receipt))
    }

    /// The question by which an escalation was decided, for somebody who knows the escalation only.
    async fn question_of_escalation(
        &self,
        caller: &Identity,
        id: &InterruptId,
    ) -> Result<Option<InterruptId>, AppError> {
        let escalation = EscalationId::new(id.as_str());
        let found = self.escalation_of(caller, &escalation).await?;
        Ok(found.map(|found| {
            let record = found.record;
            let of_flow = record.interrupt_id.filter(|_| !record.detached);
            of_flow.unwrap_or_else(|| id.clone())
        }))
    }
}
