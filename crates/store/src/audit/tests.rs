//! Published test vectors, and inputs that must fail.

use super::*;
use serde_json::{Value, json};
use tandem_record::{Actor, AuthMethod, Principal, TenantId, Timestamp};

const HASH_1: &str = "ee2f056d7dc0f9788b3ffd8dbfd124e4bb92b8219ac512c09adf4c9644a8fe4b";
const HASH_2: &str = "a2d4894d7ba40a4e625435b1ad432fb971e046d1a251ad844560b796c0e113f7";
const ROOT: &str = "52f95c957e8e51f9165f89aae4ee0bf4eb6799969e0a57f227d87619bbfc1835";
const SPKI: &str = "MCowBQYDK2VwAyEAA6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=";
const SIGNATURE: &str =
    "u3T40WIPMvo33tpRrM1Q2acr/dAIWVXJ94Q9NoMNAfedcj6b7Xx37g5E1NSw1kEd3cfPhoyAw4ED2wlw5v/XCw==";

fn key() -> AuditKey {
    AuditKey::from_seed(&std::array::from_fn(|i| i as u8))
}

fn published() -> [Value; 2] {
    [
        json!({"seq": 1, "occurredAt": "2026-01-01T00:00:00.000Z", "actor": "key:k1",
               "action": "run.create", "target": "run-123",
               "details": {"workflowId": "conformance-noop"}, "prevHash": null}),
        json!({"seq": 2, "occurredAt": "2026-01-01T00:00:01.000Z", "actor": "key:k1",
               "action": "run.cancel", "target": "run-123", "details": {}, "prevHash": HASH_1}),
    ]
}

fn checkpoint() -> Checkpoint {
    Checkpoint {
        id: "cp-1".to_owned(),
        at_sequence: 2,
        merkle_root: ROOT.to_owned(),
        signature: SIGNATURE.to_owned(),
    }
}

#[test]
fn published_vectors_verify() {
    let bodies = published().map(|entry| serde_jcs::to_vec(&entry).unwrap());
    assert_eq!(Hash::of(&bodies[0]).to_string(), HASH_1);
    assert_eq!(Hash::of(&bodies[1]).to_string(), HASH_2);
    assert_eq!(key().public().to_spki(), SPKI);
    let root = Hash::parse(ROOT).unwrap();
    assert_eq!(key().sign_root(root), SIGNATURE);
    let mut verifier = ChainVerifier::new();
    verifier.entry(1, &bodies[0]);
    verifier.entry(2, &bodies[1]);
    assert!(verifier.checkpoint(&checkpoint(), PublicKey::from_spki(SPKI).unwrap()));
    assert_eq!(verifier.breaks(), []);
}

#[test]
fn the_root_is_that_of_the_tree_built_level_by_level() {
    fn level_by_level(mut level: Vec<String>) -> String {
        while level.len() > 1 {
            level = level
                .chunks(2)
                .map(|pair| match pair {
                    [left, right] => Hash::of(format!("{left}{right}").as_bytes()).to_string(),
                    rest => rest[0].clone(),
                })
                .collect();
        }
        level.remove(0)
    }
    let mut tree = Tree::default();
    let mut leaves = Vec::new();
    assert_eq!(tree.root(), None);
    for n in 0..70u32 {
        let leaf = Hash::of(&n.to_be_bytes());
        tree.push(leaf);
        leaves.push(leaf.to_string());
        let expected = level_by_level(leaves.clone());
        assert_eq!(tree.root().unwrap().to_string(), expected, "{n}");
    }
}

fn draft(action: &str, target: &str) -> AuditDraft {
    let actor = Actor {
        auth_method: AuthMethod::Key("k\"1".into()),
        principal: Some(Principal::new("zoë")),
        ..Actor::host()
    };
    let Value::Object(details) = json!({"z": [1, {"b": "\u{1}", "a": null}], "é": "\u{20ac}"})
    else {
        unreachable!("an object")
    };
    let tenant = TenantId::new("t1");
    AuditDraft::new(
        Timestamp(1_767_225_600_000),
        Some(&tenant),
        &actor,
        action,
        target,
        details,
    )
}

/// A small log as a store holds it.
fn chain(length: u64) -> Vec<(String, Hash)> {
    let mut chain: Vec<(String, Hash)> = Vec::new();
    for seq in 1..=length {
        let before = chain.last().map(|(_, hash)| *hash);
        chain.push(draft("run.create", &format!("run-{seq}")).encode_at(seq, before));
    }
    chain
}

#[test]
fn entry_is_encoded_in_canonical_form() {
    for (seq, (body, hash)) in (1..).zip(chain(3)) {
        let entry: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(serde_jcs::to_string(&entry).unwrap(), body);
        assert_eq!(Hash::of(body.as_bytes()), hash);
        let entry: Entry = serde_json::from_value(entry).unwrap();
        assert_eq!(entry.seq, seq);
        assert_eq!(entry.actor, "key:k\"1");
        assert_eq!(entry.details["principal"], "zoë");
        assert_eq!(entry.occurred_at, "2026-01-01T00:00:00.000Z");
    }
}

#[test]
fn details_are_canonical_whatever_they_hold() {
    let actor = Actor::host();
    for details in [
        json!({"zeta": "1", "alpha": "tab\t quote\" line\n \u{1} \u{7f} zoë \u{1f600}", "Beta": "/"}),
        json!({"\u{fb33}": "a", "\u{1f600}": "b", "z": "c"}),
        json!({"n": 1.5, "e": 1e21, "nested": {"b": 1, "a": [true, null]}}),
        json!({}),
    ] {
        let Value::Object(object) = details.clone() else {
            unreachable!("an object")
        };
        let draft = AuditDraft::new(Timestamp(0), None, &actor, "run.create", "run-1", object);
        let (body, _) = draft.encode_at(1, None);
        let entry: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(serde_jcs::to_string(&entry).unwrap(), body);
        assert_eq!(entry["details"], details);
    }
}

#[test]
fn every_changed_byte_breaks_the_chain() {
    let chain = chain(3);
    let head = AuditHead {
        seq: 3,
        hash: chain[2].1,
    };
    let walked = |bodies: &[Vec<u8>]| {
        let mut verifier = ChainVerifier::new();
        for (seq, body) in (1..).zip(bodies) {
            verifier.entry(seq, body);
        }
        verifier.end(head);
        verifier.breaks().to_vec()
    };
    let sound: Vec<Vec<u8>> = chain
        .iter()
        .map(|(body, _)| body.clone().into_bytes())
        .collect();
    assert_eq!(walked(&sound), []);
    for entry in 0..sound.len() {
        for byte in 0..sound[entry].len() {
            for flip in [0x01, 0x20, 0x80] {
                let mut changed = sound.clone();
                changed[entry][byte] ^= flip;
                let breaks = walked(&changed);
                // A change is detected at the next link, or at the end. A change of the link
                // itself, or of the whole shape, is detected at the entry.
                assert!(
                    !breaks.is_empty(),
                    "byte {byte} of entry {entry} ^ {flip:#x}"
                );
                assert!(breaks[0].at_seq <= entry as u64 + 2);
            }
        }
    }
}

#[test]
fn missing_entries_are_detected() {
    let chain = chain(5);
    let mut verifier = ChainVerifier::new();
    for seq in [1, 2, 5] {
        verifier.entry(seq, chain[seq as usize - 1].0.as_bytes());
    }
    let breaks = verifier.breaks();
    assert_eq!((breaks.len(), breaks[0].at_seq), (1, 3));
    assert_eq!(breaks[0].expected, chain[1].1.to_string());
    assert_eq!(breaks[0].actual, "");
    let mut cut = ChainVerifier::new();
    cut.entry(1, chain[0].0.as_bytes());
    cut.end(AuditHead {
        seq: 5,
        hash: chain[4].1,
    });
    assert_eq!(cut.breaks()[0].at_seq, 2);
}

#[test]
fn any_changed_receipt_field_fails_verification() {
    let (body, hash) = draft(DECISION, "int-1").encode_at(7, Some(Hash::of(b"six")));
    let entry: Entry = serde_json::from_str(&body).unwrap();
    let row = AuditRow {
        seq: 7,
        body: body.into_bytes(),
    };
    let made = receipt(&row, &entry, &key());
    assert_eq!(made, receipt(&row, &entry, &key()), "the same every time");
    assert_eq!(made["auditEntryHash"], hash.to_string());
    assert_eq!(check_receipt(&made, key().public()), Ok(()));
    let other = AuditKey::from_seed(&[9; 32]);
    assert!(check_receipt(&made, other.public()).is_err());
    let text = made.to_string();
    for at in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 0x01;
        if let Ok(changed) = serde_json::from_slice::<Value>(&bytes) {
            assert!(
                check_receipt(&changed, key().public()).is_err(),
                "byte {at}"
            );
        }
    }
}

/// The export of a small log.
fn export_text() -> String {
    let chain = chain(3);
    let mut tree = Tree::default();
    let mut lines =
        vec![json!({"audit": {"format": "tandem-audit-1", "publicKey": SPKI}}).to_string()];
    for (seq, (body, hash)) in (1..).zip(&chain) {
        tree.push(*hash);
        lines.push(match seq {
            2 => json!({"withheld": {"hash": hash.to_string(), "seq": 2}}).to_string(),
            _ => format!(r#"{{"entry":{body}}}"#),
        });
    }
    let root = tree.root().unwrap();
    let seal = json!({"checkpoint": "cp-1", "atSequence": 3, "merkleRoot": root.to_string(),
                      "signature": key().sign_root(root)});
    lines.push(json!({"checkpoint": seal}).to_string());
    lines.push(json!({"end": {"entries": 3, "hash": chain[2].1.to_string()}}).to_string());
    lines.join("\n")
}

fn read(text: &str, key: Option<PublicKey>) -> Result<ExportVerification, String> {
    let mut verifier = ExportVerifier::new(key);
    text.split('\n').try_for_each(|line| verifier.line(line))?;
    verifier.finish()
}

#[test]
fn every_changed_byte_of_an_export_is_found() {
    let text = export_text();
    let report = read(&text, Some(key().public())).unwrap();
    assert_eq!((report.entries, report.withheld), (3, 1));
    assert_eq!(report.checkpoints, 1);
    for at in 0..text.len() {
        for flip in [0x01, 0x20] {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= flip;
            if let Ok(changed) = String::from_utf8(bytes) {
                assert!(read(&changed, None).is_err(), "byte {at} ^ {flip:#x}");
            }
        }
    }
    for cut in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
        assert!(read(&text[..cut], None).is_err(), "cut at {cut}");
    }
    let unsigned: Vec<&str> = text.split('\n').filter(|l| !l.contains("cp-1")).collect();
    assert!(
        read(&unsigned.join("\n"), Some(key().public())).is_err(),
        "an unsigned chain can be forged"
    );
    let other = AuditKey::from_seed(&[9; 32]).public();
    assert!(
        read(&text, Some(other)).is_err(),
        "not signed by the trusted key"
    );
}
