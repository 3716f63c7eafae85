//! Names of new principals. People read them in questions, votes and receipts, so a new name must not
//! pass for another one.
//!
//! Invariants:
//! - A name that exists is never refused here: its further keys and rotations keep working.
//! - Names are compared as they look, by the skeletons of Unicode Technical Standard 39, without case and spaces.

use tandem_record::Principal;
use unicode_security::confusable_detection::skeleton;
use unicode_security::{GeneralSecurityProfile as _, MixedScript as _};

/// Joiners that are invisible between most letters, although identifiers may contain them.
const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];

/// Why a name is refused for a new principal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrincipalNameError {
    #[error(
        "may hold letters and digits of one script, ASCII punctuation, and single spaces between them; \
         no control, invisible or compatibility characters and no letters of several scripts"
    )]
    Characters,
    #[error(
        "looks like {:?}, which is the principal of another key; use that name, or one that differs in \
         more than case, spaces and similar letters", .0.as_str()
    )]
    LooksLike(Principal),
}

/// Checks a name against those of the tenant's keys.
pub(crate) fn check_new_principal<'a>(
    name: &Principal,
    mut existing: impl Iterator<Item = &'a Principal> + Clone,
) -> Result<(), PrincipalNameError> {
    if existing.clone().any(|known| known == name) {
        return Ok(());
    }
    if !is_plain(name.as_str()) {
        return Err(PrincipalNameError::Characters);
    }
    let appearances = appearances(name.as_str());
    let alike = |known: &&Principal| {
        let both = self::appearances(known.as_str());
        both.iter().zip(&appearances).any(|(a, b)| a == b)
    };
    match existing.find(alike) {
        Some(known) => Err(PrincipalNameError::LooksLike(known.clone())),
        None => Ok(()),
    }
}

fn is_plain(name: &str) -> bool {
    let visible = |c: char| {
        c.is_ascii_graphic() || c == ' ' || (c.identifier_allowed() && !JOINERS.contains(&c))
    };
    let spaced = name.split(' ').all(|word| !word.is_empty());
    spaced && name.chars().all(visible) && name.is_single_script()
}

/// Two forms of a name. Names that a reader may take for each other have one of them in common: a
/// capital letter may pass for its small letter, or for what it looks like itself.
fn appearances(name: &str) -> [String; 2] {
    let form = |text: &str| -> String {
        let visible = skeleton(text).filter(|c| !c.is_whitespace());
        visible.flat_map(char::to_lowercase).collect()
    };
    [form(&name.to_lowercase()), form(name)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, existing: &[&str]) -> Result<(), PrincipalNameError> {
        let existing: Vec<_> = existing.iter().map(Principal::new).collect();
        check_new_principal(&Principal::new(name), existing.iter())
    }

    #[test]
    fn names_of_one_script_with_ascii_punctuation_are_accepted() {
        for name in [
            "ana",
            "Ana Maria",
            "ana+desk@example.com",
            "svc:build/1",
            "key_0a1b",
            "Zoë",
            "Анна",
            "山田さくら",
            "o'neil",
        ] {
            assert_eq!(check(name, &["ben"]), Ok(()), "{name:?}");
        }
    }

    #[test]
    fn invisible_control_and_mixed_script_names_are_refused() {
        for name in [
            "an\u{430}",
            "ana\u{200b}",
            "a\u{200d}na",
            "ana\u{ad}",
            "\u{202e}ana",
            "ana\n",
            "ana\u{0}",
            " ana",
            "ana ",
            "ana  b",
            "ana\u{a0}b",
            "\u{ff41}na",
        ] {
            assert_eq!(
                check(name, &[]),
                Err(PrincipalNameError::Characters),
                "{name:?}"
            );
        }
    }

    #[test]
    fn name_that_looks_like_an_existing_one_is_refused() {
        for (name, known) in [
            ("Ana", "ana"),
            ("an a", "ana"),
            ("bi11", "bill"),
            ("aIice", "alice"),
            ("INA", "ina"),
            ("0tto", "Otto"),
            // Cyrillic letters only.
            ("\u{441}\u{43e}\u{440}\u{435}", "cope"),
        ] {
            let refused = Err(PrincipalNameError::LooksLike(Principal::new(known)));
            assert_eq!(check(name, &["other", known]), refused, "{name:?}");
        }
    }

    #[test]
    fn existing_name_is_accepted_whatever_it_holds() {
        assert_eq!(check("an\u{430}", &["ana", "an\u{430}"]), Ok(()));
    }
}
