//! The list of a client's options, shared by the keywords of `siteline.Client`, the members of a
//! profile, the variables and the pickle of a client.

use std::path::PathBuf;

/// The options by name, and their forms; without the address and the credential.
pub const OPTIONS: [(&str, Form); 21] = [
    ("scopes", Form::Words),
    ("daily_allowance", Form::Whole),
    ("allowance_resets", Form::TimeOfDay),
    ("ledger", Form::Ledger),
    ("agent", Form::Text),
    ("settle_lag", Form::Duration),
    ("max_retry_after", Form::Duration),
    ("tries", Form::Whole),
    ("connect_timeout", Form::Duration),
    ("response_timeout", Form::Duration),
    ("idle_timeout", Form::Duration),
    ("max_connections", Form::Whole),
    ("max_body_bytes", Form::Whole),
    ("application", Form::Text),
    ("allow_http", Form::Flag),
    ("ca_bundle", Form::Certificates),
    ("proxy", Form::Text),
    ("tz", Form::Text),
    ("labels", Form::Text),
    ("filter_names", Form::Table),
    ("shape", Form::Table),
];

/// The options of a credential's assertions, shared by the keywords of `siteline.Credential` and the
/// members of a profile.
pub const ASSERTION_OPTIONS: [(&str, Form); 4] = [
    ("audience", Form::Text),
    ("assertion_lifetime", Form::Duration),
    ("clock_tolerance", Form::Duration),
    ("typ", Form::Flag),
];

/// The values of options, by their names in [`OPTIONS`] or [`ASSERTION_OPTIONS`], without duplicates.
pub type Options = Vec<(&'static str, Value)>;

/// The form of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Text.
    Text,
    /// Text that is split at spaces, or a list of texts.
    Words,
    /// A whole number of 1 or more.
    Whole,
    /// Seconds, or text such as `"5m"`.
    Duration,
    /// True or false.
    Flag,
    /// The path of a file.
    Path,
    /// The path of a file, or `memory`.
    Ledger,
    /// A time of day with a zone, such as `"06:00Z"`.
    TimeOfDay,
    /// The path of a PEM file; as an argument, also its bytes.
    Certificates,
    /// A table of the file.
    Table,
}

/// The value of an option.
#[derive(Clone, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A list of texts.
    Words(Vec<String>),
    /// A whole number.
    Whole(i64),
    /// Any other number.
    Number(f64),
    /// True or false.
    Flag(bool),
    /// A path, resolved.
    Path(PathBuf),
    /// A table.
    Table(toml::Table),
}
