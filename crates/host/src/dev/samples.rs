//! The sample workflows of `tandem dev`, and the runs it starts of them.

use crate::serve::workflows::{self, Source};
use serde_json::json;
use tandem_access::Identity;
use tandem_record::{Object, RunOptions, RunRequest, RunStatus, Transport, WorkflowId};
use tandem_runtime::{Fault, InboxQuery, NewRun, Page, RunFilter, Runtime};

const SAMPLES: [(&str, &str); 5] = [
    ("hello", include_str!("../../samples/hello.json")),
    (
        "order-pipeline",
        include_str!("../../samples/order-pipeline.json"),
    ),
    ("parcel", include_str!("../../samples/parcel.json")),
    (
        "parcel-batch",
        include_str!("../../samples/parcel-batch.json"),
    ),
    ("refund", include_str!("../../samples/refund.json")),
];

/// Open questions among which a waiting run is looked for.
const LOOKED_AT: usize = 100;

pub(super) async fn register(runtime: &Runtime) -> anyhow::Result<()> {
    let sources = SAMPLES.map(|(name, text)| Source {
        origin: format!("sample {name}"),
        text: text.to_owned(),
    });
    workflows::register(runtime, sources.into()).await?;
    Ok(())
}

/// Starts sample runs: some that are active, unless one of the last start still is, and one that
/// waits for a person, unless a run waits already.
pub(super) async fn start_sample_runs(runtime: &Runtime, caller: &Identity) -> anyhow::Result<()> {
    if !has_waiting_run(runtime, caller).await? {
        let asking = sample(caller, "refund", Object::new());
        runtime.create_run(asking, None).await?;
    }
    if has_active_run(runtime, caller).await? {
        return Ok(());
    }
    let large = json!({"orderId": "A-1001", "amount": 140});
    let small = json!({"orderId": "A-1002", "amount": 35});
    let runtime = runtime.acting_as(caller.actor());
    for (workflow, inputs) in [
        ("order-pipeline", large),
        ("order-pipeline", small),
        ("parcel-batch", json!({})),
        ("hello", json!({"name": "newcomer"})),
    ] {
        let inputs = inputs.as_object().cloned().unwrap_or_default();
        runtime
            .create_run(sample(caller, workflow, inputs), None)
            .await?;
    }
    Ok(())
}

/// Whether a run of a workflow waits for a person. Questions of conversations do not count.
async fn has_waiting_run(runtime: &Runtime, caller: &Identity) -> Result<bool, Fault> {
    let some = InboxQuery {
        limit: LOOKED_AT,
        ..InboxQuery::default()
    };
    let inbox = runtime.inbox(&caller.tenant, &some).await?;
    let mut runs = inbox.rows.iter().filter_map(|(_, row)| row.run());
    Ok(runs.any(|run| !run.is_flow_run()))
}

async fn has_active_run(runtime: &Runtime, caller: &Identity) -> Result<bool, Fault> {
    for status in RunStatus::ALL {
        if status.is_terminal() || status.is_waiting() {
            continue;
        }
        let filter = RunFilter {
            status: Some(status),
            ..RunFilter::default()
        };
        let one = Page {
            before: None,
            limit: 1,
        };
        let found = runtime.list_runs(&caller.tenant, &filter, &one).await?;
        if !found.runs.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn sample(caller: &Identity, workflow: &str, inputs: Object) -> NewRun {
    NewRun {
        workflow_id: WorkflowId::new(workflow),
        exclusive_scope: false,
        request: RunRequest {
            owner: caller.owner(),
            inputs,
            erased_defaults: Vec::new(),
            untrusted_inputs: Vec::new(),
            sensitive_inputs: Vec::new(),
            options: RunOptions {
                tags: Some(vec!["sample".to_owned()]),
                ..RunOptions::default()
            },
            scope_id: None,
            callback_url: None,
            callback_may_answer: false,
            parent: None,
            claimed_parent: None,
            waiting_session: None,
            conformance_role: false,
            execution_model: None,
            isolated_memory: false,
            transport: Transport::Ui,
            trace: None,
            memory: None,
            forked_from: None,
            forked_by: Vec::new(),
            levels_above: 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use tandem_runtime::{Definition, Permissions};

    #[test]
    fn samples_are_valid_documents() {
        for (name, text) in SAMPLES {
            let document: Value = serde_json::from_str(text).expect(name);
            let admitted = Definition::admit(&document, Permissions::default());
            let definition = admitted.unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
            assert_eq!(definition.warnings, [], "{name}");
            assert_eq!(definition.id().as_str(), name);
            assert!(definition.gated().is_none(), "{name}");
        }
    }
}
