//! The summary of the site has every page of `docs/`. `make site` checks the links of the site.

use std::collections::BTreeMap;

use crate::repository::{files, read};

#[test]
fn the_summary_has_every_page_once() {
    let summary = read("docs/SUMMARY.md");
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for link in summary.split("](").skip(1) {
        let (path, _) = link.split_once(')').unwrap();
        *count.entry(path).or_default() += 1;
    }
    let documents = files(&[".md"]).into_iter();
    let paths = documents.filter_map(|file| Some(file.path.strip_prefix("docs/")?.to_owned()));
    let pages: Vec<_> = paths.filter(|path| path != "SUMMARY.md").collect();
    assert!(pages.len() > 100, "{pages:?}");
    let wrong = pages.iter().filter_map(|page| {
        let found = count.get(page.as_str()).copied().unwrap_or_default();
        (found != 1).then(|| format!("docs/SUMMARY.md lists {page} {found} times, and not once"))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
