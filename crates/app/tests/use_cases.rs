//! Use cases without an entry point: what every protocol gets, whatever it checks itself.

use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tandem_access::{Groups, Identity, Keyring, LinkSigner, LoginCodes, Scope, Sessions};
use tandem_app::{
    AnswerTarget, App, AppConfig, AppError, CreateRun, ForbiddenReason, Idempotency,
    IdempotencyCheck, InvalidField, KeyedRequest, ResourceKind, StoredResponse, SubmittedAnswer,
};
use tandem_record::{InterruptId, Object, RunId, Transport, WorkflowId};
use tandem_runtime::audit::{AuditKey, AuditSigner};
use tandem_testkit::test_host::TestHost;
use tandem_testkit::wf;

async fn app() -> (TestHost, App) {
    let host = TestHost::new().await;
    host.register(wf("flow").noop("a")).await;
    let store = Arc::new(host.store.reopen());
    let app = App::new(AppConfig {
        runtime: host.runtime.clone(),
        keyring: Arc::new(Keyring::new(store.clone())),
        codes: Arc::new(LoginCodes::new(60_000)),
        sessions: Arc::new(Sessions::new(60_000)),
        groups: Groups::default(),
        network_people: Vec::new(),
        links: LinkSigner::new(vec![vec![7; 32]]),
        audit_signer: Arc::new(AuditSigner::new(store, AuditKey::from_seed(&[7; 32]))),
        host_id: "tandem".to_owned(),
        test_hooks: false,
    });
    (host, app)
}

fn caller(tenant: &str, scopes: &[Scope]) -> Identity {
    Identity {
        key_id: Arc::from("key"),
        principal: "ana".into(),
        tenant: tenant.into(),
        workspace: None,
        agent: None,
        scopes: scopes.iter().copied().collect(),
        roles: Arc::from([]),
        test_key: false,
        expires_at: None,
    }
}

fn flow() -> CreateRun {
    CreateRun::with_inputs(WorkflowId::new("flow"), Object::new(), Transport::Rest)
}

#[tokio::test(start_paused = true)]
async fn use_cases_check_the_scope_themselves() {
    let (_host, app) = app().await;
    let nobody = caller("acme", &[]);
    let run = RunId::new("run-1");
    let created = app.create_run(&nobody, flow(), Idempotency::none()).await;
    let cancelled = app.cancel_run(&nobody, run.clone(), None, Idempotency::none());
    let answer = SubmittedAnswer {
        value: json!({"action": "accept"}),
        digest: None,
        acting_for: None,
    };
    let target = AnswerTarget::Interrupt(InterruptId::new("int-1"));
    let decided = app.decide(&nobody, target, answer, Idempotency::none());
    let denials = [
        (created.err(), Scope::RunsCreate),
        (cancelled.await.err(), Scope::RunsCancel),
        (decided.await.err(), Scope::ApprovalsRespond),
        (app.read_run(&nobody, &run).await.err(), Scope::RunsRead),
        (app.list_keys(&nobody).await.err(), Scope::Keys),
    ];
    for (error, scope) in denials {
        match error {
            Some(AppError::Forbidden(ForbiddenReason::Scope(missing))) => {
                assert_eq!(missing, scope);
            }
            other => panic!("{scope} is not required: {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn repeated_request_is_executed_and_rendered_once() {
    let (_host, app) = app().await;
    let caller = caller("acme", &[Scope::RunsCreate, Scope::RunsRead]);
    let keyed = |body: &'static [u8]| KeyedRequest {
        key: "key-1",
        operation: "create",
        target: "/runs",
        body,
        principal: None,
    };
    let partition = caller.partition();
    let Ok(IdempotencyCheck::New(ticket)) = app.begin(&partition, &keyed(b"{}")).await else {
        panic!("the key was not used before");
    };
    let renders = Arc::new(AtomicUsize::new(0));
    let idempotency = ticket.storing({
        let renders = Arc::clone(&renders);
        move |outcome: Result<&RunId, _>| {
            renders.fetch_add(1, Ordering::Relaxed);
            Some(StoredResponse {
                status: 201,
                body: outcome.expect("the run is created").to_string(),
            })
        }
    });
    let run = app.create_run(&caller, flow(), idempotency).await.unwrap();
    let run = run.done();
    assert_eq!(renders.load(Ordering::Relaxed), 1);
    match app.begin(&partition, &keyed(b" {} ")).await {
        Ok(IdempotencyCheck::Replay(stored)) => assert_eq!(stored.body, run.as_str()),
        _ => panic!("the stored response is returned"),
    }
    let other = app.begin(&partition, &keyed(b"{\"a\":1}")).await;
    assert!(matches!(other, Err(AppError::IdempotencyKeyMismatch)));
}

#[tokio::test(start_paused = true)]
async fn run_of_another_tenant_is_reported_like_a_missing_one() {
    let (_host, app) = app().await;
    let owner = caller("acme", &[Scope::RunsCreate, Scope::RunsRead]);
    let created = app.create_run(&owner, flow(), Idempotency::none()).await;
    let run = created.unwrap().done();
    assert!(app.read_run(&owner, &run).await.is_ok());
    let stranger = caller("other", Scope::all());
    let read = app.read_run(&stranger, &run).await.err();
    let cancelled = app.cancel_run(&stranger, run, None, Idempotency::none());
    for error in [read, cancelled.await.err()] {
        assert!(
            matches!(error, Some(AppError::NotFound(ResourceKind::Run))),
            "{error:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn live_key_may_not_use_test_hooks() {
    let (_host, app) = app().await;
    let live = caller("acme", Scope::all());
    let mut requested = flow();
    let mock = json!({"mockProvider": {"id": "stream-text"}});
    requested.options.configurable = mock.as_object().cloned();
    let created = app.create_run(&live, requested, Idempotency::none()).await;
    match created.err() {
        Some(AppError::Forbidden(ForbiddenReason::MockProvider { requested })) => {
            assert_eq!(requested.as_deref(), Some("stream-text"));
        }
        other => panic!("a live key named a mock provider: {other:?}"),
    }
    let forced = app.check_engine_version(&live, Some("1"), "engineVersion");
    let refused = ForbiddenReason::EngineVersion;
    assert!(matches!(forced, Err(AppError::Forbidden(reason)) if reason == refused));
}

#[tokio::test(start_paused = true)]
async fn invalid_fields_of_entry_point_and_use_case_are_reported_together() {
    let (_host, app) = app().await;
    let caller = caller("acme", Scope::all());
    let requested = CreateRun {
        workflow_id: WorkflowId::new(""),
        callback_url: Some("ftp://example.com".to_owned()),
        invalid_fields: vec![InvalidField::new("/agentId", "is unknown")],
        ..flow()
    };
    let created = app.create_run(&caller, requested, Idempotency::none());
    match created.await.err() {
        Some(AppError::Invalid(fields)) => {
            let paths: Vec<&str> = fields.iter().map(|field| field.path.as_str()).collect();
            assert_eq!(paths, ["/workflowId", "/callbackUrl", "/agentId"]);
        }
        other => panic!("the request is invalid: {other:?}"),
    }
}
