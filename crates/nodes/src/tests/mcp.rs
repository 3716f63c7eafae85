//! Calls to tool servers: what is sent, what is read from each kind of response, and what is never
//! disclosed.

use super::http::{caller, done, failed};
use super::server::{CannedResponse, Request, Server};
use crate::{CallLimits, McpServer, McpServers, Performer, Secrets, UrlGuard};
use serde_json::{Value, json};
use tandem_record::{
    Effect, EffectKind, EffectOutcome, ErrorInfo, ToolOperation, ToolRequest, TraceContext,
};
use url::Url;

const KEY: &str = "mcp-key-not-to-be-seen";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn call(arguments: Value) -> ToolOperation {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object");
    };
    ToolOperation::Call {
        tool: "echo".to_owned(),
        arguments,
    }
}

fn limits() -> CallLimits {
    CallLimits {
        response_bytes: 4096,
        ..CallLimits::default()
    }
}

fn performer(url: &str, guard: UrlGuard) -> Performer {
    let mut tools = McpServers::default();
    let server = McpServer {
        url: Url::parse(url).unwrap(),
        key: Some(KEY.to_owned()),
        guard,
    };
    assert!(!format!("{server:?}").contains(KEY));
    tools.add("docs", server, limits()).unwrap();
    Performer::new(caller(), Secrets::default()).with_tools(tools)
}

fn private_allowed() -> UrlGuard {
    UrlGuard {
        allow_private: true,
        require_https: true,
        ..UrlGuard::default()
    }
}

async fn perform(
    performer: &Performer,
    operation: ToolOperation,
    timeout_ms: u64,
) -> EffectOutcome {
    let trace = TraceContext {
        traceparent: format!("00-{TRACE}-b7ad6b7169203331-01"),
        tracestate: Some("a=b".to_owned()),
    };
    let effect = Effect {
        id: "effect-1".into(),
        kind: EffectKind::Tool {
            node: "n".into(),
            attempt: 0,
            request: Box::new(ToolRequest {
                server: "docs".to_owned(),
                operation,
                timeout_ms,
            }),
        },
    };
    performer
        .perform(&"run-1".into(), &effect, Some(&trace))
        .await
}

/// A server that accepts a revision and answers the request as given.
async fn server(
    revision: &'static str,
    answer: impl Fn(&Request, &Value) -> CannedResponse + Clone + Send + 'static,
) -> Server {
    Server::responding_by(move |request| {
        if request.line.starts_with("DELETE ") {
            return CannedResponse::new("200 OK", &["connection: close"], "");
        }
        let sent: Value = serde_json::from_str(&request.body).unwrap();
        match sent["method"].as_str().unwrap() {
            "initialize" => CannedResponse::new(
                "200 OK",
                &[
                    "content-type: application/json",
                    "mcp-session-id: session-7",
                    "connection: close",
                ],
                &json!({"jsonrpc": "2.0", "id": sent["id"], "result": {
                    "protocolVersion": revision, "capabilities": {"tools": {}},
                    "serverInfo": {"name": "fake", "version": "1"},
                }})
                .to_string(),
            ),
            "notifications/initialized" => {
                CannedResponse::new("202 Accepted", &["connection: close"], "")
            }
            _ => answer(request, &sent),
        }
    })
    .await
}

fn reply(sent: &Value, body: Value) -> Value {
    let mut whole = json!({"jsonrpc": "2.0", "id": sent["id"]});
    let members = body.as_object().unwrap().clone();
    whole.as_object_mut().unwrap().extend(members);
    whole
}

fn json_answer(status: &str, body: &Value) -> CannedResponse {
    let headers = ["content-type: application/json", "connection: close"];
    CannedResponse::new(status, &headers, &body.to_string())
}

fn stream(body: &str) -> CannedResponse {
    let headers = [
        "content-type: text/event-stream; charset=utf-8",
        "connection: close",
    ];
    CannedResponse::new("200 OK", &headers, body)
}

async fn call_tool(server: &Server) -> EffectOutcome {
    perform(
        &performer(&server.url, private_allowed()),
        call(json!({})),
        5_000,
    )
    .await
}

async fn refused(server: &Server) -> ErrorInfo {
    let error = failed(call_tool(server).await);
    let reported = format!("{error:?}");
    let (_, address) = server.url.split_once("//").unwrap();
    assert!(
        !reported.contains(KEY) && !reported.contains(address),
        "{reported}"
    );
    assert!(!reported.contains("secret words"), "{reported}");
    error
}

/// R-0040-4: every request carries the run's trace.
#[tokio::test]
async fn session_follows_the_mcp_revision() {
    let result = json!({
        "content": [{"type": "text", "text": "hi"}], "isError": false,
        "structuredContent": {"n": 1}, "_meta": {"x/y": [1]},
    });
    let reported = result.clone();
    let server = server("2025-06-18", move |_, sent| {
        json_answer("200 OK", &reply(sent, json!({"result": reported})))
    })
    .await;
    let performer = performer(&server.url, private_allowed());
    let outputs = done(perform(&performer, call(json!({"text": "hi"})), 5_000).await);
    assert_eq!(outputs, json!({"result": result}));

    let requests = server.requests().await;
    let lines: Vec<&str> = requests.iter().map(|r| r.line.as_str()).collect();
    let post = "POST / HTTP/1.1";
    assert_eq!(lines, [post, post, post, "DELETE / HTTP/1.1"]);
    for request in &requests {
        assert_eq!(request.header("authorization"), [format!("Bearer {KEY}")]);
        assert!(request.header("traceparent")[0].starts_with(&format!("00-{TRACE}-")));
        assert_eq!(request.header("tracestate"), ["a=b"]);
    }
    let bodies: Vec<Value> = requests[..3]
        .iter()
        .map(|r| serde_json::from_str(&r.body).unwrap())
        .collect();
    assert_eq!(bodies[0]["method"], "initialize");
    assert_eq!(bodies[0]["params"]["protocolVersion"], "2025-06-18");
    assert_eq!(bodies[0]["params"]["capabilities"], json!({}));
    assert!(requests[0].header("mcp-protocol-version").is_empty());
    assert_eq!(bodies[1]["method"], "notifications/initialized");
    assert!(bodies[1].get("id").is_none());
    let params = json!({"name": "echo", "arguments": {"text": "hi"}});
    assert_eq!(bodies[2]["method"], "tools/call");
    assert_eq!(bodies[2]["params"], params);
    for later in &requests[1..] {
        assert_eq!(later.header("mcp-protocol-version"), ["2025-06-18"]);
        assert_eq!(later.header("mcp-session-id"), ["session-7"]);
    }
    let accept = "application/json, text/event-stream";
    assert_eq!(requests[2].header("accept"), [accept]);
    assert_eq!(requests[2].header("idempotency-key"), ["effect-1"]);
}

#[tokio::test]
async fn list_and_read_requests_are_sent() {
    let server = server("2025-06-18", |_, sent| {
        let result = match sent["method"].as_str().unwrap() {
            "tools/list" => json!({"tools": [], "nextCursor": sent["params"]["cursor"]}),
            "resources/read" => json!({"contents": [{"uri": sent["params"]["uri"]}]}),
            other => panic!("{other}"),
        };
        json_answer("200 OK", &reply(sent, json!({"result": result})))
    })
    .await;
    let performer = performer(&server.url, private_allowed());
    let list = ToolOperation::List {
        cursor: Some("2".to_owned()),
    };
    let page = done(perform(&performer, list, 5_000).await);
    assert_eq!(page["result"], json!({"tools": [], "nextCursor": "2"}));
    let read = ToolOperation::Read {
        uri: "note:1".to_owned(),
    };
    let read = done(perform(&performer, read, 5_000).await);
    assert_eq!(read["result"], json!({"contents": [{"uri": "note:1"}]}));
}

#[tokio::test]
async fn stream_is_read_until_the_response_arrives() {
    let server = server("2025-06-18", |_, sent| {
        let answer = reply(sent, json!({"result": {"content": []}})).to_string();
        let (first, second) = answer.split_at(answer.find(',').unwrap() + 1);
        stream(&format!(
            ": hello\r\n\r\nevent: message\r\ndata: {}\r\n\r\n\
             data: {{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{{}}}}\n\n\
             data: not JSON\n\n\
             data: {{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}}\n\n\
             id: 4\ndata: {first}\ndata: {second}\n\n",
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}),
        ))
    })
    .await;
    assert_eq!(
        done(call_tool(&server).await),
        json!({"result": {"content": []}})
    );
}

#[tokio::test]
async fn earlier_revision_is_not_sent_in_headers() {
    let server = server("2025-03-26", |_, sent| {
        json_answer("200 OK", &reply(sent, json!({"result": {"content": []}})))
    })
    .await;
    done(call_tool(&server).await);
    let requests = server.requests().await;
    assert!(
        requests
            .iter()
            .all(|r| r.header("mcp-protocol-version").is_empty())
    );
}

#[tokio::test]
async fn error_of_a_tool_is_a_result() {
    let tool_error = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
    let reported = tool_error.clone();
    let server = server("2025-06-18", move |_, sent| {
        json_answer("200 OK", &reply(sent, json!({"result": reported})))
    })
    .await;
    assert_eq!(done(call_tool(&server).await)["result"], tool_error);
}

/// Each error, its code and whether a retry can help.
#[tokio::test]
async fn each_way_to_fail_has_its_code() {
    type Case = (&'static str, bool, fn(&Value) -> CannedResponse);
    let cases: [Case; 17] = [
        ("mcp_tool_error", false, |sent| {
            let error = json!({"code": -32602, "message": "secret words"});
            json_answer("200 OK", &reply(sent, json!({"error": error})))
        }),
        ("mcp_server_error", true, |_| {
            CannedResponse::json("500 Oops", "secret words")
        }),
        ("mcp_server_error", true, |_| {
            CannedResponse::json("429 Later", "{}")
        }),
        ("mcp_server_error", false, |_| {
            CannedResponse::json("404 Gone", "{}")
        }),
        ("mcp_server_error", false, |_| {
            CannedResponse::json("401 Who", "{}")
        }),
        ("mcp_server_error", false, |_| {
            let to = "location: http://169.254.169.254/latest";
            CannedResponse::new("302 Found", &[to], "")
        }),
        ("mcp_protocol_error", false, |_| {
            CannedResponse::json("200 OK", "secret words")
        }),
        ("mcp_protocol_error", false, |_| {
            CannedResponse::new("200 OK", &["content-type: text/html"], "<p>secret words")
        }),
        ("mcp_protocol_error", false, |_| {
            CannedResponse::new("202 Accepted", &[], "")
        }),
        ("mcp_protocol_error", false, |_| {
            let answer = json!({"jsonrpc": "2.0", "id": 3, "result": {"content": []}});
            json_answer("200 OK", &answer)
        }),
        ("mcp_protocol_error", false, |sent| {
            json_answer("200 OK", &reply(sent, json!({"result": {"content": "x"}})))
        }),
        ("mcp_protocol_error", false, |sent| {
            let both = json!({"result": {"content": []}, "error": {"code": 1}});
            json_answer("200 OK", &reply(sent, both))
        }),
        ("mcp_protocol_error", false, |sent| {
            let deep = (0..64).fold(json!(1), |value, _| json!([value]));
            let result = json!({"content": [], "structuredContent": {"deep": deep}});
            json_answer("200 OK", &reply(sent, json!({"result": result})))
        }),
        ("mcp_protocol_error", false, |_| stream("data: {}\n\n")),
        ("response_too_large", false, |sent| {
            let text = "x".repeat(5_000);
            json_answer(
                "200 OK",
                &reply(sent, json!({"result": {"content": [text]}})),
            )
        }),
        ("response_too_large", false, |_| {
            stream(&"data: x\n\n".repeat(1_000))
        }),
        ("mcp_network_error", true, |_| CannedResponse::HangUp),
    ];
    for (number, (code, again, answer)) in cases.into_iter().enumerate() {
        let server = server("2025-06-18", move |_, sent| answer(sent)).await;
        let error = refused(&server).await;
        assert_eq!(
            (error.code.as_str(), error.retryable),
            (code, again),
            "case {number}"
        );
    }
}

#[tokio::test]
async fn error_details_contain_status_and_retry_after() {
    let over = server("2025-06-18", |_, _| {
        CannedResponse::new("503 Later", &["retry-after: 2"], "secret words")
    })
    .await;
    let error = refused(&over).await;
    let details = json!({"status": 503, "retryAfterMs": 2000});
    assert_eq!(error.details, Some(details));
    let unknown = server("2025-06-18", |_, sent| {
        let error = json!({"code": -32601, "message": "secret words"});
        json_answer("200 OK", &reply(sent, json!({"error": error})))
    })
    .await;
    assert_eq!(
        refused(&unknown).await.details,
        Some(json!({"rpcCode": -32601}))
    );
}

#[tokio::test]
async fn unsupported_revision_ends_the_session() {
    let greeted = server("2031-01-01", |_, _| CannedResponse::HangUp).await;
    let error = refused(&greeted).await;
    assert_eq!(error.code, "interop_version_unsupported");
    let details =
        json!({"protocol": "mcp", "requested": "2025-06-18", "supported": ["2031-01-01"]});
    assert_eq!(error.details, Some(details));
    assert_eq!(greeted.requests().await.len(), 1);

    let turned_away = Server::responding_by(|request| {
        let sent: Value = serde_json::from_str(&request.body).unwrap();
        let data = json!({"supported": ["2026-07-28", "secret words"]});
        let error = json!({"code": -32022, "message": "secret words", "data": data});
        json_answer("400 Bad", &reply(&sent, json!({"error": error})))
    })
    .await;
    let error = refused(&turned_away).await;
    assert_eq!(error.code, "interop_version_unsupported");
    assert_eq!(error.details.unwrap()["supported"], json!(["2026-07-28"]));
}

#[tokio::test]
async fn silent_server_times_out() {
    for head in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: x",
    ] {
        let silent = server("2025-06-18", move |_, _| CannedResponse::Stall(head.into())).await;
        let asked = performer(&silent.url, private_allowed());
        let error = failed(perform(&asked, call(json!({})), 300).await);
        assert_eq!(
            (error.code.as_str(), error.retryable),
            ("mcp_timeout", true)
        );
    }
}

#[tokio::test]
async fn a_private_address_is_called_only_where_tests_are() {
    let server = server("2025-06-18", |_, _| CannedResponse::HangUp).await;
    let name = server.url.replace("127.0.0.1", "localhost");
    for url in [
        server.url.as_str(),
        name.as_str(),
        "https://127.0.0.1:1/",
        "http://example.com/",
    ] {
        let guard = UrlGuard {
            require_https: true,
            ..UrlGuard::default()
        };
        let error = failed(perform(&performer(url, guard), call(json!({})), 5_000).await);
        assert_eq!(
            (error.code.as_str(), error.retryable),
            ("url_rejected", false),
            "{url}"
        );
    }
    assert!(server.requests().await.is_empty());
}

#[tokio::test]
async fn echoed_key_is_masked() {
    let server = server("2025-06-18", |request, sent| {
        let authorization = request.header("authorization")[0].to_owned();
        let content = json!([{"type": "text", "text": authorization}]);
        json_answer(
            "200 OK",
            &reply(sent, json!({"result": {"content": content}})),
        )
    })
    .await;
    let result = done(call_tool(&server).await);
    assert_eq!(result["result"]["content"][0]["text"], "[REDACTED]");
}

#[tokio::test]
async fn unknown_server_fails_with_not_configured() {
    let performer = Performer::new(caller(), Secrets::default());
    let error = failed(perform(&performer, call(json!({})), 5_000).await);
    assert_eq!(error.code, "mcp_server_not_configured");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let performer = self::performer(&url, private_allowed());
    let error = failed(perform(&performer, ToolOperation::List { cursor: None }, 5_000).await);
    assert_eq!(
        (error.code.as_str(), error.retryable),
        ("mcp_network_error", true)
    );
}
