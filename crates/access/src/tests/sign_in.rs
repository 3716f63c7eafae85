use super::{NOW, identity};
use crate::{LoginCodes, Sessions};

#[test]
fn a_code_works_once_and_in_time() {
    let codes = LoginCodes::new(60_000);
    let code = codes.mint(identity("key-a"), NOW);
    assert_eq!(format!("{code:?}"), "Secret(…)");
    assert!(codes.redeem("something else", NOW).is_none());
    let who = codes.redeem(code.expose(), NOW.plus_ms(59_999)).unwrap();
    assert_eq!(&*who.key_id, "key-a");
    assert!(codes.redeem(code.expose(), NOW).is_none(), "spent");

    let late = codes.mint(identity("key-a"), NOW);
    assert!(codes.redeem(late.expose(), NOW.plus_ms(60_000)).is_none());
    assert!(codes.redeem(late.expose(), NOW).is_none(), "and gone");
}

#[test]
fn outstanding_codes_are_bounded() {
    let codes = LoginCodes::new(60_000);
    let first = codes.mint(identity("key-a"), NOW);
    for at in 1..100 {
        codes.mint(identity("key-a"), NOW.plus_ms(at));
    }
    assert_eq!(codes.outstanding(), 64);
    assert!(codes.redeem(first.expose(), NOW.plus_ms(100)).is_none());
    codes.mint(identity("key-a"), NOW.plus_ms(120_000));
    assert_eq!(codes.outstanding(), 1);
}

#[test]
fn session_expires_when_idle() {
    let sessions = Sessions::new(1_000);
    let opened = sessions.open(identity("key-a"), NOW);
    let id = opened.id.expose();
    for at in [0, 999, 1_998, 2_997] {
        assert!(sessions.get(id, NOW.plus_ms(at)).is_some(), "at {at} ms");
    }
    assert!(sessions.get(id, NOW.plus_ms(3_997)).is_none());
    assert!(sessions.get(id, NOW.plus_ms(2_997)).is_none(), "and gone");
}

#[test]
fn a_session_ends_with_its_key() {
    let sessions = Sessions::new(60_000);
    let mut short = identity("key-short");
    short.expires_at = Some(NOW.plus_ms(10));
    let expiring = sessions.open(short, NOW);
    assert!(sessions.get(expiring.id.expose(), NOW.plus_ms(9)).is_some());
    assert!(
        sessions
            .get(expiring.id.expose(), NOW.plus_ms(10))
            .is_none()
    );

    let one = sessions.open(identity("key-a"), NOW);
    let other = sessions.open(identity("key-b"), NOW);
    sessions.close_for_key("key-a");
    assert!(sessions.get(one.id.expose(), NOW).is_none());
    assert!(sessions.get(other.id.expose(), NOW).is_some());
    sessions.close(&other.session);
    assert!(sessions.get(other.id.expose(), NOW).is_none());
}

#[test]
fn closed_session_signals_its_listeners() {
    let sessions = Sessions::new(1_000);
    let one = sessions.open(identity("key-a"), NOW).session;
    let other = sessions.open(identity("key-b"), NOW).session;
    assert!(!one.end_signal().has_ended());
    sessions.close_for_key("key-a");
    assert!(one.end_signal().has_ended() && !other.end_signal().has_ended());
    assert!(!sessions.is_open(&one, NOW) && sessions.is_open(&other, NOW));
    // `is_open` does not reset the idle time.
    assert!(sessions.is_open(&other, NOW.plus_ms(999)));
    assert!(!sessions.is_open(&other, NOW.plus_ms(1_000)));
}

#[test]
fn a_code_of_a_revoked_key_is_dropped() {
    let codes = LoginCodes::new(60_000);
    let gone = codes.mint(identity("key-a"), NOW);
    let remaining = codes.mint(identity("key-b"), NOW);
    codes.remove_key("key-a");
    assert!(codes.redeem(gone.expose(), NOW).is_none());
    assert!(codes.redeem(remaining.expose(), NOW).is_some());
}

#[test]
fn csrf_token_belongs_to_one_session() {
    let sessions = Sessions::new(60_000);
    let one = sessions.open(identity("key-a"), NOW).session;
    let other = sessions.open(identity("key-a"), NOW).session;
    assert!(one.csrf_matches(one.csrf.expose()));
    for wrong in ["", "x", other.csrf.expose()] {
        assert!(!one.csrf_matches(wrong));
    }
    assert!(!format!("{one:?}").contains(one.csrf.expose()));
}

#[test]
fn sessions_are_bounded_and_least_recently_used_is_evicted() {
    let sessions = Sessions::new(60_000);
    let remaining = sessions.open(identity("key-a"), NOW);
    let stale = sessions.open(identity("key-a"), NOW);
    assert!(
        sessions
            .get(remaining.id.expose(), NOW.plus_ms(1))
            .is_some()
    );
    for _ in 0..1_023 {
        sessions.open(identity("key-a"), NOW.plus_ms(2));
    }
    assert_eq!(sessions.count(), 1_024);
    assert!(
        sessions
            .get(remaining.id.expose(), NOW.plus_ms(2))
            .is_some()
    );
    assert!(sessions.get(stale.id.expose(), NOW.plus_ms(2)).is_none());
}
