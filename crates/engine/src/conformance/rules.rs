//! Where things for conformance tests exist, and who may use them.

use crate::definition::Definition;
use crate::run::Context;
use tandem_record::{NodeId, RunRequest};

/// Where the protocol's test-only node types and test hooks exist.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ConformanceTypes {
    /// Nowhere: the operator did not enable them.
    Off,
    /// In workflows whose id begins with `conformance-`.
    #[default]
    ByWorkflowId,
    /// In every workflow: the caller has the role.
    Everywhere,
    /// In documents stored while they existed, on a host that no longer has them. Such documents
    /// compile so that their runs stay readable; no run of them may start.
    StoredOnly,
}

/// Id prefixes of the workflows that the protocol publishes for tests.
const TEST_WORKFLOW_PREFIXES: [&str; 2] = ["conformance-", "openwop-smoke-"];

/// Whether the id is one of the protocol's test workflows, where test-only node types are allowed.
pub fn is_conformance(workflow_id: &str) -> bool {
    let mut prefixes = TEST_WORKFLOW_PREFIXES.iter();
    prefixes.any(|prefix| workflow_id.starts_with(prefix))
}

/// Which types and hooks for conformance tests a document may use.
#[derive(Clone, Copy)]
pub(crate) struct AllowedHooks {
    /// The host has them at all.
    pub(crate) exist: bool,
    /// Types and hooks that are named explicitly.
    pub(crate) named: bool,
    /// What the protocol's own workflows get implicitly, by their id.
    pub(crate) implicit: bool,
}

impl AllowedHooks {
    pub(crate) fn of(types: ConformanceTypes, workflow_id: &str) -> Self {
        use ConformanceTypes::{ByWorkflowId, Everywhere, Off, StoredOnly};
        let test_workflow = is_conformance(workflow_id);
        Self {
            exist: types != Off,
            named: match types {
                Off => false,
                ByWorkflowId => test_workflow,
                Everywhere | StoredOnly => true,
            },
            implicit: test_workflow && matches!(types, ByWorkflowId | Everywhere),
        }
    }
}

/// Whether a run may use what exists for conformance tests only.
pub(super) fn may_use_test_types(def: &Definition, request: &RunRequest, cx: &Context<'_>) -> bool {
    cx.conformance && (def.is_conformance() || request.conformance_role)
}

/// The first node that a run may not use because it is for conformance tests only, with its type.
pub(crate) fn refused_node<'d>(
    def: &'d Definition,
    request: &RunRequest,
    cx: &Context<'_>,
) -> Option<(&'d NodeId, &'d str)> {
    let used = def.test_only();
    used.filter(|_| !may_use_test_types(def, request, cx))
}

/// The protocol's own test workflows are started without their required inputs.
pub(crate) fn may_omit_inputs(def: &Definition) -> bool {
    def.is_conformance()
}
