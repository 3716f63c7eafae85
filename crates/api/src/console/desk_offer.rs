//! What a page offers a reader by the rules of an agent, and the token that a form carries for them.

use super::session::PostedForm;
use super::shown_bytes::line;
use tandem_app::conversation::DeskRight;
use tandem_console::DeskOffer;

pub(super) fn desk_offer(right: DeskRight) -> DeskOffer {
    match right {
        DeskRight::None => DeskOffer::Nothing,
        DeskRight::As(actor) => DeskOffer::As(line(&actor)),
        DeskRight::NeedsCredential => DeskOffer::WithToken,
    }
}

/// The token that the admin entered, if any.
pub(super) fn admin_token(posted: &PostedForm) -> Option<&str> {
    Some(posted.field("adminToken")).filter(|token| !token.is_empty())
}
