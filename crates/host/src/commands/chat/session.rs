//! What a chat asks of the server.

use crate::client::{Client, encode_segment};
use serde_json::{Value, json};

const HOST: &str = "/v1/host/tandem";

/// Who is talking to which agent.
pub(super) struct Participant {
    pub(super) agent: String,
    pub(super) id: String,
}

/// What became of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    Accepted {
        session: String,
        turn: String,
    },
    /// It belongs to the session of somebody else.
    Elsewhere,
    Refused(String),
}

impl Participant {
    /// The session that is going on, if there is one.
    pub(super) async fn active_session(&self, client: &Client) -> anyhow::Result<Option<String>> {
        let parameters = [
            ("agentId", Some(self.agent.clone())),
            ("userExternalId", Some(self.id.clone())),
            ("active", Some("true".to_owned())),
        ];
        let listed = client
            .query(&format!("{HOST}/sessions"), &parameters)
            .await?;
        Ok(listed["sessions"][0]["id"].as_str().map(str::to_owned))
    }

    /// Sends a message. Its answer is read from the events of the session.
    pub(super) async fn deliver(
        &self,
        client: &Client,
        message_id: &str,
        text: &str,
    ) -> anyhow::Result<Delivery> {
        let path = format!("{HOST}/agents/{}/inbound", encode_segment(&self.agent));
        let body = json!({"messageId": message_id, "from": self.id, "body": text});
        Ok(delivery(&client.post(&path, &body).await?))
    }
}

fn delivery(answer: &Value) -> Delivery {
    let text = |key: &str| answer[key].as_str().map(str::to_owned);
    match (answer["status"].as_str(), text("sessionId"), text("turnId")) {
        (Some("ratelimited"), ..) => {
            Delivery::Refused("not sent: too many messages in a minute; try again later".to_owned())
        }
        (Some("overloaded"), ..) => {
            Delivery::Refused("not sent: the agent is busy; try again".to_owned())
        }
        (_, Some(session), Some(turn)) => Delivery::Accepted { session, turn },
        _ => Delivery::Elsewhere,
    }
}

/// The sequence of the last event of a session.
pub(super) async fn last_sequence(client: &Client, session: &str) -> anyhow::Result<Option<u64>> {
    let path = format!("{HOST}/sessions/{}/events", encode_segment(session));
    let mut last = None;
    loop {
        let after = last.map(|sequence: u64| sequence.to_string());
        let page = client.query(&path, &[("after", after)]).await?;
        let newest = page["events"].as_array().and_then(|events| events.last());
        last = newest.and_then(|event| event["sequence"].as_u64()).or(last);
        if newest.is_none() || page["nextCursor"].is_null() {
            return Ok(last);
        }
    }
}

/// What was said in a session, oldest first.
pub(super) async fn messages(client: &Client, session: &str) -> anyhow::Result<Vec<Value>> {
    let path = format!("{HOST}/sessions/{}/messages", encode_segment(session));
    let answer = client.get(&path).await?;
    Ok(answer["messages"].as_array().cloned().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_to_a_message_are_told_apart() {
        let accepted = json!({"status": "accepted", "sessionId": "s", "turnId": "t"});
        let expected = Delivery::Accepted {
            session: "s".to_owned(),
            turn: "t".to_owned(),
        };
        assert_eq!(delivery(&accepted), expected);
        let other = json!({"status": "processed", "sessionId": null, "turnId": null});
        assert_eq!(delivery(&other), Delivery::Elsewhere);
        for status in ["ratelimited", "overloaded"] {
            let refused = delivery(&json!({"status": status, "sessionId": null}));
            assert!(matches!(refused, Delivery::Refused(_)), "{status}");
        }
    }
}
