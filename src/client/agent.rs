//! The agent of a client: `agent=`, otherwise the variable if its agent has the same service and subject.

use crate::bridge::long_work::left_on_interrupt;
use crate::prelude::*;
use siteline_core::agent::{AgentAddress, AgentLink, ClientTls, Holder, Place};
use siteline_core::auth::Authentication;
use siteline_core::http::BaseUrl;
use siteline_core::settings::{
    AGENT, AGENT_CA, AGENT_CERTIFICATE_FILE, AGENT_KEY_FILE, AGENT_SECRET, Environment, Settings,
};

/// The options that an agent sets for its clients.
const OF_THE_AGENT: [&str; 3] = ["daily_allowance", "allowance_resets", "ledger"];

pub(crate) struct FoundAgent {
    pub(crate) place: Place,
    pub(crate) holder: Holder,
    pub(crate) tls: ClientTls,
    /// Whether `agent=` or a profile named it.
    is_named: bool,
}

impl FoundAgent {
    /// An empty keyword means none. An agent of another service is not contacted.
    pub(crate) fn find(
        py: Python<'_>,
        named: Option<String>,
        base_url: Option<&str>,
    ) -> PyResult<Option<Self>> {
        let environment = Environment::of_process();
        let is_named = named.is_some();
        let Some(text) = named.or_else(|| environment.get(AGENT)) else { return Ok(None) };
        if text.trim().is_empty() {
            return Ok(None);
        }
        let address = AgentAddress::parse(&text).or_raise()?;
        let is_other = address.base_url.as_deref().zip(base_url);
        if !is_named && is_other.is_some_and(|(its, own)| !is_address(own, its)) {
            return Ok(None);
        }
        let tls = tls(&environment).or_raise()?;
        let (place, own_tls) = (address.place.clone(), tls.clone());
        let ask = move || AgentLink::holder_at(&address, &own_tls);
        let holder = left_on_interrupt(py, ask)?.or_raise()?;
        Ok(Some(Self { place, holder, tls, is_named }))
    }

    pub(crate) fn for_client(
        self,
        base_url: &BaseUrl,
        credential: Option<&Authentication>,
    ) -> Result<Option<Self>> {
        let (address, holder) = (&self.place, &self.holder);
        let is_other = holder.base_url != base_url.as_str();
        if is_other && self.is_named {
            let (its, own) = (&holder.base_url, base_url.as_str());
            let message = format!("The agent at {address} has tokens for {its}, not for {own}.");
            return Err(Error::new(Kind::ConfigError, message)
                .with_hint("Leave agent= out, or make the client with the agent's own base_url."));
        }
        match credential {
            _ if is_other => Ok(None),
            None => Ok(Some(self)),
            Some(given) if given.subject() != holder.subject && !self.is_named => Ok(None),
            Some(_) => {
                let subject = &holder.subject;
                let message = format!(
                    "The client has a credential, and the agent at {address} has one for {subject}."
                );
                Err(Error::new(Kind::ConfigError, message).with_hint(
                    "Leave credential= out, so that the agent counts and signs; or unset \
                     SITELINE_AGENT (leave agent= out), so that this client does.",
                ))
            }
        }
    }

    pub(crate) fn link(self, clock: Clock) -> Arc<AgentLink> {
        AgentLink::new(self.place, self.holder, self.tls, clock)
    }

    /// Whether no key is needed: the agent is named, or has the service and subject.
    pub(crate) fn serves(&self, settings: &Settings, base_url: Option<&str>) -> bool {
        let address = base_url.or(settings.base_url.as_deref());
        let is_own = address.is_none_or(|address| is_address(address, &self.holder.base_url));
        let is_subject = settings.credential.as_ref().is_none_or(|own| match &own.subject {
            Some(subject) => subject.trim() == self.holder.subject,
            None => settings.missing.is_some(),
        });
        self.is_named || (is_own && is_subject)
    }
}

fn is_address(written: &str, base_url: &str) -> bool {
    BaseUrl::parse(written, true).is_ok_and(|base| base.as_str() == base_url)
}

pub(crate) fn refuse_settings(options: &Bound<'_, PyDict>) -> PyResult<()> {
    for name in OF_THE_AGENT {
        if options.get_item(name)?.is_some_and(|value| !value.is_none()) {
            let message = format!("{name}= belongs to the agent, which signs and counts.");
            return Err(Error::new(Kind::ConfigError, message)
                .with_hint("Set it where the agent is started, and leave it out here.")
                .into_py_err());
        }
    }
    Ok(())
}

pub(crate) fn is_of_the_agent(option: &str) -> bool {
    OF_THE_AGENT.contains(&option)
}

/// The certificate or secret for an agent over TLS.
fn tls(environment: &Environment<'_>) -> Result<ClientTls> {
    let path = |name: &str| environment.get(name).map(PathBuf::from);
    let identity = match (path(AGENT_CERTIFICATE_FILE), path(AGENT_KEY_FILE)) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => {
            let message = format!("{AGENT_CERTIFICATE_FILE} and {AGENT_KEY_FILE} belong together.");
            return Err(Error::new(Kind::ConfigError, message));
        }
    };
    let secret = environment.get(AGENT_SECRET).map(Into::into);
    Ok(ClientTls { authority: path(AGENT_CA), identity, secret })
}
