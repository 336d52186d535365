//! The names of the `SITELINE_*` variables.

/// Address of the service, such as `https://customer.example.com`.
pub(crate) const BASE_URL: &str = "SITELINE_BASE_URL";
/// The subject from enrollment.
pub(crate) const SUBJECT: &str = "SITELINE_SUBJECT";
/// Path of the private key.
pub(crate) const PRIVATE_KEY_FILE: &str = "SITELINE_PRIVATE_KEY_FILE";
/// The private key as PEM text or JWK.
pub const PRIVATE_KEY: &str = "SITELINE_PRIVATE_KEY";
/// Path of a client certificate, instead of subject and key.
pub(crate) const CERTIFICATE_FILE: &str = "SITELINE_CERTIFICATE_FILE";
/// The id of the integration in token requests with a client certificate.
pub(crate) const CLIENT_ID: &str = "SITELINE_CLIENT_ID";
pub const PASSPHRASE: &str = "SITELINE_PASSPHRASE";
/// A command that prints the passphrase.
pub(crate) const PASSWORD_COMMAND: &str = "SITELINE_PASSWORD_COMMAND";
/// Scopes, separated by spaces.
pub(crate) const SCOPES: &str = "SITELINE_SCOPES";
/// `aud` of the assertion, if it is not the address of the token endpoint.
pub(crate) const AUDIENCE: &str = "SITELINE_AUDIENCE";
pub(crate) const DAILY_ALLOWANCE: &str = "SITELINE_DAILY_ALLOWANCE";
/// Path of the ledger file.
pub(crate) const LEDGER: &str = "SITELINE_LEDGER";
/// Path of the file of profiles.
pub(crate) const CONFIG: &str = "SITELINE_CONFIG";
/// The profile in that file.
pub(crate) const PROFILE: &str = "SITELINE_PROFILE";

/// The address of a sandbox, `#`, and the file of its clock, from the sandbox's `env()`. Each
/// client without its own clock reads it.
pub const SANDBOX_CLOCK: &str = "SITELINE_SANDBOX_CLOCK";

/// The address of an agent. Each client for the agent's service and subject uses it.
pub const AGENT: &str = "SITELINE_AGENT";
/// The secret for an agent over TLS.
pub const AGENT_SECRET: &str = "SITELINE_AGENT_SECRET";
/// Path of the CA certificates for an agent's certificate.
pub const AGENT_CA: &str = "SITELINE_AGENT_CA";
/// Paths of the client certificate and key for an agent over TLS.
pub const AGENT_CERTIFICATE_FILE: &str = "SITELINE_AGENT_CERTIFICATE_FILE";
pub const AGENT_KEY_FILE: &str = "SITELINE_AGENT_KEY_FILE";

/// Variables with values that may contain quotation marks or several lines.
pub(super) const AS_WRITTEN: [&str; 3] = [PRIVATE_KEY, PASSPHRASE, PASSWORD_COMMAND];
