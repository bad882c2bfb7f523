//! Keeping secrets out of messages.

/// The longest text of others that a message takes over.
const MAX_CHARS: usize = 300;

/// A text of others, as a message may have it: URLs without query, user and password; short; of one line.
pub(super) fn redact(text: &str) -> String {
    let words = text.split_whitespace().map(|word| match word.find("://") {
        Some(_) => {
            // What surrounds a URL in prose is kept.
            let end = word.trim_end_matches(['"', '\'', ')', '>', ',', ';', ':', '`']);
            let mut shown = crate::location::shown(end);
            shown.push_str(&word[end.len()..]);
            shown
        }
        None => match word.split_once('?') {
            Some((path, query)) if query.contains('=') => path.to_owned(),
            _ => word.to_owned(),
        },
    });
    let mut text = words.collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = text.char_indices().nth(MAX_CHARS) {
        text.truncate(end);
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::redact;

    #[test]
    fn what_could_be_secret_goes_and_the_rest_stays() {
        assert_eq!(
            redact("request for url (https://me:pw@a.org/x?Signature=s):\n refused"),
            "request for url (https://a.org/x): refused"
        );
        assert_eq!(redact("GET /x?token=s failed? yes"), "GET /x failed? yes");
        assert_eq!(redact(&"word ".repeat(100)).chars().count(), 303);
    }
}
