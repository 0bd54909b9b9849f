//! Tables on the terminal: columns below each other, and ages.

use chrono::{DateTime, TimeDelta, Utc};
use unicode_width::UnicodeWidthStr;

/// Returns the rows as lines. Every column but the last is as wide as its widest cell, in columns of the terminal.
pub fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max();
    let widths: Vec<_> = (0..N).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| {
            let blanks = width - cell.width();
            format!("{cell}{}", " ".repeat(blanks))
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// Returns the time since a change, in the largest unit.
pub fn age(time: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let age = (now - time).max(TimeDelta::zero());
    match (age.num_days(), age.num_hours(), age.num_minutes()) {
        (0, 0, 0) => format!("{} s ago", age.num_seconds()),
        (0, 0, minutes) => format!("{minutes} min ago"),
        (0, hours, _) => format!("{hours} h ago"),
        (days, ..) => format!("{days} d ago"),
    }
}

/// Returns the time until a deadline, in the largest unit.
pub fn left(deadline: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let left = (deadline - now).max(TimeDelta::zero());
    match (left.num_days(), left.num_hours(), left.num_minutes()) {
        (0, 0, 0) => format!("{} s left", left.num_seconds()),
        (0, 0, minutes) => format!("{minutes} min left"),
        (0, hours, _) => format!("{hours} h left"),
        (days, ..) => format!("{days} d left"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        for (time, shown) in [
            ("2026-11-21T12:00:09Z", "0 s ago"),
            ("2026-11-21T11:58:01Z", "1 min ago"),
            ("2026-11-20T12:00:01Z", "23 h ago"),
        ] {
            assert_eq!(age(time.parse().unwrap(), now), shown);
        }
    }
}
