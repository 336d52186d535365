use std::path::PathBuf;

/// The keywords of `siteline.Client`, without the address and the credential.
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

/// The keywords of `siteline.Credential`.
pub const ASSERTION_OPTIONS: [(&str, Form); 4] = [
    ("audience", Form::Text),
    ("assertion_lifetime", Form::Duration),
    ("clock_tolerance", Form::Duration),
    ("typ", Form::Flag),
];

/// Values by their names in [`OPTIONS`] or [`ASSERTION_OPTIONS`], without duplicates.
pub type Options = Vec<(&'static str, Value)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Text,
    /// Text that is split at spaces, or a list of texts.
    Words,
    /// A whole number of 1 or more.
    Whole,
    /// Seconds, or text such as `"5m"`.
    Duration,
    Flag,
    Path,
    /// A path, or `memory`.
    Ledger,
    /// A time of day with a zone, such as `"06:00Z"`.
    TimeOfDay,
    /// A path of a PEM file, or the bytes as an argument.
    Certificates,
    /// A TOML table.
    Table,
}

#[derive(Clone, PartialEq)]
pub enum Value {
    Text(String),
    Words(Vec<String>),
    Whole(i64),
    /// Any other number.
    Number(f64),
    Flag(bool),
    /// A resolved path.
    Path(PathBuf),
    Table(toml::Table),
}
