//! A minimal scanner for our own markup: tags and attributes, with quotes respected. A test can
//! check how hostile text was rendered.

#[derive(Debug)]
pub(crate) struct Tag {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
}

impl Tag {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let (_, value) = self.attributes.iter().find(|(n, _)| n == name)?;
        Some(value)
    }
}

/// Every opening tag, in order.
pub(crate) fn tags(html: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(open) = rest.find('<') {
        rest = &rest[open + 1..];
        if !rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
            continue;
        }
        let name_end = rest.find([' ', '>']).expect("a tag ends");
        let mut tag = Tag {
            name: rest[..name_end].to_owned(),
            attributes: Vec::new(),
        };
        rest = &rest[name_end..];
        while let Some(after) = rest.strip_prefix(' ') {
            let end = after.find(['=', ' ', '>']).expect("an attribute ends");
            let name = after[..end].to_owned();
            rest = &after[end..];
            let mut value = String::new();
            if let Some(quoted) = rest.strip_prefix("=\"") {
                let close = quoted.find('"').expect("a value closes");
                value = unescape(&quoted[..close]);
                rest = &quoted[close + 1..];
            }
            tag.attributes.push((name, value));
        }
        assert!(rest.starts_with('>'), "malformed markup near {:.60}", rest);
        tags.push(tag);
    }
    tags
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&")
}
