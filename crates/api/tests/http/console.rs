//! The console, as a browser uses it.

use crate::test_server::{Reply, Stream, TestServer, hour, noop};
use axum::body::Body;
use axum::http::Request;
use futures_util::StreamExt as _;
use std::time::Duration;
use tandem_access::Scope;
use tower::ServiceExt as _;

/// Signs in with a login link and returns the cookie.
pub(crate) async fn sign_in(server: &TestServer) -> String {
    let code = server.codes.mint(server.identity().await, server.now());
    let path = format!("/console/login?code={}", code.expose());
    let reply = server.call_as("", "GET", &path, &[], "").await;
    assert_eq!(reply.status.as_u16(), 303);
    let landed = reply.header("location");
    assert!(
        ["/console/runs", "/console/inbox"].contains(&landed),
        "{landed}"
    );
    let set = reply.header("set-cookie").to_owned();
    for flag in ["HttpOnly", "SameSite=Strict", "Path=/console"] {
        assert!(set.contains(flag), "{set}");
    }
    // The link works once.
    assert_eq!(
        server
            .call_as("", "GET", &path, &[], "")
            .await
            .status
            .as_u16(),
        401
    );
    set.split(';').next().unwrap().to_owned()
}

pub(crate) async fn page(server: &TestServer, cookie: &str, path: &str) -> Reply {
    server
        .call_as("", "GET", path, &[("cookie", cookie)], "")
        .await
}

pub(crate) fn csrf(html: &str) -> String {
    let (_, rest) = html.split_once("name=\"csrf\" value=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn anonymous_requests_are_redirected_to_login() {
    let server = TestServer::new().await;
    for path in [
        "/console/runs",
        "/console/workflows",
        "/console/runs/live",
        "/console/runs/r",
    ] {
        let reply = server.call_as("", "GET", path, &[], "").await;
        assert_eq!(reply.status.as_u16(), 303);
        assert_eq!(reply.header("location"), "/console/login");
    }
    let login = server.call_as("", "GET", "/console/login", &[], "").await;
    assert_eq!(login.status.as_u16(), 200);
    assert!(
        login
            .header("content-security-policy")
            .contains("default-src 'none'")
    );
    assert_eq!(login.header("x-content-type-options"), "nosniff");
    assert_eq!(login.header("referrer-policy"), "no-referrer");
    assert_eq!(login.header("x-frame-options"), "DENY");
    assert_eq!(login.header("cache-control"), "no-store");
}

#[tokio::test]
async fn valid_key_signs_in_and_wrong_key_does_not() {
    let server = TestServer::new().await;
    let post = |body: String| server.call_as("", "POST", "/console/login", &[("host", "t")], body);
    let good = post(format!("key={}", server.key)).await;
    assert_eq!(good.status.as_u16(), 303);
    let wrong = post("key=wrong-53c7".to_owned()).await;
    assert_eq!(wrong.status.as_u16(), 401);
    assert!(wrong.text.contains("not known") && !wrong.text.contains("53c7"));
    let foreign = [("host", "t"), ("origin", "https://evil.example")];
    let body = format!("key={}", server.key);
    let reply = server
        .call_as("", "POST", "/console/login", &foreign, body)
        .await;
    assert_eq!(reply.status.as_u16(), 403);
}

#[tokio::test]
async fn pages_show_runs_and_workflows() {
    let server = TestServer::new().await;
    let run = server.start("w", &[noop("first"), noop("second")]).await;
    let cookie = sign_in(&server).await;
    assert!(
        page(&server, &cookie, "/console/runs")
            .await
            .text
            .contains(&run)
    );
    let one = page(&server, &cookie, &format!("/console/runs/{run}")).await;
    assert_eq!(one.status.as_u16(), 200);
    assert!(one.text.contains("run.completed") && one.text.contains("first"));
    assert!(
        page(&server, &cookie, "/console/workflows")
            .await
            .text
            .contains("Start a run")
    );
    let workflow = page(&server, &cookie, "/console/workflows/w").await;
    assert!(workflow.text.contains("<svg"));
    let missing = page(&server, &cookie, "/console/runs/run-nobody").await;
    assert_eq!(missing.status.as_u16(), 404);
    assert!(missing.text.contains("What to do"));
    assert_eq!(
        page(&server, &cookie, "/console/nowhere")
            .await
            .status
            .as_u16(),
        404
    );
}

#[tokio::test]
async fn form_posts_need_the_csrf_token() {
    let server = TestServer::new().await;
    let run = server.start("w", &[hour("a")]).await;
    let cookie = sign_in(&server).await;
    let path = format!("/console/runs/{run}/cancel");
    let token = csrf(
        &page(&server, &cookie, &format!("/console/runs/{run}"))
            .await
            .text,
    );
    let send = |headers: Vec<(&'static str, String)>, body: String| {
        let (server, path) = (&server, path.clone());
        async move {
            let headers: Vec<_> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
            server
                .call_as("", "POST", &path, &headers, body)
                .await
                .status
                .as_u16()
        }
    };
    let mine = || vec![("cookie", cookie.clone()), ("host", "t".to_owned())];
    let with = |name: &'static str, value: &str| {
        let mut headers = mine();
        headers.push((name, value.to_owned()));
        headers
    };
    assert_eq!(send(mine(), String::new()).await, 403);
    assert_eq!(send(mine(), "csrf=guess".to_owned()).await, 403);
    let form = format!("csrf={token}");
    assert_eq!(
        send(with("origin", "http://evil.example"), form.clone()).await,
        403
    );
    assert_eq!(
        send(with("sec-fetch-site", "cross-site"), form.clone()).await,
        403
    );
    assert_eq!(
        server.get(&format!("/v1/runs/{run}")).await.ok(200)["status"],
        "running"
    );
    assert_eq!(send(with("origin", "http://t"), form).await, 303);
    assert_eq!(
        server.get(&format!("/v1/runs/{run}")).await.ok(200)["status"],
        "cancelled"
    );
}

#[tokio::test]
async fn session_has_the_scopes_of_its_key() {
    let server = TestServer::new().await;
    server.register("w", &[noop("a")]).await;
    let cookie = sign_in(&server).await;
    let token = csrf(&page(&server, &cookie, "/console/workflows/w").await.text);
    let server = &server;
    let start = |cookie: String, body: String| async move {
        let headers = [("cookie", cookie.as_str())];
        server
            .call_as("", "POST", "/console/workflows/w/runs", &headers, body)
            .await
    };
    let good = start(
        cookie.clone(),
        format!("csrf={token}&input=%7B%22x%22%3A1%7D"),
    )
    .await;
    assert_eq!(good.status.as_u16(), 303);
    let run = good
        .header("location")
        .trim_start_matches("/console")
        .to_owned();
    assert_eq!(
        server.get(&format!("/v1{run}")).await.ok(200)["inputs"]["x"],
        1
    );
    let bad = start(cookie, format!("csrf={token}&input=%5B1%5D")).await;
    assert_eq!(bad.status.as_u16(), 400);
    // A key with only the read scope cannot post.
    let reader = server
        .new_key("default", &[Scope::RunsRead, Scope::ManifestRead])
        .await;
    let reply = server
        .call_as("", "POST", "/console/login", &[], format!("key={reader}"))
        .await;
    let cookie = reply
        .header("set-cookie")
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let token = csrf(&page(server, &cookie, "/console/workflows/w").await.text);
    assert_eq!(
        start(cookie, format!("csrf={token}&input="))
            .await
            .status
            .as_u16(),
        403
    );
}

#[tokio::test]
async fn a_revoked_key_ends_its_sessions() {
    let server = TestServer::new().await;
    let made = serde_json::json!({"name": "second", "scopes": ["runs:read"]});
    let made = server.post("/v1/host/tandem/keys", made).await.ok(201);
    let login = format!("key={}", made["secret"].as_str().unwrap());
    let reply = server.call_as("", "POST", "/console/login", &[("host", "t")], login);
    let cookie = reply.await.header("set-cookie").to_owned();
    let cookie = cookie.split(';').next().unwrap();
    let seen = async || page(&server, cookie, "/console/runs").await.status.as_u16();
    assert_eq!(seen().await, 200);
    let path = format!("/v1/host/tandem/keys/{}", made["keyId"].as_str().unwrap());
    server.call_as(&server.key, "DELETE", &path, &[], "").await;
    assert_eq!(seen().await, 303);
}

#[tokio::test]
async fn run_page_stream_sends_updates() {
    let server = TestServer::new().await;
    let address = server.listen().await;
    let run = server.start("w", &[hour("a"), noop("b")]).await;
    let cookie = sign_in(&server).await;
    let seen = server.log(&run).await["lastEventSeq"].as_u64().unwrap();
    let path = format!("/console/runs/{run}/live?after={seen}");
    let mut stream = Stream::open(address, &path, &[("cookie", &cookie)]).await;
    server.advance(3601).await;
    let frames = stream.rest().await;
    assert_eq!(frames[0].data["sequence"], seen + 1);
    assert!(
        frames
            .iter()
            .any(|f| f.event == "state" && f.data["html"].is_string())
    );
    assert_eq!(frames.last().unwrap().event, "end");
}

#[tokio::test]
async fn run_list_stream_sends_updates() {
    let server = TestServer::new().await;
    let address = server.listen().await;
    let cookie = sign_in(&server).await;
    let mut stream = Stream::open(address, "/console/runs/live", &[("cookie", &cookie)]).await;
    assert_eq!(stream.next().await.unwrap().event, "rows");
    let run = server.start("w", &[noop("a")]).await;
    let rows = stream.next().await.unwrap();
    assert!(rows.data["html"].as_str().unwrap().contains(&run));
}

/// A frame without news would tell when others create runs.
#[tokio::test(start_paused = true)]
async fn run_list_stream_sends_nothing_about_other_tenants() {
    let mut server = TestServer::new().await;
    server.register("w", &[noop("a")]).await;
    let other = server.new_key("other", Scope::all()).await;
    let own = std::mem::replace(&mut server.key, other);
    let cookie = sign_in(&server).await;
    // Without a socket, so that the clock of the test stands for all time that passes.
    let request = Request::get("/console/runs/live").header("cookie", &cookie);
    let request = request.body(Body::empty()).unwrap();
    let response = server.router.clone().oneshot(request).await.unwrap();
    let mut frames = response.into_body().into_data_stream();
    let first = frames.next().await.unwrap().unwrap();
    assert!(first.starts_with(b"event: rows"));
    server.register("mine", &[noop("a")]).await;
    let other = std::mem::replace(&mut server.key, own);
    for _ in 0..3 {
        server.create("w").await;
        // Longer than changes are gathered, shorter than a keep-alive takes.
        let news = tokio::time::timeout(Duration::from_millis(700), frames.next()).await;
        assert!(news.is_err(), "{news:?}");
    }
    server.key = other;
    let run = server.create("mine").await;
    let rows = frames.next().await.unwrap().unwrap();
    let rows = String::from_utf8_lossy(&rows);
    assert!(rows.contains(&run), "the first news is the own run: {rows}");
}

#[tokio::test]
async fn versioned_assets_are_immutable() {
    let server = TestServer::new().await;
    let login = server
        .call_as("", "GET", "/console/login", &[], "")
        .await
        .text;
    let (_, rest) = login
        .split_once("href=\"/console/assets/console.css")
        .unwrap();
    let query = rest.split('"').next().unwrap();
    let path = format!("/console/assets/console.css{query}");
    let file = server.call_as("", "GET", &path, &[], "").await;
    assert_eq!(file.header("content-type"), "text/css; charset=utf-8");
    assert!(file.header("cache-control").contains("immutable"));
    let etag = [("if-none-match", file.header("etag"))];
    assert_eq!(
        server
            .call_as("", "GET", &path, &etag, "")
            .await
            .status
            .as_u16(),
        304
    );
    let plain = server
        .call_as("", "GET", "/console/assets/console.css", &[], "")
        .await;
    assert_eq!(plain.header("cache-control"), "no-cache");
    let missing = server
        .call_as("", "GET", "/console/assets/x", &[], "")
        .await;
    assert_eq!(missing.status.as_u16(), 404);
}

#[tokio::test]
async fn sign_out_ends_the_session() {
    let server = TestServer::new().await;
    let cookie = sign_in(&server).await;
    let html = page(&server, &cookie, "/console/runs").await.text;
    assert!(html.contains("action=\"/console/logout\""));
    let leave = async |token: &str| {
        let body = format!("csrf={token}");
        let cookie = [("cookie", cookie.as_str())];
        server
            .call_as("", "POST", "/console/logout", &cookie, body)
            .await
    };
    assert_eq!(leave("wrong").await.status.as_u16(), 403);
    let still = page(&server, &cookie, "/console/runs").await;
    assert_eq!(still.status.as_u16(), 200);
    let left = leave(&csrf(&html)).await;
    assert_eq!(left.header("location"), "/console/login");
    assert!(left.header("set-cookie").contains("Max-Age=0"));
    let after = page(&server, &cookie, "/console/runs").await;
    assert_eq!(after.header("location"), "/console/login");
}
