//! Adds a hint with the longest part of a request to an error that its length may have caused.

use std::collections::BTreeMap;

use crate::error::{Error, Kind, excerpt_of};

/// Some servers reject a query with this many bytes. The same statuses also have other causes.
const LONG_QUERY: usize = 2_000;
/// Longer parameter names are truncated in a hint.
const NAME_CHARACTERS: usize = 60;

pub(super) fn explained(error: Error, query: Option<&str>, token: Option<&str>) -> Error {
    let query = query.unwrap_or_default();
    let may_be_length = match error.context().status {
        Some(414 | 431) => true,
        // IIS, HAProxy, nginx and some gateways reject a long query with one of these.
        Some(400 | 404 | 413 | 494) => query.len() >= LONG_QUERY,
        _ => false,
    };
    if error.kind() != Kind::RequestRejected || !may_be_length || error.context().hint.is_some() {
        return error;
    }
    let token = token.map_or(0, str::len);
    match longest_part(query) {
        _ if token > query.len() => error.with_hint(format!(
            "The access token has {token} bytes, which may be too long for the service's headers. \
             Request fewer scopes with scopes=, or ask the operator of the service."
        )),
        Some(("cursor", length)) => error.with_hint(format!(
            "The service sent a cursor of {length} bytes, which it does not accept itself."
        )),
        Some((name, length)) => error.with_hint(format!(
            "The query has {} bytes, and {}= has {length} bytes of them, which may be too long for \
             the service. Read fewer values at a time.",
            query.len(),
            excerpt_of(name, NAME_CHARACTERS),
        )),
        None => error,
    }
}

/// The parameter with the longest values, and their total length in bytes.
fn longest_part(query: &str) -> Option<(&str, usize)> {
    let mut lengths: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        *lengths.entry(name).or_default() += value.len();
    }
    lengths.into_iter().max_by_key(|(_, length)| *length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(status: u16, query: &str, token: &str) -> String {
        let error = Error::new(Kind::RequestRejected, "no");
        let error = error.with(|context| context.status = Some(status));
        let error = explained(error, Some(query), Some(token));
        error.context().hint.clone().unwrap_or_default()
    }

    #[test]
    fn a_refused_length_names_the_longest_part() {
        let filter = format!("from=1&tagGuid={0}&tagGuid={0}&cursor=abc", "x".repeat(4_000));
        for status in [400, 404, 413, 414, 431, 494] {
            let hint = hint(status, &filter, "token");
            assert!(hint.contains("tagGuid= has 8000 bytes"), "{status}: {hint}");
            assert!(hint.contains("8035 bytes") && !hint.contains("xxx"), "{status}: {hint}");
        }
        let cursor = format!("from=1&cursor={}", "x".repeat(4_000));
        assert!(hint(414, &cursor, "token").contains("a cursor of 4000 bytes"));
        assert!(hint(431, "from=1", &"t".repeat(9_000)).contains("access token has 9000 bytes"));
    }

    #[test]
    fn a_short_request_is_refused_for_another_reason() {
        for status in [400, 404, 413, 422] {
            assert_eq!(hint(status, "from=1", "token"), "", "{status}");
        }
        assert_eq!(hint(422, &format!("a={}", "x".repeat(9_000)), "token"), "");
    }
}
