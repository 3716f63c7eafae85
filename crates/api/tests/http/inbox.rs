//! The inbox as a browser uses it: what it shows, what it accepts, and how it reports refusals.

use crate::test_server::{Reply, Stream, TestServer, chain, noop};
use serde_json::{Value, json};
use tandem_access::{NewKey, Scope};
use tandem_record::{Principal, TenantId, WorkspaceId};

pub(crate) async fn sign_in_as(server: &TestServer, key: &str) -> String {
    let body = format!("key={key}");
    let reply = server
        .call_as("", "POST", "/console/login", &[("host", "t")], body)
        .await;
    assert_eq!(reply.status.as_u16(), 303);
    let set = reply.header("set-cookie").to_owned();
    set.split(';').next().unwrap().to_owned()
}

async fn sign_in(server: &TestServer) -> String {
    sign_in_as(server, &server.key).await
}

pub(crate) async fn page(server: &TestServer, cookie: &str, path: &str) -> Reply {
    server
        .call_as("", "GET", path, &[("cookie", cookie)], "")
        .await
}

fn hidden(html: &str, name: &str) -> String {
    let (_, rest) = html
        .split_once(&format!("name=\"{name}\" value=\""))
        .unwrap_or_else(|| panic!("no {name} in {html}"));
    rest.split('"').next().unwrap().to_owned()
}

/// A browser with one question open.
pub(crate) struct InboxForm<'a> {
    server: &'a TestServer,
    pub(crate) cookie: String,
    question: String,
    csrf: String,
    digest: String,
}

impl<'a> InboxForm<'a> {
    pub(crate) async fn at(server: &'a TestServer, question: &str) -> Self {
        Self::of(server, &server.key, question).await
    }

    /// The same with another person's key.
    pub(crate) async fn of(server: &'a TestServer, key: &str, question: &str) -> Self {
        let cookie = sign_in_as(server, key).await;
        let card = page(server, &cookie, &format!("/console/inbox/{question}")).await;
        assert_eq!(card.status.as_u16(), 200, "{card:?}");
        Self {
            csrf: hidden(&card.text, "csrf"),
            digest: hidden(&card.text, "digest"),
            question: question.to_owned(),
            cookie,
            server,
        }
    }

    pub(crate) async fn send(&self, fields: &[(&str, &str)]) -> Reply {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.append_pair("csrf", &self.csrf);
        if fields.iter().all(|(name, _)| *name != "digest") {
            form.append_pair("digest", &self.digest);
        }
        form.extend_pairs(fields);
        let path = format!("/console/inbox/{}/answer", self.question);
        let headers = [("cookie", self.cookie.as_str()), ("host", "t")];
        let call = self
            .server
            .call_as("", "POST", &path, &headers, form.finish());
        call.await
    }
}

pub(crate) fn gate(config: Value) -> Value {
    json!({"id": "gate", "typeId": "core.approvalGate", "config": config})
}

async fn questions(server: &TestServer) -> Vec<Value> {
    let listed = server.get("/v1/host/tandem/interrupts").await.ok(200);
    listed["interrupts"].as_array().unwrap().clone()
}

/// Starts a run with one interrupt node and returns the run and the interrupt.
pub(crate) async fn asking(server: &TestServer, id: &str, node: Value) -> (String, String) {
    let run = server.start(id, &[node, noop("after")]).await;
    let path = format!("/v1/host/tandem/interrupts?runId={run}");
    let listed = server.get(&path).await.ok(200);
    let question = listed["interrupts"][0]["interruptId"].as_str().unwrap();
    (run, question.to_owned())
}

pub(crate) async fn status(server: &TestServer, run: &str) -> Value {
    server.get(&format!("/v1/runs/{run}")).await.ok(200)["status"].clone()
}

#[tokio::test]
async fn sign_in_leads_to_inbox_when_a_question_is_open() {
    let server = TestServer::new().await;
    let post = || async {
        let body = format!("key={}", server.key);
        let headers = [("host", "t")];
        let path = "/console/login";
        server.call_as("", "POST", path, &headers, body).await
    };
    assert_eq!(post().await.header("location"), "/console/runs");
    asking(&server, "w", gate(json!({"title": "May I?"}))).await;
    assert_eq!(post().await.header("location"), "/console/inbox");
    let cookie = sign_in(&server).await;
    let home = page(&server, &cookie, "/console").await;
    assert_eq!(home.header("location"), "/console/inbox");
    for path in ["/console", "/console/inbox", "/console/inbox/live"] {
        let stranger = server.call_as("", "GET", path, &[], "").await;
        assert_eq!(stranger.header("location"), "/console/login", "{path}");
    }
}

#[tokio::test]
async fn card_shows_question_and_next_steps() {
    let server = TestServer::new().await;
    let config = json!({"title": "Pay?", "description": "Look closely.", "timeoutMs": 60_000,
        "requiredApprovals": 2, "actions": ["accept", "reject", "ask"],
        "artifactData": {"amount": 5}});
    let (run, question) = asking(&server, "w", gate(config)).await;
    let form = InboxForm::at(&server, &question).await;
    let response = form
        .send(&[("action", "ask"), ("comment", "Why five?")])
        .await;
    assert_eq!(response.status.as_u16(), 303);
    let voted = form
        .send(&[("action", "accept"), ("comment", "fine")])
        .await;
    assert_eq!(voted.status.as_u16(), 303);
    let path = format!("/console/inbox/{question}");
    assert_eq!(voted.header("location"), path);
    let card = page(&server, &form.cookie, &path).await.text;
    for part in [
        "Pay?",
        "Look closely.",
        "&quot;amount&quot;: 5",
        "countdown",
        "1 of 2 approvals",
        "fine",
        "Why five?",
        "run.started",
        "What happens next",
        "interrupt_rejected",
        ">after<",
        &run,
    ] {
        assert!(card.contains(part), "{part}: {card}");
    }
    assert_eq!(status(&server, &run).await, "waiting-approval");
}

#[tokio::test]
async fn second_decision_sees_the_first_decider() {
    let server = TestServer::new().await;
    let (run, question) = asking(&server, "w", gate(json!({}))).await;
    let form = InboxForm::at(&server, &question).await;
    let first = form.send(&[("action", "accept"), ("comment", "yes")]).await;
    assert_eq!(first.status.as_u16(), 303);
    assert_eq!(status(&server, &run).await, "completed");
    let log = server.log(&run).await.to_string();
    assert!(log.contains("\"feedback\":\"yes\""), "{log}");
    let second = form.send(&[("action", "reject")]).await;
    assert_eq!(second.status.as_u16(), 409);
    let principal = server.identity().await.principal.to_string();
    for part in ["Approved", &format!(" by {principal}"), "decided before"] {
        assert!(second.text.contains(part), "{part}: {}", second.text);
    }
    assert!(!second.text.contains("data-answer"), "nothing to press");
}

#[tokio::test]
async fn decision_on_changed_artifact_is_refused() {
    let server = TestServer::new().await;
    let (run, question) = asking(&server, "w", gate(json!({}))).await;
    let form = InboxForm::at(&server, &question).await;
    for digest in ["", "0000"] {
        let stale = form.send(&[("action", "accept"), ("digest", digest)]).await;
        assert_eq!(stale.status.as_u16(), 409);
        assert!(
            stale.text.contains("has changed since it was shown"),
            "{}",
            stale.text
        );
    }
    assert_eq!(status(&server, &run).await, "waiting-approval");
}

#[tokio::test]
async fn invalid_answer_is_shown_beside_its_field() {
    let server = TestServer::new().await;
    let config = json!({"actions": ["accept", "edit-accept"], "artifactData": {"amount": 5},
        "artifactSchema": {"type": "object", "properties": {
            "amount": {"type": "number", "maximum": 9}}}});
    let (run, question) = asking(&server, "w", gate(config)).await;
    let form = InboxForm::at(&server, &question).await;
    for (typed, message) in [("77", "maximum"), ("many", "must be a number")] {
        let fields = [
            ("action", "edit-accept"),
            ("v/editedArtifactData/amount", typed),
        ];
        let refused = form.send(&fields).await;
        assert_eq!(refused.status.as_u16(), 400, "{refused:?}");
        for part in [
            &format!("value=\"{typed}\""),
            message,
            "aria-invalid=\"true\"",
        ] {
            assert!(refused.text.contains(part), "{part}: {}", refused.text);
        }
    }
    let unasked = form.send(&[("action", "reject")]).await;
    assert_eq!(
        unasked.status.as_u16(),
        400,
        "an action that is not offered"
    );
    assert_eq!(status(&server, &run).await, "waiting-approval");
    let fields = [
        ("action", "edit-accept"),
        ("v/editedArtifactData/amount", "7"),
    ];
    assert_eq!(form.send(&fields).await.status.as_u16(), 303);
    assert_eq!(status(&server, &run).await, "completed");
}

#[tokio::test]
async fn every_kind_has_a_form() {
    let server = TestServer::new().await;
    let table = [
        (
            "clear",
            json!({"id": "ask", "typeId": "core.clarificationGate", "config": {"questions": [
                {"id": "n", "question": "How many?", "schema": {"type": "integer"}}]}}),
            [("v/answers/n", "x"), ("v/answers/n", "3")],
        ),
        (
            "event",
            json!({"id": "ask", "typeId": "core.interrupt", "config": {"kind": "external-event",
                "data": {"eventType": "paid", "correlation": {"order": 1}}}}),
            [("v", "{\"order\": 2}"), ("v", "{\"order\": 1}")],
        ),
        (
            "odd",
            json!({"id": "ask", "typeId": "core.interrupt", "config": {"kind": "custom",
                "data": {"customKind": "size"}, "resumeSchema": {"type": "object",
                    "properties": {"size": {"type": "number", "minimum": 1}}}}}),
            [("v/size", "0"), ("v/size", "2")],
        ),
    ];
    for (id, node, [wrong, right]) in table {
        let (run, question) = asking(&server, id, node).await;
        let form = InboxForm::at(&server, &question).await;
        let refused = form.send(&[wrong]).await;
        assert!(refused.status.is_client_error(), "{id}: {refused:?}");
        assert!(refused.text.contains("data-answer"), "{id}: the form stays");
        assert_eq!(form.send(&[right]).await.status.as_u16(), 303, "{id}");
        assert_eq!(status(&server, &run).await, "completed", "{id}");
    }
}

#[tokio::test]
async fn inbox_enforces_key_scopes_and_tenant() {
    let server = TestServer::new().await;
    let (run, question) = asking(&server, "w", gate(json!({}))).await;
    let path = format!("/console/inbox/{question}");
    let reader = server.new_key("default", &[Scope::RunsRead]).await;
    let cookie = sign_in_as(&server, &reader).await;
    let card = page(&server, &cookie, &path).await;
    assert_eq!(card.status.as_u16(), 200);
    assert!(!card.text.contains("data-answer"), "no form to press");
    let foreign = server.new_key("tenant2", Scope::all()).await;
    let cookie = sign_in_as(&server, &foreign).await;
    for path in [&path, &format!("/console/inbox/live?item={question}")] {
        let reply = page(&server, &cookie, path).await;
        assert_eq!(reply.status.as_u16(), 404, "{path}");
    }
    let elsewhere = NewKey {
        principal: Some(Principal::new("eve")),
        workspace: Some(WorkspaceId::new("other")),
        ..NewKey::new("k", TenantId::new("default"), Scope::all().iter().copied())
    };
    let key = server.mint(elsewhere).await;
    let cookie = sign_in_as(&server, &key).await;
    assert_eq!(page(&server, &cookie, &path).await.status.as_u16(), 403);
    let list = page(&server, &cookie, "/console/inbox").await;
    assert!(!list.text.contains(&question), "{}", list.text);
    assert_eq!(status(&server, &run).await, "waiting-approval");
}

#[tokio::test]
async fn inbox_list_is_filtered_sorted_and_paged() {
    let server = TestServer::new().await;
    let (_, plain) = asking(&server, "a", gate(json!({"title": "plain"}))).await;
    let (_, soon) = asking(
        &server,
        "b",
        gate(json!({"title": "soon", "timeoutMs": 60_000})),
    )
    .await;
    let node = json!({"id": "ask", "typeId": "core.clarificationGate",
        "config": {"questions": [{"id": "q", "question": "Why?"}]}});
    let (_, why) = asking(&server, "c", node).await;
    let cookie = sign_in(&server).await;
    let order = |html: &str| {
        let mut found: Vec<(usize, &str)> = [("plain", &plain), ("soon", &soon), ("why", &why)]
            .into_iter()
            .filter_map(|(name, id)| Some((html.find(&format!("li data-id=\"{id}\""))?, name)))
            .collect();
        found.sort_unstable();
        found.iter().map(|(_, name)| *name).collect::<Vec<_>>()
    };
    for (query, expected) in [
        ("", vec!["soon", "plain", "why"]),
        ("?sort=newest", vec!["why", "soon", "plain"]),
        ("?kind=approval", vec!["soon", "plain"]),
        ("?group=nobody", vec![]),
    ] {
        let list = page(&server, &cookie, &format!("/console/inbox{query}")).await;
        assert_eq!(order(&list.text), expected, "{query}");
    }
    for query in ["?sort=sideways", "?cursor=x"] {
        let list = page(&server, &cookie, &format!("/console/inbox{query}")).await;
        assert_eq!(list.status.as_u16(), 400, "{query}");
    }
    for n in 0..30 {
        let title = format!("more {n}");
        server
            .register("d", &[gate(json!({"title": title})), noop("after")])
            .await;
        server.create("d").await;
    }
    let first = page(&server, &cookie, "/console/inbox").await.text;
    let (_, rest) = first.split_once("href=\"/console/inbox?cursor=").unwrap();
    let next = rest.split('"').next().unwrap();
    let second = page(&server, &cookie, &format!("/console/inbox?cursor={next}")).await;
    assert_eq!(second.text.matches("<li data-id=").count(), 3);
    assert_eq!(questions(&server).await.len(), 33);
}

#[tokio::test]
async fn inbox_stream_updates_rows_and_card() {
    let server = TestServer::new().await;
    let (_, question) = asking(&server, "w", gate(json!({"requiredApprovals": 2}))).await;
    let cookie = sign_in(&server).await;
    let address = server.listen().await;
    let path = format!("/console/inbox/live?item={question}");
    let mut live = Stream::open(address, &path, &[("cookie", &cookie)]).await;
    assert!(
        live.head
            .iter()
            .any(|line| line.contains("text/event-stream"))
    );
    let card = live.next().await.unwrap();
    assert_eq!(
        (card.event.as_str(), &card.data["open"]),
        ("card", &json!(true))
    );
    let rows = live.next().await.unwrap();
    assert_eq!(rows.event, "rows");
    assert!(rows.data["html"].as_str().unwrap().contains(&question));

    let resolve = format!("/v1/host/tandem/interrupts/{question}:resolve");
    let vote = |voter: &str| json!({"resumeValue": {"action": "accept", "voter": voter}});
    server.post(&resolve, vote("ana")).await.ok(200);
    let card = live.next().await.unwrap();
    assert_eq!(card.data["open"], true);
    let html = card.data["html"].as_str().unwrap();
    assert!(html.contains("1 of 2 approvals"), "{html}");
    assert_eq!(
        live.next().await.unwrap().event,
        "rows",
        "votes show in the list"
    );

    server.post(&resolve, vote("bob")).await.ok(200);
    let card = live.next().await.unwrap();
    assert_eq!(card.data["open"], false);
    assert!(card.data["html"].as_str().unwrap().contains("Approved"));
    let rows = live.next().await.unwrap();
    assert!(!rows.data["html"].as_str().unwrap().contains(&question));

    server
        .put(
            "/v1/host/tandem/workflows/v",
            chain("v", &[gate(json!({"title": "Next?"}))]),
        )
        .await;
    server.create("v").await;
    let rows = live.next().await.unwrap();
    assert!(rows.data["html"].as_str().unwrap().contains("Next?"));
    server.stopping.send_replace(true);
    assert_eq!(
        live.next().await,
        None,
        "a host that drains ends its streams"
    );
}
