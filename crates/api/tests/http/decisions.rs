//! Decisions: edits are recorded as decided, offered actions can be used, and errors in a document
//! or a run are refused with their path.

use crate::inbox::{InboxForm, asking, gate, page, sign_in_as, status};
use crate::supervisor::started;
use crate::test_server::{TestServer, chain, noop};
use serde_json::{Value, json};
use tandem_access::{NewKey, Scope};
use tandem_record::{Principal, TenantId};

async fn key_of(server: &TestServer, name: &str) -> String {
    let key = NewKey {
        principal: Some(Principal::new(name)),
        ..NewKey::new(name, TenantId::new("default"), Scope::all().iter().copied())
    };
    server.mint(key).await
}

async fn card(server: &TestServer, key: &str, question: &str) -> String {
    let cookie = sign_in_as(server, key).await;
    let card = page(server, &cookie, &format!("/console/inbox/{question}")).await;
    assert_eq!(card.status.as_u16(), 200);
    card.text
}

fn editable() -> Value {
    json!({"title": "Refund?", "actions": ["accept", "reject", "edit-accept"],
        "artifactData": {"amount": 129, "note": "late"}})
}

const AMOUNT: &str = "v/editedArtifactData/amount";
const NOTE: &str = "v/editedArtifactData/note";

#[tokio::test]
async fn plain_approval_with_edited_values_is_refused() {
    let server = TestServer::new().await;
    let (run, question) = asking(&server, "w", gate(editable())).await;
    let form = InboxForm::at(&server, &question).await;
    let refused = form
        .send(&[("action", "accept"), (AMOUNT, "7"), (NOTE, "late")])
        .await;
    assert_eq!(refused.status.as_u16(), 400);
    for part in ["you changed what is proposed", "value=\"7\"", "data-edited"] {
        assert!(refused.text.contains(part), "{part}: {}", refused.text);
    }
    assert_eq!(status(&server, &run).await, "waiting-approval");
    let untouched = [("action", "accept"), (AMOUNT, "129"), (NOTE, "late")];
    assert_eq!(form.send(&untouched).await.status.as_u16(), 303);
    let log = server.log(&run).await.to_string();
    assert!(log.contains("\"action\":\"accept\""), "{log}");
    assert_eq!(status(&server, &run).await, "completed");
}

#[tokio::test]
async fn edits_are_shown_on_card_run_page_and_receipt() {
    let server = TestServer::new().await;
    let (run, question) = asking(&server, "w", gate(editable())).await;
    let form = InboxForm::at(&server, &question).await;
    let fields = [
        ("action", "edit-accept"),
        (AMOUNT, "7"),
        (NOTE, "late"),
        ("comment", "too much"),
    ];
    assert_eq!(form.send(&fields).await.status.as_u16(), 303);
    let card = page(&server, &form.cookie, &format!("/console/inbox/{question}"))
        .await
        .text;
    let run_page = page(&server, &form.cookie, &format!("/console/runs/{run}"))
        .await
        .text;
    for (what, html) in [("card", &card), ("run page", &run_page)] {
        for part in [
            "<del>129</del>",
            "<ins>7</ins>",
            "approved with changes",
            "too much",
        ] {
            assert!(html.contains(part), "{what} lacks {part}: {html}");
        }
        assert!(!html.contains("<del>late</del>"), "{what}: the note stayed");
    }
    assert!(card.contains("Approved with changes"));
    let receipt = server
        .get(&format!("/v1/host/tandem/receipts/{question}"))
        .await
        .ok(200);
    let artifact = &receipt["decision"]["artifact"];
    let digest = |value: Value| json!(tandem_runtime::digest(&value));
    assert_eq!(
        artifact["before"],
        digest(json!({"amount": 129, "note": "late"}))
    );
    assert_eq!(
        artifact["after"],
        digest(json!({"amount": 7, "note": "late"}))
    );
    let read = server
        .get(&format!("/v1/host/tandem/interrupts/{question}"))
        .await
        .ok(200);
    assert_eq!(read["edited"], json!({"amount": 7, "note": "late"}));
}

#[tokio::test]
async fn quorum_card_shows_votes_and_only_allowed_actions() {
    let server = TestServer::new().await;
    let config = json!({"title": "Pay?", "requiredApprovals": 2, "actions": ["accept", "reject"],
        "tandem": {"approvers": ["ana", "ben"]}});
    let (run, question) = asking(&server, "w", gate(config)).await;
    let (ana, ben) = (key_of(&server, "ana").await, key_of(&server, "ben").await);
    let eve = key_of(&server, "eve").await;
    let looking = server.new_key("default", &[Scope::RunsRead]).await;
    for (key, why) in [
        (&eve, "not among those who may decide"),
        (&looking, "approvals:respond"),
    ] {
        let shown = card(&server, key, &question).await;
        assert!(
            !shown.contains("data-answer") && shown.contains(why),
            "{why}: {shown}"
        );
    }
    let form = InboxForm::of(&server, &ana, &question).await;
    assert_eq!(
        form.send(&[("action", "accept"), ("comment", "fine")])
            .await
            .status
            .as_u16(),
        303
    );
    let shown = card(&server, &ana, &question).await;
    assert!(shown.contains("You approved already"), "{shown}");
    assert!(
        !shown.contains("value=\"accept\"") && shown.contains("value=\"reject\""),
        "{shown}"
    );
    let form = InboxForm::of(&server, &ben, &question).await;
    assert_eq!(
        form.send(&[("action", "accept"), ("comment", "me too")])
            .await
            .status
            .as_u16(),
        303
    );
    assert_eq!(status(&server, &run).await, "completed");
    let shown = card(&server, &looking, &question).await;
    for part in [
        "<strong>ana</strong>",
        "<strong>ben</strong>",
        "fine",
        "me too",
        "2 of 2 approvals",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[tokio::test]
async fn second_approver_sees_edits_of_the_first() {
    let server = TestServer::new().await;
    let mut config = editable();
    config["requiredApprovals"] = json!(2);
    let (run, question) = asking(&server, "w", gate(config)).await;
    let (ana, ben) = (key_of(&server, "ana").await, key_of(&server, "ben").await);
    let form = InboxForm::of(&server, &ana, &question).await;
    let fields = [("action", "edit-accept"), (AMOUNT, "7"), (NOTE, "late")];
    assert_eq!(form.send(&fields).await.status.as_u16(), 303);
    let shown = card(&server, &ben, &question).await;
    for part in ["<del>129</del>", "<ins>7</ins>", "approved with changes"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let form = InboxForm::of(&server, &ben, &question).await;
    let fields = [("action", "accept"), (AMOUNT, "7"), (NOTE, "late")];
    assert_eq!(form.send(&fields).await.status.as_u16(), 303);
    assert_eq!(status(&server, &run).await, "completed");
    let decided = card(&server, &ben, &question).await;
    assert!(
        decided.contains("<del>129</del>") && decided.contains("<ins>7</ins>"),
        "{decided}"
    );
}

#[tokio::test]
async fn card_shows_next_steps_of_a_held_decision() {
    let server = TestServer::new().await;
    let decision = json!({"kind": "next-worker", "nextWorkerIds": ["worker"], "confidence": 0.2});
    let run = started(&server, json!([decision])).await;
    let listed = server
        .get(&format!("/v1/host/tandem/interrupts?runId={run}"))
        .await
        .ok(200);
    let question = listed["interrupts"][0]["interruptId"].as_str().unwrap();
    let shown = card(&server, &server.key, question).await;
    for part in [
        "The held decision is carried out: worker starts.",
        "What you decide instead is carried out.",
        "Nothing of it happens; lead decides again.",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[tokio::test]
async fn invalid_document_is_refused_with_every_error() {
    let server = TestServer::new().await;
    let misspelt = gate(json!({"requiredApproval": 2}));
    let call =
        json!({"id": "call", "typeId": "core.subWorkflow", "config": {"workflowId": "nobody"}});
    let document = chain("w", &[misspelt, call.clone(), noop("after")]);
    let refused = server.put("/v1/host/tandem/workflows/w", document).await;
    let details = refused.refused(400, "validation_error");
    assert_eq!(
        details["errors"][0]["path"],
        "/nodes/0/config/requiredApproval"
    );
    let message = details["errors"][0]["message"].as_str().unwrap();
    assert!(
        message.contains("did you mean `requiredApprovals`?"),
        "{message}"
    );
    assert_eq!(details["warnings"][0]["path"], "/nodes/1/config/workflowId");

    let taken = server
        .put("/v1/host/tandem/workflows/w", chain("w", &[call]))
        .await
        .ok(201);
    assert_eq!(taken["warnings"][0]["path"], "/nodes/0/config/workflowId");
    let child = server
        .put(
            "/v1/host/tandem/workflows/nobody",
            chain("nobody", &[noop("n")]),
        )
        .await;
    assert!(child.ok(201).get("warnings").is_none());
}

#[tokio::test]
async fn undeclared_or_mistyped_inputs_are_refused_with_their_path() {
    let server = TestServer::new().await;
    let mut document = chain("w", &[noop("n")]);
    document["variables"] = json!([{"name": "amount", "type": "number", "required": true},
        {"name": "note", "type": "string"}]);
    server
        .put("/v1/host/tandem/workflows/w", document)
        .await
        .ok(201);
    let create =
        |inputs: Value| server.post("/v1/runs", json!({"workflowId": "w", "inputs": inputs}));
    for (inputs, place) in [
        (json!({}), "/inputs/amount"),
        (json!({"amount": "12"}), "/inputs/amount"),
        (json!({"amount": 12, "note": 3}), "/inputs/note"),
    ] {
        let details = create(inputs).await.refused(400, "validation_error");
        assert_eq!(details["errors"][0]["path"], place, "{details}");
        assert_eq!(details["errors"].as_array().unwrap().len(), 1);
    }
    create(json!({"amount": 12, "more": [1]})).await.ok(201);
}
