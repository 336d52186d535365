//! Finds circles in a graph.

use std::collections::{BTreeMap, BTreeSet};

use crate::names::Link;

/// The circles: maximal sets of names that all reach each other.
pub(crate) fn circles<'a>(
    arrows: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Vec<BTreeSet<&'a str>> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in arrows {
        next.entry(from).or_default().insert(to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        next.keys().map(|from| (*from, reach(&next, from))).collect();
    let mut found = Vec::new();
    for (from, to) in &reached {
        let back = |other: &&&str| reached.get(**other).is_some_and(|it| it.contains(from));
        let circle: BTreeSet<&str> = to.iter().filter(back).copied().collect();
        if circle.len() > 1 && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

fn reach<'a>(next: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(name) = open.pop() {
        for to in next.get(name).into_iter().flatten() {
            if reached.insert(*to) {
                open.push(to);
            }
        }
    }
    reached
}

/// The circles of files in the product.
pub(crate) fn file_circles(links: &[Link]) -> Vec<BTreeSet<&str>> {
    let product = links.iter().filter(|link| !link.is_test);
    circles(product.map(|link| (link.from.as_str(), link.to.as_str())))
}

/// A line for each two files of a circle, with the names that connect them.
pub(crate) fn ties(circle: &BTreeSet<&str>, links: &[Link]) -> Vec<String> {
    let mut ties: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for link in links.iter().filter(|link| !link.is_test) {
        if circle.contains(link.from.as_str()) && circle.contains(link.to.as_str()) {
            ties.entry((&link.from, &link.to)).or_default().insert(&link.name);
        }
    }
    let line = |((from, to), names): (_, BTreeSet<&str>)| {
        format!("{from} -> {to}: {}", names.into_iter().collect::<Vec<_>>().join(", "))
    };
    ties.into_iter().map(line).collect()
}
