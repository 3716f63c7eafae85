//! Estimates how much text fits in a given width, without font metrics.
//!
//! The estimate is on the wide side: text that is cut early is better than text that overflows its
//! box.

/// Average width of one narrow character, in CSS pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Face(f64);

/// 13px sans, semi-bold.
pub(super) const NAME: Face = Face(8.2);
/// 11px monospace.
pub(super) const TYPE: Face = Face(6.7);
/// 11px sans.
pub(super) const LABEL: Face = Face(6.8);

pub(super) fn width_px(text: &str, face: Face) -> f64 {
    text.chars().map(|c| advance(c) * face.0).sum()
}

/// The text if it fits, else its beginning and an ellipsis.
pub(super) fn fit(text: &str, face: Face, max_px: f64) -> String {
    if width_px(text, face) <= max_px {
        return text.to_owned();
    }
    let mut used = face.0;
    let mut out: String = text
        .chars()
        .take_while(|&c| {
            used += advance(c) * face.0;
            used <= max_px
        })
        .collect();
    out.truncate(out.trim_end().len());
    out.push('…');
    out
}

/// East Asian scripts and emoji are drawn about two columns wide.
fn advance(c: char) -> f64 {
    if u32::from(c) >= 0x1100 && !('\u{2000}'..='\u{2e7f}').contains(&c) {
        2.0
    } else {
        1.0
    }
}
