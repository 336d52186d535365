//! The identity of a series, and the selection of series by a query.

use std::sync::Arc;

/// The five ids of a logical series (§2.3). `None` is JSON null, an id like any other.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    pub site: Option<Arc<str>>,
    pub line: Option<Arc<str>>,
    pub machine: Option<Arc<str>>,
    pub device: Option<Arc<str>>,
    pub tag: Option<Arc<str>>,
}

impl Identity {
    pub fn new(site: &str, line: &str, machine: &str, device: &str, tag: &str) -> Self {
        let [site, line, machine, device, tag] =
            [site, line, machine, device, tag].map(|id| Some(Arc::from(id)));
        Self { site, line, machine, device, tag }
    }

    pub fn members(&self) -> [(&'static str, Option<&str>); 5] {
        [
            ("siteId", self.site.as_deref()),
            ("lineId", self.line.as_deref()),
            ("machineId", self.machine.as_deref()),
            ("deviceId", self.device.as_deref()),
            ("tagGuid", self.tag.as_deref()),
        ]
    }
}

/// The entry of a series in discovery: the names of site, line, machine, device and tag, and the unit.
pub(crate) type Names = [Option<Arc<str>>; 6];

/// Replaces the names of `known` that `new` has too.
pub(crate) fn add_names(known: &mut Names, new: Names) {
    for (known, new) in known.iter_mut().zip(new) {
        *known = new.or(known.take());
    }
}

/// A selection of series: each list has the accepted ids; an empty list accepts all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Selection {
    pub sites: Vec<String>,
    pub lines: Vec<String>,
    pub machines: Vec<String>,
    pub devices: Vec<String>,
    pub tags: Vec<String>,
}

impl Selection {
    /// The accepted ids of a filter that takes several, by its parameter's name.
    pub fn filter(&mut self, name: &str) -> Option<&mut Vec<String>> {
        match name {
            "machineId" => Some(&mut self.machines),
            "deviceId" => Some(&mut self.devices),
            "tagGuid" => Some(&mut self.tags),
            _ => None,
        }
    }

    pub(crate) fn accepts(&self, identity: &Identity) -> bool {
        let accepted = [&self.sites, &self.lines, &self.machines, &self.devices, &self.tags];
        identity.members().iter().zip(accepted).all(|((_, id), list)| {
            list.is_empty() || id.is_some_and(|id| list.iter().any(|one| one == id))
        })
    }
}
