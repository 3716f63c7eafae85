//! Which of the protocol's fixture workflows this host can run. Discovery lists them, so the list
//! must be true.

use tandem_record::TenantId;
use tandem_runtime::{Fault, Runtime};

/// Shared workflows with a fixture's name whose every node type is served. Ask after the operator's
/// workflows are registered.
pub async fn runnable_fixtures(runtime: &Runtime) -> Result<Vec<String>, Fault> {
    // No tenant has this name, so only what everybody sees is listed.
    let nobody = TenantId::new("");
    let mut fixtures = Vec::new();
    for registered in runtime.workflows(&nobody).await? {
        let id = &registered.workflow;
        if !registered.shared || !id.as_str().starts_with("conformance-") {
            continue;
        }
        let definition = runtime.current_definition(&nobody, id).await?;
        if definition.is_some_and(|d| d.gated().is_none()) {
            fixtures.push(id.to_string());
        }
    }
    Ok(fixtures)
}
