//! The table of a read through a store: the points of the store, after the missing ranges were read.

use std::sync::Arc;

use super::range_coverage::Unread;
use super::read::ReadSpec;
use super::shares::FeedShare;
use super::through_store::{ReadUnderWay, ThroughStore};
use crate::client::table::{Provenance, StoreShare, Table};
use crate::data::ranges::{Range, Ranges};
use crate::data::{MergeReport, Merged, Merger, PointColumns};
use crate::error::{Error, Kind, Result};
use crate::store::{Flagged, View};

/// The points that are read before other futures may run.
const ROWS: usize = 1 << 16;

impl ThroughStore {
    /// Fails if another process has removed points.
    pub(super) async fn table(
        &self,
        reading: ReadUnderWay,
        mut report: MergeReport,
    ) -> Result<Table> {
        let ReadUnderWay { shares, provenance, .. } = reading;
        let (read, read_at) = {
            let attempt = self.attempt.lock();
            (attempt.read.clone(), attempt.read_at.unwrap_or(provenance.read_at))
        };
        let mut parts = Vec::new();
        for share in &shares {
            for range in share.ranges().iter() {
                let points = self.points(share.name(), range).await?;
                let selection = &self.scan.query().input().selection;
                parts.push(if selection.is_empty() {
                    points
                } else {
                    let named = self.scan.decode_settings().named.as_deref();
                    let (points, filtered) =
                        points.kept(|series| selection.keeps(series, named))?;
                    report.quality.filtered += filtered;
                    points
                });
            }
        }
        let points = match <[PointColumns; 1]>::try_from(parts) {
            Ok([points]) => Arc::new(points),
            // Several feeds with different times.
            Err(parts) => {
                let mut merger = Merger::new(&[]);
                parts.iter().try_for_each(|points| merger.push_points(points))?;
                merger.finish()?.points
            }
        };
        report.points = points.rows() as u64;
        report.series = points.series.len() as u64;
        let path = self.opened()?.path().to_string_lossy().into_owned();
        let through = |share: &FeedShare| {
            let all = share.ranges();
            let from_service =
                read.get(share.name()).map_or_else(Ranges::none, |read| all.and(read));
            StoreShare {
                store: path.clone(),
                feed: share.name().to_owned(),
                from_store: all.without(&from_service).instants(),
                from_service: from_service.instants(),
            }
        };
        let (pages, through) = (report.pages, shares.iter().map(through).collect());
        let page_size = report.quality.page_size.clone();
        let provenance = Provenance { read_at, pages, page_size, through, ..provenance };
        Ok(Table::whole(Merged { points, report }, provenance))
    }

    async fn points(&self, feed: &str, range: Range) -> Result<PointColumns> {
        let (start, end) = range.instants();
        let spec = ReadSpec::new(feed.to_owned(), (Some(start), Some(end)), View::LATEST)?;
        // The whole range was read, but the part within the settle lag does not count as read.
        let spec = ReadSpec { flagged: Flagged::Drop, unread: Unread::Keep, ..spec };
        let (mut reader, read, _) = spec.open(self.opened()?)?;
        if !read.coverage.forgotten.is_empty() {
            let message = format!("points of {start} to {end} were removed during the read");
            return Err(Error::new(Kind::UnreadRange, message)
                .with_hint("Another process called store.forget(). Call collect() again."));
        }
        reader.find_blocks()?;
        let no_memory = |_| Error::new(Kind::InternalError, "not enough memory for the points");
        let mut columns = reader.allocate().map_err(no_memory)?;
        while reader.read_into(&mut columns, ROWS)? {
            tokio::task::yield_now().await;
        }
        Ok(columns.finish()?.0)
    }
}
