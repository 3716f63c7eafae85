//! The language of an agent, and the words for yes and no in it.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    Auto,
    De,
    #[default]
    En,
    Es,
    Fr,
    Hi,
    Id,
    It,
    Ja,
    Ko,
    Nl,
    Pl,
    Pt,
    Ru,
    Uk,
    Vi,
    Zh,
}

/// Words for yes and words for no, as a speaker writes them.
pub(super) struct YesNo {
    pub(super) positive: &'static [&'static str],
    pub(super) negative: &'static [&'static str],
}

/// Understood in every language.
pub(super) const SIGNS: YesNo = YesNo {
    positive: &["👍", "✅"],
    negative: &["👎", "❌"],
};

impl Language {
    pub const ALL: [Self; 17] = [
        Self::Auto,
        Self::De,
        Self::En,
        Self::Es,
        Self::Fr,
        Self::Hi,
        Self::Id,
        Self::It,
        Self::Ja,
        Self::Ko,
        Self::Nl,
        Self::Pl,
        Self::Pt,
        Self::Ru,
        Self::Uk,
        Self::Vi,
        Self::Zh,
    ];

    /// An unknown code counts as English.
    pub fn from_code(code: &str) -> Self {
        let known = Self::ALL.into_iter().find(|known| known.code() == code);
        known.unwrap_or(Self::En)
    }

    pub fn code(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::De => "de",
            Self::En => "en",
            Self::Es => "es",
            Self::Fr => "fr",
            Self::Hi => "hi",
            Self::Id => "id",
            Self::It => "it",
            Self::Ja => "ja",
            Self::Ko => "ko",
            Self::Nl => "nl",
            Self::Pl => "pl",
            Self::Pt => "pt",
            Self::Ru => "ru",
            Self::Uk => "uk",
            Self::Vi => "vi",
            Self::Zh => "zh",
        }
    }

    /// The languages whose words count by default. People answer in English, Portuguese or Spanish
    /// too, except where the agent speaks one of these.
    pub(super) fn word_lists(self) -> Vec<Self> {
        match self {
            Self::En | Self::Pt | Self::Es => vec![self],
            Self::Auto => vec![Self::En, Self::Pt, Self::Es],
            other => vec![Self::En, Self::Pt, Self::Es, other],
        }
    }

    /// The most common word for yes and for no.
    pub fn plain_words(self) -> (&'static str, &'static str) {
        let own = match self {
            Self::Auto => Self::En,
            own => own,
        };
        let words = own.yes_no();
        let first = |words: &'static [&'static str]| words.first().copied();
        (
            first(words.positive).unwrap_or("yes"),
            first(words.negative).unwrap_or("no"),
        )
    }

    pub(super) fn yes_no(self) -> YesNo {
        let (positive, negative): (&[&str], &[&str]) = match self {
            Self::Auto => (&[], &[]),
            Self::En => (
                &[
                    "yes",
                    "y",
                    "yep",
                    "yeah",
                    "ok",
                    "okay",
                    "sure",
                    "confirm",
                    "confirmed",
                ],
                &["no", "n", "nope", "cancel", "stop"],
            ),
            Self::Pt => (
                &[
                    "sim",
                    "s",
                    "ok",
                    "claro",
                    "confirmo",
                    "confirmar",
                    "pode",
                    "isso",
                ],
                &["não", "n", "cancelar", "cancela", "parar"],
            ),
            Self::Es => (
                &["sí", "s", "ok", "claro", "vale", "confirmo"],
                &["no", "n", "cancelar"],
            ),
            Self::De => (
                &[
                    "ja",
                    "j",
                    "jawohl",
                    "klar",
                    "gerne",
                    "bestätigen",
                    "einverstanden",
                ],
                &["nein", "nee", "nö", "abbrechen", "stopp"],
            ),
            Self::Fr => (
                &["oui", "ouais", "d'accord", "bien sûr", "je confirme"],
                &["non", "annuler", "annule", "arrêter"],
            ),
            Self::Hi => (
                &["हाँ", "हां", "जी हाँ", "जी", "ठीक है", "haan", "han"],
                &["नहीं", "जी नहीं", "मत", "रद्द", "nahin", "nahi"],
            ),
            Self::Id => (
                &["ya", "iya", "yak", "baik", "setuju", "boleh"],
                &[
                    "tidak", "nggak", "enggak", "gak", "jangan", "batal", "batalkan",
                ],
            ),
            Self::It => (
                &["sì", "certo", "va bene", "d'accordo", "confermo"],
                &["no", "annulla", "annullare", "ferma"],
            ),
            Self::Ja => (
                &[
                    "はい",
                    "ええ",
                    "うん",
                    "お願いします",
                    "了解",
                    "了解です",
                    "承知しました",
                    "オーケー",
                ],
                &[
                    "いいえ",
                    "いえ",
                    "いや",
                    "やめて",
                    "やめます",
                    "キャンセル",
                    "結構です",
                ],
            ),
            Self::Ko => (
                &["네", "예", "응", "그래", "좋아요", "확인", "맞아요"],
                &["아니요", "아니오", "아니", "취소", "싫어요", "그만"],
            ),
            Self::Nl => (
                &["ja", "jawel", "akkoord", "prima", "bevestig", "graag"],
                &["nee", "neen", "annuleren", "annuleer"],
            ),
            Self::Pl => (
                &["tak", "dobrze", "jasne", "zgoda", "potwierdzam"],
                &["nie", "anuluj", "rezygnuję"],
            ),
            Self::Ru => (
                &["да", "ага", "конечно", "хорошо", "ок", "подтверждаю"],
                &["нет", "не", "отмена", "отменить", "стоп"],
            ),
            Self::Uk => (
                &["так", "ага", "звичайно", "добре", "гаразд", "підтверджую"],
                &["ні", "не", "скасувати", "відміна", "стоп"],
            ),
            Self::Vi => (
                &["có", "vâng", "dạ", "đồng ý", "được", "xác nhận"],
                &["không", "hủy", "huỷ", "thôi", "dừng"],
            ),
            Self::Zh => (
                &[
                    "是",
                    "是的",
                    "对",
                    "好",
                    "好的",
                    "可以",
                    "行",
                    "确认",
                    "沒問題",
                    "没问题",
                ],
                &["不", "不是", "不要", "不用", "不行", "否", "取消", "没有"],
            ),
        };
        YesNo { positive, negative }
    }
}
