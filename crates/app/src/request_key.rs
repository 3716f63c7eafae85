//! Idempotency keys of requests: the storage key, the digest of the request, and the table of keys
//! in use in this process.

use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use tandem_record::{Partition, Principal};
use tandem_runtime::IdempotencyKey;
use tokio::sync::OwnedMutexGuard;

/// One key of one workspace, or of a tenant's keys without a workspace, for one operation. The
/// caller's text is not stored.
pub(crate) fn storage_key(caller: &Partition, operation: &str, key: &str) -> IdempotencyKey {
    let tenant = &caller.tenant;
    IdempotencyKey(hex(&Sha256::digest(match &caller.workspace {
        None => format!("{tenant}:{operation}:{key}"),
        // The length and NUL ensure that no two partitions have the same encoding.
        Some(workspace) => {
            let length = workspace.as_str().len();
            format!("{tenant}\0{length}\0{workspace}:{operation}:{key}")
        }
    })))
}

/// What was asked: the path with its parameters, and the body in canonical form, so that a retry
/// which merely spells the same JSON differently is still a retry. And who asked, where that matters.
pub(crate) fn digest(principal: Option<&Principal>, path: &str, body: &[u8]) -> String {
    let mut hash = Sha256::new();
    if let Some(principal) = principal {
        // A path begins with a slash, so this is never taken for one.
        hash.update(format!("{}\0{principal}\0", principal.as_str().len()));
    }
    hash.update(path.as_bytes());
    hash.update([0]);
    match serde_json::from_slice::<Value>(body) {
        Ok(parsed) => {
            let mut canonical = String::with_capacity(body.len());
            write_sorted(&parsed, &mut canonical);
            hash.update(canonical.as_bytes());
        }
        // An omitted optional body is the same as an empty object.
        Err(_) if body.is_empty() => hash.update(b"{}"),
        Err(_) => hash.update(body),
    }
    hex(&hash.finalize())
}

/// JSON with sorted keys. Numbers stay as they were parsed: two different large integers must not
/// become the same request, as they would in a canonical form based on doubles.
fn write_sorted(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            out.push('{');
            for name in names {
                let _ = write!(out, "{},", Value::from(name.as_str()));
                write_sorted(&fields[name], out);
                out.push(';');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_sorted(item, out);
                out.push(',');
            }
            out.push(']');
        }
        scalar => {
            let _ = write!(out, "{scalar}");
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

type Lock = Arc<tokio::sync::Mutex<()>>;

/// Keys in use in this process. The second request with a key waits for the first and then finds
/// its response; requests in other processes are detected in the store.
#[derive(Default, Clone)]
pub(crate) struct InFlight(Arc<Mutex<HashMap<IdempotencyKey, Lock>>>);

/// Holds a key until dropped.
pub(crate) struct KeyGuard {
    table: InFlight,
    key: IdempotencyKey,
    guard: Option<OwnedMutexGuard<()>>,
}

impl InFlight {
    pub(crate) async fn hold(&self, key: &IdempotencyKey) -> KeyGuard {
        let lock = Arc::clone(self.0.lock().entry(key.clone()).or_default());
        let mut held = KeyGuard {
            table: self.clone(),
            key: key.clone(),
            guard: None,
        };
        held.guard = Some(lock.lock_owned().await);
        held
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.lock().len()
    }
}

impl Drop for KeyGuard {
    fn drop(&mut self) {
        drop(self.guard.take());
        let mut table = self.table.0.lock();
        // Waiters hold the lock's Arc too; the last one removes the entry.
        if table
            .get(&self.key)
            .is_some_and(|lock| Arc::strong_count(lock) == 1)
        {
            table.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_record::TenantId;

    #[test]
    fn storage_key_matches_published_hash() {
        let tenant = Partition::from(TenantId::new("tenant-a"));
        let key = storage_key(&tenant, "POST /v1/runs", "key-1");
        assert_eq!(
            key.0,
            "473d7352930ab5231ae887bd92535c2ca559ab9cfe4e43f8db4b309afc80097a"
        );
    }

    #[test]
    fn storage_keys_differ_between_workspaces() {
        let of = |tenant: &str, workspace: Option<&str>| {
            let caller = Partition {
                tenant: tenant.into(),
                workspace: workspace.map(Into::into),
            };
            storage_key(&caller, "POST /v1/runs", "key-1").0
        };
        let keys = [
            of("a", None),
            of("a", Some("b")),
            of("a", Some("c")),
            of("a:b", None),
            of("a", Some("b:c")),
            of("a\0", Some("b")),
        ];
        let distinct: std::collections::HashSet<&String> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
    }

    #[test]
    fn digest_ignores_json_formatting_and_key_order() {
        let of = |body: &str| digest(None, "/v1/runs", body.as_bytes());
        assert_eq!(
            of(r#"{"a":1,"b":{"c":2,"d":[3]}}"#),
            of(r#" {"b":{"d":[3],"c":2},"a":1}"#)
        );
        assert_eq!(of(""), of("{}"));
        for (one, other) in [
            (r#"{"a":1}"#, r#"{"a":2}"#),
            (r#"{"a":9007199254740992}"#, r#"{"a":9007199254740993}"#),
            (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#),
            (r#"{"a":"1"}"#, r#"{"a":1}"#),
            ("{bad", "{worse"),
        ] {
            assert_ne!(of(one), of(other));
        }
        assert_ne!(
            digest(None, "/v1/runs/a/cancel", b""),
            digest(None, "/v1/runs/b/cancel", b"")
        );
        let by = |name: &str| digest(Some(&name.into()), "/v1/webhooks", b"");
        assert_eq!(by("ana"), by("ana"));
        assert_ne!(by("ana"), by("ben"));
        assert_ne!(by("ana"), digest(None, "/v1/webhooks", b""));
    }

    #[tokio::test]
    async fn key_is_held_once_and_removed_when_released() {
        let table = InFlight::default();
        let key = IdempotencyKey("k".to_owned());
        let first = table.hold(&key).await;
        let waiting = tokio::spawn({
            let (table, key) = (table.clone(), key.clone());
            async move { drop(table.hold(&key).await) }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        waiting.await.unwrap();
        // A cancelled waiter leaves no entry either.
        let first = table.hold(&key).await;
        let late = tokio::time::timeout(std::time::Duration::ZERO, table.hold(&key));
        assert!(late.await.is_err());
        drop(first);
        assert_eq!(table.len(), 0);
    }
}
