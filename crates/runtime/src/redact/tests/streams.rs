//! Secrets cut into pieces that are handed on one after the other.

use super::fuzz::{CONFIGURED, SHAPED, awkward, configured_redactor, encoded};
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// The text as its reader puts it together, after each piece and at the end.
fn read(redactor: &Redactor, pieces: &[&str]) -> Vec<String> {
    let mut stream = redactor.stream();
    let mut seen = String::new();
    let mut steps = Vec::new();
    for piece in pieces {
        seen.push_str(&stream.push(piece));
        steps.push(seen.clone());
    }
    seen.push_str(&stream.finish());
    steps.push(seen);
    steps
}

fn whole(redactor: &Redactor, pieces: &[&str]) -> String {
    read(redactor, pieces).pop().unwrap_or_default()
}

fn cut<'a>(text: &'a str, cuts: &[Index]) -> Vec<&'a str> {
    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    if places.is_empty() {
        return Vec::new();
    }
    let mut cuts: Vec<usize> = cuts
        .iter()
        .map(|cut| places[cut.index(places.len())])
        .collect();
    cuts.sort_unstable();
    let mut pieces = Vec::new();
    let mut from = 0;
    for to in cuts.into_iter().chain([text.len()]) {
        pieces.push(&text[from..to]);
        from = to;
    }
    pieces
}

#[test]
fn split_secret_is_masked_at_every_position() {
    let redactor = redactor();
    for at in 1..SECRET.len() {
        let (head, tail) = SECRET.split_at(at);
        assert_eq!(
            whole(&redactor, &["x ", head, tail, " y"]),
            "x [REDACTED:db] y"
        );
    }
    let letters: Vec<String> = SECRET.chars().map(String::from).collect();
    let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
    assert_eq!(whole(&redactor, &letters), MARK_DB);
    for token in SHAPED {
        for at in 1..token.len() {
            let (head, tail) = token.split_at(at);
            assert_eq!(
                whole(&redactor, &["x ", head, tail, " y"]),
                "x [REDACTED] y",
                "{token}"
            );
        }
    }
}

#[test]
fn text_is_handed_on_as_soon_as_it_cannot_be_a_secret() {
    let redactor = redactor();
    // `a` begins the secret in base64.
    let pieces = ["Your pass", "word is hun", "gry ta", "sk-list ", "s", "ee"];
    let steps = [
        "Your pass",
        "Your password is ",
        "Your password is hungry t",
        "Your password is hungry task-list ",
        "Your password is hungry task-list ",
        "Your password is hungry task-list see",
        "Your password is hungry task-list see",
    ];
    assert_eq!(read(&redactor, &pieces), steps);
}

#[test]
fn what_is_held_back_is_bounded() {
    let redactor = redactor();
    let long = "a".repeat(1000);
    for begin in ["sk-", "eyJ", "Bearer "] {
        let mut stream = redactor.stream();
        let mut seen = stream.push(begin);
        for _ in 0..50 {
            seen.push_str(&stream.push(&long));
        }
        assert_eq!(seen, "[REDACTED]", "{begin}");
        seen.push_str(&stream.push("a. done"));
        seen.push_str(&stream.finish());
        assert_eq!(seen, "[REDACTED] done");
    }
}

#[test]
fn pieces_without_a_secret_stay_as_they_are() {
    let mut pieces = ["a task", "-s", "k-", "b"].map(str::to_owned);
    let before = pieces.clone();
    assert!(!redactor().redact_pieces(&mut pieces.iter_mut().collect::<Vec<_>>()));
    assert_eq!(pieces, before);
    let mut pieces = ["x sk-abcdefgh", "ijklmnop", "qrstuv y"].map(str::to_owned);
    assert!(redactor().redact_pieces(&mut pieces.iter_mut().collect::<Vec<_>>()));
    assert_eq!(pieces.concat(), "x [REDACTED] y");
}

proptest! {
    // Set `PROPTEST_CASES` for more cases.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_secret_can_be_put_together_from_pieces(
        configured in select(CONFIGURED.map(|(_, secret)| secret).to_vec()),
        form in any::<Index>(),
        shaped in select(SHAPED.to_vec()),
        between in vec(awkward(), 4),
        cuts in vec(any::<Index>(), 0..24),
    ) {
        let redactor = configured_redactor();
        let forms = encoded(configured);
        let form = &forms[form.index(forms.len())];
        let parts = [&between[0], configured, &between[1], form, &between[2], "\n", shaped, &between[3]];
        let text = parts.concat();
        for seen in read(redactor, &cut(&text, &cuts)) {
            for (_, secret) in CONFIGURED {
                prop_assert!(!seen.contains(secret), "{} -> {}", text, seen);
            }
            prop_assert!(!seen.contains(form.as_str()), "{} -> {}", text, seen);
            prop_assert!(!seen.contains(shaped), "{} -> {}", text, seen);
            let again = redactor.redact_text(&seen);
            prop_assert_eq!(again, None, "{} -> {}", text, seen);
        }
    }

    #[test]
    fn text_without_a_secret_arrives_whole(
        text in "[a-zA-Z \\n.,:_-]{0,60}",
        cuts in vec(any::<Index>(), 0..8),
    ) {
        let redactor = configured_redactor();
        prop_assume!(redactor.redact_text(&text).is_none());
        prop_assert_eq!(whole(redactor, &cut(&text, &cuts)), text);
    }

    #[test]
    fn any_pieces_are_read_as_text_without_secrets(pieces in vec(awkward(), 0..12)) {
        let redactor = configured_redactor();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let seen = whole(redactor, &pieces);
        prop_assert_eq!(redactor.redact_text(&seen), None, "{}", seen);
    }
}
