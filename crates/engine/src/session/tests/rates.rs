//! The sliding window of a sender.

use crate::session::{RateWindow, SenderRates};

#[test]
fn window_slides_and_refused_messages_do_not_count() {
    // Z-11 (half: the window), §2.1 `rateLimitPerUserPerMinute`
    let mut window = RateWindow::default();
    let table = [
        (0, true),
        (10_000, true),
        (20_000, false),
        (59_999, false),
        // The first is a minute old, the refused ones were never counted.
        (60_000, true),
        (69_999, false),
        (70_000, true),
        (120_000, true),
    ];
    for (at, admitted) in table {
        assert_eq!(window.admit(at, 2), admitted, "at {at}");
    }
}

#[test]
fn senders_have_windows_of_their_own() {
    // Z-12 (half: per sender)
    let mut rates = SenderRates::default();
    assert!(rates.admit("u1", 0, 1) && rates.admit("u2", 0, 1));
    assert!(!rates.admit("u1", 1, 1) && !rates.admit("u2", 1, 1));
    assert!(rates.admit("u1", 60_000, 1));
}

#[test]
fn clock_that_steps_back_does_not_open_the_window() {
    let mut window = RateWindow::default();
    assert!(window.admit(100_000, 1));
    assert!(!window.admit(0, 1));
    assert!(!window.admit(159_999, 1));
    assert!(window.admit(160_000, 1));
}

#[test]
fn number_of_remembered_senders_is_bounded() {
    let mut rates = SenderRates::default();
    for i in 0..100_000 {
        assert!(rates.admit(&format!("u{i}"), 0, 1));
    }
    assert!(!rates.admit("one more", 1_000, 1));
    // After a minute the others are forgotten.
    assert!(rates.admit("one more", 60_000, 1));
}
