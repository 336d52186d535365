//! A set of scopes (§4.1, §5.5), requested or granted.

use std::fmt;

use crate::{Error, Kind, Result};

/// Distinct scopes in the order of their first occurrence. The order does not affect equality.
#[derive(Debug, Clone, Default)]
pub struct ScopeSet(Vec<String>);

impl ScopeSet {
    /// The scopes to request, one per item. Duplicates are removed.
    pub fn new<I>(scopes: I) -> Result<Self>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let mut set = Self::default();
        for scope in scopes {
            let scope = scope.as_ref();
            check(scope)?;
            set.add(scope);
        }
        if set.is_empty() {
            return Err(Error::new(Kind::ConfigError, "There is no scope.").with_hint(DEFAULT_HINT));
        }
        Ok(set)
    }

    /// The scopes to request, as one text with spaces between them.
    pub fn parse(text: &str) -> Result<Self> {
        Self::new(text.split(' ').filter(|scope| !scope.is_empty()))
    }

    /// The scopes in a token reply, possibly none. Never fails, because they are only compared with
    /// the requested scopes.
    pub(crate) fn granted(text: &str) -> Self {
        let mut set = Self::default();
        for scope in text.split_ascii_whitespace() {
            set.add(scope);
        }
        set
    }

    fn add(&mut self, scope: &str) {
        if !self.contains(scope) {
            self.0.push(scope.to_owned());
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, scope: &str) -> bool {
        self.iter().any(|member| member == scope)
    }

    /// The scopes of this set that were not granted, in its order.
    pub(crate) fn missing_from(&self, granted: &Self) -> Vec<String> {
        self.iter().filter(|scope| !granted.contains(scope)).map(str::to_owned).collect()
    }
}

/// The form value: the scopes, separated by single spaces.
impl fmt::Display for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

impl PartialEq for ScopeSet {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.missing_from(other).is_empty()
    }
}

impl Eq for ScopeSet {}

const DEFAULT_HINT: &str =
    "The defaults are the documented scopes, customer.discovery.read and customer.data.read.";

fn check(scope: &str) -> Result<()> {
    if scope.is_empty() {
        return Err(Error::new(Kind::ConfigError, "A scope is empty.").with_hint(DEFAULT_HINT));
    }
    match scope.chars().find(|&c| !is_scope_character(c)) {
        None => Ok(()),
        Some(' ') => Err(Error::new(
            Kind::ConfigError,
            format!(
                "The scope {scope:?} contains a space: it looks like several scopes in one item."
            ),
        )
        .with_hint("Pass one scope for each item, or all scopes as a single text.")),
        Some(bad) => Err(Error::new(
            Kind::ConfigError,
            format!("The scope {scope:?} contains {bad:?}, which scopes cannot contain."),
        )
        .with_hint("Check the scopes for a quote or line break.")),
    }
}

/// `scope-token` of RFC 6749 §3.3: visible ASCII except the quote and the backslash.
fn is_scope_character(c: char) -> bool {
    c.is_ascii_graphic() && c != '"' && c != '\\'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(scopes: &[&str]) -> String {
        let error = ScopeSet::new(scopes).expect_err("refused");
        assert_eq!(error.kind(), Kind::ConfigError);
        error.to_string()
    }

    #[test]
    fn k11_an_empty_scope_or_none_is_refused() {
        assert!(message(&[""]).contains("empty"));
        assert!(message(&[]).contains("no scope"));
        assert!(ScopeSet::parse("   ").is_err());
    }

    #[test]
    fn k11_duplicate_scopes_are_removed_and_the_order_is_kept() {
        let set = ScopeSet::new(["b", "a", "b"]).expect("scopes");
        assert_eq!((set.to_string(), set.iter().count()), ("b a".to_owned(), 2));
    }

    #[test]
    fn k11_forbidden_characters_are_refused_by_name() {
        for (scope, named) in
            [("a\"b", "'\"'"), ("a\n", "'\\n'"), ("a\\b", "'\\\\'"), ("ä", "'ä'"), ("a\0", "'\\0'")]
        {
            assert!(message(&[scope]).contains(named), "{}", message(&[scope]));
        }
        assert!(message(&["a b"]).contains("several"));
    }

    #[test]
    fn a_granted_set_is_compared_as_a_set() {
        let requested = ScopeSet::parse("x  y z").expect("scopes");
        let granted = ScopeSet::granted(" z\tx \"q\" ");
        assert_eq!(requested.missing_from(&granted), ["y"]);
        assert!(ScopeSet::granted("").is_empty());
        let narrower = ScopeSet::parse("z x").expect("scopes");
        assert_ne!(narrower, requested);
        assert_eq!(narrower, ScopeSet::parse("x z").expect("scopes"));
    }
}
