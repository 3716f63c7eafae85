//! A run of another host may claim to be the parent of a new run. The claim of an authenticated
//! caller changes what ancestry shows and nothing else. A malformed claim is dropped and the run is
//! created without it; an event id that is too long is refused. Without causation across hosts,
//! claims are ignored.

use crate::app::App;
use crate::error::AppError;
use serde_json::Value;
use tandem_access::Identity;
use tandem_record::{ClaimedParent, Object, RunId};
use tandem_runtime::MAX_EVENT_ID_CHARS;
use url::{Host, Url};

const MAX_CHARS: usize = 256;
const WELL_KNOWN: &str = "/.well-known/openwop";

impl App {
    /// Reads `metadata.openwop.parent`.
    pub(crate) async fn read_claimed_parent(
        &self,
        caller: &Identity,
        metadata: Option<&Object>,
    ) -> Result<Option<ClaimedParent>, AppError> {
        let claim = metadata.and_then(|m| m.get("openwop")?.get("parent"));
        let crosses_hosts = self.runtime().agent_policy().crosses_hosts();
        let Some(claim) = claim.filter(|_| crosses_hosts) else {
            return Ok(None);
        };
        check_event_id(claim)?;
        let Some(mut parent) = parse(claim, self.inner.test_hooks) else {
            return Ok(None);
        };
        if parent.host_id == self.inner.host_id {
            let run = RunId::from(parent.run_id.clone());
            if self.find_run(caller, &run).await.is_err() {
                return Ok(None);
            }
            parent.well_known_url = None;
        }
        Ok(Some(parent))
    }
}

/// The event id becomes the cause of the run's first event, and the protocol limits its length.
fn check_event_id(claim: &Value) -> Result<(), AppError> {
    let named = claim.get("eventId").and_then(Value::as_str);
    if named.is_some_and(|id| id.chars().count() > MAX_EVENT_ID_CHARS) {
        let message = format!("has more than {MAX_EVENT_ID_CHARS} characters");
        return Err(AppError::invalid(
            "/metadata/openwop/parent/eventId",
            message,
        ));
    }
    Ok(())
}

fn parse(claim: &Value, development: bool) -> Option<ClaimedParent> {
    let text = |key: &str| {
        let text = claim.get(key).and_then(Value::as_str);
        text.filter(|t| (1..=MAX_CHARS).contains(&t.chars().count()))
    };
    let url = text("wellKnownUrl").filter(|url| is_discovery(url, development))?;
    Some(ClaimedParent {
        run_id: text("runId")?.to_owned(),
        host_id: text("hostId")?.to_owned(),
        well_known_url: Some(url.to_owned()),
        event_id: text("eventId").map(str::to_owned),
    })
}

fn is_discovery(url: &str, development: bool) -> bool {
    let Ok(url) = Url::parse(url) else {
        return false;
    };
    let loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => return false,
    };
    let secure = url.scheme() == "https" || (development && url.scheme() == "http" && loopback);
    secure && url.path().ends_with(WELL_KNOWN) && url.query().is_none() && url.fragment().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn malformed_parent_claim_is_dropped() {
        let claim = |url: &str| json!({"runId": "run-1", "hostId": "far", "wellKnownUrl": url, "eventId": "run-1:3"});
        let good = "https://far.example/.well-known/openwop";
        let parent = parse(&claim(good), false).expect("a valid claim");
        assert_eq!(parent.well_known_url.as_deref(), Some(good));
        assert_eq!(parent.event_id.as_deref(), Some("run-1:3"));
        let local = "http://127.0.0.1:7717/.well-known/openwop";
        assert!(
            parse(&claim(local), false).is_none(),
            "plain http outside development"
        );
        assert!(parse(&claim(local), true).is_some());
        for bad in [
            "http://far.example/.well-known/openwop",
            "https://far.example/",
            "https://far.example/.well-known/openwop?x=1",
            "file:///.well-known/openwop",
            "nonsense",
        ] {
            assert!(parse(&claim(bad), true).is_none(), "{bad}");
        }
        for broken in [
            json!({}),
            json!("run-1"),
            json!({"runId": 1, "hostId": "far", "wellKnownUrl": good}),
        ] {
            assert!(parse(&broken, true).is_none(), "{broken}");
        }
    }
}
