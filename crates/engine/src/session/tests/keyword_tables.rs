//! Keywords for yes and no in every language.

use crate::agent::{ConfirmDefaults, ConfirmTimeoutBehavior, UnrecognizedReply};
use crate::flow::FlowEffect;
use crate::session::KeywordMatch::{Negative, Positive, Unrecognized};
use crate::session::{KeywordList, KeywordMatch, Keywords, Language};
use serde_json::json;

fn read(language: Language, text: &str) -> KeywordMatch {
    Keywords::of_language(language).read(text)
}

#[test]
fn replies_are_normalized_and_matched_by_whole_words() {
    // Z-69
    let table = [
        ("yes", Positive),
        ("  YES!! ", Positive),
        ("\u{ff39}\u{ff25}\u{ff33}", Positive),
        ("(ok)", Positive),
        ("yes please", Positive),
        ("well, sure thing", Positive),
        ("no", Negative),
        ("No, thank you", Negative),
        ("nope...", Negative),
        ("please cancel it", Negative),
        // Substrings are no keywords.
        ("know", Unrecognized),
        ("noon", Unrecognized),
        ("yesterday", Unrecognized),
        ("yes and no", Unrecognized),
        ("maybe", Unrecognized),
        ("", Unrecognized),
        ("?!", Unrecognized),
        ("👍", Positive),
        ("👍🏽", Positive),
        ("✅\u{fe0f}", Positive),
        ("👎", Negative),
        ("❌", Negative),
        ("👍👎", Unrecognized),
        ("yes 😀", Positive),
        ("😀", Unrecognized),
    ];
    for (text, expected) in table {
        assert_eq!(read(Language::En, text), expected, "{text:?}");
    }
}

#[test]
fn every_language_has_its_words() {
    // §4.6.2
    let table = [
        (Language::Pt, "Sim", "Não"),
        (Language::Pt, "pode, isso", "nao"),
        (Language::Es, "¡Sí!", "no"),
        (Language::Es, "vale", "cancelar"),
        (Language::De, "Ja, gerne", "Nein"),
        (Language::Fr, "Oui", "non merci"),
        (Language::Fr, "D\u{2019}accord", "annuler"),
        (Language::Hi, "हाँ", "नहीं"),
        (Language::Id, "iya", "tidak"),
        (Language::It, "sì", "no grazie"),
        (Language::Ja, "はい、お願いします。", "いいえ"),
        (Language::Ja, "ＯＫです", "キャンセル"),
        (Language::Ko, "네", "아니요"),
        (Language::Nl, "ja graag", "nee"),
        (Language::Pl, "tak", "nie"),
        (Language::Ru, "Да!", "нет"),
        (Language::Uk, "так", "ні"),
        (Language::Vi, "Đồng ý", "không"),
        (Language::Zh, "好的，谢谢", "不要"),
        (Language::Zh, "是", "不是"),
        (Language::Auto, "sim", "nope"),
    ];
    for (language, yes, no) in table {
        assert_eq!(read(language, yes), Positive, "{language:?} {yes}");
        assert_eq!(read(language, no), Negative, "{language:?} {no}");
    }
    for language in Language::ALL {
        assert_eq!(read(language, "✅"), Positive, "{language:?}");
        assert_eq!(read(language, "ok"), Positive, "{language:?}");
        assert_eq!(Language::from_code(language.code()), language);
    }
    // English, Portuguese and Spanish have only their own words.
    assert_eq!(read(Language::En, "sim"), Unrecognized);
    assert_eq!(read(Language::De, "sim"), Positive);
}

#[test]
fn scripts_without_spaces_are_not_searched_for_parts() {
    // Z-69 (half: never substrings, where words have no spaces)
    for text in ["你好", "这是什么", "对不起"] {
        assert_eq!(read(Language::Zh, text), Unrecognized, "{text}");
    }
    assert_eq!(read(Language::Ja, "いいえではない"), Unrecognized);
}

#[test]
fn no_word_means_yes_and_no_in_one_language() {
    for language in Language::ALL {
        let keywords = Keywords::of_language(language);
        for list in language.word_lists() {
            let words = list.yes_no();
            for word in words.positive {
                assert!(!keywords.negative.equals(word), "{language:?} {word}");
            }
            for word in words.negative {
                assert_eq!(keywords.read(word), Negative, "{language:?} {word}");
            }
        }
    }
}

fn defaults(positive: Option<&[&str]>, negative: Option<&[&str]>) -> ConfirmDefaults {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    ConfirmDefaults {
        timeout_ms: 1,
        positive_keywords: positive.map(owned),
        negative_keywords: negative.map(owned),
        unrecognized: UnrecognizedReply::Reprompt,
        max_reprompts: 2,
        timeout_behavior: ConfirmTimeoutBehavior::Decline,
    }
}

#[test]
fn keywords_come_from_the_effect_then_the_defaults_then_the_language() {
    // Z-70 (half: the table)
    let effect =
        json!({"type": "interrupt.confirm", "question": "?", "positiveKeywords": ["Go On"]});
    let Ok(FlowEffect::Confirm(effect)) = FlowEffect::parse(&effect) else {
        panic!("a confirm");
    };
    let keywords = Keywords::of(Some(&effect), &defaults(Some(&["aye"]), None), Language::En);
    // Only the list that the effect gives is replaced.
    let table = [
        ("go  on!", Positive),
        ("please go on", Positive),
        ("go", Unrecognized),
        ("aye", Unrecognized),
        ("yes", Unrecognized),
        ("no", Negative),
        ("👍", Positive),
    ];
    for (text, expected) in table {
        assert_eq!(keywords.read(text), expected, "{text}");
    }
    let keywords = Keywords::of(
        None,
        &defaults(Some(&["aye"]), Some(&["nay"])),
        Language::En,
    );
    let table = [
        ("aye", Positive),
        ("nay", Negative),
        ("yes", Unrecognized),
        ("no", Unrecognized),
    ];
    for (text, expected) in table {
        assert_eq!(keywords.read(text), expected, "{text}");
    }
}

#[test]
fn lists_match_whole_texts_or_within_them() {
    // Z-242 (half: words of consent), Z-229 (half: words that cancel waiting)
    let list = KeywordList::new(["Stop", "unsubscribe me", "!"]);
    assert!(list.equals("STOP.") && !list.equals("stop it"));
    assert!(list.occurs_in("please unsubscribe me now") && !list.occurs_in("nonstop"));
    assert!(!list.equals("!") && !list.occurs_in(""));
}
