//! Log records of the core for the standard library's loggers. A record is an event of its call.

use log::kv::{Key, Value, VisitSource};
use log::{Level, LevelFilter, Log, Metadata, Record};
use serde_json::{Map, Value as Json};

use crate::bridge::events::{Event, Origin, What};
use crate::prelude::*;

pub(super) struct LogRecord {
    level: u8,
    name: String,
    text: String,
    /// The attributes of the record, such as `page`.
    fields: Map<String, Json>,
    file: Option<&'static str>,
    line: Option<u32>,
}

impl<'a> VisitSource<'a> for LogRecord {
    fn visit_pair(&mut self, name: Key<'a>, value: Value<'a>) -> Result<(), log::kv::Error> {
        let text = || value.to_borrowed_str().map(Json::from);
        let field = value.to_u64().map(Json::from).or_else(text);
        self.fields.extend(field.map(|field| (name.to_string(), field)));
        Ok(())
    }
}

impl LogRecord {
    pub(super) fn emit(self, py: Python<'_>, origin: &Origin) -> PyResult<()> {
        static EMIT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let emit = EMIT.import(py, "siteline._logs", "emit")?;
        let fields = dict(py, &self.fields)?;
        let (file, line) = (self.file.unwrap_or_default(), self.line.unwrap_or_default());
        let arguments = (emit, self.name, self.level, file, line, self.text, fields);
        origin.in_context(py, arguments).map(drop)
    }
}

pub(super) fn lowest_level(py: Python<'_>) -> PyResult<u8> {
    static LOWEST: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    LOWEST.import(py, "siteline._logs", "lowest_level")?.call0()?.extract()
}

fn python_level(level: Level) -> u8 {
    match level {
        Level::Error => 40,
        Level::Warn => 30,
        Level::Info => 20,
        Level::Debug | Level::Trace => 10,
    }
}

struct EventLogger;

impl Log for EventLogger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let target = metadata.target();
        metadata.level() <= Level::Debug
            && (target == "siteline" || target.starts_with("siteline::"))
    }

    fn log(&self, record: &Record<'_>) {
        let level = python_level(record.level());
        // The core logs only within a call.
        let Some(origin) = Origin::current().filter(|_| self.enabled(record.metadata())) else {
            return;
        };
        let Some(events) = origin.log_queue(level) else { return };
        let mut emitted = LogRecord {
            level,
            name: record.target().replace("::", "."),
            text: record.args().to_string(),
            fields: Map::new(),
            file: record.file_static(),
            line: record.line(),
        };
        let _ = record.key_values().visit(&mut emitted);
        // After its call, nobody wants the record.
        drop(events.push(Event { origin, what: What::Log(emitted) }));
    }

    fn flush(&self) {}
}

pub(crate) fn install() {
    if log::set_logger(&EventLogger).is_ok() {
        log::set_max_level(LevelFilter::Debug);
    }
}
