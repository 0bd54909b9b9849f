//! The settings of the display: its width, and its abilities.

/// The settings of the display.
#[derive(Debug, Clone)]
pub(in crate::chat) struct Look {
    /// The width of a row in columns.
    pub(in crate::chat) width: usize,
    /// True when texts of models are rendered as Markdown; otherwise they are shown as plain text.
    pub(in crate::chat) has_markdown: bool,
    /// True when the terminal has a live part.
    pub(in crate::chat) is_live: bool,
    /// The URL of the gateway, which has a page for each error code.
    pub(in crate::chat) gateway: String,
}

impl Look {
    pub(super) fn inner(&self, depth: usize) -> Self {
        Self {
            width: self.width.saturating_sub(4 * depth).max(10),
            ..self.clone()
        }
    }
}
