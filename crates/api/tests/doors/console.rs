//! The console in a browser's hands.

use crate::stage::{Reply, Stage, Stream, hour, noop};
use tandem_access::Scope;

/// Signs in with a printed link and gives the cookie.
pub(crate) async fn sign_in(stage: &Stage) -> String {
    let code = stage.codes.mint(stage.identity().await, stage.now());
    let path = format!("/console/login?code={}", code.expose());
    let reply = stage.call_as("", "GET", &path, &[], "").await;
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
    // Used up.
    assert_eq!(
        stage
            .call_as("", "GET", &path, &[], "")
            .await
            .status
            .as_u16(),
        401
    );
    set.split(';').next().unwrap().to_owned()
}

pub(crate) async fn page(stage: &Stage, cookie: &str, path: &str) -> Reply {
    stage
        .call_as("", "GET", path, &[("cookie", cookie)], "")
        .await
}

pub(crate) fn csrf(html: &str) -> String {
    let (_, rest) = html.split_once("name=\"csrf\" value=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn strangers_are_sent_to_the_sign_in() {
    let stage = Stage::new().await;
    for path in [
        "/console/runs",
        "/console/workflows",
        "/console/runs/live",
        "/console/runs/r",
    ] {
        let reply = stage.call_as("", "GET", path, &[], "").await;
        assert_eq!(reply.status.as_u16(), 303);
        assert_eq!(reply.header("location"), "/console/login");
    }
    let login = stage.call_as("", "GET", "/console/login", &[], "").await;
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
async fn a_key_signs_in_and_a_wrong_one_does_not() {
    let stage = Stage::new().await;
    let post = |body: String| stage.call_as("", "POST", "/console/login", &[("host", "t")], body);
    let good = post(format!("key={}", stage.key)).await;
    assert_eq!(good.status.as_u16(), 303);
    let wrong = post("key=wrong-53c7".to_owned()).await;
    assert_eq!(wrong.status.as_u16(), 401);
    assert!(wrong.text.contains("not known") && !wrong.text.contains("53c7"));
    let foreign = [("host", "t"), ("origin", "https://evil.example")];
    let body = format!("key={}", stage.key);
    let reply = stage
        .call_as("", "POST", "/console/login", &foreign, body)
        .await;
    assert_eq!(reply.status.as_u16(), 403);
}

#[tokio::test]
async fn pages_show_runs_and_workflows() {
    let stage = Stage::new().await;
    let run = stage.start("w", &[noop("first"), noop("second")]).await;
    let cookie = sign_in(&stage).await;
    assert!(
        page(&stage, &cookie, "/console/runs")
            .await
            .text
            .contains(&run)
    );
    let one = page(&stage, &cookie, &format!("/console/runs/{run}")).await;
    assert_eq!(one.status.as_u16(), 200);
    assert!(one.text.contains("run.completed") && one.text.contains("first"));
    assert!(
        page(&stage, &cookie, "/console/workflows")
            .await
            .text
            .contains("Start a run")
    );
    let workflow = page(&stage, &cookie, "/console/workflows/w").await;
    assert!(workflow.text.contains("<svg"));
    let missing = page(&stage, &cookie, "/console/runs/run-nobody").await;
    assert_eq!(missing.status.as_u16(), 404);
    assert!(missing.text.contains("What to do"));
    assert_eq!(
        page(&stage, &cookie, "/console/nowhere")
            .await
            .status
            .as_u16(),
        404
    );
}

#[tokio::test]
async fn changes_need_the_token_of_the_session() {
    let stage = Stage::new().await;
    let run = stage.start("w", &[hour("a")]).await;
    let cookie = sign_in(&stage).await;
    let path = format!("/console/runs/{run}/cancel");
    let token = csrf(
        &page(&stage, &cookie, &format!("/console/runs/{run}"))
            .await
            .text,
    );
    let send = |headers: Vec<(&'static str, String)>, body: String| {
        let (stage, path) = (&stage, path.clone());
        async move {
            let headers: Vec<_> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
            stage
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
        stage.get(&format!("/v1/runs/{run}")).await.ok(200)["status"],
        "running"
    );
    assert_eq!(send(with("origin", "http://t"), form).await, 303);
    assert_eq!(
        stage.get(&format!("/v1/runs/{run}")).await.ok(200)["status"],
        "cancelled"
    );
}

#[tokio::test]
async fn a_session_can_do_what_its_key_can() {
    let stage = Stage::new().await;
    stage.register("w", &[noop("a")]).await;
    let cookie = sign_in(&stage).await;
    let token = csrf(&page(&stage, &cookie, "/console/workflows/w").await.text);
    let stage = &stage;
    let start = |cookie: String, body: String| async move {
        let headers = [("cookie", cookie.as_str())];
        stage
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
        stage.get(&format!("/v1{run}")).await.ok(200)["inputs"]["x"],
        1
    );
    let bad = start(cookie, format!("csrf={token}&input=%5B1%5D")).await;
    assert_eq!(bad.status.as_u16(), 400);
    // A key that may only read gets no further.
    let reader = stage
        .new_key("default", &[Scope::RunsRead, Scope::ManifestRead])
        .await;
    let reply = stage
        .call_as("", "POST", "/console/login", &[], format!("key={reader}"))
        .await;
    let cookie = reply
        .header("set-cookie")
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let token = csrf(&page(stage, &cookie, "/console/workflows/w").await.text);
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
    let stage = Stage::new().await;
    let made = serde_json::json!({"name": "second", "scopes": ["runs:read"]});
    let made = stage.post("/v1/host/tandem/keys", made).await.ok(201);
    let login = format!("key={}", made["secret"].as_str().unwrap());
    let reply = stage.call_as("", "POST", "/console/login", &[("host", "t")], login);
    let cookie = reply.await.header("set-cookie").to_owned();
    let cookie = cookie.split(';').next().unwrap();
    let seen = async || page(&stage, cookie, "/console/runs").await.status.as_u16();
    assert_eq!(seen().await, 200);
    let path = format!("/v1/host/tandem/keys/{}", made["keyId"].as_str().unwrap());
    stage.call_as(&stage.key, "DELETE", &path, &[], "").await;
    assert_eq!(seen().await, 303);
}

#[tokio::test]
async fn the_run_page_is_kept_up_to_date() {
    let stage = Stage::new().await;
    let address = stage.listen().await;
    let run = stage.start("w", &[hour("a"), noop("b")]).await;
    let cookie = sign_in(&stage).await;
    let seen = stage.log(&run).await["lastEventSeq"].as_u64().unwrap();
    let path = format!("/console/runs/{run}/live?after={seen}");
    let mut stream = Stream::open(address, &path, &[("cookie", &cookie)]).await;
    stage.advance(3601).await;
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
async fn the_list_is_kept_up_to_date() {
    let stage = Stage::new().await;
    let address = stage.listen().await;
    let cookie = sign_in(&stage).await;
    let mut stream = Stream::open(address, "/console/runs/live", &[("cookie", &cookie)]).await;
    assert_eq!(stream.next().await.unwrap().event, "rows");
    let run = stage.start("w", &[noop("a")]).await;
    let rows = stream.next().await.unwrap();
    assert!(rows.data["html"].as_str().unwrap().contains(&run));
}

#[tokio::test]
async fn assets_are_kept_for_good() {
    let stage = Stage::new().await;
    let login = stage
        .call_as("", "GET", "/console/login", &[], "")
        .await
        .text;
    let (_, rest) = login
        .split_once("href=\"/console/assets/console.css")
        .unwrap();
    let query = rest.split('"').next().unwrap();
    let path = format!("/console/assets/console.css{query}");
    let file = stage.call_as("", "GET", &path, &[], "").await;
    assert_eq!(file.header("content-type"), "text/css; charset=utf-8");
    assert!(file.header("cache-control").contains("immutable"));
    let etag = [("if-none-match", file.header("etag"))];
    assert_eq!(
        stage
            .call_as("", "GET", &path, &etag, "")
            .await
            .status
            .as_u16(),
        304
    );
    let plain = stage
        .call_as("", "GET", "/console/assets/console.css", &[], "")
        .await;
    assert_eq!(plain.header("cache-control"), "no-cache");
    let missing = stage.call_as("", "GET", "/console/assets/x", &[], "").await;
    assert_eq!(missing.status.as_u16(), 404);
}
