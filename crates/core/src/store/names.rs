//! The names of series: discovery responses that syncs keep, so that readers of the file need no
//! key. Also the id of the store.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row};

use super::bytes::Checksum;
use super::failure::{StoreFailure, StoreResult};
use super::{Store, schema};
use crate::data::DiscoveryShape;
use crate::error::Result;

/// The discovery response of one subject of one service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptNames {
    /// When the newest request ended, in microseconds.
    pub asked_at: i64,
    pub body: Option<Vec<u8>>,
    /// The path to the series in the response, as JSON, if the user specified it.
    pub shape: Option<String>,
    /// The error of the newest request.
    pub refusal: Option<String>,
}

impl KeptNames {
    fn load(row: &Row<'_>) -> StoreResult<Self> {
        let origin: String = row.get(0)?;
        let (asked_at, body, shape) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let kept = Self { asked_at, body, shape, refusal: row.get(4)? };
        if kept.check(&origin) != row.get::<_, i64>(5)? {
            return Err(StoreFailure::Corrupt("its names do not match their checksum"));
        }
        Ok(kept)
    }

    fn check(&self, origin: &str) -> i64 {
        let texts = [self.shape.as_deref(), self.refusal.as_deref()];
        let texts = texts.map(Option::unwrap_or_default);
        let sum = Checksum::new("names").numbers(&[self.asked_at]).bytes(origin.as_bytes());
        let sum = texts.iter().fold(sum, |sum, text| sum.bytes(text.as_bytes()));
        sum.bytes(self.body.as_deref().unwrap_or_default()).value()
    }

    /// The newest first.
    pub(super) fn all(connection: &Connection) -> StoreResult<Vec<Self>> {
        let sql = r#"SELECT origin, asked_at, body, shape, refusal, "check" FROM names
            ORDER BY asked_at DESC, origin"#;
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push(Self::load(row)?);
        }
        Ok(all)
    }

    /// If the newest request failed, the previous body stays.
    pub(super) fn save(mut self, connection: &Connection, origin: &str) -> StoreResult<()> {
        if self.body.is_none() {
            let former = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            let sql = "SELECT body, shape FROM names WHERE origin = ?1";
            let known = connection.query_row(sql, [origin], former).optional()?;
            (self.body, self.shape) = known.unwrap_or_default();
        }
        let sql = "INSERT OR REPLACE INTO names VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let check = self.check(origin);
        let Self { asked_at, body, shape, refusal } = self;
        connection.execute(sql, (origin, asked_at, body, shape, refusal, check))?;
        Ok(())
    }
}

impl Store {
    /// Copies of a store have the same id.
    pub fn id(&self) -> Result<String> {
        self.snapshot(|connection| {
            Ok(connection.query_row("SELECT id FROM identity", [], |row| row.get(0))?)
        })
    }

    /// The newest first.
    pub fn names(&self) -> Result<Vec<KeptNames>> {
        self.snapshot(KeptNames::all)
    }

    /// In microseconds.
    pub fn names_asked_at(&self, origin: &str) -> Result<Option<i64>> {
        self.snapshot(|connection| {
            let sql = "SELECT asked_at FROM names WHERE origin = ?1";
            Ok(connection.query_row(sql, [origin], |row| row.get(0)).optional()?)
        })
    }

    /// Stores a discovery response, or the error if there is none.
    pub fn keep_names(
        &self,
        origin: &str,
        now: Timestamp,
        found: std::result::Result<(&[u8], Option<&DiscoveryShape>), String>,
    ) -> Result<()> {
        let asked_at = now.as_microsecond();
        let kept = match found {
            Ok((body, shape)) => {
                let shape = shape.and_then(|shape| serde_json::to_string(shape).ok());
                KeptNames { asked_at, body: Some(body.to_vec()), shape, refusal: None }
            }
            Err(refusal) => KeptNames { asked_at, refusal: Some(refusal), ..KeptNames::default() },
        };
        let save = |changes: &Connection| kept.save(changes, origin);
        self.write(|writer, _| schema::commit(writer.connection()?, save))
    }
}
