//! Markers in text that still grows: the first one, or how much of the end may become one.

/// What a search led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Search {
    /// The first marker, the longest of those that begin there.
    Found {
        /// Where it begins, in bytes.
        start: usize,
        /// Where it ends.
        end: usize,
    },
    /// None yet: what lies at `from` and behind may be the beginning of one.
    Open {
        /// In bytes; the text's length when nothing may be.
        from: usize,
    },
}

/// Searches `text`.
pub(crate) fn search(text: &str, markers: &[&str]) -> Search {
    let found = markers.iter().filter_map(|marker| text.find(marker).map(|start| (start, start + marker.len())));
    if let Some((start, end)) = found.min_by_key(|&(start, end)| (start, std::cmp::Reverse(end))) {
        return Search::Found { start, end };
    }
    let longest = markers.iter().map(|marker| marker.len()).max().unwrap_or(0);
    let earliest = text.len().saturating_sub(longest.saturating_sub(1));
    let may_begin = |tail: &str| markers.iter().any(|marker| marker.starts_with(tail));
    let from = (earliest..text.len()).find(|&at| text.get(at..).is_some_and(may_begin)).unwrap_or(text.len());
    Search::Open { from }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_marker_or_its_beginning_is_found() {
        assert_eq!(search("a<b>c<d>", &["<d>", "<b>"]), Search::Found { start: 1, end: 4 });
        assert_eq!(search("ab<", &["<d>", "<b>"]), Search::Open { from: 2 });
        assert_eq!(search("aé", &["éx"]), Search::Open { from: 1 });
        assert_eq!(search("ab", &["<b>"]), Search::Open { from: 2 });
        assert_eq!(search("", &["<b>"]), Search::Open { from: 0 });
        assert_eq!(search("x", &[]), Search::Open { from: 1 });
    }
}
