//! A set of scopes (§4.1, §5.5): what is asked for, or what was granted.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::{Error, Kind, Result};

/// Scopes without repeats, in the order in which they were first named. Two sets with the same
/// members are equal, whatever their order.
#[derive(Clone, Default)]
pub struct ScopeSet {
    order: Vec<String>,
    members: BTreeSet<String>,
}

impl ScopeSet {
    /// The scopes to ask for, one item each; repeats are merged.
    ///
    /// # Errors
    /// [`Kind::ConfigError`] if there is none, or one is empty or holds a character that RFC 6749
    /// (section 3.3) does not allow: a space, a quote, a backslash, a control or non-ASCII one.
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
            return Err(
                Error::new(Kind::ConfigError, "No scope is asked for.").with_hint(DEFAULT_HINT)
            );
        }
        Ok(set)
    }

    /// The scopes to ask for, as one text with single or repeated spaces between them.
    ///
    /// # Errors
    /// As [`ScopeSet::new`].
    pub fn parse(text: &str) -> Result<Self> {
        Self::new(text.split(' ').filter(|scope| !scope.is_empty()))
    }

    /// What a token response says was granted (§2.2). Never fails: it is compared with what was
    /// asked for, and odd text grants nothing that was. May be empty.
    #[must_use]
    pub fn granted(text: &str) -> Self {
        let mut set = Self::default();
        for scope in text.split_ascii_whitespace() {
            set.add(scope);
        }
        set
    }

    fn add(&mut self, scope: &str) {
        if self.members.insert(scope.to_owned()) {
            self.order.push(scope.to_owned());
        }
    }

    /// The scopes, in the order in which they were named.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.order.iter().map(String::as_str)
    }

    /// How many scopes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// True where nothing was granted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// True where this very scope is in the set.
    #[must_use]
    pub fn contains(&self, scope: &str) -> bool {
        self.members.contains(scope)
    }

    /// True where each of these scopes is in `wider` too (T29).
    #[must_use]
    pub fn is_subset_of(&self, wider: &Self) -> bool {
        self.members.is_subset(&wider.members)
    }

    /// The scopes of this set that are not among the granted ones (T4), in our order.
    #[must_use]
    pub fn missing_from(&self, granted: &Self) -> Vec<String> {
        self.iter().filter(|scope| !granted.contains(scope)).map(str::to_owned).collect()
    }
}

/// The form value: the scopes with single spaces between them (§4.1).
impl fmt::Display for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, scope) in self.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            f.write_str(scope)?;
        }
        Ok(())
    }
}

impl fmt::Debug for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScopeSet({self})")
    }
}

impl PartialEq for ScopeSet {
    fn eq(&self, other: &Self) -> bool {
        self.members == other.members
    }
}

impl Eq for ScopeSet {}

impl Hash for ScopeSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.members.hash(state);
    }
}

const DEFAULT_HINT: &str = "The documented scopes are customer.discovery.read and customer.data.read; both are the default.";

fn check(scope: &str) -> Result<()> {
    if scope.is_empty() {
        return Err(Error::new(Kind::ConfigError, "A scope is empty.").with_hint(DEFAULT_HINT));
    }
    match scope.chars().find(|&c| !is_scope_character(c)) {
        None => Ok(()),
        Some(' ') => Err(Error::new(
            Kind::ConfigError,
            format!(
                "The scope {scope:?} holds a space: these look like several scopes in one item."
            ),
        )
        .with_hint("Give them one by one, or all together as a single text.")),
        Some(bad) => Err(Error::new(
            Kind::ConfigError,
            format!("The scope {scope:?} holds {bad:?}, which no scope may (RFC 6749, 3.3)."),
        )
        .with_hint("Look for a stray quote or line break where the scopes are set.")),
    }
}

/// `scope-token` of RFC 6749, section 3.3: visible ASCII but the quote and the backslash.
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
        assert!(message(&[]).contains("No scope"));
        assert!(ScopeSet::parse("   ").is_err());
    }

    #[test]
    fn k11_repeated_scopes_are_merged_and_the_order_is_kept() {
        let set = ScopeSet::new(["b", "a", "b"]).expect("scopes");
        assert_eq!((set.to_string(), set.len()), ("b a".to_owned(), 2));
    }

    #[test]
    fn k11_a_quote_a_newline_and_other_forbidden_characters_are_refused_by_name() {
        for (scope, named) in
            [("a\"b", "'\"'"), ("a\n", "'\\n'"), ("a\\b", "'\\\\'"), ("ä", "'ä'"), ("a\0", "'\\0'")]
        {
            assert!(message(&[scope]).contains(named), "{}", message(&[scope]));
        }
        assert!(message(&["a b"]).contains("several"));
    }

    #[test]
    fn a_granted_set_never_fails_and_is_compared_as_a_set() {
        let asked = ScopeSet::parse("x  y z").expect("scopes");
        let granted = ScopeSet::granted(" z\tx \"q\" ");
        assert_eq!(asked.missing_from(&granted), ["y"]);
        assert!(ScopeSet::granted("").is_empty());
        let narrower = ScopeSet::parse("z x").expect("scopes");
        assert!(narrower.is_subset_of(&asked) && !asked.is_subset_of(&narrower));
        assert_eq!(narrower, ScopeSet::parse("x z").expect("scopes"));
    }
}
