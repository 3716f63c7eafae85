//! Tokens of visitors: only the host's own are accepted, each for one agent.

use crate::{LinkClaims, LinkIntent, LinkSigner};
use tandem_record::{AgentId, InterruptId, NodeId, RunId, Timestamp};

fn signer(secret: &str) -> LinkSigner {
    LinkSigner::new(vec![secret.as_bytes().to_vec()])
}

#[test]
fn token_names_the_same_visitor_each_time() {
    let (signer, agent) = (signer("secret"), AgentId::new("demo"));
    let (visitor, token) = signer.issue_visitor_token(&agent);
    let verified = signer.verify_visitor_token(&agent, token.expose());
    assert_eq!(verified, Some(visitor.clone()));
    let (other, _) = signer.issue_visitor_token(&agent);
    assert_ne!(visitor, other);
    let random = token.expose().split('.').next().unwrap();
    assert!(!visitor.as_str().contains(random), "the name opens nothing");
}

#[test]
fn only_tokens_of_this_host_and_agent_are_accepted() {
    let (ours, agent) = (signer("secret"), AgentId::new("demo"));
    let (_, token) = ours.issue_visitor_token(&agent);
    let token = token.expose();
    let (random, signature) = token.split_once('.').unwrap();
    let (_, foreign) = signer("other").issue_visitor_token(&agent);
    let link = ours.sign(&LinkClaims {
        run_id: RunId::new("run-1"),
        node_id: NodeId::new("gate"),
        interrupt_id: InterruptId::new("int-1"),
        expires_at: Timestamp(1000),
        intent: LinkIntent::Resolve,
        issued_to: None,
    });
    for wrong in [
        format!("x{random}.{signature}"),
        format!("{random}."),
        format!(".{signature}"),
        random.to_owned(),
        String::new(),
        format!("{token}x"),
        "x".repeat(5000),
        foreign.expose().to_owned(),
        link,
    ] {
        assert_eq!(ours.verify_visitor_token(&agent, &wrong), None, "{wrong}");
    }
    let elsewhere = AgentId::new("other");
    assert_eq!(ours.verify_visitor_token(&elsewhere, token), None);
}
