//! Talks to the agent over HTTP, and restarts it between a question and its answer.

use rust_agent::{AGENT, Calendar, agent};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use tandem::{Tandem, TandemServer};

const KEY: &str = "a-key-for-tests-0123456789";

async fn start(store: &Path, calendar: &Arc<Calendar>) -> TandemServer {
    let started = Tandem::builder()
        .store(format!("sqlite:{}", store.display()))
        .listen("127.0.0.1:0")
        .key(KEY)
        .agent(agent(calendar.clone()))
        .serve();
    started.await.expect("the server starts")
}

async fn get(server: &TandemServer, path: &str) -> Value {
    let url = format!("{}/v1/host/tandem{path}", server.url());
    let request = reqwest::Client::new().get(url).bearer_auth(KEY);
    let response = request.send().await.expect("an answer");
    assert!(response.status().is_success(), "{path}: {response:?}");
    response.json().await.expect("JSON")
}

/// Sends a message of the user and gives the answer of its turn.
async fn send(server: &TandemServer, id: &str, body: &str) -> Value {
    let url = format!(
        "{}/v1/host/tandem/agents/{AGENT}/inbound?wait=true",
        server.url()
    );
    let message = json!({ "messageId": id, "from": "ada", "body": body });
    let request = reqwest::Client::new()
        .post(url)
        .bearer_auth(KEY)
        .json(&message);
    let response = request.send().await.expect("an answer");
    assert!(response.status().is_success(), "{body}: {response:?}");
    response.json().await.expect("JSON")
}

fn texts(list: &Value) -> Vec<&str> {
    let list = list.as_array().expect("a list").iter();
    list.map(|message| message["text"].as_str().expect("a text"))
        .collect()
}

/// A flow in Rust goes on after a restart, and no step before its question is repeated.
/// Z-2 (half: a flow in Rust), Z-212 (half: the driver repeats no step after a restart)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restart_between_question_and_answer_repeats_nothing() {
    let home = tempfile::tempdir().expect("a directory");
    let store = home.path().join("clinic.db");
    let calendar = Arc::new(Calendar::default());

    let server = start(&store, &calendar).await;
    let asked = send(&server, "m1", "I want to book").await;
    assert_eq!(
        texts(&asked["outbound"]),
        ["A cleaning costs 40 euro.", "When do you want to come?"]
    );
    assert_eq!(calendar.prices_asked(), 1);
    let session = asked["sessionId"].as_str().expect("a session").to_owned();
    server.shutdown().await;

    let server = start(&store, &calendar).await;
    let shown = get(&server, &format!("/sessions/{session}")).await;
    assert_eq!(shown["flow"]["flowId"], "booking");
    assert_eq!(shown["flow"]["pausedOn"], "ask");
    let confirm = send(&server, "m2", "Monday").await;
    assert_eq!(texts(&confirm["outbound"]), ["Book a cleaning on Monday?"]);
    server.shutdown().await;

    let server = start(&store, &calendar).await;
    let booked = send(&server, "m3", "yes").await;
    assert_eq!(texts(&booked["outbound"]), ["Booked as number 1."]);
    assert_eq!(calendar.prices_asked(), 1);
    assert_eq!(calendar.booked(), ["cleaning on Monday"]);

    let shown = get(&server, &format!("/sessions/{session}")).await;
    assert_eq!(shown["flow"], Value::Null);
    let keys = get(&server, &format!("/sessions/{session}/kv")).await;
    assert_eq!(keys["lastAppointment"], 1);
    let messages = get(&server, &format!("/sessions/{session}/messages")).await;
    assert_eq!(
        texts(&messages["messages"]),
        [
            "I want to book",
            "A cleaning costs 40 euro.",
            "When do you want to come?",
            "Monday",
            "Book a cleaning on Monday?",
            "yes",
            "Booked as number 1.",
        ]
    );
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_is_shown_like_one_in_a_folder() {
    let home = tempfile::tempdir().expect("a directory");
    let calendar = Arc::new(Calendar::default());
    let server = start(&home.path().join("clinic.db"), &calendar).await;
    let shown = get(&server, &format!("/agents/{AGENT}")).await;
    assert_eq!(shown["status"], "ready");
    assert_eq!(
        shown["flows"],
        json!([{ "flowId": "booking", "version": "rust:1" }])
    );
    let other = send(&server, "m1", "Hello").await;
    assert_eq!(texts(&other["outbound"]), ["How can I help?"]);
    server.shutdown().await;
}
