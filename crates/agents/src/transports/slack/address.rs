//! Whom a message goes to: a user, a channel, or a user in a thread of a channel.

/// `U1`, `C1` or `U1@C1:1712.0001`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address<'a> {
    first: &'a str,
    channel_and_thread: Option<(&'a str, &'a str)>,
}

impl<'a> Address<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        let in_thread = text.split_once('@').and_then(|(user, rest)| {
            let place = rest.split_once(':')?;
            Some((user, place))
        });
        match in_thread {
            Some((user, place)) => Self {
                first: user,
                channel_and_thread: Some(place),
            },
            None => Self {
                first: text,
                channel_and_thread: None,
            },
        }
    }

    /// The network takes a user as the channel of direct messages.
    pub(super) fn channel(self) -> &'a str {
        self.channel_and_thread
            .map_or(self.first, |(channel, _)| channel)
    }

    pub(super) fn thread(self) -> Option<&'a str> {
        self.channel_and_thread.map(|(_, thread)| thread)
    }
}

pub(super) fn in_thread(user: &str, channel: &str, thread: &str) -> String {
    format!("{user}@{channel}:{thread}")
}

/// A text in which nothing is a link or a mention.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// What a user wrote.
pub(super) fn unescape(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_users_channels_and_threads() {
        let user = Address::parse("U1");
        assert_eq!((user.channel(), user.thread()), ("U1", None));
        let text = in_thread("U1", "C1", "1712.0001");
        let thread = Address::parse(&text);
        assert_eq!(
            (thread.channel(), thread.thread()),
            ("C1", Some("1712.0001"))
        );
        let odd = Address::parse("U1@C1");
        assert_eq!((odd.channel(), odd.thread()), ("U1@C1", None));
    }

    #[test]
    fn escaped_texts_come_back() {
        let text = "a < b && c > d &lt; <!channel>";
        assert_eq!(unescape(&escape(text)), text);
        assert!(!escape(text).contains('<'));
    }
}
